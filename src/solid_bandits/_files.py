"""Files that appear whole or not at all, and what they are called. Nothing is computed here."""

import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path

from solid_bandits._types import Plain

FORMAT = 1
"""Of the files below; a manifest of another format is not read."""

# Of one simulation:
TABLE_FILE = "results.parquet"
DIAGNOSTICS_FILE = "diagnostics.parquet"
MANIFEST_FILE = "manifest.json"

# Of a directory of experiments:
EXPERIMENT_FILE = "experiment.json"
INVOCATIONS_FILE = "invocations.json"
FIGURES = "figures"


class StoreError(ValueError):
    """A directory cannot be used: it is in use, may not be written to, or holds something else."""


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it, so that `path` is never half-written."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{path.suffix}")
    try:
        write(temporary)
        # On the disk before it has its name: not even a power cut leaves half a file under it.
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    write_whole(path, lambda file: file.write_text(text, encoding="utf-8"))


def write_json(path: Path, content: Plain, indent: int | None = 2) -> None:
    """Write plain data, whole or not at all; numbers come back exactly as they were."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(content, ensure_ascii=False, indent=indent) + "\n")


def read_json(path: Path, *keys: str) -> Plain:
    """Read what `write_json` wrote; a StoreError unless it is a table with these keys."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not set(keys) <= set(content):
            raise ValueError(f"it lacks {', '.join(keys) or 'its fields'}")
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{os.fspath(path)!r} cannot be read ({first_line(error)}); remove it and rerun"
        ) from None
    return content


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process left half-written; its names begin with a dot."""
    for unfinished in folder.glob(".*.????????.*"):
        unfinished.unlink(missing_ok=True)


def first_line(error: BaseException) -> str:
    """An error in one line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
