"""What compiled code was made of: a hash of every source file that a module reaches by its imports.

Numba looks for changes in the file of the compiled function alone; code that was inlined from another file would go
on running after that file has changed. Here a module's stamp covers all that it can reach: this package's files and a
user's own, also a helper's helper. Installed libraries count by their version.
"""

import hashlib
import re
import sys
import sysconfig
import time
from functools import cache
from pathlib import Path

STARTED = time.time()
"""About when this process began: a file that changed since may not be what was loaded."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<package>[\w.]+)[ \t]+import[ \t]+(?:\((?P<many>[^)]*)\)|(?P<names>[^\n(]+))"
    r"|import[ \t]+(?P<modules>[^\n]+))",
    re.MULTILINE,
)


@cache
def stamp(module: str) -> str | None:
    """A hash of the files that `module` reaches; None where it has no file that can be trusted to be what runs.

    That is so for a notebook's cells, for a script, and for a file that was changed after this process began.
    """
    digest = hashlib.sha256()
    for name in sorted(_reached(module)):
        path = _file(name)
        if path is None:
            return None
        try:
            if path.stat().st_mtime > STARTED:
                return None
            digest.update(f"{name}\0".encode() + path.read_bytes())
        except OSError:
            return None
    return digest.hexdigest()


@cache
def package_hash() -> str:
    """A hash of this package's source files: equal where results are to be compared to the last bit."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _reached(module: str) -> set[str]:
    """The names of the module and of the loaded modules of its kind that it imports, directly or not."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        path = _file(name)
        if path is not None:
            waiting += [other for other in _imports(name, path) if _counts(other, module)]
    return found


@cache
def _imports(module: str, path: Path) -> tuple[str, ...]:
    """Loaded modules that a file's import lines name; a line inside a text may add one, which does no harm."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ()
    names: set[str] = set()
    for match in _IMPORT.finditer(text):
        if match["modules"]:
            names.update(part.split()[0] for part in match["modules"].split(",") if part.split())
            continue
        package = _absolute(match["package"], module)
        names.add(package)
        for part in (match["many"] or match["names"] or "").split(","):
            if part.split():
                names.add(f"{package}.{part.split()[0]}")
    return tuple(name for name in names if name in sys.modules)


def _absolute(package: str, module: str) -> str:
    """The name that a relative import means."""
    dots = len(package) - len(package.lstrip("."))
    if dots == 0:
        return package
    home = module.split(".")
    if not hasattr(sys.modules.get(module), "__path__"):
        home = home[:-1]
    base = home[: len(home) - (dots - 1)]
    return ".".join([*base, *([package.lstrip(".")] if package.lstrip(".") else [])])


def _counts(name: str, origin: str) -> bool:
    """Whether a module's text matters: this package's and a user's own do, installed libraries do not."""
    top = name.split(".")[0]
    if top in (origin.split(".")[0], __name__.split(".")[0]):
        return True
    path = _file(name)
    return path is not None and not any(path.is_relative_to(place) for place in _installed())


@cache
def _installed() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple({Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@cache
def _file(module: str) -> Path | None:
    """The source file of a loaded module; None for `__main__`, which is another one in the next process."""
    if module == "__main__":
        return None
    name = getattr(sys.modules.get(module), "__file__", None)
    return Path(name).resolve() if name and name.endswith(".py") else None
