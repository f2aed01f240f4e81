"""`solid-bandits evaluate`: what it prints, writes and refuses; the page in a browser."""

from io import StringIO

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import solid_bandits as sb
from browser import PHONE, WIDE, chromium
from solid_bandits import ope
from solid_bandits.cli import main
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.report.evaluation import (
    comparison_tables,
    evaluation_figure,
    rows_of,
    write_evaluation,
)


@pytest.fixture(scope="module")
def bandit():
    rng = np.random.default_rng(1)
    made = sb.Bandit(sb.EpsilonGreedy(epsilon=0.3), dim=2, noise_std=0.5, floor=0.2)
    for _ in range(200):
        features = rng.normal(size=(3, 2))
        choice = made.decide(features, arms=["a<b>", "b", "c"])
        made.learn(choice.event_id, float(features[choice.arms.index(choice.arm), 0] > 0))
    return made


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["solid-bandits", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, *capsys.readouterr()


def test_policies_of_every_kind(bandit, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "160")
    sb.logs.write(bandit.log(), tmp_path / "log.parquet")
    bandit.save(tmp_path / "bandit.zip")
    bandit.agent.save(tmp_path / "agent.json")
    files = [tmp_path / "bandit.zip", tmp_path / "agent.json"]
    policies = [part for one in ["uniform", "always:b", *files] for part in ("--policy", one)]
    status, out, _ = run(
        monkeypatch, capsys, "evaluate", tmp_path / "log.parquet", *policies, "--out", tmp_path / "out"
    )
    assert status == 0
    assert out.count("value per decision") == 4
    expected = {name: value for name, value, *_ in rows_of(ope.evaluate(bandit, "always:b"))}
    assert expected["dr"] in out
    assert (tmp_path / "out" / "evaluation.png").stat().st_size > 10_000
    status, out, _ = run(
        monkeypatch,
        capsys,
        "evaluate",
        tmp_path / "log.parquet",
        "--policy",
        "column:probabilities",
        "--estimator",
        "ips",
    )
    assert status == 0
    assert f"{bandit.log()['reward'].mean():.4f}"[:5] in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.parquet"], "log must be a file that can be read"),
        (["log.parquet", "--policy", "solid"], "policy must be one that decides from features, got 'solid'"),
        (["log.parquet", "--policy", "greedyy"], "policy must be one of"),
        (["log.parquet", "--policy", "column:arm"], "policy must name a column of lists of probabilities"),
        (["log.parquet", "--estimator", "magic"], "estimators must be one of"),
        (["log.parquet", "--column", "arm"], "column must look like arm=treatment"),
        (
            ["log.parquet", "--logger", "fixed", "--reward-range", "0", "0.5"],
            "reward_range must hold all rewards",
        ),
        (["certain.parquet"], "log cannot answer"),
    ],
)
def test_mistakes_are_one_line(bandit, arguments, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    log = bandit.log()
    sb.logs.write(log, "log.parquet")
    certain = [
        [1.0 if arm == chosen else 0.0 for arm in arms]
        for arms, chosen in log.select("arms", "arm").iter_rows()
    ]
    sb.logs.write(
        log.with_columns(pl.Series("probabilities", certain), pl.lit(1.0).alias("probability")),
        "certain.parquet",
    )
    status, _, error = run(monkeypatch, capsys, "evaluate", *arguments)
    assert status == 2
    assert error.startswith("solid-bandits: error: ")
    assert message in error
    assert error.count("\n") == 1


def test_the_figure_has_a_dot_for_each_value(bandit):
    found = {label: ope.evaluate(bandit, label, logger="fixed") for label in ("uniform", "always:b")}
    above, below = evaluation_figure(found).axes
    for evaluation, line in zip(
        found.values(), [one for one in above.lines if one.get_marker() == "o"], strict=True
    ):
        assert sorted(line.get_xdata()) == sorted(evaluation.table["value"].drop_nulls().to_list())
    assert len(below.lines) == 4


def test_the_page_in_a_browser(bandit, tmp_path):
    write_evaluation({"<i>mine</i>": ope.evaluate(bandit, "uniform")}, tmp_path, "a<b>.parquet")
    with chromium() as browser:
        for width in (PHONE, WIDE):
            page = browser.new_page(viewport={"width": width, "height": 900})
            problems = []
            page.on("console", lambda message, problems=problems: problems.append(message.text))
            page.on(
                "request",
                lambda request, problems=problems: (
                    request.url.startswith("file:") or problems.append(request.url)
                ),
            )
            page.goto((tmp_path / "evaluation.html").as_uri())
            assert problems == []
            assert page.locator("h2").inner_text() == "<i>mine</i>"
            assert page.locator("tbody tr").count() == len(ope.ESTIMATORS)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_recorded_decisions_of_several_runs_are_filtered(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "160")
    path = tmp_path / "decisions.parquet"
    record = sb.streams.Record(path, probabilities=True, features=True)
    policies = {"A": sb.EpsilonGreedy(epsilon=0.5), "B": sb.LinTS()}
    sb.simulate(sb.streams.gaussian(3, 2), policies, 50, runs=2, jobs=1, record=record)
    status, _, error = run(monkeypatch, capsys, "evaluate", path)
    assert status == 2
    assert "one policy in one run, got 4" in error
    assert "--where policy=NAME --where run=0" in error
    chosen = ["--where", "policy=A", "--where", "run=1"]
    status, out, _ = run(monkeypatch, capsys, "evaluate", path, *chosen, "--policy", "uniform")
    assert status == 0
    rows = pl.read_parquet(path).filter(policy="A", run=1)
    assert rows.height == 50
    expected = {name: value for name, value, *_ in rows_of(ope.evaluate(rows, "uniform"))}
    assert expected["dr"] in out
    for wrong, message in [
        (["--where", "policy"], "where must look like run=0, got 'policy'"),
        (["--where", "colour=red"], "where must name one of event_id, sequence, "),
        (["--where", "run=7"], "where must leave rows, got 'run=7' where run has 0, 1"),
    ]:
        status, _, error = run(monkeypatch, capsys, "evaluate", path, *wrong)
        assert (status, error.count("\n")) == (2, 1)
        assert message in error


def test_a_database_that_is_no_bandits_is_one_line(monkeypatch, capsys, tmp_path):
    SqliteStore(tmp_path / "service.db", create=True, write=True).close()
    status, _, error = run(monkeypatch, capsys, "evaluate", tmp_path / "service.db")
    assert (status, error.count("\n")) == (2, 1)
    assert "must be the store of one bandit; it is not, or of a service" in error


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A table of two kinds of customers, for whom different arms are best."""
    rng = np.random.default_rng(3)
    kind, place = rng.integers(2, size=3000), rng.integers(2, size=3000)
    path = tmp_path_factory.mktemp("shop") / "shop.parquet"
    table = {
        "arm": np.array(["red", "blue"])[place],
        "reward": (rng.random(3000) < 0.3 + 0.4 * (place == kind)).astype(float),
        "probabilities": [[0.5, 0.5]] * 3000,
        "kind": np.array(["new", "old"])[kind],
    }
    pl.DataFrame(table).write_parquet(path)
    return path


def test_who_won_for_whom_and_may_one_stop(shop, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "160")
    words = ["--policy", "always:red", "--policy", "always:blue", "--segment", "kind", "--verdict"]
    status, out, _ = run(monkeypatch, capsys, "evaluate", shop, *words, "--out", tmp_path)
    assert status == 0
    assert out.startswith("Go on: ")
    table = pl.read_parquet(shop)
    found = ope.compare(table, ["always:red", "always:blue"], segments="kind")
    for segment in ("everyone", "kind = new", "kind = old"):
        assert f"{segment}: {found.sentence(segment)}"[:55] in out
    assert found.sentence("kind = new").startswith("always:red earns most")
    assert found.sentence("kind = old").startswith("always:blue earns most")
    page = (tmp_path / "evaluation.html").read_text(encoding="utf-8")
    opening = page[page.index("<h1>") : page.index("<details")]
    assert found.said in opening
    assert opening.count('<svg viewBox="0 0 360') == 1
    assert opening.count('class="span"') == 2  # every policy, over what was played
    assert ope.verdict(table).said in page
    status, _, error = run(monkeypatch, capsys, "evaluate", shop, "--segment", "colour")
    assert (status, error.count("\n")) == (2, 1)
    assert "segments must be 'tree', labels, or columns among arm, reward" in error


def test_the_opening_fits_a_phone(shop, tmp_path):
    table = pl.read_parquet(shop)
    policies = {"always:red": "always:red", "uniform": "uniform"}
    write_evaluation(
        ope.evaluate(table, policies), tmp_path, "shop", ope.compare(table, policies), ope.verdict(table)
    )
    with chromium() as browser:
        page = browser.new_page(viewport={"width": PHONE, "height": 900})
        page.goto((tmp_path / "evaluation.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.locator("figure.differences svg").bounding_box()["y"] < 600  # seen without scrolling
        assert page.evaluate("document.documentElement.scrollHeight") < 3000  # details are folded
        assert page.locator("table").first.is_hidden()


def test_would_a_name_have_helped(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(4)
    made = sb.Bandit(arms=["x", "y"], context=["age"], floor=1.0, seed=1)
    for _ in range(200):
        age = float(rng.normal(40, 9))
        choice = made.decide({"age": age})
        made.learn(choice.event_id, float((choice.arm == "x") == (age > 40)))
    sb.logs.write(made.log(), tmp_path / "log.parquet")
    asked = ["evaluate", tmp_path / "log.parquet", "--policy", "greedy"]
    status, out, _ = run(monkeypatch, capsys, *asked, "--without", "age")
    assert status == 0
    assert "Greedy without age" in out
    status, _, complained = run(monkeypatch, capsys, *asked, "--without", "size")
    assert status != 0
    assert "must be a name that the log has, got 'size'" in " ".join(complained.replace("│", " ").split())


def test_policies_can_be_read_at_eighty_columns():
    bandit = sb.Bandit(arms=["climate", "football"], context=["age"], floor=0.2)
    for number in range(60):
        bandit.learn(bandit.decide({"age": number}, event_id=str(number)).event_id, float(number % 2))
    table = comparison_tables(ope.compare(bandit.log(), ["always:football", "uniform"]))[0]
    console = Console(width=80, record=True, file=StringIO())
    console.print(table)
    lines = console.export_text().splitlines()
    for policy in ("always:football", "uniform", "the log"):
        assert any(line.split("  ")[0].strip() == policy for line in lines)
    assert sum("95% interval" in line for line in lines) == 1
