"""Playing the families, and the measures of docs/randucb.md."""

from typing import NamedTuple

import numpy as np

import solid_bandits as sb
from solid_bandits.simulation.block import Job, play_block
from solid_bandits.simulation.workers import Processes, Task

AT_A_TIME = 25
"""Runs in one task."""
LINTS = "LinTS (posterior)"


class Cell(NamedTuple):
    """A policy against LinTS in one family at one horizon."""

    ratio: float
    """R: of mean regrets."""
    tail: float
    """Q: of 95th percentiles."""
    stuck: float
    """Share of runs above 10 times the median of LinTS."""
    lints_stuck: float


def final_regrets(problem_of, policy, horizon, seed, first, runs):
    """Regret at the end of some runs."""
    played = play_block(Job(problem_of, policy, horizon, seed), first, runs)
    return [trace.regret[-1] for trace in played.traces]


def play_all(policies, families, horizons, runs, seed):
    """(policy, family, horizon) -> final regrets, one for each run."""
    tasks = [
        Task(
            (label, family, horizon, first),
            final_regrets,
            (families[family].problem_of, policy, horizon, seed, first, min(AT_A_TIME, runs - first)),
        )
        for horizon in sorted(horizons, reverse=True)
        for family in families
        for label, policy in policies.items()
        for first in range(0, runs, AT_A_TIME)
    ]
    regrets = {}
    for (label, family, horizon, first), values in Processes().do(tasks):
        regrets.setdefault((label, family, horizon), np.zeros(runs))[first : first + len(values)] = values
    return regrets


def compare(regret, lints):
    """The measures of one cell."""
    limit = 10 * np.median(lints)
    return Cell(
        float(regret.mean() / lints.mean()),
        float(np.quantile(regret, 0.95) / np.quantile(lints, 0.95)),
        float((regret > limit).mean()),
        float((lints > limit).mean()),
    )


def cells_of(regrets, lints, label):
    """(family, horizon) -> the measures of a policy."""
    return {
        (family, horizon): compare(values, lints[LINTS, family, horizon])
        for (name, family, horizon), values in regrets.items()
        if name == label
    }


def objective(cells):
    """What is minimised on the tuning side."""
    return float(
        np.mean(
            [
                np.log(cell.ratio)
                + 2 * max(np.log(cell.ratio), 0)
                + max(np.log(cell.tail), 0)
                + 10 * max(cell.stuck - cell.lints_stuck, 0)
                for cell in cells.values()
            ]
        )
    )


def geometric_mean(cells):
    """Of the ratios of mean regrets."""
    return float(np.exp(np.mean([np.log(cell.ratio) for cell in cells.values()])))


def lints():
    """What everything is measured by."""
    return {LINTS: sb.LinTS()}
