"""Compiled code on disk: one file per function and signature, found by a hash of everything it was compiled from.

Numba's own cache has one index per function for all signatures: a type from a user's module in it makes every other
program that loads the index fail, two writers can lose each other's entries, and a damaged file is an error. Here
files are independent, appear completely or not at all, and carry a hash of their content. If anything is wrong with
them, the code is compiled again in memory, with one warning.
"""

import hashlib
import os
import platform
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, reduce
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config, types

from solid_bandits._internal.sources import stamp

VARIABLE = "SOLID_BANDITS_CACHE"
"""Name of the environment variable that names the folder; by default it is in the user's cache."""
MOST_FILES = 600
"""Largest number of files. Beyond it the least recently used are removed, down to two thirds."""

_UNFINISHED = ".part"
_ABANDONED = 3600.0
"""Seconds after which an unfinished file counts as abandoned."""
_PLAIN = (
    types.Number,
    types.Boolean,
    types.NoneType,
    types.UnicodeType,
    types.Array,
    types.Record,
    types.Literal,
    types.EnumMember,
)
"""Kinds of types whose names are unique in any process."""
_OPTIONS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
"""Settings of numba that change the generated code."""

_kernels: dict[type, tuple[Any, ...]] = {}


def note_modules(agent_type: type, *kernels: Any) -> None:
    """Record the kernels of a type of agent: code compiled for the type is stale when their modules change."""
    _kernels[agent_type] = kernels


class DiskCache:
    """Files of one function's compiled code, one for each signature and kind of processor."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.name = function.__module__, function.__qualname__

    @property
    def place(self) -> str:
        """The folder, as reported in numba's statistics."""
        return str(folder() or "")

    def load(self, sig: Any, processor: Any, unpack: Callable[[bytes], Any]) -> Any:
        """Return `unpack` of the file for a signature; None if there is no usable file."""
        path = self._path(sig, processor)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                foreign = _is_open_to_others(os.fstat(file.fileno()))
                content = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            return _warn(f"{path} cannot be read ({error.strerror})")
        if foreign:
            return _warn(f"{path} belongs to someone else, or others may write to it")
        data = content[32:]
        if _sealed(path, data) != content:
            return _warn(f"{path} is damaged")
        try:
            result = unpack(data)
        except Exception as error:  # unpickling, or another numba, may raise anything; compile again
            return _warn(f"{path} cannot be used ({type(error).__name__}: {error})")
        with suppress(OSError):  # the folder may be read-only
            os.utime(path)
        return result

    def save(self, sig: Any, processor: Any, pack: Callable[[], bytes]) -> None:
        """Store the result of `pack` for the function compiled for this signature."""
        path = self._path(sig, processor)
        if path is None:
            return
        try:
            data = pack()
        except Exception as error:
            return _warn(f"{self._function.__qualname__} cannot be kept ({type(error).__name__}: {error})")
        try:
            _write(path, _sealed(path, data))
            _tidy(path.parent)
        except OSError as error:
            _warn(f"{path.parent} cannot be written to ({error.strerror})")

    def _path(self, sig: Any, processor: Any) -> Path | None:
        """Return the file of this signature; None if nothing can be stored."""
        made_of: list[Any] = [self._function.__module__]
        name = " ".join(_words(one, made_of) for one in sig)
        modules = {one if isinstance(one, str) else _home(one) for one in made_of}
        place = folder()
        if place is None or None in modules:
            return None
        stamps = [stamp(module) for module in sorted(filter(None, modules))]
        if None in stamps:
            return None
        key = (
            *self.name,
            self._function.__code__.co_firstlineno,
            name,
            stamps,
            processor,
            [getattr(config, option, None) for option in _OPTIONS],
            _versions(),
        )
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:40]
        return place / f"{self._function.__name__}-{digest}.code"


