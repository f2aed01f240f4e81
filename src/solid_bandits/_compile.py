"""How functions are compiled: the decorators of the whole package.

`jit` is for what is inlined where it is called: kernels, and the small functions they are made of. `jit_apart` is for
what is long, or called from Python: compiled by itself and kept on disk. `jit_allocating` is for what makes arrays, or
assigns one to a part of another; `jit_part` for the parts that such a function is made of.

Sums may be reordered, so that they run in vector registers; NaN and infinity keep their meaning. Division by zero
gives infinity, as in NumPy: a check in each division would keep loops from being vectorised.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, TypeVar, cast

import numba
from numba.core import ir, types
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]
from numba.core.errors import NumbaError

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
    """Compile a kernel of your own policy (`sb.jit`): like `jit`, but it may create and assign arrays.

    Every index in it is checked: one that is out of bounds raises an IndexError.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> @sb.jit
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
"""What another machine's compiler takes a kernel for, while it is at work."""


@contextmanager
def compiled_elsewhere(taken_for: Callable[["Kernel"], Any]) -> Iterator[None]:
    """While another machine's compiler is at work (a GPU's), kernels are what `taken_for` makes of them."""
    global _ELSEWHERE
    before, _ELSEWHERE = _ELSEWHERE, taken_for
    try:
        yield
    finally:
        _ELSEWHERE = before


class Kernel:
    """A compiled function that other compiled functions take in by its name; Python calls it through an entry.

    The entry is compiled when Python calls for the first time: no one waits for it who does not.
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
        options = {"_nrt": counted, "forceinline": copied, "boundscheck": checked}
        self.dispatcher = numba.njit(**INLINED | options)(function)
        if checked:
            _spare_counts(self.dispatcher._compiler)
        self._type = types.Dispatcher(self.dispatcher)
        self._entry: Any = None

    @property
    def _numba_type_(self) -> Any:
        """What numba takes this object for."""
        return self._type if _ELSEWHERE is None else _ELSEWHERE(self)

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
        return Kernel, (self.py_func, self.counted, self.copied, self.checked)


def _spare_counts(compiler: Any) -> None:
    """Compile without counts of references what makes nothing that would have to be counted.

    Where an error may be raised, as with checked indices, numba keeps all counts: they would be half of a small step.
    """
    compile_core = compiler._compile_core

    def compile_sparingly(arguments: Any, return_type: Any) -> Any:
        counted = compile_core(arguments, return_type)
        if not _makes_numbers_only(counted):
            return counted
        # What it calls is compiled by now, with counts or without, as it was first asked for.
        compiler.targetoptions["_nrt"] = False
        try:
            return compile_core(arguments, return_type)
        except NumbaError:  # something in it needs them after all
            return counted
        finally:
            compiler.targetoptions["_nrt"] = True

    compiler._compile_core = compile_sparingly


def _makes_numbers_only(result: Any) -> bool:
    """Whether a compiled function returns numbers, and all it does gives numbers, or views of what it was given."""
    for done, signature in result.type_annotation.calltypes.items():
        if signature is None or getattr(done, "op", None) in ("getiter", "iternext", "exhaust_iter"):
            continue
        if getattr(done, "op", None) in ("getitem", "static_getitem"):
            if any(map(_is_choice, signature.args[1:])):
                return False
        elif not _is_number(signature.return_type) or (
            isinstance(done, ir.SetItem | ir.StaticSetItem) and not _is_number(signature.args[2])
        ):
            return False
    return _is_number(result.signature.return_type)


def _is_choice(index: Any) -> bool:
    """Whether an index gives a new array: one of the entries that another array names."""
    if isinstance(index, types.BaseTuple):
        return any(_is_choice(one) for one in index)  # type: ignore[attr-defined]
    return isinstance(index, types.Array)


def _is_number(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return all(_is_number(one) for one in kind)  # type: ignore[attr-defined]
    plain = types.Number, types.Boolean, types.NoneType, types.RangeType, types.SliceType
    return isinstance(kind, (*plain, types.Literal))


@contextmanager
def no_collection() -> Iterator[None]:
    """Let Python's garbage collector rest: a compiler makes millions of objects, and looking at them takes time."""
    rests = not gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not rests:
            gc.enable()


def compiled_for(function: Any, *arguments: Any) -> Any:
    """The function compiled for arguments of these types; itself where nothing is compiled.

    Numba finds compiled code by the name and the fields of a named tuple's class: two classes of one name, such as a
    notebook's cell makes when it is run again, would have each other's code. The type itself tells them apart.
    """
    if DISABLE_JIT:
        return function
    with no_collection():
        return function.compile(tuple(numba.typeof(one) for one in arguments))  # type: ignore[no-untyped-call]


def _compile(function: F, **options: Any) -> F:
    compiled: Any = numba.njit(**COMMON, **options)(function)
    if not DISABLE_JIT:
        compiled._cache = DiskCache(function)
    return cast(F, compiled)
