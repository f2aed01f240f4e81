"""What is said of a policy at the end is what an independent computation says."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student

from made import make_part
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.measures import measures

HORIZON, RUNS = 2000, 6
SLOPES = {"SOLID": 2.0, "LinUCB": 5.0, "LinTS": 1.5}


def student_interval(values) -> list[float]:
    mean = np.mean(values)
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return [mean, mean - half, mean + half]


def runs_at(results: Results, policy: str, step: int, column: str = "regret") -> np.ndarray:
    rows = results.table.filter((pl.col("policy") == policy) & (pl.col("step") == step))
    return rows.sort("run")[column].to_numpy()


def test_measures_are_those_of_an_independent_computation():
    results = make_part(SLOPES, RUNS, HORIZON, seconds={"SOLID": 1.2, "LinUCB": 0.3, "LinTS": 0.1})
    steps = results.table["step"].unique().to_numpy()
    tenth = int(steps[np.abs(steps - HORIZON / 10).argmin()])
    found = measures(results, "SOLID")
    assert [entry.policy for entry in found] == sorted(
        results.policies, key=lambda policy: runs_at(results, policy, HORIZON).mean()
    )
    for entry in found:
        final = runs_at(results, entry.policy, HORIZON)
        np.testing.assert_allclose(entry.regret, student_interval(final))
        assert [entry.median, entry.worst, entry.runs] == [np.median(final), final.max(), RUNS]
        slopes = (final - runs_at(results, entry.policy, tenth)) / math.log(HORIZON / tenth)
        np.testing.assert_allclose(entry.slope, student_interval(slopes))
        shares = runs_at(results, entry.policy, HORIZON, "explored") / HORIZON
        np.testing.assert_allclose(entry.exploring, student_interval(shares))
        seconds = results.manifest["seconds"][entry.policy]
        assert entry.seconds == seconds
        assert entry.step_seconds == pytest.approx(seconds / RUNS / HORIZON)
        if entry.policy == "SOLID":
            assert entry.difference is None
        else:
            paired = final - runs_at(results, "SOLID", HORIZON)
            np.testing.assert_allclose(entry.difference, student_interval(paired))


def test_measures_without_reference_interval_or_decade():
    single = make_part(SLOPES, runs=1)
    for entry in measures(single, "somebody else"):
        assert entry.difference is None
        assert entry.regret.low is entry.slope.high is None
    start = Results(single.table.filter(pl.col("step") == 1), {**single.manifest, "seconds": {}})
    for entry in measures(start, "SOLID"):
        assert entry.slope is entry.seconds is entry.step_seconds is None
