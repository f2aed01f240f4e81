"""Blocks of runs: what is played as one task."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numba

from solid_bandits._types import Plain
from solid_bandits.loop import Trace, checkpoints, play, play_recorded
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.plain import PlainAgent
from solid_bandits.problem import Problem
from solid_bandits.simulation.plan import Plan, idle_agent
from solid_bandits.workers import Task

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
    diagnostics: list[Plain]
    seconds: float


def blocks(plan: Plan) -> list[Block]:
    """The runs of every policy in blocks. Each run has its own seeds, so blocks do not show in the results."""
    size = -(-plan.runs // BLOCKS_PER_POLICY)
    return [
        Block(label, first, min(size, plan.runs - first))
        for label in plan.policies
        for first in range(0, plan.runs, size)
    ]


def play_block(
    problem: Problem | Callable[[int], Problem],
    policy: Policy,
    horizon: int,
    seed: int,
    diagnostics: bool,
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
        if diagnostics:
            trace, run_rows = play_recorded(one, policy, horizon, seed, run, steps)
            rows += run_rows
        else:
            trace = play(one, policy, horizon, seed, run, steps)
        traces.append(trace)
    return Played(traces, rows, time.thread_time() - start)


def block_task(plan: Plan, block: Block, key: object) -> Task:
    """The task that plays a block."""
    policy = plan.policies[block.policy]
    arguments = (plan.problem, policy, plan.horizon, plan.seed, plan.diagnostics, block.first, block.runs)
    return Task(key, play_block, arguments)


def compile_tasks(plans: Iterable[Plan]) -> list[Task]:
    """Tasks that fill the compiler's cache on disk, one for each compiled loop that the plans need.

    Policies whose agents have one type share compiled code, and two processes need not compile the same.
    """
    tasks: dict[object, Task] = {}
    for plan in plans:
        problem = plan.problem_of(0)
        for policy in plan.policies.values():
            agent = idle_agent(policy, problem, plan.horizon)
            if isinstance(agent, PlainAgent):
                continue  # nothing to compile
            kind = numba.typeof(agent)  # type: ignore[no-untyped-call]
            if kind not in tasks:
                arguments = (problem, policy, 1, 0, False, 0, 1)
                tasks[kind] = Task(("compile", str(kind)), play_block, arguments)
    return list(tasks.values())
