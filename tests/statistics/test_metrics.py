"""Metrics read the nearest checkpoints."""

import math

import numpy as np
import polars as pl
import pytest

from made import from_curves
from solid_bandits.statistics.metrics import METRICS


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def test_metrics_read_the_nearest_checkpoints():
    regret = np.array([[0, 1, 2, 4, 5, 8, 9, 10], [1, 1, 1, 2, 2, 2, 2, 4.0]])
    explored = np.array([[1, 2, 3, 4, 5, 6, 7, 8], [0, 0, 0, 0, 0, 9, 9, 500]])
    results = from_curves({"B": regret * 7, "A": regret}, explored={"A": explored})

    def values(metric, at):
        return METRICS[metric].values(results, "A", at)

    assert values("regret", 1.0).tolist() == [10, 4]
    assert values("regret", 0.6).tolist() == [8, 2]  # 600 is nearer to 500 than to 750
    assert values("slope", 1.0) == close([6 / math.log(10), 2 / math.log(10)])
    assert values("slope", 0.5) == close([6 / math.log(10), 1 / math.log(10)])
    assert values("slope", 0.25) == close(
        [4 / math.log(25), 1 / math.log(25)]
    )  # from step 10, the nearest to 25
    assert values("slope", 0.001) is None  # nothing before the first step
    assert values("explored", 0.1).tolist() == [4, 0]
    assert values("exploring share", 1.0) == close([0.008, 0.5])
    assert values("late share", 1.0) == close([0.2, 0.5])
    assert values("information", 1.0) is None


def test_late_share_of_known_curves():
    steps = np.unique(np.linspace(1, 50_000, 101).round().astype(int))
    curves = {
        "linear": steps[None] * 0.1,
        "log": np.log(steps)[None],
        "none": np.zeros((1, len(steps))),
    }
    results = from_curves(curves, steps)
    share = {policy: METRICS["late share"].values(results, policy, 1.0).item() for policy in curves}
    assert share["linear"] == pytest.approx(0.5, abs=1e-3)
    assert share["log"] == pytest.approx(math.log(2) / math.log(50_000), rel=1e-2)
    assert share["none"] == 0


def with_pulls():
    """Two runs of A at 100, 500 and 1000 steps, two contexts with two arms."""
    counts = {
        0: [[[90, 2], [8, 0]], [[450, 9], [41, 0]], [[900, 10], [90, 0]]],
        1: [[[80, 12], [8, 0]], [[400, 60], [40, 0]], [[800, 110], [90, 0]]],
    }
    rows = [
        {"policy": "A", "run": run, "step": step, "pulls": pulls}
        for run, of_run in counts.items()
        for step, pulls in zip((100, 500, 1000), of_run, strict=True)
    ]
    return from_curves({"A": np.zeros((2, 8)), "B": np.zeros((2, 8))}, diagnostics=pl.DataFrame(rows))


def test_metrics_of_an_arm():
    results = with_pulls()
    assert METRICS["pulls"].values(results, "A", 1.0, (0, 1)).tolist() == [10, 110]
    assert METRICS["pulls"].values(results, "A", 0.5, (0, 1)).tolist() == [9, 60]
    assert METRICS["pull share"].values(results, "A", 0.5, (1, 0)) == close([0.082, 0.08])
    assert METRICS["wait"].values(results, "A", 1.0, (0, 1)).tolist() == [1000, 100]
    assert METRICS["wait"].values(results, "A", 1.0, (0, 0)).tolist() == [100, 100]
    # Never ten of them: as long as there are checkpoints.
    assert METRICS["wait"].values(results, "A", 0.5, (1, 1)).tolist() == [500, 500]
    for name in ("pulls", "pull share", "wait"):
        assert METRICS[name].of_arm
        assert METRICS[name].values(results, "B", 1.0, (0, 0)) is None
        assert METRICS[name].values(from_curves({"A": np.zeros((2, 8))}), "A", 1.0, (0, 0)) is None
        with pytest.raises(ValueError, match=r"of 2 contexts and 2 arms, got \[0, 2\]"):
            METRICS[name].values(results, "A", 1.0, (0, 2))
