"""The code of docs/live.md and docs/evaluation.md, as a reader would run it."""

import shlex

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from page_code import DOCS, read_page
from solid_bandits.cli import app
from solid_bandits.logs.schema import COLUMNS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_on_live_decisions(folder):
    names = {}
    exec(compile(read_page("live.md").script, "live.md", "exec"), names)
    receipt = names["receipt"]
    text = (DOCS / "live.md").read_text(encoding="utf-8")
    assert not receipt.counted
    assert f'"{receipt.message}"' in text
    assert names["foreign"]["arm"].to_list() == ["1", "0", "1"]
    assert "visit-1" not in names["bandit"].log()["event_id"].to_list()
    assert names["warm"].agent._compiled.state.regression.estimator.rewards == 1
    described = {
        name
        for line in text.splitlines()
        if line.startswith("| `")
        for name in line.split("|")[1].replace("`", "").split(", ")
    }
    assert {name.strip() for name in described} == set(COLUMNS)


def test_the_page_on_evaluation(folder, capsys):
    page = read_page("evaluation.md")
    names = {}
    exec(compile(page.script, "evaluation.md", "exec"), names)
    found = names["found"]
    # Features are symmetric around 0, so a uniform choice earns 0.5: within 4 standard errors of what was found (6e-5).
    low, high = found.interval("cadr")
    assert abs(found.value("cadr") - 0.5) < 2 * (high - low)
    assert found.interval("anytime")[0] < 0.5 < found.interval("anytime")[1]
    assert len(names["run"].rewards) > 10
    assert names["found"].answer.estimator in ("cadr", "anytime")
    assert names["shop"].table["policy"][0] == "the log"
    assert not names["judged"].stop  # arms are drawn alike
    assert names["chosen"].table["policy"][0] in names["candidates"]
    assert names["guessed"].calibration["rows"].sum() == 9000
    sb.logs.write(names["bandit"].log(), folder / "log.parquet")
    rng = np.random.default_rng(0)
    trial = {
        "treatment": rng.integers(2, size=100),
        "outcome": rng.normal(size=100),
        "age": rng.normal(size=100),
    }
    pl.DataFrame(trial | {"probability": [0.5] * 100}).write_csv(folder / "trial.csv")
    assert len(page.commands) == 3
    for line in page.commands:
        app(shlex.split(line)[1:], standalone_mode=False)
    printed = capsys.readouterr().out
    assert "uniform: value per decision" in printed
    assert "Greedy, of the first half: value per decision" in printed
    assert (folder / "evaluation" / "evaluation.png").stat().st_size > 10_000
    html = (folder / "evaluation" / "evaluation.html").read_text(encoding="utf-8")
    assert "earns most" in html[html.index("<h1>") : html.index("</h1>")]


def test_every_estimator_is_on_the_page():
    text = (DOCS / "evaluation.md").read_text(encoding="utf-8")
    for name in sb.ope.ESTIMATORS:
        assert f"| `{name}` |" in text


def test_the_page_on_named_features(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(read_page("features.md").script, "features.md", "exec"), names)
    assert names["choice"].why.arm == names["choice"].arm
    assert names["sb"].logs.values(names["log"]).rows() == [(34, "ios")]
    assert names["younger"].decisions == 1
