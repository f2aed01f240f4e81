"""Final measures of a policy: means with intervals, the tail, exploration, time."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.intervals import student
from solid_bandits.statistics.metrics import slope
from solid_bandits.statistics.summary import last_step, paired_differences

if TYPE_CHECKING:
    from solid_bandits.simulation.results import Results


@dataclass(frozen=True)
class Measures:
    """Measures of a policy at the last step; means over runs have 95% Student intervals.

    Args:
        policy: its label.
        runs: number of runs.
        regret: final regret.
        difference: final regret minus that of the reference in the same run; None for the reference itself and where
            the
            reference was not played.
        slope: regret per unit of log t over the last decade of the run; None where there is only one checkpoint.
        median: median of the final regret over runs.
        worst: largest final regret of a run.
        exploring: share of exploring rounds.
        seconds: CPU time of all runs; None where it was not measured.
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


def measures(results: "Results", reference: str) -> list[Measures]:
    """Return the measures of every policy that has runs, in order of mean final regret."""
    runs = {
        str(label): rows
        for (label,), rows in last_step(results.table).group_by("policy", maintain_order=True)
    }
    differences = {}
    if reference in runs:
        for label, *estimate in paired_differences(results.table, to=reference).iter_rows():
            differences[label] = Estimate(*estimate)
    found = []
    for label, rows in runs.items():
        finals = rows["regret"].to_numpy()
        slopes = slope(results, label, 1.0)
        seconds = results.seconds.get(label)
        found.append(
            Measures(
                policy=label,
                runs=len(finals),
                regret=student(finals),
                difference=differences.get(label),
                slope=None if slopes is None else student(slopes),
                median=float(np.median(finals)),
                worst=float(finals.max()),
                exploring=student((rows["explored"] / rows["step"]).to_numpy()),
                seconds=seconds,
                step_seconds=None if seconds is None else seconds / (len(finals) * int(rows["step"][0])),
            )
        )
    return sorted(found, key=_by_regret)


def _by_regret(measured: Measures) -> tuple[bool, float]:
    mean = measured.regret.value
    return (mean is None or math.isnan(mean), mean or 0.0)
