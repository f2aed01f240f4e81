"""Output of commands: results, and users' mistakes in one line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer


@contextmanager
def bad_arguments(prefix: str = "") -> Iterator[None]:
    """Turn the ValueErrors of the library's checks, and errors of a store, into one-line errors.

    Errors caused by a bug elsewhere keep their trace.
    """
    from solid_bandits.live.store import StoreError

    try:
        yield
    except (ValueError, StoreError) as error:
        raise typer.TyperException(prefix + str(error)) from None


@contextmanager
def simulation_errors(again: str = "") -> Iterator[None]:
    """Turn errors that stop a simulation into one-line errors; `again` says what to do after workers were lost."""
    from solid_bandits.gpu.layout import UnfitError
    from solid_bandits.policies.own import OwnPolicyError
    from solid_bandits.simulation.workers import WorkersLostError

    try:
        yield
    except WorkersLostError as error:
        raise typer.TyperException(f"{error}{again}") from None
    except (OwnPolicyError, UnfitError) as error:
        raise typer.TyperException(str(error)) from None


def show(*things: Any, stderr: bool = False) -> None:
    """Print texts and tables, skipping empty ones; square brackets are not read as markup."""
    from rich.console import Console

    console = Console(stderr=stderr, markup=False)
    for one in things:
        if one:
            console.print(one, highlight=False, soft_wrap=isinstance(one, str))


def check_writable(out: Path) -> None:
    """Check before the simulation that `out` can be made and written to."""
    home = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    if not home.is_dir():
        raise ValueError(
            f"{os.fspath(out)!r} cannot be made, as {os.fspath(home)!r} is a file; give another directory"
        )
    if not os.access(home, os.W_OK | os.X_OK):
        raise ValueError(f"{os.fspath(out)!r} cannot be written to; give another directory")
