"""Optional dependencies: the extras of pyproject.toml, imported when they are needed.

The base installation decides and simulates. Drawing, printing, downloading and remote execution come with extras, and
a one-line error names the extra that is missing.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRAS = {
    "polars": "tables",
    "matplotlib": "plot",
    "plotly": "report",
    "jinja2": "report",
    "pandas": "pandas",
    "typer": "cli",
    "rich": "cli",
    "pydantic": "cli",
    "distributed": "dask",
    "sklearn": "jester",
    "pooch": "jester",
    "xlrd": "jester",
    "numba_cuda": "gpu",
    "httpx": "client",
    "fastapi": "service",
    "uvicorn": "service",
    "prometheus_client": "service",
    "psycopg": "service-postgres",
}
"""Module -> the extra that installs it; tests compare this with pyproject.toml."""

PACKAGES = {"sklearn": "scikit-learn", "numba_cuda": "numba-cuda", "prometheus_client": "prometheus-client"}
"""Module -> name of its package on the index, where that differs."""


class MissingExtraError(ImportError):
    """Raised when an extra that is needed is not installed."""


def load(module: str, what: str) -> Any:
    """Import a module that needs an extra; `what` begins the message if the extra is not installed.

    This also serves modules of this package that are above the caller, such as drawings of the results: they are loaded
    on demand, and nothing below depends on them.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error, what) or error from None


def present(module: str) -> bool:
    """Return whether a module is installed."""
    if module in sys.modules:
        return True
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def missing(error: ModuleNotFoundError, what: str) -> MissingExtraError | None:
    """Return an error that names the extra which installs the module; None if no extra does."""
    name = (error.name or "").partition(".")[0]
    if name == __name__.partition(".")[0]:  # solid-bandits-client has a part of the modules
        return MissingExtraError(
            f"{what} is not in the client alone; run: pip install solid-bandits", name=error.name
        )
    if name not in EXTRAS:
        return None
    return MissingExtraError(line(name, what), name=error.name)


def line(module: str, what: str) -> str:
    """Return the message for an extra that is not installed."""
    package, extra = PACKAGES.get(module, module), EXTRAS[module]
    return f"{what} needs {package}, which is not installed; run: pip install 'solid-bandits[{extra}]'"
