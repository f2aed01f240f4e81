"""Many runs of many policies: what is to be played, its blocks of runs, and their outcomes put together."""

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import NamedTuple

import numba
import numpy as np
import polars as pl

from solid_bandits import _check
from solid_bandits._types import Ints, Plain
from solid_bandits.loop import Trace, checkpoints, play, play_recorded
from solid_bandits.policies.contract import Policy
from solid_bandits.problem import Problem
from solid_bandits.results import COLUMNS, FORMAT, Results
from solid_bandits.stream import POLICY, make_stream
from solid_bandits.workers import Processes, Task, Workers

BLOCKS_PER_POLICY = 20
"""Tasks that a policy's runs are split into: enough for even work and smooth progress, few enough to cost nothing."""


class Block(NamedTuple):
    """Some consecutive runs of one policy: what is played as one task."""

    policy: str
    first: int
    runs: int


class Played(NamedTuple):
    """What a block gave."""

    traces: list[Trace]
    insides: list[Plain]
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What is to be played: the arguments of `simulate`, checked."""

    problem: Problem | Callable[[int], Problem]
    policies: Mapping[str, Policy]
    horizon: int
    runs: int
    seed: int
    insides: bool = False

    def __post_init__(self) -> None:
        if not self.policies:
            raise ValueError("policies is empty; give at least one, such as {'SOLID': Solid()}")
        _check.integer("horizon", self.horizon, least=1)
        _check.integer("runs", self.runs, least=1)
        _check.integer("seed", self.seed, least=0)
        problem = self.problem_of(0)
        if not isinstance(problem, Problem):
            raise ValueError(f"problem is {problem!r}; give a Problem, or a function from a run to one")
        for label, policy in self.policies.items():
            if not isinstance(policy, Policy):
                raise ValueError(f"policies[{label!r}] is {policy!r}; give a policy such as Solid()")
            # A policy may refuse the problem (several contexts, say): better now than after hours of the others.
            policy.start(problem.view(), make_stream(0, 0, POLICY))

    @property
    def fixed(self) -> bool:
        """Whether every run is on the same problem."""
        return not callable(self.problem)

    def problem_of(self, run: int) -> Problem:
        """The problem of run number `run`."""
        return self.problem(run) if callable(self.problem) else self.problem

    @property
    def steps(self) -> Ints:
        """The checkpoints."""
        return checkpoints(self.horizon)

    def configuration(self) -> Plain:
        """Everything that decides what the results are, as plain data."""
        first = self.problem_of(0)
        if self.fixed:
            description, fingerprint = repr(first), first.fingerprint
        else:
            # All of them would take long where problems are large; a changed generator shows in the first and last.
            description = f"a new problem in each run, the first {first!r}"
            fingerprint = f"{first.fingerprint}-{self.problem_of(self.runs - 1).fingerprint}"
        return {
            "problem": {"description": description, "fingerprint": fingerprint},
            "policies": {label: policy.describe() for label, policy in self.policies.items()},
            "horizon": int(self.horizon),
            "runs": int(self.runs),
            "seed": int(self.seed),
            "insides": bool(self.insides),
        }

    def blocks(self) -> list[Block]:
        """The runs of every policy in blocks. Each run has its own seeds, so blocks do not show in the results."""
        size = -(-self.runs // BLOCKS_PER_POLICY)
        return [
            Block(label, first, min(size, self.runs - first))
            for label in self.policies
            for first in range(0, self.runs, size)
        ]


def play_block(
    problem: Problem | Callable[[int], Problem],
    policy: Policy,
    horizon: int,
    seed: int,
    insides: bool,
    first: int,
    runs: int,
) -> Played:
    """Play runs `first` to `first + runs - 1` of one policy."""
    steps = checkpoints(horizon)
    # One step before the clock starts: what is compiled, or loaded from the cache, is not the policy's time.
    play(problem(first) if callable(problem) else problem, policy, 1, seed, first, checkpoints(1))
    start = time.thread_time()
    traces, rows = [], []
    for run in range(first, first + runs):
        one = problem(run) if callable(problem) else problem
        if insides:
            trace, run_rows = play_recorded(one, policy, horizon, seed, run, steps)
            rows += run_rows
        else:
            trace = play(one, policy, horizon, seed, run, steps)
        traces.append(trace)
    return Played(traces, rows, time.thread_time() - start)


def block_task(plan: Plan, block: Block, key: object) -> Task:
    """The task that plays a block."""
    policy = plan.policies[block.policy]
    arguments = (plan.problem, policy, plan.horizon, plan.seed, plan.insides, block.first, block.runs)
    return Task(key, play_block, arguments)


def compile_tasks(plans: Iterable[Plan]) -> list[Task]:
    """Tasks that fill the compiler's cache on disk, one for each compiled loop that the plans need.

    Policies whose agents have one type share compiled code, and two processes need not compile the same.
    """
    tasks: dict[object, Task] = {}
    for plan in plans:
        view, stream = plan.problem_of(0).view(plan.horizon), make_stream(0, 0, POLICY)
        for policy in plan.policies.values():
            kind = numba.typeof(policy.start(view, stream))  # type: ignore[no-untyped-call]
            if kind not in tasks:
                arguments = (plan.problem_of(0), policy, 1, 0, False, 0, 1)
                tasks[kind] = Task(("compile", str(kind)), play_block, arguments)
    return list(tasks.values())


def simulate(
    problem: Problem | Callable[[int], Problem],
    policies: Mapping[str, Policy],
    horizon: int,
    runs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
    insides: bool = False,
) -> Results:
    """Play every policy on the problem, `runs` times each.

    Run r of every policy sees the same problem, the same contexts and the same noise (common random numbers), so
    policies can be compared run by run. Results depend on the arguments only, not on `jobs`.

    Args:
        problem: what is played; or a function from the number of a run to its problem, for a new problem in each run.
        policies: label -> policy.
        horizon: n, the number of steps; the policies are told.
        runs: independent repetitions.
        seed: of everything random.
        jobs: processes; None is one per core.
        progress: called with the fraction of the work done, from 0 to 1.
        insides: also record, at each checkpoint, what policies show of themselves (`results.insides`): SOLID its
            multiplier, phase, normalisation, test statistic, threshold and exploration policy.

    Example:
        >>> import solid_bandits as sb
        >>> policies = {"SOLID": sb.Solid.paper_toy(), "LinUCB": sb.LinUCB()}
        >>> results = sb.simulate(sb.problems.toy(), policies, horizon=1000, runs=10)
        >>> final = results.final()
    """
    plan = Plan(problem, policies, horizon, runs, seed, insides)
    workers: Workers = Processes(jobs)
    report = progress or (lambda fraction: None)
    started = datetime.now(UTC)
    clock = time.perf_counter()
    played: dict[Block, Played] = {}
    done = 0
    report(0.0)
    if workers.count > 1:
        for _ in workers.do(compile_tasks([plan])):
            pass
    blocks = plan.blocks()
    for key, outcome in workers.do([block_task(plan, block, block) for block in blocks]):
        assert isinstance(key, Block)  # the keys just given
        played[key] = outcome
        done += key.runs
        report(done / (runs * len(policies)))
    manifest: Plain = {
        "format": FORMAT,
        "configuration": plan.configuration(),
        "versions": versions(),
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(time.perf_counter() - clock, 3),
        "seconds": seconds_by_policy(plan, played),
        "jobs": workers.count,
    }
    return put_together(plan, played, manifest)


def seconds_by_policy(plan: Plan, played: Mapping[Block, Played]) -> dict[str, float]:
    """CPU seconds that each policy took."""
    return {
        label: round(sum(one.seconds for block, one in played.items() if block.policy == label), 3)
        for label in plan.policies
    }


def put_together(plan: Plan, played: Mapping[Block, Played], manifest: Plain) -> Results:
    """The results of a plan from those of all its blocks: the same whatever order they came in."""
    traces: dict[str, dict[int, Trace]] = {label: {} for label in plan.policies}
    rows: dict[str, dict[int, list[Plain]]] = {label: {} for label in plan.policies}
    for block, outcome in played.items():
        traces[block.policy].update(enumerate(outcome.traces, start=block.first))
        rows[block.policy][block.first] = outcome.insides
    table = _table(traces, plan.runs, plan.steps)
    return Results(table, manifest, _insides_table(rows) if plan.insides else None)


def _table(traces: dict[str, dict[int, Trace]], runs: int, steps: Ints) -> pl.DataFrame:
    ordered = [(label, run, traces[label][run]) for label in traces for run in range(runs)]
    return pl.DataFrame(
        {
            "policy": np.repeat([label for label, _, _ in ordered], len(steps)),
            "run": np.repeat([run for _, run, _ in ordered], len(steps)),
            "step": np.tile(steps, len(ordered)),
            "regret": np.concatenate([trace.regret for _, _, trace in ordered]),
            "explored": np.concatenate([trace.explored for _, _, trace in ordered]),
        },
        schema=COLUMNS,
    )


def _insides_table(rows: dict[str, dict[int, list[Plain]]]) -> pl.DataFrame:
    ordered = [
        {"policy": label, **row}
        for label, blocks in rows.items()
        for first in sorted(blocks)
        for row in blocks[first]
    ]
    return pl.DataFrame(ordered, infer_schema_length=None)


def versions() -> dict[str, str]:
    """What the results were made with."""
    packages = ("solid-bandits", "numpy", "numba", "polars")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
