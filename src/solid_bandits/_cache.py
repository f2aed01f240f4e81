"""Compiled code kept on disk: one file for each function and signature, found by a hash of all it was made of.

Numba's own cache has one index per function for all signatures: a type of a user's module in it makes every other
program fail that loads the index, two writers can lose each other's entries, and a damaged file is an error. Here
files are independent, appear whole, carry a hash of their content, and anything that is wrong with them means compiling
again in memory, with one warning. What is used of numba's private interface is in this file and in `_compile`.
"""

import hashlib
import os
import pickle
import platform
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from solid_bandits._sources import stamp

VARIABLE = "SOLID_BANDITS_CACHE"
"""Names the folder; where it is not set, one in the user's cache is taken."""
MOST_FILES = 600
"""Of compiled code; beyond it the ones that were not used for longest are removed, down to two thirds."""

_modules: dict[type, frozenset[str]] = {}


def note_modules(agent_type: type, *kernels: Any) -> None:
    """Remember where the kernels of a type of agents stand: code compiled for the type goes stale with them."""
    _modules[agent_type] = frozenset(str(getattr(kernel, "__module__", "__main__")) for kernel in kernels)


class DiskCache:
    """What a numba dispatcher asks of its cache."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def cache_path(self) -> str:
        """The folder, for numba's statistics."""
        return str(folder() or "")

    def enable(self) -> None:
        """Nothing to do: it is a cache or it is not."""

    def disable(self) -> None:
        """Nothing to do."""

    def flush(self) -> None:
        """Nothing to do: a file that is stale is never asked for."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function compiled for this signature, or None."""
        target_context.refresh()  # numba's own caches do this first: types must be known
        path = self._path(sig, target_context)
        if path is None:
            return None
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn(f"{path} cannot be read ({error.strerror})")
            return None
        digest, data = content[:32], content[32:]
        if hashlib.sha256(data).digest() != digest:
            _warn(f"{path} is damaged")
            return None
        try:
            from numba.core.compiler import CompileResult

            result = CompileResult._rebuild(target_context, *pickle.loads(data))  # type: ignore[no-untyped-call]
        except (
            Exception
        ) as error:  # whatever unpickling or another numba may raise: compiling again is always right
            _warn(f"{path} cannot be used ({type(error).__name__}: {error})")
            return None
        with suppress(OSError):  # a folder that may only be read
            os.utime(path)
        return result

    def save_overload(self, sig: Any, result: Any) -> None:
        """Keep the function compiled for this signature."""
        path = self._path(sig, result.target_context)
        if path is None or result.lifted or result.library.has_dynamic_globals:
            return
        try:
            from numba.core.serialize import dumps

            data = dumps(result._reduce())  # type: ignore[no-untyped-call]
        except Exception as error:
            _warn(f"{self._function.__qualname__} cannot be kept ({type(error).__name__}: {error})")
            return
        try:
            _write(path, hashlib.sha256(data).digest() + data)
            _tidy(path.parent)
        except OSError as error:
            _warn(f"{path.parent} cannot be written to ({error.strerror})")

    def _path(self, sig: Any, target_context: Any) -> Path | None:
        """The file of this signature; None where nothing can be kept."""
        modules = {self._function.__module__}
        name = " ".join(_words(one, modules) for one in sig)
        stamps = [stamp(module) for module in sorted(modules)]
        place = folder()
        if place is None or None in stamps:
            return None
        key = (
            self._function.__module__,
            self._function.__qualname__,
            self._function.__code__.co_firstlineno,
            name,
            stamps,
            target_context.codegen().magic_tuple(),
            _versions(),
        )
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:40]
        return place / f"{self._function.__name__}-{digest}.code"


def _words(kind: Any, modules: set[str]) -> str:
    """A type in words that tell it from any other; adds the modules that it and its kernels come from."""
    owner = getattr(kind, "instance_class", None)
    if owner is not None:
        modules.add(owner.__module__)
        modules.update(_modules.get(owner, ()))
        inside = ", ".join(_words(one, modules) for one in kind)
        return f"{owner.__module__}.{owner.__qualname__}({inside})"
    fields = getattr(kind, "field_dict", None)
    if fields is not None:  # an agent that is held in one place
        return f"{type(kind).__qualname__}({', '.join(_words(one, modules) for one in fields.values())})"
    return str(kind)


@cache
def _versions() -> tuple[str, ...]:
    return (sys.version, platform.machine(), *(version(name) for name in ("numba", "llvmlite", "numpy")))


@cache
def folder() -> Path | None:
    """Where compiled code is kept; None, with a warning, where there is no such place."""
    named = os.environ.get(VARIABLE)
    try:
        place = Path(named) if named else _user_cache() / "solid-bandits" / "compiled"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = place.stat()
    except (OSError, RuntimeError) as error:  # RuntimeError: no home
        _warn(f"there is no folder for it ({error})")
        return None
    # What is loaded is run, so nobody else may be able to put something there.
    if hasattr(os, "getuid") and (state.st_uid != os.getuid() or state.st_mode & 0o022):
        _warn(f"{place} belongs to someone else, or others may write to it")
        return None
    return place


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _tidy(place: Path) -> None:
    files = list(place.glob("*.code"))
    if len(files) > MOST_FILES:
        files.sort(key=lambda file: file.stat().st_mtime)
        for file in files[: len(files) - 2 * MOST_FILES // 3]:
            file.unlink(missing_ok=True)


_warned: list[str] = []


def _warn(reason: str) -> None:
    """Say once in a process that compiled code is not kept."""
    if not _warned:
        _warned.append(reason)
        warnings.warn(
            f"compiled code is not kept for the next process: {reason}; it is compiled again each time. Set "
            f"{VARIABLE} to a folder of yours",
            RuntimeWarning,
            stacklevel=2,
        )
