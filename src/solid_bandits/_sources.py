"""What compiled code was made of: a hash of every source file that a module reaches by its imports.

Numba looks for changes in the file of the compiled function alone; code that was inlined from another file would go
on running after that file has changed. Here a module's stamp covers all that it can reach: this package's files and a
user's own, also a helper's helper, with the numbers that stand in them. Installed libraries count by the time of their
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
ROOT = Path(__file__).resolve().parent

# In this package, what a module is made of is imported at the top, by whole names.
_IMPORT = re.compile(
    r"^(?:from[ \t]+(?P<package>[\w.]+)[ \t]+import[ \t]+(?:\((?P<many>[^)]*)\)|(?P<names>[^\n(]+))"
    r"|import[ \t]+(?P<modules>[^\n]+))",
    re.MULTILINE,
)


def _began() -> float:
    """When this process began, where that can be found out; else now."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - (ticks + 1) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.time()
    return time.time() - age if ticks > 0 <= age else time.time()


STARTED = _began()
"""A file that changed since may not be what was loaded."""


class _UnknownSourceError(Exception):
    """There is no file that can be trusted to be what runs."""


def stamp(module: str) -> str | None:
    """A hash of the files that `module` reaches; None where it has no file that can be trusted to be what runs.

    That is so for a notebook's cells, for a script, and for a file that was changed after this process began.
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
    """A hash of this package's source files: equal where results are to be compared to the last bit."""
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == PACKAGE


def _package_lines(module: str) -> Iterator[str]:
    """Name and hash of each file of this package that one of its modules is made of, loaded or not."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _package_file(name)
        # The package itself holds no code, only the homes of its names.
        if name in found or name == PACKAGE or path is None:
            continue
        found.add(name)
        yield f"{name} {_hash(path, _state(path))}"
        waiting += _package_imports(path, _state(path))


def _package_file(name: str) -> Path | None:
    below = ROOT.joinpath(*name.split(".")[1:])
    return next((path for path in (below.with_suffix(".py"), below / "__init__.py") if path.is_file()), None)


@cache
def _package_imports(path: Path, state: tuple[int, ...]) -> tuple[str, ...]:
    """What the import lines of one of this package's files may name, also names that are no modules."""
    names: set[str] = set()
    for match in _IMPORT.finditer(path.read_text(encoding="utf-8")):
        if match["modules"]:
            names.update(part.split()[0] for part in match["modules"].split(","))
            continue
        names.add(match["package"])
        parts = (match["many"] or match["names"]).split(",")
        names.update(f"{match['package']}.{part.split()[0]}" for part in parts if part.split())
    return tuple(name for name in names if _is_ours(name))


def _user_lines(module: str) -> Iterator[str]:
    """Name and content of each loaded module that a user's module reaches; of all of this package, if it does."""
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
            for one in ROOT.rglob("*.py"):
                yield f"{one.relative_to(ROOT).as_posix()} {_hash(one, _state(one))}"
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
            waiting += _imports(loaded, path)
        waiting += [home for _, value in _globals(loaded) for home in _homes(value)]


def _file(module: str) -> Path | None:
    """The file of a loaded module, None where it needs none; an error where it should have one, as a script should."""
    loaded = sys.modules[module]
    name = getattr(loaded, "__file__", None)
    if module != "__main__":
        if name:
            return Path(name).resolve()
        origin = getattr(getattr(loaded, "__spec__", None), "origin", None)
        if hasattr(loaded, "__path__") or origin in ("built-in", "frozen"):
            return None
    raise _UnknownSourceError(module)


def _state(path: Path) -> tuple[int, ...]:
    """What changes with a file."""
    state = path.stat()
    if max(state.st_mtime, state.st_ctime) > STARTED:
        raise _UnknownSourceError(path)
    return state.st_mtime_ns, state.st_ctime_ns, state.st_size


@cache
def _hash(path: Path, state: tuple[int, ...]) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _imports(module: ModuleType, path: Path) -> Iterator[str]:
    """What the import lines of a user's file may name, also names that are no modules."""
    package = getattr(module, "__package__", None) or ""
    for level, home, names in _import_lines(path, _state(path)):
        with suppress(ImportError):  # more dots than packages
            base = resolve_name("." * level + home, package) if level else home
            for name in (base, *(f"{base}.{name}" for name in names)):
                parts = name.split(".")
                yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


@cache
def _import_lines(path: Path, state: tuple[int, ...]) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    """Dots, module and names of each import of a file."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        raise _UnknownSourceError(path) from None
    lines: list[tuple[int, str, tuple[str, ...]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            lines += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            lines.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
    return tuple(lines)


def _globals(module: ModuleType) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in list(vars(module).items()) if not name.startswith("__")]


def _homes(value: Any) -> Iterator[str]:
    """The module that a value is, or comes from, however it was imported."""
    if isinstance(value, ModuleType):
        yield value.__name__
        return
    with suppress(Exception):  # whatever an object does when it is asked
        if isinstance(value.__module__, str):
            yield value.__module__


def _plain(value: Any, depth: int = 4) -> str:
    """A value that compiled code may have taken in as a constant, in words; nothing for any other."""
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
