"""Per-run metrics that claims are judged by and reports show."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.types import Floats

if TYPE_CHECKING:
    from solid_bandits.simulation.results import Results

LINEAR_RATE = 0.8
"""Least ratio of a run's rate in each of the last two quarters to its mean rate for its regret to count as linear.

Linear regret from the start gives 1 in both, logarithmic regret about 0.1, √t 0.64 and 0.54. Both quarters must
qualify because a run with hardly any regret may owe most of it to a single late pull.
"""


TRIALS = 10
"""Number of pulls after which an arm counts as properly tried."""


class Metric(NamedTuple):
    """A per-run number: its description, and the function that computes it for a policy at a share of the horizon."""

    words: str
    values: Callable[..., Floats | None]
    """Function of (results, policy, share of the horizon) and, for a metric of one arm, (context, arm)."""
    of_arm: bool = False


class _Reading(NamedTuple):
    """A column at one checkpoint, ordered by run."""

    step: int
    values: Floats


def _reading(table: pl.DataFrame | None, column: str, policy: str, target: float) -> _Reading | None:
    """Read a column at the checkpoint nearest to step `target`; None where a run has no finite number."""
    if table is None or column not in table.columns:
        return None
    rows = table.filter(pl.col("policy") == policy)
    steps = rows["step"].unique().sort().to_numpy()
    if not len(steps):
        return None
    step = int(steps[np.abs(steps - target).argmin()])
    here = rows.filter(pl.col("step") == step).sort("run")[column].cast(pl.Float64)
    values = here.to_numpy()
    if here.null_count() or not np.isfinite(values).all():
        return None
    return _Reading(step, values)


def _column(column: str, of_diagnostics: bool = False) -> Callable[["Results", str, float], Floats | None]:
    """Return the metric that reads a column of the table, or of the diagnostics, unchanged."""

    def values(results: "Results", policy: str, at: float) -> Floats | None:
        table = results.diagnostics if of_diagnostics else results.table
        here = _reading(table, column, policy, at * results.horizon)
        return None if here is None else here.values

    return values


def slope(results: "Results", policy: str, at: float) -> Floats | None:
    """Return the growth of regret per unit of log t over the last decade before a share `at` of the horizon."""
    last = _reading(results.table, "regret", policy, at * results.horizon)
    if last is None:
        return None
    before = _reading(results.table, "regret", policy, last.step / 10)
    if before is None or before.step >= last.step:
        return None
    return (last.values - before.values) / math.log(last.step / before.step)


def _exploring_share(results: "Results", policy: str, at: float) -> Floats | None:
    here = _reading(results.table, "explored", policy, at * results.horizon)
    return None if here is None else here.values / here.step


def _late_share(results: "Results", policy: str, at: float) -> Floats | None:
    last = _reading(results.table, "regret", policy, at * results.horizon)
    if last is None:
        return None
    half = _reading(results.table, "regret", policy, last.step / 2)
    if half is None or half.step >= last.step:
        return None
    late = last.values - half.values
    return np.divide(late, last.values, out=np.zeros_like(late), where=last.values > 0)


def _distance_to_uniform(results: "Results", policy: str, at: float) -> Floats | None:
    table = results.diagnostics
    if table is None or "omega" not in table.columns:
        return None
    rows = table.filter(pl.col("policy") == policy)
    distances = [None if omega is None else _from_uniform(omega.to_numpy()) for omega in rows["omega"]]
    rows = rows.with_columns(pl.Series("distance", distances, dtype=pl.Float64))
    here = _reading(rows, "distance", policy, at * results.horizon)
    return None if here is None else here.values


def _from_uniform(omega: Floats) -> float:
    # The policy sums to 1 in each context, so its total is the number of contexts.
    contexts = round(float(omega.sum()))
    return 0.5 * float(np.abs(omega - contexts / len(omega)).sum()) / contexts


def _pulls(results: "Results", policy: str, arm: tuple[int, int]) -> pl.DataFrame | None:
    """Return the diagnostics, with the pulls of an arm in a context as the column `count`."""
    table = results.diagnostics
    if table is None or "pulls" not in table.columns:
        return None
    rows = table.filter(pl.col("policy") == policy, pl.col("pulls").is_not_null())
    if rows.is_empty():
        return None
    context, place = arm
    shape = (len(rows["pulls"][0]), len(rows["pulls"][0][0]))
    if not (0 <= context < shape[0] and 0 <= place < shape[1]):
        raise ArgumentError(
            "arm",
            f"must be [context, arm], counted from 0, of {shape[0]} contexts and {shape[1]} arms, got {list(arm)}",
        )
    return rows.with_columns(pl.col("pulls").list.get(context).list.get(place).alias("count"))


def _pull_count(results: "Results", policy: str, at: float, arm: tuple[int, int]) -> Floats | None:
    here = _reading(_pulls(results, policy, arm), "count", policy, at * results.horizon)
    return None if here is None else here.values


def _pull_share(results: "Results", policy: str, at: float, arm: tuple[int, int]) -> Floats | None:
    here = _reading(_pulls(results, policy, arm), "count", policy, at * results.horizon)
    return None if here is None else here.values / here.step


def _wait(results: "Results", policy: str, at: float, arm: tuple[int, int]) -> Floats | None:
    rows = _pulls(results, policy, arm)
    if rows is None:
        return None
    rows = rows.filter(pl.col("step") <= at * results.horizon)
    # The first checkpoint with that many pulls, or the last checkpoint.
    waits = rows.group_by("run").agg(
        pl.col("step").filter(pl.col("count") >= TRIALS).min().fill_null(pl.col("step").max())
    )
    return waits.sort("run")["step"].cast(pl.Float64).to_numpy()


METRICS: dict[str, Metric] = {
    "regret": Metric("cumulative regret", _column("regret")),
    "slope": Metric("growth of regret per unit of log t over the last decade before", slope),
    "explored": Metric("exploring rounds up to", _column("explored")),
    "exploring share": Metric("share of exploring rounds among all up to", _exploring_share),
    "multiplier": Metric("SOLID's multiplier λ", _column("multiplier", of_diagnostics=True)),
    "distance to uniform": Metric(
        "total variation between SOLID's exploration policy ω and the uniform one, mean over contexts,",
        _distance_to_uniform,
    ),
    "information": Metric(
        "the exploitation test's statistic, the distance to the closest alternative,",
        _column("statistic", of_diagnostics=True),
    ),
    "late share": Metric(
        "share of the regret that came in the second half of the time (0 for no regret) up to", _late_share
    ),
    "pulls": Metric("pulls of the named arm up to", _pull_count, of_arm=True),
    "pull share": Metric("pulls of the named arm, as a share of all rounds, up to", _pull_share, of_arm=True),
    "wait": Metric(
        f"rounds until the named arm had been pulled {TRIALS} times, as far as checkpoints tell, at most those "
        "up to",
        _wait,
        of_arm=True,
    ),
}


def is_linear(results: "Results", policy: str, at: float) -> Floats | None:
    """Return 1 for each run whose regret is linear (`LINEAR_RATE`), 0 for the others."""
    last = _reading(results.table, "regret", policy, at * results.horizon)
    if last is None:
        return None
    half = _reading(results.table, "regret", policy, last.step / 2)
    third = _reading(results.table, "regret", policy, last.step * 3 / 4)
    if half is None or third is None or not half.step < third.step < last.step:
        return None
    least = LINEAR_RATE * last.values / last.step
    steady = (last.values > 0) & (_rate(half, third) >= least) & (_rate(third, last) >= least)
    return steady.astype(np.float64)


def _rate(start: _Reading, end: _Reading) -> Floats:
    return (end.values - start.values) / (end.step - start.step)
