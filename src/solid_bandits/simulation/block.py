"""Blocks of runs: the part of a plan that is played as one task, and an estimate of its time."""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from solid_bandits._internal.checks import short
from solid_bandits._internal.types import Plain
from solid_bandits.core.loop import Trace, checkpoints, play, play_recorded
from solid_bandits.core.problem import Problem
from solid_bandits.policies.contract import Policy
from solid_bandits.simulation.plan import Plan, Playable
from solid_bandits.simulation.workers import Task
from solid_bandits.streams.base import Stream, StreamKind, kind_of
from solid_bandits.streams.decisions import DecisionWriter, Record
from solid_bandits.streams.playing import StreamTrace, play_stream

BLOCKS_PER_POLICY = 20
"""Number of tasks that a policy's runs are split into: enough for even work and smooth progress, few enough to cost
nothing."""
DIAGNOSTICS_SECONDS = 0.1
"""Seconds that a run takes to record diagnostics at its checkpoints, whose number hardly depends on the horizon."""
GPU_CORES = 500
"""Number of CPU cores that a GPU replaces, roughly, once it has thousands of runs to play."""


class Block(NamedTuple):
    """Consecutive runs of one policy, played as one task."""

    policy: str
    first: int
    runs: int


class BlockResult(NamedTuple):
    """The result of a block."""

    traces: list[Trace] | list[StreamTrace]
    diagnostics: list[Plain]
    seconds: float


