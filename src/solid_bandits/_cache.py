"""Compiled code kept on disk: one file for each function and signature, found by a hash of all it was made of.

Numba's own cache has one index per function for all signatures: a type of a user's module in it makes every other
program fail that loads the index, two writers can lose each other's entries, and a damaged file is an error. Here
files are independent, appear whole, carry a hash of their content, and anything that is wrong with them means compiling
again in memory, with one warning. What is used of numba's private interface is in this file, `_inlined` and `_compile`;
`tests/test_inlined.py` says which numba broke it.
"""

import hashlib
import os
import pickle
import platform
import sys
import tempfile
import time
import uuid
import warnings
from contextlib import suppress
from functools import cache, reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numba.core import config, types

from solid_bandits._sources import stamp

VARIABLE = "SOLID_BANDITS_CACHE"
"""Names the folder; where it is not set, one in the user's cache is taken."""
MOST_FILES = 600
"""Of compiled code; beyond it the ones that were not used for longest are removed, down to two thirds."""

_UNFINISHED = ".part"
_ABANDONED = 3600.0
"""Seconds after which a file that is not whole has nobody who writes it."""
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
"""Kinds of types whose words tell them from any other, in any process."""
_OPTIONS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
"""Settings of numba that change what it makes."""

_kernels: dict[type, tuple[Any, ...]] = {}


def note_modules(agent_type: type, *kernels: Any) -> None:
    """Remember the kernels of a type of agents: code compiled for the type goes stale with their modules."""
    _kernels[agent_type] = kernels


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
            with path.open("rb") as file:
                foreign = _is_open_to_others(os.fstat(file.fileno()))
                content = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn(f"{path} cannot be read ({error.strerror})")
            return None
        if foreign:
            _warn(f"{path} belongs to someone else, or others may write to it")
            return None
        data = content[32:]
        if _sealed(path, data) != content:
            _warn(f"{path} is damaged")
            return None
        try:
            from numba.core.compiler import CompileResult

            parts = pickle.loads(data)
            made_for = (parts[1].modname, parts[1].qualname, tuple(parts[3].args))
            if made_for != (self._function.__module__, self._function.__qualname__, tuple(sig)):
                raise ValueError("it is another function's")
            result = CompileResult._rebuild(target_context, *parts)  # type: ignore[no-untyped-call]
        except Exception as error:  # whatever unpickling or another numba may raise: compiling again is right
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
            _write(path, _sealed(path, data))
            _tidy(path.parent)
        except OSError as error:
            _warn(f"{path.parent} cannot be written to ({error.strerror})")

    def _path(self, sig: Any, target_context: Any) -> Path | None:
        """The file of this signature; None where nothing can be kept."""
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
            self._function.__module__,
            self._function.__qualname__,
            self._function.__code__.co_firstlineno,
            name,
            stamps,
            target_context.codegen().magic_tuple(),
            [getattr(config, option, None) for option in _OPTIONS],
            _versions(),
        )
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:40]
        return place / f"{self._function.__name__}-{digest}.code"


def _words(kind: Any, made_of: list[Any]) -> str:
    """A type in words that tell it from any other; adds the classes and kernels that code for it is made of."""
    held = isinstance(kind, types.StructRef)  # an agent that is held in one place
    owner = type(kind) if held else getattr(kind, "instance_class", None)
    name = ""
    if owner is not None:
        made_of += [owner, *_kernels.get(owner, ())]
        name = f"{owner.__module__}.{owner.__qualname__}"
    if held or isinstance(kind, types.BaseTuple):
        inside = kind.field_dict.values() if held else kind
        return f"{name}({', '.join(_words(one, made_of) for one in inside)})"
    if not isinstance(kind, _PLAIN):
        made_of.append(None)  # it may hold anything
    return f"{name}{kind}"


def _home(one: Any) -> str | None:
    """The module where something can be found by its name; None where it cannot: made in a function, or anew."""
    module = getattr(one, "__module__", None)
    try:
        found = reduce(getattr, one.__qualname__.split("."), sys.modules[module])  # type: ignore[index]
    except (AttributeError, KeyError):
        return None
    return module if found is one else None


def _sealed(path: Path, data: bytes) -> bytes:
    """The content of a file: a hash that is good for this file alone, and what it holds."""
    return hashlib.sha256(path.name.encode() + b"\0" + data).digest() + data


@cache
def _versions() -> tuple[str, ...]:
    return (sys.version, platform.machine(), *(version(name) for name in ("numba", "llvmlite", "numpy")))


@cache
def folder() -> Path | None:
    """Where compiled code is kept; None, with a warning, where there is no such place."""
    named = os.environ.get(VARIABLE)
    try:
        place = (Path(named) if named else _user_cache() / "solid-bandits" / "compiled").absolute()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = place.stat()
    except (OSError, RuntimeError) as error:  # RuntimeError: no home
        _warn(f"there is no folder for it ({error})")
        return None
    if _is_open_to_others(state):
        _warn(f"{place} belongs to someone else, or others may write to it")
        return None
    return place


def _is_open_to_others(state: os.stat_result) -> bool:
    """Whether somebody else may have put something there: what is loaded is run."""
    return hasattr(os, "getuid") and (state.st_uid != os.getuid() or state.st_mode & 0o022 != 0)


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=_UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _tidy(place: Path) -> None:
    """Remove what was not used for longest, and what a process left that was killed while it wrote."""
    files = _by_age(place, "*.code")
    spare = len(files) - 2 * MOST_FILES // 3 if len(files) > MOST_FILES else 0
    parts = [(age, file) for age, file in _by_age(place, f"*{_UNFINISHED}") if time.time() - age > _ABANDONED]
    for _, file in files[:spare] + parts:
        file.unlink(missing_ok=True)


def _by_age(place: Path, pattern: str) -> list[tuple[float, Path]]:
    """Files with the time of their last use, oldest first."""
    found = []
    for file in place.glob(pattern):
        with suppress(FileNotFoundError):  # another process tidies too
            found.append((file.stat().st_mtime, file))
    return sorted(found)


_warned: list[str] = []
_family = uuid.uuid4().hex


def family() -> tuple[str, bool]:
    """What tells a process and its workers from others, and whether one of them has warned: for `join`."""
    return _family, bool(_warned)


def join(name: str, warned: bool) -> None:
    """Make this process one of a family: if another has warned, it does not."""
    global _family
    _family = name
    if warned:
        _warned.append("said by another process")


def _warn(reason: str) -> None:
    """Say once, in a process and its workers, that something is wrong; everything works without a cache, but later."""
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
            pass  # a folder that may only be read: each process says so
    warnings.warn(
        f"the compile cache cannot be used: {reason}; compiling in memory. {VARIABLE} may name another folder",
        RuntimeWarning,
        stacklevel=2,
    )
