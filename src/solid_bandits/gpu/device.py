"""Detection of a GPU and of its limits, without loading its compiler."""

import math
import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from solid_bandits._internal import checks, extras
from solid_bandits._internal.files import first_line
from solid_bandits.gpu.layout import UnfitError, check_apart, make_layout
from solid_bandits.policies.plain import PlainAgent

_SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
"""Whether numba's simulator replaces a GPU, as in tests."""
LARGEST_WAVE = 1 << 17
"""Largest number of runs played together: enough to keep a large GPU busy."""
WAVE_BYTES = 1 << 31
"""Largest size in bytes of the agents and problems of a task in main memory, where each run has its own."""
SHARE = 0.8
"""Largest share of the GPU's free memory that a wave may use, not counting the compiler."""
MOST = {"MULTIPROCESSOR_COUNT": 256, "MAX_THREADS_PER_MULTIPROCESSOR": 2048}
"""Limits of today's largest GPUs, for drivers that do not report them; waves are then smaller than they could be."""


def require_gpu() -> None:
    """Raise an error unless runs can be played on a GPU here."""
    if _SIMULATED:
        return
    if find_spec("numba_cuda") is None:
        raise checks.ArgumentError("device", extras.line("numba_cuda", "'gpu'"))
    reason = "no NVIDIA GPU with a driver was found"
    try:
        cuda: Any = import_module("numba.cuda")
        found = bool(cuda.is_available())
    except Exception as error:  # a driver without a GPU, or numba-cuda without CUDA, may raise anything
        found, reason = False, f"{reason} ({first_line(error)})"
    if not found:
        raise checks.ArgumentError(
            "device",
            f"must be 'cpu' here, got 'gpu': {reason}; where CUDA is not installed, install numba-cuda[cu12] or [cu13]",
        )


def gpu_name() -> str:
    """Return the GPU's name."""
    if _SIMULATED:
        return "numba's CUDA simulator"
    cuda: Any = import_module("numba.cuda")
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def check_fits(name: str, agent: Any) -> None:
    """Raise an error if an agent cannot be played on a GPU, as far as its data show."""
    if isinstance(agent, PlainAgent):
        raise UnfitError(
            f"{name} cannot be played on a GPU: it is in plain Python; give it compiled kernels, or play it with "
            "device='cpu'"
        )
    check_apart(name, agent, make_layout(name, agent, None))


def gpu_memory() -> tuple[int | None, int]:
    """Return the free bytes of the GPU (None if unknown) and the number of threads that it holds at once."""
    if _SIMULATED:  # which has no memory of its own
        return None, 0
    cuda: Any = import_module("numba.cuda")
    device = cuda.get_current_device()
    threads = math.prod(int(getattr(device, name, most)) for name, most in MOST.items())
    return int(cuda.current_context().get_memory_info()[0]), threads


def fitting_runs(sent: int, own: int, free: int | None, threads: int) -> int:
    """Return the number of runs that fit in a GPU's memory together, between 1 and `LARGEST_WAVE`.

    Args:
        sent: bytes per run that stay there while the wave is played.
        own: bytes of a thread's own memory, allocated only for threads held at once.
        free: free bytes; None if unknown.
        threads: number of threads held at once.

    """
    if free is None:
        return LARGEST_WAVE
    room = int(SHARE * free)
    beside = room - threads * own  # left for sent data, if every thread that can be held has a run
    runs = beside // sent if beside >= threads * sent else room // (sent + own)
    return max(min(LARGEST_WAVE, runs), 1)


def task_runs(agent: Any, each_its_own: bool) -> int:
    """Return the number of runs of such agents per task: a wave, or several where the GPU's memory is small.

    It does not depend on free memory, so that a summary continues with tasks of the same size.
    """
    if not each_its_own:
        return LARGEST_WAVE
    layout = make_layout("", agent, None)
    numbers = layout.floats + layout.ints + sum(int(np.prod(leaf.shape or ())) for leaf in layout.leaves)
    return int(max(min(LARGEST_WAVE, WAVE_BYTES // (4 * 8 * numbers)), 1))  # rows, arrays, problem and truth
