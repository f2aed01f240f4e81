"""Measured cost of kernels at shapes."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.rates.kernels import KERNELS


def placed(array: Any, offset: int) -> Any:
    """Return a copy of an array whose first byte is `offset` bytes after a multiple of 64 (a cache line)."""
    memory = np.empty(array.nbytes + 128, dtype=np.uint8)
    start = (offset - memory.ctypes.data) % 64
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape, order=order)
    copy[...] = array
    copy.flags.writeable = array.flags.writeable
    return copy


class Meter:
    """Meter of the cost of kernels at shapes, each measured again in every round of a run."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """CPU seconds for one form in one round."""
        self._ready: dict[
            tuple[str, tuple[int, ...]], list[tuple[Callable[..., None], tuple[Any, ...], int]]
        ] = {}

    def cost(self, key: tuple[str, tuple[int, ...]]) -> float:
        """Return the seconds of one repetition of the fastest form, measured now."""
        if key not in self._ready:
            self._ready[key] = self._prepare(key)
        return min(seconds_of(form, arguments, reps) for form, arguments, reps in self._ready[key])

    def _prepare(
        self, key: tuple[str, tuple[int, ...]]
    ) -> list[tuple[Callable[..., None], tuple[Any, ...], int]]:
        name, shape = key
        kernel = KERNELS[name]
        found = []
        for form in kernel.forms:
            # The location of arrays makes a third of the time of small kernels; a floor uses the best location.
            arguments = tuple(
                placed(value, 0) if isinstance(value, np.ndarray) else value for value in kernel.setup(*shape)
            )
            found.append((calibrated(form, arguments, self.seconds), form, arguments))
        fastest = min(seconds for (_, seconds), _, _ in found)
        # A form that is far slower at this shape will not win in a later round.
        return [
            (form, arguments, reps) for (reps, seconds), form, arguments in found if seconds < 1.6 * fastest
        ]


def seconds_of(form: Callable[..., None], arguments: tuple[Any, ...], reps: int) -> float:
    """Return CPU seconds of one repetition, which exclude the time of other programs."""
    start = time.thread_time()
    form(reps, *arguments)
    return (time.thread_time() - start) / reps


def calibrated(form: Callable[..., None], arguments: tuple[Any, ...], seconds: float) -> tuple[int, float]:
    """Return the repetitions that take about `seconds`, and the seconds of one."""
    form(1, *arguments)  # compiles, or loads compiled code
    reps = 1
    while True:
        each = max(seconds_of(form, arguments, reps), 1e-10)
        if each * reps > 0.2 * seconds:
            return max(1, round(seconds / each)), each
        reps *= 4
