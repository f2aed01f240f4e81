"""Waves of runs: sent to a GPU, played there together, and brought back."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numba.core.config import ENABLE_CUDASIM  # type: ignore[attr-defined]
from numba.core.errors import NumbaError

from solid_bandits._internal.compiling import compiled_elsewhere
from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.loop import Truth, make_truth, refuse_arm, start_run
from solid_bandits.core.problem import Problem
from solid_bandits.core.randomness import ENVIRONMENT, POLICY, make_rngs
from solid_bandits.gpu.device import check_fits, fitting_runs, gpu_memory
from solid_bandits.gpu.kernel import cuda, make_kernel, type_on_gpu
from solid_bandits.gpu.layout import (
    Layout,
    UnfitError,
    differ_by_rng_only,
    make_layout,
    shared_arrays,
    write_rows,
)
from solid_bandits.policies.contract import CompiledAgent, Policy

THREADS = 128
"""Number of threads per block."""
PAUSE = 0.01
"""Seconds between checks whether a wave is done; in between, an interrupt can be handled."""

Problems = Problem | Callable[[int], Problem]


class Wave(NamedTuple):
    """The results of a wave."""

    regret: Floats
    """Regret, shape (runs, checkpoints)."""
    explored: Ints
    """Exploring rounds, shape (runs, checkpoints)."""
    seconds: float
    """Seconds of GPU time."""


class _Ready(NamedTuple):
    """Everything that threads start from, in the host's memory."""

    layout: Layout
    per_run: int
    """1 where each run has its own numbers, 0 where all share the same."""
    floats: Floats
    ints: Ints
    reads: list[Any]
    truths: Truth
    """One entry per problem along the first axis."""
    rngs: Words
    """Random numbers as the agents left them after starting, shape (runs, 4)."""


def play_waves(
    problem: Problems,
    policy: Policy,
    horizon: int,
    seed: int,
    steps: Ints,
    first: int,
    runs: int,
    tell_noise: bool = True,
) -> Wave:
    """Play runs `first` to `first + runs - 1` on the GPU, in as many waves as its memory requires."""
    size = runs
    if runs > 1:
        one = problem(first) if callable(problem) else problem
        agent, rng = start_run(one, policy, horizon, seed, first, tell_noise)
        layout = make_layout(policy.name, agent, rng, _is_ours(policy))
        sent = _bytes_sent(layout, agent, one, len(steps), _is_shared(problem, policy))
        size = fitting_runs(sent, layout.own_bytes, *gpu_memory())
    waves = [
        play_wave(problem, policy, horizon, seed, steps, start, min(size, first + runs - start), tell_noise)
        for start in range(first, first + runs, size)
    ]
    if len(waves) == 1:
        return waves[0]
    regret, explored, seconds = zip(*waves, strict=True)
    return Wave(np.concatenate(regret), np.concatenate(explored), sum(seconds))


def _is_ours(policy: Policy) -> bool:
    return getattr(policy, "kernels", None) is None


def _is_shared(problem: Problems, policy: Policy) -> bool:
    """Return whether all runs start from the same numbers.

    How a user's policy uses its random numbers when it starts is known only after it has started.
    """
    return _is_ours(policy) and not callable(problem)


def _bytes_sent(layout: Layout, agent: Any, problem: Problem, checkpoints: int, shared: bool) -> int:
    """Return the bytes of a run on the GPU besides its thread's memory: results, random numbers and its own data."""
    always = 16 * checkpoints + 16 + 64
    if shared:
        return always
    arrays = [*shared_arrays(layout, [agent]), *map(np.asarray, make_truth(problem))]
    return always + 8 * (layout.floats + layout.ints) + sum(array.nbytes for array in arrays)


def play_wave(
    problem: Problems,
    policy: Policy,
    horizon: int,
    seed: int,
    steps: Ints,
    first: int,
    runs: int,
    tell_noise: bool = True,
) -> Wave:
    """Play runs `first` to `first + runs - 1` on the GPU together; run r is run r of the CPU."""
    ready = _make_ready(problem, policy, horizon, seed, first, runs, tell_noise)
    with _memory_explained(policy, runs, ready.layout):
        return _play(ready, policy, seed, steps, first, runs)


@contextmanager
def _memory_explained(policy: Policy, runs: int, layout: Layout) -> Iterator[None]:
    """Turn the driver's out-of-memory error into one line; it is raised when arrays are made, or when a wave begins."""
    try:
        yield
    except Exception as error:  # its class differs between versions of the driver's bindings
        code = next((one for one in _OUT_OF_MEMORY if one in str(error)), None)
        if code is None:
            raise
        raise UnfitError(
            f"{policy.name} cannot be played on this GPU now: its memory does not hold {runs:,} runs that need "
            f"{layout.own_bytes / 1024:,.1f} kB a thread; free some of it, or play it with device='cpu' ({code})"
        ) from error


