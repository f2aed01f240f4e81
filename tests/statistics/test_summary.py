"""Means over runs have Student's intervals, and differences are paired."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from made import LABELS, make_results
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.summary import paired_differences, standings, summarise


@pytest.fixture(scope="module")
def results() -> Results:
    return make_results(LABELS, started="2026-01-01T00:00:00Z", wall_seconds=12.34, seconds={"SOLID": 8.1})


def curve(results, policy):
    return results.summary().filter(pl.col("policy") == policy)


def test_the_summary_is_students():
    results = make_results({"UCB": 2.0, "Greedy": 1.0}, runs=12)
    summary = results.summary()
    assert summary.columns == ["policy", "step", "mean", "low", "high", "runs"]
    for policy, step, mean, low, high, runs in summary.iter_rows():
        regret = results.table.filter((pl.col("policy") == policy) & (pl.col("step") == step))[
            "regret"
        ].to_numpy()
        assert runs == len(regret) == 12
        assert mean == pytest.approx(regret.mean())
        if regret.std() > 0:
            expected = stats.t.interval(0.95, 11, loc=regret.mean(), scale=stats.sem(regret))
            assert (low, high) == pytest.approx(expected)
        else:
            assert (low, high) == (mean, mean)


def test_ninety_five_percent_cover():
    """Intervals of 2,000 samples of 5 normals cover the mean as often as they say, within 4 standard errors."""
    rng = np.random.default_rng(0)
    frames = pl.DataFrame(
        {
            "policy": np.repeat([f"p{i}" for i in range(2000)], 5),
            "run": np.tile(np.arange(5), 2000),
            "step": np.ones(10_000, dtype=int),
            "regret": rng.normal(3, 2, size=10_000),
            "explored": np.zeros(10_000, dtype=int),
        }
    )
    summary = summarise(frames)
    covered = ((summary["low"] < 3) & (summary["high"] > 3)).mean()
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000)


def test_one_run_has_no_interval():
    summary = make_results(LABELS, runs=1).summary()
    assert summary["low"].null_count() == summary["high"].null_count() == len(summary)
    with pytest.raises(ValueError, match="confidence must be > 0 and < 1, got 1"):
        make_results(LABELS, runs=2).summary(confidence=1)


def test_standings_are_the_final_summary_in_order(results):
    table = standings(results.table)
    assert table["mean"].is_sorted()
    columns = ["policy", "mean", "low", "high", "runs", "explored"]
    assert table.select(columns).sort("policy").equals(results.final().select(columns).sort("policy"))


def test_paired_differences_drop_what_runs_share(results):
    differences = paired_differences(results.table, to="SOLID")
    final = results.table.filter(pl.col("step") == 5000).pivot("policy", index="run", values="regret")
    assert differences["policy"].to_list() == [policy for policy in LABELS if policy != "SOLID"]
    for policy, mean, low, high in differences.iter_rows():
        paired = (final[policy] - final["SOLID"]).to_numpy()
        half = (
            2.093024 * paired.std(ddof=1) / math.sqrt(20)
        )  # Student's 97.5% quantile, 19 degrees of freedom
        np.testing.assert_allclose([mean, low, high], paired.mean() + half * np.array([0, -1, 1]), rtol=1e-6)
        own = curve(results, policy).row(-1, named=True)
        assert high - low < own["high"] - own["low"]
