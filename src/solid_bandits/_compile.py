"""How functions are compiled: one decorator for the whole package."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile `function` with numba, cached on disk for the next process.

    Sums may be reordered, so that they run in vector registers; NaN and infinity keep their meaning. Division
    by zero gives infinity, as in NumPy: a check in each division would keep loops from being vectorised. Calls are
    inlined: a step is a few hundred nanoseconds, and handing over tuples of arrays would be half of it.
    """
    compiled = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}, forceinline=True
    )(function)
    # Numba looks for changes only in the file of the function itself, and would go on running the old code of
    # functions called from other files. The compiled files are one unit here: a change in one compiles all anew.
    if hasattr(compiled, "_cache"):  # not with NUMBA_DISABLE_JIT=1
        compiled._cache._cache_file._source_stamp = package_stamp()
    return cast(F, compiled)


@cache
def package_stamp() -> str:
    """A hash of the package's source files that hold compiled functions."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        if b"_compile import" in source or path == Path(__file__):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + source)
    return digest.hexdigest()