_OUT_OF_MEMORY = ("OUT_OF_MEMORY", "LAUNCH_OUT_OF_RESOURCES")


def _play(ready: _Ready, policy: Policy, seed: int, steps: Ints, first: int, runs: int) -> Wave:
    kernel = make_kernel(ready.layout, {name: getattr(ready.truths, name).shape[1:] for name in _ARRAYS})
    regret = cuda.device_array((runs, len(steps)))
    explored = cuda.device_array((runs, len(steps)), dtype=np.int64)
    failed = cuda.device_array((runs, 2), dtype=np.int64)
    sent = [
        cuda.to_device(array)
        for array in (
            ready.floats,
            ready.ints,
            ready.rngs,
            make_rngs(seed, first, runs, ENVIRONMENT),
            *ready.reads,
            *(getattr(ready.truths, name) for name in _ARRAYS),
            ready.truths.noise_std,
            np.asarray(steps),
        )
    ]
    with compiled_elsewhere(type_on_gpu):
        try:
            configured = kernel[-(-runs // THREADS), THREADS]
            arguments = (runs, ready.per_run, *sent, regret, explored, failed)
            _compile(kernel, arguments)
        except (NumbaError, KeyError) as error:  # a KeyError: a ufunc that numba-cuda lacks
            raise UnfitError(
                f"{policy.name} cannot be played on a GPU: its kernels do not compile for one; play it with "
                f"device='cpu' ({_cause(error)})"
            ) from error
        seconds = _timed(lambda: configured(*arguments))
    wrong = failed.copy_to_host()
    for step, arm in wrong[wrong[:, 0] > 0][:1]:
        refuse_arm(policy, int(arm), int(step), ready.truths.means.shape[2])
    return Wave(regret.copy_to_host(), explored.copy_to_host(), seconds)


_ARRAYS = ("features", "means", "gaps", "context_edges", "available")


def _compile(kernel: Any, arguments: tuple[Any, ...]) -> None:
    """Compile before the clock starts; the simulator has nothing to compile."""
    if not ENABLE_CUDASIM:
        kernel.compile(tuple(kernel.typeof_pyval(one) for one in arguments))


def _timed(launch: Callable[[], None]) -> float:
    """Launch a kernel and wait until it is done, in short pauses so that Ctrl-C works; return the GPU's seconds."""
    if ENABLE_CUDASIM:
        begun = time.perf_counter()
        launch()
        return time.perf_counter() - begun
    start, end = cuda.event(), cuda.event()
    start.record()
    launch()
    end.record()
    while not end.query():
        time.sleep(PAUSE)
    return float(cuda.event_elapsed_time(start, end)) / 1000.0


def _cause(error: BaseException) -> str:
    """Return the root cause of a compiler's error."""
    text = str(error)
    if "nrt_context" in text or "NRT" in text:
        return "they make new arrays, which a thread cannot"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("During:", "raised from", "File "))]
    return telling[-1] if telling else type(error).__name__


def _make_ready(
    problem: Problems, policy: Policy, horizon: int, seed: int, first: int, runs: int, tell_noise: bool
) -> _Ready:
    def begin(one: Problem, run: int) -> tuple[CompiledAgent, Any]:
        return start_run(one, policy, horizon, seed, run, tell_noise)

    ours, shared = _is_ours(policy), _is_shared(problem, policy)
    every = range(first, first + 1) if shared else range(first, first + runs)
    problems = [problem(run) for run in every] if callable(problem) else [problem] * len(every)
    agents = [begin(one, run) for one, run in zip(problems, every, strict=True)]
    shapes = {one.features.shape for one in problems}
    if len(shapes) > 1:
        raise ValueError(f"problem must give problems of one shape on a GPU, got {sorted(shapes)[:3]}")
    agent, rng = agents[0]
    check_fits(policy.name, agent)
    layout = make_layout(policy.name, agent, rng, ours)
    for one, its_rng in agents[1:]:
        if make_layout(policy.name, one, its_rng, ours) != layout:
            raise UnfitError(
                f"{policy.name} cannot be played on a GPU on these problems: its agents have different shapes"
            )
    if shared:
        assert differ_by_rng_only(layout, agent, begin(problem, first + 1)[0])  # type: ignore[arg-type]
    started = [one for one, _ in agents]
    floats, ints = write_rows(layout, started)
    truths = [make_truth(one) for one in problems]
    stacked: Any = Truth._make(
        np.ascontiguousarray(np.stack([np.asarray(part) for part in parts]))
        for parts in zip(*truths, strict=True)
    )
    rngs = make_rngs(seed, first, runs, POLICY) if shared else np.stack([one for _, one in agents])
    per_run = int(not shared)
    return _Ready(layout, per_run, floats, ints, shared_arrays(layout, started), stacked, rngs)
