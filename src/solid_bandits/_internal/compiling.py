"""Decorators that compile the functions of the whole package.

`jit` is for functions that are inlined into their callers: kernels, and the small functions they are made of.
`jit_apart` is for functions that are long, or called from Python: each is compiled by itself and kept on disk.
`jit_allocating` is for functions that create arrays, or assign one to a part of another, and `jit_part` for the parts
of such a function.

Sums may be reordered, so that they run in vector registers; NaN and infinity keep their meaning. Division by zero
gives infinity, as in NumPy, because a check in each division would keep loops from being vectorised.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]
from numba.extending import typeof_impl

from solid_bandits._internal import numba_private
from solid_bandits._internal.kernel_cache import DiskCache

F = TypeVar("F", bound=Callable[..., object])

COMMON: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
# Kernels allocate nothing (numba refuses it) and return no array (a test ensures it), so references need not be
# counted. Each count is a locked instruction, and they were most of a step.
INLINED: Any = {
    **COMMON,
    **numba_private.UNCOUNTED,
    "forceinline": True,
    # Passing an agent of some sixty arrays from Python takes ten times the code of a small function that receives one.
    **numba_private.WITHOUT_ENTRIES,
    "pipeline_class": numba_private.PIPELINE,
}


def jit(function: F) -> F:
    """Compile a function to be inlined where compiled code calls it; Python calls it through an entry point."""
    return function if DISABLE_JIT else cast(F, Kernel(function))


def jit_apart(function: F) -> F:
    """Compile a function by itself, because Python calls it or it is too long to compile again in each caller."""
    return _compile(function, **numba_private.UNCOUNTED)


def jit_allocating(function: F) -> F:
    """Compile by itself a function that creates arrays, returns them, or assigns one to a part of another."""
    # Explicit, because numba passes a caller's option on to functions that do not set it.
    return _compile(function, **numba_private.COUNTED)


def jit_part(function: F) -> F:
    """Compile a function as a part of its callers, which share one copy; arrays may be assigned in it.

    Use it for the steps of a long function: compiled by itself, each would be compiled again at every level of calls.
    """
    return function if DISABLE_JIT else cast(F, Kernel(function, counted=True, copied=False))


def own_jit(function: F) -> F:
    """Compile a kernel of your own policy (`sb.extend.jit`); unlike with `jit`, it may create and assign arrays.

    Every index in it is checked, and one out of bounds raises an IndexError.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> @sb.extend.jit
        ... def total(values):
        ...     result = 0.0
        ...     for value in values:
        ...         result += value
        ...     return result
        >>> total(np.array([1.0, 2.0, 3.0]))
        6.0
    """
    return function if DISABLE_JIT else cast(F, Kernel(function, counted=True, checked=True))


_ELSEWHERE: Callable[["Kernel"], Any] | None = None
"""Maps a kernel to its type for another target's compiler, while that compiles."""


@contextmanager
def compiled_elsewhere(type_of: Callable[["Kernel"], Any]) -> Iterator[None]:
    """Map kernels to another target's types, by `type_of`, while that target's compiler (a GPU's) is at work."""
    global _ELSEWHERE
    before, _ELSEWHERE = _ELSEWHERE, type_of
    try:
        yield
    finally:
        _ELSEWHERE = before


class Kernel:
    """A compiled function that other compiled functions call by its name; Python calls it through an entry point.

    The Python entry is compiled lazily, on the first call from Python.
    """

    def __init__(
        self,
        function: Callable[..., object],
        counted: bool = False,
        copied: bool = True,
        checked: bool = False,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.counted = counted
        self.copied = copied
        self.checked = checked
        self._entry: Any = None
        self._made: dict[str, Any] = {}

    @property
    def dispatcher(self) -> Any:
        """Numba's function, created on first use, and never in a process that finds its callers compiled on disk."""
        # Threads may create two of them, but only one is used.
        return self._made.get("dispatcher") or self._made.setdefault("dispatcher", self._make_dispatcher())

    def _make_dispatcher(self) -> Any:
        counts = numba_private.COUNTED if self.counted else numba_private.UNCOUNTED
        options = {**INLINED, **counts, "forceinline": self.copied, "boundscheck": self.checked}
        made = numba.njit(**options)(self.py_func)
        if self.checked:
            numba_private.spare_counts(made)
        return made

    @property
    def _type(self) -> Any:
        return self._made.get("type") or self._made.setdefault("type", types.Dispatcher(self.dispatcher))

    @property
    def _numba_type_(self) -> Any:
        """The type that numba-cuda assigns to this object."""
        return self._type if _ELSEWHERE is None else _ELSEWHERE(self)

    def __call__(self, *arguments: Any) -> Any:
        if self._entry is None:
            inner = self.dispatcher

            def entry(*arguments: Any) -> Any:
                return inner(*arguments)

            self._entry = numba.njit(**COMMON)(entry)
        return self._entry(*arguments)

    def __reduce__(self) -> Any:
        """Pickle by name where the kernel has one; a kernel of a script or a notebook is pickled as a whole."""
        home = sys.modules.get(self.__module__)
        name = self.py_func.__qualname__
        if self.__module__ != "__main__" and getattr(home, name, None) is self:
            return name
        return Kernel, (self.py_func, self.counted, self.copied, self.checked)


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, context: Any) -> Any:
    """Return numba's type of a kernel."""
    return kernel._numba_type_


def compiled_for(function: Any, *arguments: Any) -> Any:
    """Return the function compiled for arguments of these types, or the function itself if it is not compiled.

    Numba finds compiled code by the name and the fields of a named tuple's class, so two classes of the same name, such
    as a notebook's cell creates when it is run again, would share code. The type itself tells them apart.
    """
    if DISABLE_JIT:
        return function
    return function.compile(tuple(map(type_of, arguments)))


def type_of(value: Any) -> Any:
    """Return `numba.typeof` without its check for masked arrays, which loads numpy.ma."""
    if type(value) is np.ndarray:
        layout: Any = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        kind: Any = numba.from_dtype(value.dtype)
        return types.Array(kind, value.ndim, layout, readonly=not value.flags.writeable)
    if isinstance(value, tuple):
        return types.BaseTuple.from_types([type_of(one) for one in value], type(value))  # type: ignore[no-untyped-call]
    return numba.typeof(value)  # type: ignore[no-untyped-call]


def _compile(function: F, **options: Any) -> F:
    compiled: Any = numba.njit(**COMMON, **options)(function)
    if not DISABLE_JIT:
        numba_private.keep(compiled, DiskCache(function))
    return cast(F, compiled)