def _words(kind: Any, made_of: list[Any]) -> str:
    """Return a unique name for a type; add to `made_of` the classes and kernels that its code depends on."""
    if isinstance(kind, types.TypeRef):
        return f"type({_words(kind.instance_type, made_of)})"
    held = isinstance(kind, types.StructRef)  # an agent passed by reference
    owner = type(kind) if held else getattr(kind, "instance_class", None)
    name = ""
    if owner is not None:
        made_of += [owner, *_kernels.get(owner, ())]
        name = f"{owner.__module__}.{owner.__qualname__}"
    if held or isinstance(kind, types.BaseTuple):
        inside = kind.field_dict.values() if held else kind
        return f"{name}({', '.join(_words(one, made_of) for one in inside)})"
    if not isinstance(kind, _PLAIN):
        made_of.append(None)  # it may contain anything
    return f"{name}{kind}"


def _home(one: Any) -> str | None:
    """Return the module that defines an object under its own name; None if it is local to a function or was
    replaced.
    """
    module = getattr(one, "__module__", None)
    try:
        found = reduce(getattr, one.__qualname__.split("."), sys.modules[module])  # type: ignore[index]
    except (AttributeError, KeyError):
        return None
    return module if found is one else None


def _sealed(path: Path, data: bytes) -> bytes:
    """Return the content of a file: the data, preceded by a hash that is valid for this file only."""
    return hashlib.sha256(path.name.encode() + b"\0" + data).digest() + data


@cache
def _versions() -> tuple[str, ...]:
    return sys.version, platform.machine(), numba.__version__, llvmlite.__version__, np.__version__


@cache
def folder() -> Path | None:
    """Return the folder of compiled code; None, with a warning, if there is no safe one."""
    named = os.environ.get(VARIABLE)
    try:
        place = (Path(named) if named else _user_cache() / "solid-bandits" / "compiled").absolute()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = place.stat()
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        _warn(f"there is no folder for it ({error})")
        return None
    if _is_open_to_others(state):
        _warn(f"{place} belongs to someone else, or others may write to it")
        return None
    return place


def _is_open_to_others(state: os.stat_result) -> bool:
    """Return whether another user could have written here; loaded code is executed."""
    return hasattr(os, "getuid") and (state.st_uid != os.getuid() or state.st_mode & 0o022 != 0)


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears completely or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=_UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _tidy(place: Path) -> None:
    """Remove the least recently used files, and unfinished files of killed processes."""
    files = _by_age(place, "*.code")
    spare = len(files) - 2 * MOST_FILES // 3 if len(files) > MOST_FILES else 0
    parts = [(age, file) for age, file in _by_age(place, f"*{_UNFINISHED}") if time.time() - age > _ABANDONED]
    for _, file in files[:spare] + parts:
        file.unlink(missing_ok=True)


def _by_age(place: Path, pattern: str) -> list[tuple[float, Path]]:
    """List files with the time of their last use, oldest first."""
    found = []
    for file in place.glob(pattern):
        with suppress(FileNotFoundError):  # another process may tidy too
            found.append((file.stat().st_mtime, file))
    return sorted(found)


_warned: list[str] = []
_family = uuid.uuid4().hex


def family() -> tuple[str, bool]:
    """Return a name shared by a process and its workers, and whether one of them has warned; see `join`."""
    return _family, bool(_warned)


def join(name: str, warned: bool) -> None:
    """Make this process a worker of another: if one of the family has warned, this one does not."""
    global _family
    _family = name
    if warned:
        _warned.append("said by another process")


def _warn(reason: str) -> None:
    """Warn once per process and its workers; everything works without a cache, but starts more slowly."""
    if _warned:
        return
    _warned.append(reason)
    place = folder()
    if place is not None:
        try:  # `_tidy` removes it
            os.close(os.open(place / f"{_family}{_UNFINISHED}", os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return
        except OSError:
            pass  # a read-only folder: each process warns
    warnings.warn(
        f"the compile cache cannot be used: {reason}; compiling in memory. {VARIABLE} may name another folder",
        RuntimeWarning,
        stacklevel=2,
    )
