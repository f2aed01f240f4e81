"""A hash of every source file that a module reaches by its imports, which is what compiled code was made from.

Numba looks for changes only in the file of the compiled function, so code inlined from another file would keep running
after that file has changed. Here a module's stamp covers everything it can reach: this package's files and a user's
own, helpers of helpers included, with the numbers in them. Installed libraries are represented by the times of their
files.
"""

import ast
import hashlib
import os
import re
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = __name__.split(".")[0]
ROOT = Path(__file__).resolve().parents[1]


def _began() -> float:
    """Return when this process began, or the time of this call if the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - (ticks + 1) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.time()
    return time.time() - age if ticks > 0 <= age else time.time()


STARTED = _began()
"""Files modified later may differ from what was imported."""


class _UnknownSourceError(Exception):
    """Raised if a module has no file that is known to match the running code."""


def stamp(module: str) -> str | None:
    """Return a hash of the files that `module` reaches; None if one of them may differ from the running code.

    That is the case for a notebook's cells, for a script, and for a file that changed after this process began.
    """
    digest = hashlib.sha256()
    try:
        for line in sorted(_package_lines(module) if _is_ours(module) else _user_lines(module)):
            digest.update(line.encode(errors="backslashreplace") + b"\n")
    except (OSError, _UnknownSourceError):
        return None
    return digest.hexdigest()


@cache
def package_hash() -> str:
    """Return a hash of this package's source files: if it is equal, results are equal to the last bit."""
    digest = hashlib.sha256()
    for name, path in _package_files():
        digest.update(f"{name}\0".encode() + Path(path).read_bytes())
    return digest.hexdigest()


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == PACKAGE


def _package_lines(module: str) -> Iterator[str]:
    """Yield name and hash of each file of this package that a module depends on, whether loaded or not."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        # The package itself contains no code, only the homes of its names.
        if name in found or name == PACKAGE:
            continue
        found.add(name)
        path = _package_file(str(ROOT), name)
        if path is not None:
            state = _state(path)
            yield f"{name} {_hash(path, state)}"
            waiting += _package_imports(path, state)


# Imports as this package writes them: from column 0, by full names. A test compares this with Python's own parser,
# which takes half as long as everything that is loaded from the cache. Imports within functions are loaded on demand
# and no compiled code depends on them.
_IMPORT = re.compile(rf"^(?:from|import) ({PACKAGE}[\w.]*)(?: import (\([^)]*\)|.*))?", re.MULTILINE)


@cache
def _package_imports(path: str, state: tuple[int, ...]) -> list[str]:
    """Return names that the import lines of a file of this package may refer to, including names that are not
    modules.
    """
    with open(path, encoding="utf-8") as file:
        found = _IMPORT.findall(file.read())
    return [
        name
        for home, names in found
        for name in (home, *(f"{home}.{one}" for one in re.findall(r"\w+", names)))
    ]


@cache
def _package_file(root: str, name: str) -> str | None:
    below = os.path.join(root, *name.split(".")[1:])
    return next(filter(os.path.isfile, (f"{below}.py", os.path.join(below, "__init__.py"))), None)


def _package_files() -> list[tuple[str, str]]:
    """Return every source file of this package, with its path below the root."""
    found = [
        os.path.join(place, one) for place, _, names in os.walk(ROOT) for one in names if one.endswith(".py")
    ]
    return sorted((os.path.relpath(path, ROOT).replace(os.sep, "/"), path) for path in found)


def _user_lines(module: str) -> Iterator[str]:
    """Yield name and content of each loaded module that a user's module reaches; this package counts as one."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if _is_ours(name):
            name = PACKAGE
        if name in found or name not in sys.modules:
            continue
        found.add(name)
        if name == PACKAGE:
            yield from (f"{place} {_hash(one, _state(one))}" for place, one in _package_files())
            continue
        loaded = sys.modules[name]
        path = _file(name)
        if path is None:
            continue
        if _is_installed(path) and name.split(".")[0] != module.split(".")[0]:
            yield f"{name} {_state(path)}"
            continue
        yield f"{name} {_hash(path, _state(path))}"
        yield from (f"{name}.{key} {_plain(value)}" for key, value in _globals(loaded))
        if path.suffix == ".py":
            waiting += _may_name(loaded, path)
        waiting += [home for _, value in _globals(loaded) for home in _homes(value)]


def _file(module: str) -> Path | None:
    """Return the file of a loaded module, None if it needs none; reject a script, and a module that lacks its file."""
    loaded = sys.modules[module]
    name = getattr(loaded, "__file__", None)
    if module != "__main__":
        if name:
            return Path(name).resolve()
        origin = getattr(getattr(loaded, "__spec__", None), "origin", None)
        if hasattr(loaded, "__path__") or origin in ("built-in", "frozen"):
            return None
    raise _UnknownSourceError(module)


def _state(path: str | Path) -> tuple[int, ...]:
    """Return values that change with a file; reject a file that was changed after this process began."""
    state = os.stat(path)
    if max(state.st_mtime, state.st_ctime) > STARTED:
        raise _UnknownSourceError(path)
    return state.st_mtime_ns, state.st_ctime_ns, state.st_size


@cache
def _hash(path: str | Path, state: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _may_name(module: ModuleType, path: Path) -> Iterator[str]:
    """Yield names that the import lines of a user's file may refer to, including names that are not modules."""
    package = getattr(module, "__package__", None) or ""
    for level, home, names in _imports(path, _state(path)):
        with suppress(ImportError):  # more dots than there are packages
            base = resolve_name("." * level + home, package) if level else home
            for name in (base, *(f"{base}.{name}" for name in names)):
                parts = name.split(".")
                yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


@cache
def _imports(path: Path, state: tuple[int, ...]) -> list[tuple[int, str, list[str]]]:
    """Return dots, module and names of each import in a user's file."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        raise _UnknownSourceError(path) from None
    lines: list[tuple[int, str, list[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            lines += [(0, alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            lines.append((node.level, node.module or "", [alias.name for alias in node.names]))
    return lines


def _globals(module: ModuleType) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in list(vars(module).items()) if not name.startswith("__")]


def _homes(value: Any) -> Iterator[str]:
    """Yield the names of the modules that a value is, or comes from, however it was imported."""
    if isinstance(value, ModuleType):
        yield value.__name__
        return
    with suppress(Exception):  # an object's attributes may raise anything
        if isinstance(value.__module__, str):
            yield value.__module__


def _plain(value: Any, depth: int = 4) -> str:
    """Describe a value that compiled code may contain as a constant; omit any other."""
    if isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if depth == 0:
        return ""
    if isinstance(value, tuple):
        return f"({', '.join(_plain(one, depth - 1) for one in value)})"
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    words = []
    for cell in getattr(getattr(value, "py_func", value), "__closure__", None) or ():
        with suppress(ValueError):  # a cell that is still empty
            words.append(_plain(cell.cell_contents, depth - 1))
    return ", ".join(words)


def _is_installed(path: Path) -> bool:
    return bool({"site-packages", "dist-packages"} & {*path.parts}) or path.is_relative_to(
        _standard_library()
    )


@cache
def _standard_library() -> Path:
    return Path(sysconfig.get_path("stdlib")).resolve()
