"""How functions are compiled: the decorators of the whole package.

`jit` is for what is inlined where it is called: kernels, and the small functions they are made of. `jit_apart` is for
what is long, or called from Python: compiled by itself and kept on disk. `jit_allocating` is for what makes arrays, or
assigns one to a part of another; `jit_part` for the parts that such a function is made of.

Sums may be reordered, so that they run in vector registers; NaN and infinity keep their meaning. Division by zero
gives infinity, as in NumPy: a check in each division would keep loops from being vectorised.
"""

import sys
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

import numba
from numba.core import types
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]

from solid_bandits._cache import DiskCache
from solid_bandits._inlined import PIPELINE

F = TypeVar("F", bound=Callable[..., object])

COMMON: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
# Kernels allocate nothing (numba refuses it) and return no array (a test sees to it), so that references need not be
# counted: each count is a locked instruction, and they were most of a step.
UNCOUNTED: dict[str, Any] = {"_nrt": False}
INLINED: Any = {
    **COMMON,
    **UNCOUNTED,
    "forceinline": True,
    "pipeline_class": PIPELINE,
    # Handing an agent of some sixty arrays over from Python is ten times the code of a small function that takes one.
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def jit(function: F) -> F:
    """Compile a function to be inlined where compiled code calls it; Python calls it through an entry."""
    return function if DISABLE_JIT else cast(F, Kernel(function))


def jit_apart(function: F) -> F:
    """Compile a function by itself: for what is long, so that callers need not do it again, or called from Python."""
    return _compile(function, **UNCOUNTED)


def jit_allocating(function: F) -> F:
    """Compile a function by itself that makes arrays, returns them, or assigns one to a part of another."""
    # Said, because a function that does not say takes over what its caller does.
    return _compile(function, _nrt=True)


def jit_part(function: F) -> F:
    """Compile a function as a part of its callers, which share one copy; arrays may be assigned in it.

    For the steps of something long: by itself, each would be compiled again in every function on the way up.
    """
    return function if DISABLE_JIT else cast(F, Kernel(function, counted=True, copied=False))


def own_jit(function: F) -> F:
    """Compile a kernel of a policy of your own (`sb.jit`): like `jit`, but arrays may be made and assigned in it."""
    return function if DISABLE_JIT else cast(F, Kernel(function, counted=True))


class Kernel:
    """A compiled function that other compiled functions take in by its name; Python calls it through an entry.

    The entry is compiled when Python calls for the first time: no one waits for it who does not.
    """

    def __init__(self, function: Callable[..., object], counted: bool = False, copied: bool = True) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.counted = counted
        self.copied = copied
        self.dispatcher = numba.njit(**INLINED | {"_nrt": counted, "forceinline": copied})(function)
        self._numba_type_ = types.Dispatcher(self.dispatcher)  # what numba takes this object for
        self._entry: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self._entry is None:
            inner = self.dispatcher

            def entry(*arguments: Any) -> Any:
                return inner(*arguments)

            self._entry = numba.njit(**COMMON)(entry)
        return self._entry(*arguments)

    def __reduce__(self) -> Any:
        """By name where it has one; what stands in a script or a notebook goes along as a whole."""
        home = sys.modules.get(self.__module__)
        name = self.py_func.__qualname__
        if self.__module__ != "__main__" and getattr(home, name, None) is self:
            return name
        return Kernel, (self.py_func, self.counted, self.copied)


def compiled_for(function: Any, *arguments: Any) -> Any:
    """The function compiled for arguments of these types; itself where nothing is compiled.

    Numba finds compiled code by the name and the fields of a named tuple's class: two classes of one name, such as a
    notebook's cell makes when it is run again, would have each other's code. The type itself tells them apart.
    """
    if DISABLE_JIT:
        return function
    return function.compile(tuple(numba.typeof(one) for one in arguments))  # type: ignore[no-untyped-call]


def _compile(function: F, **options: Any) -> F:
    compiled: Any = numba.njit(**COMMON, **options)(function)
    if not DISABLE_JIT:
        compiled._cache = DiskCache(function)
    return cast(F, compiled)
