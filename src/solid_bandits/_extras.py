"""What only some installations have: the extras of pyproject.toml, imported when they are needed.

The base installation decides and simulates. Whatever draws, prints, downloads or plays elsewhere comes with an extra,
and who lacks one is told its name in one line.
"""

from importlib import import_module
from typing import Any

EXTRAS = {
    "matplotlib": "plot",
    "plotly": "report",
    "pandas": "pandas",
    "typer": "cli",
    "rich": "cli",
    "distributed": "dask",
    "sklearn": "jester",
    "pooch": "jester",
    "xlrd": "jester",
    "numba_cuda": "gpu",
    "httpx": "client",
    "fastapi": "service",
    "uvicorn": "service",
    "psycopg": "service-postgres",
}
"""Module -> the extra that brings it; tests compare it with pyproject.toml."""

PACKAGES = {"sklearn": "scikit-learn", "numba_cuda": "numba-cuda"}
"""Modules whose package has another name."""


class MissingExtraError(ImportError):
    """Something needs an extra that is not installed."""


def load(module: str, what: str) -> Any:
    """Import a module that stands on an extra; `what` begins the message where that is not installed.

    Also for modules of this package that are above the caller, as drawings are above the results that they show: such a
    module is loaded on demand, and nothing below depends on it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error, what) or error from None


def missing(error: ModuleNotFoundError, what: str) -> MissingExtraError | None:
    """The line about the extra that would bring the module; None where none would."""
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        return None
    return MissingExtraError(line(name, what), name=error.name)


def line(module: str, what: str) -> str:
    """What is said where a module of an extra is not installed."""
    package, extra = PACKAGES.get(module, module), EXTRAS[module]
    return f"{what} needs {package}, which is not installed; run: pip install 'solid-bandits[{extra}]'"
