"""What is said of a policy at the end of its runs: means with intervals, the tail, exploring, time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from solid_bandits._types import Floats
from solid_bandits.experiments.claims import METRICS
from solid_bandits.report.standings import paired_differences
from solid_bandits.results import COLUMNS, Results


class Estimate(NamedTuple):
    """A mean over runs with its 95% Student interval, which a single run does not have."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def holds_zero(self) -> bool:
        """Whether the interval is known and 0 lies in it."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high


@dataclass(frozen=True)
class Measures:
    """A policy at the last step.

    Args:
        policy: its label.
        runs: how many there are.
        regret: final regret.
        difference: final regret less that of the reference in the same run; None for the reference itself and where
            the reference was not played.
        slope: regret per unit of log t over the last decade of the run; None where there is but one checkpoint.
        median: the middle run's final regret.
        worst: the largest final regret.
        exploring: share of the rounds that explored.
        seconds: CPU time of all runs; None where it was not taken.
        step_seconds: CPU time per step.

    """

    policy: str
    runs: int
    regret: Estimate
    difference: Estimate | None
    slope: Estimate | None
    median: float
    worst: float
    exploring: Estimate
    seconds: float | None
    step_seconds: float | None


def measures(results: Results, reference: str) -> list[Measures]:
    """Every policy that has runs, in order of mean final regret."""
    last = results.table.filter(pl.col("step") == pl.col("step").max())
    runs = {str(label): rows for (label,), rows in last.group_by("policy", maintain_order=True)}
    regret = estimates({label: rows["regret"].to_numpy() for label, rows in runs.items()})
    share = estimates({label: (rows["explored"] / rows["step"]).to_numpy() for label, rows in runs.items()})
    slopes = {label: METRICS["slope"].values(results, label, 1.0) for label in runs}
    slope = estimates({label: values for label, values in slopes.items() if values is not None})
    differences = {}
    if reference in runs:
        for label, *estimate in paired_differences(results, to=reference).iter_rows():
            differences[label] = Estimate(*estimate)
    found = []
    for label in sorted(runs, key=lambda label: (math.isnan(regret[label].mean), regret[label].mean)):
        finals, seconds = runs[label]["regret"], results.manifest.get("seconds", {}).get(label)
        steps = len(finals) * int(runs[label]["step"][0])
        found.append(
            Measures(
                policy=label,
                runs=len(finals),
                regret=regret[label],
                difference=differences.get(label),
                slope=slope.get(label),
                median=float(np.median(finals.to_numpy())),
                worst=float(finals.to_numpy().max()),
                exploring=share[label],
                seconds=seconds,
                step_seconds=None if seconds is None else seconds / steps,
            )
        )
    return found


def estimates(values: Mapping[str, Floats]) -> dict[str, Estimate]:
    """Mean and Student interval of each policy's numbers, one number per run."""
    if not values:
        return {}
    # Any number per run has the same columns as a regret: the same summary gives its interval.
    frames = [
        pl.DataFrame(
            {"policy": label, "run": range(len(of_runs)), "step": 1, "regret": of_runs, "explored": 0},
            schema=COLUMNS,
        )
        for label, of_runs in values.items()
    ]
    rows = Results(pl.concat(frames), {}).summary().select("policy", "mean", "low", "high").iter_rows()
    return {label: Estimate(mean, low, high) for label, mean, low, high in rows}
