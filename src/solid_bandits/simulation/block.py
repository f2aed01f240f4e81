"""Blocks of runs: what is played as one task."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, cast

import numba

from solid_bandits._check import short
from solid_bandits._types import Plain
from solid_bandits.gpu.device import task_runs
from solid_bandits.loop import Trace, checkpoints, play, play_recorded
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.plain import PlainAgent
from solid_bandits.problem import Problem
from solid_bandits.simulation.plan import Plan, Playable, idle_agent
from solid_bandits.streams import Record, Stream
from solid_bandits.streams.base import StreamKind, kind_of
from solid_bandits.streams.decisions import DecisionWriter
from solid_bandits.streams.playing import StreamTrace, play_stream
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

    traces: list[Trace] | list[StreamTrace]
    diagnostics: list[Plain]
    seconds: float


def blocks(plan: Plan) -> list[Block]:
    """The runs of every policy in blocks. Each run has its own seeds, so blocks do not show in the results."""
    end = plan.first_run + plan.runs
    sizes = {label: _block_size(plan, label) for label in plan.policies}
    return [
        Block(label, first, min(size, end - first))
        for label, size in sizes.items()
        for first in range(plan.first_run, end, size)
    ]


def _block_size(plan: Plan, label: str) -> int:
    if plan.device == "cpu":
        return -(-plan.runs // BLOCKS_PER_POLICY)
    policy = plan.policies[label]
    agent = idle_agent(policy, plan.problem_of(plan.first_run), plan.horizon, plan.tell_noise)
    return task_runs(agent, not plan.fixed or getattr(policy, "kernels", None) is not None)


def play_block(
    problem: Playable | Callable[[int], Playable],
    policy: Policy,
    horizon: int,
    seed: int,
    diagnostics: bool,
    first: int,
    runs: int,
    pulls: bool = False,
    tell_noise: bool = True,
    recording: tuple[Record, str, int] | None = None,
    kind: StreamKind | None = None,
) -> Played:
    """Play runs `first` to `first + runs - 1` of one policy on a problem, or on a stream of this kind.

    `recording` is what to record, its label and place.
    """
    steps = checkpoints(horizon)
    if kind is not None:
        return _play_on_stream(
            problem, policy, horizon, seed, range(first, first + runs), recording, tell_noise, kind
        )
    one = _problem_of(problem, first)
    # One step before the clock starts: what is compiled, or loaded from the cache, is not the policy's time.
    play(one, policy, 1, seed, first, checkpoints(1), tell_noise)
    start = time.thread_time()
    traces, rows = [], []
    for run in range(first, first + runs):
        one = _problem_of(problem, run)
        if diagnostics or pulls:
            trace, run_rows = play_recorded(
                one, policy, horizon, seed, run, steps, diagnostics, pulls, tell_noise
            )
            rows += run_rows
        else:
            trace = play(one, policy, horizon, seed, run, steps, tell_noise)
        traces.append(trace)
    return Played(traces, rows, time.thread_time() - start)


def _problem_of(problem: Playable | Callable[[int], Playable], run: int) -> Problem:
    """The problem of a run; who plays it refuses what is none."""
    return cast("Problem", problem(run) if callable(problem) else problem)


def play_wave_block(
    problem: Problem | Callable[[int], Problem],
    policy: Policy,
    horizon: int,
    seed: int,
    first: int,
    runs: int,
    tell_noise: bool = True,
) -> Played:
    """The same on a GPU, as many runs together as it has memory for."""
    from solid_bandits.gpu.wave import play_waves  # the GPU's compiler is loaded where it is asked for

    steps = checkpoints(horizon)
    wave = play_waves(problem, policy, horizon, seed, steps, first, runs, tell_noise)
    traces = [
        Trace(steps, regret, explored) for regret, explored in zip(wave.regret, wave.explored, strict=True)
    ]
    return Played(traces, [], wave.seconds)


def _play_on_stream(
    stream: Playable | Callable[[int], Playable],
    policy: Policy,
    horizon: int,
    seed: int,
    runs: range,
    recording: tuple[Record, str, int] | None,
    tell_noise: bool,
    kind: StreamKind,
) -> Played:
    """The same on a stream."""
    steps = checkpoints(horizon)
    writer = None if recording is None else DecisionWriter(*recording)
    traces, seconds = [], 0.0
    for run in runs:
        one = stream(run) if callable(stream) else stream
        if not isinstance(one, Stream):  # a function from runs to streams may return anything
            raise ValueError(f"problem must be a Stream in every run, got {short(one)} in run {run}")
        if kind_of(one) != kind:
            raise ValueError(_differing(kind, kind_of(one), run))
        trace, took = play_stream(
            one, policy, one.setting(horizon, tell_noise), horizon, seed, run, steps, writer
        )
        traces.append(trace)
        seconds += took
    if writer is not None:
        writer.flush()
    return Played(traces, [], seconds)


def _differing(kind: StreamKind, other: StreamKind, run: int) -> str:
    """What to say of a run whose stream is of another kind."""
    name, wanted, got = next(
        (name, one, two) for name, one, two in zip(kind._fields, kind, other, strict=True) if one != two
    )
    return f"problem must be streams of one {name} in all runs, {short(wanted)} here, got {short(got)} in run {run}"


def block_task(plan: Plan, block: Block, key: object) -> Task:
    """The task that plays a block."""
    policy = plan.policies[block.policy]
    common = (plan.problem, policy, plan.horizon, plan.seed)
    runs = (block.first, block.runs)
    if plan.device == "gpu":
        return Task(key, play_wave_block, (*common, *runs, plan.tell_noise))
    recording = None
    if plan.record is not None:
        recording = (plan.record, block.policy, list(plan.policies).index(block.policy))
    arguments = (*common, plan.diagnostics, *runs, plan.pulls, plan.tell_noise, recording, plan.kind)
    return Task(key, play_block, arguments)


def compile_tasks(plans: Iterable[Plan]) -> list[Task]:
    """Tasks that fill the compiler's cache on disk, one for each compiled loop that the plans need.

    Policies whose agents have one type share compiled code, and two processes need not compile the same.
    """
    tasks: dict[object, Task] = {}
    for plan in plans:
        problem = plan.problem_of(plan.first_run)
        for label, policy in plan.policies.items():
            if plan.device == "gpu":
                # A step of one run: whether a policy's kernels can be compiled for a GPU shows before others play.
                arguments: tuple[object, ...] = (problem, policy, 1, 0, 0, 1, plan.tell_noise)
                tasks[id(plan), label] = Task(("compile", label), play_wave_block, arguments)
                continue
            agent = idle_agent(policy, problem, plan.horizon, plan.tell_noise)
            if isinstance(agent, PlainAgent):
                continue  # nothing to compile
            loop = (numba.typeof(agent), plan.on_stream)  # type: ignore[no-untyped-call]
            if loop not in tasks:
                arguments = (problem, policy, 1, 0, False, 0, 1, False, plan.tell_noise, None, plan.kind)
                tasks[loop] = Task(("compile", str(loop)), play_block, arguments)
    return list(tasks.values())
