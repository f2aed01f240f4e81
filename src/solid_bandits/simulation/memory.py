"""`simulate`: play into memory."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import cast

from solid_bandits import _waiting
from solid_bandits._files import FORMAT
from solid_bandits._types import Plain
from solid_bandits._waiting import said_if_long
from solid_bandits._words import count
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.plain import Player
from solid_bandits.problem import Problem
from solid_bandits.results import Results
from solid_bandits.simulation.assembly import assemble, seconds_by_policy, versions
from solid_bandits.simulation.block import Block, Played
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.playing import Game, Key, Progress, play
from solid_bandits.workers import Processes, Workers


class Memory:
    """A sink that keeps the blocks as they are."""

    def __init__(self) -> None:
        self.played: dict[Block, Played] = {}

    def open(self) -> set[Block | str]:
        """Nothing is done."""
        return set()

    def keep(self, task: Block | str, outcome: Played) -> None:
        """Keep a block."""
        assert isinstance(task, Block)  # a game in memory has no extras
        self.played[task] = outcome

    def finish(self) -> None:
        """Nothing to write."""


class _Fraction:
    """Progress as one number: the share of the runs that are done."""

    def __init__(self, runs: int, report: Callable[[float], None]) -> None:
        self.runs = runs
        self.done = 0
        self.began = time.monotonic()
        self.waiting = ExitStack()
        self.report = report

    def begin(self, tasks: Sequence[Key], kept: int) -> None:
        self.report(0.0)

    def compiling(self, done: int, total: int) -> None:
        if done == 0:
            self.waiting.enter_context(said_if_long(f"compiling {count(total, 'policy', 'policies')}"))
        elif total > 1 and time.monotonic() - self.began > _waiting.PATIENCE:
            print(f"compiled: {done} of {total}", file=sys.stderr, flush=True)

    def start(self) -> None:
        self.waiting.close()

    def advance(self, key: Key) -> None:
        assert isinstance(key.task, Block)
        self.done += key.task.runs
        self.report(self.done / self.runs)


def simulate(
    problem: Problem | Callable[[int], Problem],
    policies: Mapping[str, Policy | Player],
    horizon: int,
    runs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
    diagnostics: bool = False,
) -> Results:
    """Play every policy on the problem, `runs` times each.

    Run r of every policy sees the same problem, the same contexts and the same noise (common random numbers), so
    policies can be compared run by run. Results depend on the arguments only, not on `jobs`.

    Args:
        problem: what is played; or a function from the number of a run to its problem, for a new problem in each run.
        policies: label -> policy: one of ours, or an object with `act` and `update` (docs/own-policy.md).
        horizon: n, the number of steps; the policies are told.
        runs: independent repetitions.
        seed: of everything random.
        jobs: processes; None is one per core.
        progress: called with the fraction of the work done, from 0 to 1.
        diagnostics: also record, at each checkpoint, what policies know of themselves (`results.diagnostics`): SOLID
            its multiplier, phase, normalisation, test statistic, threshold and exploration policy.

    Example:
        >>> import solid_bandits as sb
        >>> policies = {"SOLID": sb.Solid(), "LinUCB": sb.LinUCB()}
        >>> results = sb.simulate(sb.problems.toy(), policies, horizon=1000, runs=10)
        >>> final = results.final()
    """
    # The plan makes policies of plain objects.
    plan = Plan(problem, cast("Mapping[str, Policy]", policies), horizon, runs, seed, diagnostics)
    told = _Fraction(runs * len(policies), progress or (lambda fraction: None))
    with told.waiting:
        return simulate_plan(plan, jobs, told)


def simulate_plan(plan: Plan, jobs: int | None, progress: Progress) -> Results:
    """Play a plan into memory; who wants to know how it goes is told all of it."""
    workers: Workers = Processes(jobs)
    started = datetime.now(UTC)
    clock = time.perf_counter()
    memory = Memory()
    play([Game(plan, memory)], workers, progress)
    manifest: Plain = {
        "format": FORMAT,
        "configuration": plan.configuration(),
        "versions": versions(),
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(time.perf_counter() - clock, 3),
        "seconds": seconds_by_policy(plan, memory.played),
        "jobs": workers.count,
    }
    return assemble(plan, memory.played, manifest)
