"""`summarise`: play, and keep only summary statistics."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import numpy as np

from solid_bandits._internal import checks
from solid_bandits.core.problem import Problem
from solid_bandits.policies.contract import Policy
from solid_bandits.simulation.block import Block, BlockResult, blocks
from solid_bandits.simulation.fraction import Fraction, Told
from solid_bandits.simulation.labels import Policies
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.playing import Game, Progress, Sink, device_name, play, workers_for
from solid_bandits.simulation.summary import PolicySummary, Summary

WORST = 2000
"""Number of worst runs of each policy that are kept; of a million runs, twice as many as lie beyond the 99.9%
quantile."""


class Sums(Sink):
    """A sink that adds up a policy's blocks in order, so that equal plans give equal summaries.

    With a file, the sums are written there after each block, and read from there at the start.
    """

    def __init__(self, plan: Plan, worst: int, path: Path | None) -> None:
        self.plan = plan
        self.keep_worst = worst
        self.path = path
        self.waiting: dict[Block, BlockResult] = {}
        self.left = {label: [one for one in blocks(plan) if one.policy == label] for label in plan.policies}
        self.summary = Summary(
            {**plan.configuration(), "worst": worst},
            device_name(plan),
            {label: PolicySummary.none(plan.steps) for label in plan.policies},
        )

    def open(self) -> set[Block | str]:
        """Load the sums that a file holds for the same plan."""
        if self.path is None or not self.path.exists():
            return set()
        found = Summary.load(self.path)
        same = found.configuration == self.summary.configuration and found.device == self.summary.device
        if not same or list(found.policies) != list(self.summary.policies):
            raise ValueError(f"{os.fspath(self.path)!r} holds another summary; give a new file or remove it")
        self.summary = found
        done: set[Block | str] = set()
        for label, left in self.left.items():
            runs = found.policies[label].runs
            while left and runs >= left[0].runs:
                runs -= left[0].runs
                done.add(left.pop(0))
            if runs:
                raise ValueError(
                    f"{os.fspath(self.path)!r} was made in blocks of another size, by another version; remove it"
                )
        return done

    def keep(self, task: Block | str, outcome: BlockResult) -> None:
        """Add a block to the sums, once all blocks before it are in."""
        assert isinstance(task, Block)  # a summarised game has no extras
        self.waiting[task] = outcome
        left, summary = self.left[task.policy], self.summary.policies[task.policy]
        while left and left[0] in self.waiting:
            block = left.pop(0)
            played = self.waiting.pop(block)
            summary.add(
                block.first,
                np.array([trace.regret for trace in played.traces]),
                np.array([trace.explored for trace in played.traces]),
                played.seconds,
                self.keep_worst,
            )
        if self.path is not None:
            self.summary.save(self.path)


def summarise(
    problem: Problem | Callable[[int], Problem],
    policies: Policies,
    horizon: int,
    runs: int,
    seed: int = 0,
    device: str = "cpu",
    jobs: int | None = None,
    progress: Told = None,
    worst: int = WORST,
    path: str | os.PathLike[str] | None = None,
    tell_noise: bool = True,
) -> Summary:
    """Play what `simulate` plays, and keep only summary statistics: a million runs fit into a small file.

    Args:
        problem: as in `simulate`.
        policies: as in `simulate`.
        horizon: n, the number of steps; the policies are told.
        runs: independent repetitions.
        seed: seed of all random numbers.
        device: `cpu`, or `gpu`: the same kernels, thousands of runs at a time (docs/gpu.md).
        jobs: number of processes on the CPU; None uses one per core.
        progress: as in `simulate`.
        worst: number of worst runs of each policy that are kept; `simulate(..., runs=1, first_run=number)` plays one
            of them again.
        path: a file that is written after each finished block of runs; if the call is repeated after an interruption
            with
            the same arguments, it continues from there.
        tell_noise: whether the policies are told σ, as in `simulate`.

    Example:
        >>> import solid_bandits as sb
        >>> summary = sb.summarise(sb.problems.toy(), {"LinTS": sb.LinTS()}, horizon=100, runs=1000, jobs=1)
        >>> table = summary.final()
    """
    plan = Plan(
        problem,
        cast("Mapping[str, Policy]", policies),
        horizon,
        runs,
        seed,
        device=device,
        tell_noise=tell_noise,
    )
    told = Fraction(runs * len(plan.policies), progress)
    with told.waiting:
        return summarise_plan(plan, jobs, told, checks.integer("worst", worst, least=1), path)


def summarise_plan(
    plan: Plan, jobs: int | None, progress: Progress, worst: int, path: str | os.PathLike[str] | None
) -> Summary:
    """Play a plan and return its summary, reporting to `progress`."""
    sums = Sums(plan, worst, None if path is None else Path(path))
    play([Game(plan, sums)], workers_for(plan, jobs), progress)
    return sums.summary
