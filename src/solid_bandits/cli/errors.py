"""What a person did wrong, in one line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def bad_arguments(prefix: str = "") -> Iterator[None]:
    """Turn the ValueErrors of the library's checks into one-line errors; those of a bug elsewhere keep their trace."""
    try:
        yield
    except ValueError as error:
        raise typer.TyperException(prefix + str(error)) from None


def plain_console(stderr: bool = False) -> "Console":
    """A console for what people named: square brackets are square brackets, not markup."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False)


def check_writable(out: Path) -> None:
    """Find out now, not after the simulation, whether `out` can be made and written to."""
    home = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    if not home.is_dir():
        raise ValueError(
            f"{os.fspath(out)!r} cannot be made, as {os.fspath(home)!r} is a file; give another directory"
        )
    if not os.access(home, os.W_OK | os.X_OK):
        raise ValueError(f"{os.fspath(out)!r} cannot be written to; give another directory")
