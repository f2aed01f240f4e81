"""How functions are compiled: one decorator for the whole package."""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import caching

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile `function` with numba, cached on disk for the next process, and inline it where it is called.

    Sums may be reordered, so that they run in vector registers; NaN and infinity keep their meaning. Division
    by zero gives infinity, as in NumPy: a check in each division would keep loops from being vectorised. A step is a
    few hundred nanoseconds, and handing over tuples of arrays without inlining would be half of it.
    """
    return _compile(function, inline=True)


def jit_apart(function: F) -> F:
    """Compile `function` like `jit`, but do not inline it: for what is long and rare."""
    return _compile(function, inline=False)


def _compile(function: F, inline: bool) -> F:
    # Kernels that are inlined allocate nothing (numba refuses it) and return no array (a test sees to it), so that
    # references need not be counted: each count is a locked instruction, and they were most of a step. Said for both
    # kinds, because a function that does not say takes over what its caller does.
    counting: dict[str, Any] = {"_nrt": not inline}
    compiled: Any = numba.njit(
        nogil=True,
        error_model="numpy",
        fastmath={"reassoc", "contract", "nsz"},
        forceinline=inline,
        **counting,
    )(function)
    if hasattr(compiled, "_cache"):  # not with NUMBA_DISABLE_JIT=1
        compiled._cache = _PackageCache(function)  # type: ignore[no-untyped-call]
    return cast(F, compiled)


def _stamped(locator: Any) -> Any:
    class Stamped(locator):  # type: ignore[misc]
        def get_cache_path(self) -> str:
            return os.path.join(super().get_cache_path(), f"solid-bandits-{package_stamp()[:16]}")

        def get_source_stamp(self) -> str:
            return package_stamp()

    return Stamped


class _PackageCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012
        _stamped(known) for known in caching.CompileResultCacheImpl._locator_classes
    ]


class _PackageCache(caching.FunctionCache):
    """Numba's cache on disk, in a folder of its own for each state of the package's compiled files.

    Numba looks for changes only in the file of a function itself: it would go on running old code of functions in other
    files, and stumble over types that have moved. Here the compiled files are one unit: a change in one compiles anew.
    """

    _impl_class = _PackageCacheImpl

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return *super()._index_key(sig, codegen), _outside_stamp(sig)  # type: ignore[no-untyped-call]


_outside: dict[type, frozenset[Path]] = {}


def note_sources(agent_type: type, *kernels: Callable[..., object]) -> None:
    """Remember the files of kernels outside the package: code that was compiled with them goes stale with them."""
    codes = [getattr(kernel, "py_func", kernel).__code__ for kernel in kernels]
    files = {Path(code.co_filename) for code in codes}
    _outside[agent_type] = frozenset(file for file in files if ROOT not in file.parents and file.is_file())


def _outside_stamp(sig: Any) -> str:
    """A hash of the files that hold the kernels of the agents in a signature, where they are not the package's."""
    held = [getattr(one, "field_dict", {}).get("agent", one) for one in sig]
    files = set().union(*(_outside.get(getattr(one, "instance_class", object), ()) for one in held))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(files))).hexdigest()


ROOT = Path(__file__).parent

# Nothing that is compiled, nor any type or constant that compiled code is made with, comes from these.
_PLAIN = ("cli", "experiments", "report")


@cache
def package_stamp() -> str:
    """A hash of the package's source files, but for those that have nothing to do with compiled functions."""
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        inside = path.relative_to(ROOT)
        if inside.parts[0] not in _PLAIN:
            digest.update(str(inside).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
