"""Streams in TOML experiments: played, kept and resumed as problems are."""

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from small import contents, interrupted_after, play
from solid_bandits.paper.reader import load

TOML = """
title = "Streams"
horizon = 60
runs = 3

[[problem]]
label = "mine"
file = "mine.csv"
parameters = { reward = "gain_{arm}", context = ["x"] }

[[problem]]
label = "fresh"
kind = "gaussian"
parameters = { n_arms = 3, dim = 2 }
new_each_run = true

[[policy]]
name = "greedy"

[[policy]]
name = "epsilon-greedy"
"""


def written(folder, text=TOML):
    rng = np.random.default_rng(0)
    pl.DataFrame(
        {"x": rng.normal(size=60), "gain_a": rng.normal(size=60), "gain_b": rng.normal(size=60)}
    ).write_csv(folder / "mine.csv")
    (folder / "streams.toml").write_text(text, encoding="utf-8")
    return folder / "streams.toml"


def test_results_are_those_of_simulate_also_after_an_interruption(tmp_path, monkeypatch):
    path = written(tmp_path)
    interrupted_after(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "a")
    monkeypatch.undo()
    play(path, tmp_path / "a")
    play(path, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    for part in load(path).parts:
        plan = part.plan
        direct = sb.simulate(plan.problem, plan.policies, plan.horizon, plan.runs, plan.seed, jobs=1)
        found = sb.Results.load(tmp_path / "a" / "streams" / part.slug)
        for name in ("table", "arms", "calibration"):
            assert getattr(found, name).equals(getattr(direct, name))
        assert found.bound is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gain_{arm}", "gian_{arm}", "line 9: reward must match columns, got 'gian_{arm}'"),
        ('context = ["x"]', 'context = ["y"]', "line 9: 'mine.csv': column 'y' is missing"),
        ('context = ["x"]', "contexts = 1", "line 9: parameter must be one of "),
        (
            'name = "greedy"',
            'name = "solid"',
            "policies must decide from features to play a stream, got Solid",
        ),
        ("horizon = 60", "horizon = 61", "horizon must be at most 60, the rounds of the stream, got 61"),
    ],
)
def test_mistakes_have_their_line(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=r"streams\.toml, line \d+: ") as caught:
        load(written(tmp_path, TOML.replace(old, new)))
    assert message in str(caught.value)