def blocks(plan: Plan) -> list[Block]:
    """Split the runs of every policy into blocks. Each run has its own seeds, so results do not depend on the
    blocks.
    """
    end = plan.first_run + plan.runs
    sizes = plan.gpu_runs or dict.fromkeys(plan.policies, -(-plan.runs // BLOCKS_PER_POLICY))
    return [
        Block(label, first, min(size, end - first))
        for label, size in sizes.items()
        for first in range(plan.first_run, end, size)
    ]


class Job(NamedTuple):
    """The part of a plan that a worker needs in order to play runs of one policy."""

    problem: Playable | Callable[[int], Playable]
    policy: Policy
    horizon: int
    seed: int
    diagnostics: bool = False
    pulls: bool = False
    tell_noise: bool = True
    recording: tuple[Record, str, int] | None = None
    """The record to write on a stream, the policy's label and its position."""
    kind: StreamKind | None = None
    """The kind of the streams of all runs; None where problems are played."""

    def problem_of(self, run: int) -> Any:
        """Return the problem or stream of a run; raise a ValueError if a stream is not of the kind that all runs
        share.
        """
        one = self.problem(run) if callable(self.problem) else self.problem
        if self.kind is None:
            return one  # the caller refuses anything that is not a problem
        if not isinstance(one, Stream):  # a function from runs to streams may return anything
            raise ValueError(f"problem must be a Stream in every run, got {short(one)} in run {run}")
        for name, wanted, got in zip(self.kind._fields, self.kind, kind_of(one), strict=True):
            if wanted != got:
                raise ValueError(
                    f"problem must be streams with the same {name} in all runs, {short(wanted)} here, got "
                    f"{short(got)} in run {run}"
                )
        return one


def play_block(job: Job, first: int, runs: int) -> BlockResult:
    """Play runs `first` to `first + runs - 1` of one policy."""
    return (_play_problems if job.kind is None else _play_streams)(job, range(first, first + runs))


def _play_problems(job: Job, runs: range) -> BlockResult:
    policy, horizon, seed, told = job.policy, job.horizon, job.seed, job.tell_noise
    steps = checkpoints(horizon)
    # One step before the clock starts, so that compiling, or loading from the cache, does not count as the policy's
    # time.
    play(job.problem_of(runs[0]), policy, 1, seed, runs[0], checkpoints(1), told)
    start = time.thread_time()
    traces, rows = [], []
    for run in runs:
        one = job.problem_of(run)
        if job.diagnostics or job.pulls:
            trace, run_rows = play_recorded(
                one, policy, horizon, seed, run, steps, job.diagnostics, job.pulls, told
            )
            rows += run_rows
        else:
            trace = play(one, policy, horizon, seed, run, steps, told)
        traces.append(trace)
    return BlockResult(traces, rows, time.thread_time() - start)


def _play_streams(job: Job, runs: range) -> BlockResult:
    steps = checkpoints(job.horizon)
    writer = None if job.recording is None else DecisionWriter(*job.recording)
    traces, seconds = [], 0.0
    for run in runs:
        one = job.problem_of(run)
        setting = one.setting(job.horizon, job.tell_noise)
        trace, took = play_stream(one, job.policy, setting, job.horizon, job.seed, run, steps, writer)
        traces.append(trace)
        seconds += took
    if writer is not None:
        writer.flush()
    return BlockResult(traces, [], seconds)


def play_wave_block(job: Job, first: int, runs: int) -> BlockResult:
    """Play the same runs on a GPU, as many at a time as its memory holds."""
    from solid_bandits.gpu.wave import play_waves  # the GPU's compiler is loaded only when needed

    steps = checkpoints(job.horizon)
    problem = cast("Problem | Callable[[int], Problem]", job.problem)
    wave = play_waves(problem, job.policy, job.horizon, job.seed, steps, first, runs, job.tell_noise)
    traces = [
        Trace(steps, regret, explored) for regret, explored in zip(wave.regret, wave.explored, strict=True)
    ]
    return BlockResult(traces, [], wave.seconds)


def run_seconds(plan: Plan, label: str) -> float:
    """Estimate the CPU seconds of one run of a policy, without making or reading the rounds of a stream."""
    problem = plan.first
    pairs = problem.n_contexts * problem.n_arms if isinstance(problem, Problem) else problem.n_arms
    step = plan.policies[label].microseconds(pairs, problem.dim) * 1e-6
    return plan.horizon * step + (DIAGNOSTICS_SECONDS if plan.diagnostics or plan.pulls else 0.0)


def task_seconds(plan: Plan, task: Block | str) -> float:
    """Estimate the CPU seconds of one task: a block of runs, or the lower bound of each problem."""
    if isinstance(task, Block):
        seconds = run_seconds(plan, task.policy) * task.runs
        return seconds / GPU_CORES if plan.device == "gpu" else seconds
    return 0.01 * (1 if plan.fixed else plan.runs)


def block_task(plan: Plan, block: Block, key: object) -> Task:
    """Return the task that plays a block."""
    label, first, runs = block
    recording = None if plan.record is None else (plan.record, label, list(plan.policies).index(label))
    job = Job(
        plan.problem,
        plan.policies[label],
        plan.horizon,
        plan.seed,
        plan.diagnostics,
        plan.pulls,
        plan.tell_noise,
        recording,
        plan.kind,
    )
    return Task(key, play_wave_block if plan.device == "gpu" else play_block, (job, first, runs))


def compile_tasks(plans: Iterable[Plan]) -> list[Task]:
    """Return tasks that fill the compiler's cache on disk, one for each compiled loop that the plans need.

    Policies whose agents have the same type share compiled code, and two processes must not compile the same loop. On a
    GPU, one step of one run shows whether a policy's kernels compile before other policies play.
    """
    tasks: dict[object, Task] = {}
    for plan in plans:
        for label, policy in plan.policies.items():
            job = Job(plan.first, policy, 1, 0, tell_noise=plan.tell_noise, kind=plan.kind)
            if plan.device == "gpu":
                tasks[id(plan), label] = Task(("compile", label), play_wave_block, (job, 0, 1))
                continue
            loop = (plan.agent_types[label], plan.on_stream)
            if loop[0] is not None and loop not in tasks:
                tasks[loop] = Task(("compile", str(loop)), play_block, (job, 0, 1))
    return list(tasks.values())
