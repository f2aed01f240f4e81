"""Logs as files, and deletion of their rows."""

import io
import os
from datetime import datetime

import polars as pl

from solid_bandits._internal import checks
from solid_bandits._internal.files import first_line, path_of, write_bytes
from solid_bandits.core.ids_and_times import microseconds
from solid_bandits.logs.dsjson import read_dsjson
from solid_bandits.logs.foreign import from_table
from solid_bandits.logs.schema import COLUMNS, check_log

PathLike = str | os.PathLike[str]
GROUP = 50_000
"""Number of rows read at once when a log is evaluated."""
DSJSON = (".dsjson", ".json", ".jsonl")


def write(table: pl.DataFrame, path: PathLike) -> None:
    """Write a log as Parquet, completely or not at all.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import solid_bandits as sb
        >>> table = {"arm": ["a", "b", "a"], "reward": [1.0, 0.0, 0.5], "probability": [0.5, 0.5, 0.5]}
        >>> log = sb.logs.from_table(table)
        >>> with TemporaryDirectory() as folder:
        ...     sb.logs.write(log, f"{folder}/log.parquet")
        ...     sb.logs.read(f"{folder}/log.parquet").equals(log)
        True
    """
    place = path_of("path", path)
    if place.suffix.lower() in (".csv", *DSJSON):
        raise ValueError(f"path must end in .parquet, got {str(path)!r}; sb.logs.write_dsjson writes dsjson")
    content = io.BytesIO()
    check_log(table).write_parquet(content, row_group_size=GROUP)
    write_bytes(place, content.getvalue())


def read(path: PathLike) -> pl.DataFrame:
    """Return a log from a file: Parquet or CSV of ours or from elsewhere (`from_table`), or dsjson.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import solid_bandits as sb
        >>> table = {"arm": ["a", "b", "a"], "reward": [1.0, 0.0, 0.5], "probability": [0.5, 0.5, 0.5]}
        >>> log = sb.logs.from_table(table)
        >>> with TemporaryDirectory() as folder:
        ...     sb.logs.write(log, f"{folder}/log.parquet")
        ...     sb.logs.read(f"{folder}/log.parquet").height
        3
    """
    place = path_of("path", path)
    try:
        if place.suffix.lower() in DSJSON:
            return read_dsjson(place)
        table = pl.read_csv(place) if place.suffix.lower() == ".csv" else pl.read_parquet(place)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(f"log {os.fspath(path)!r} cannot be read ({first_line(error)})") from None
    return check_log(table) if set(table.columns) >= set(COLUMNS) else from_table(table)


def in_order(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows by their decisions, each event once: its last version."""
    return table.unique("event_id", keep="last", maintain_order=True).sort(
        "sequence", nulls_last=True, maintain_order=True
    )


def delete(
    table: pl.DataFrame, event_id: str | None = None, before: datetime | float | None = None
) -> pl.DataFrame:
    """Return the log without the rows of one event, or without those decided before a time.

    Example:
        >>> import solid_bandits as sb
        >>> table = {"arm": ["a", "b", "a"], "reward": [1.0, 0.0, 0.5], "probability": [0.5, 0.5, 0.5]}
        >>> log = sb.logs.from_table(table)
        >>> event = log["event_id"][0]
        >>> sb.logs.delete(log, event_id=event).height
        2
    """
    if (event_id is None) == (before is None):
        raise ValueError("event_id or before must be given to delete, and not both")
    if not isinstance(table, pl.DataFrame) or not {"event_id", "time"} <= set(table.columns):
        raise ValueError(f"table must be a log, got {checks.short(table)}; use logs.from_table")
    if event_id is not None:
        if not isinstance(event_id, str):
            raise ValueError(f"event_id must be text, got {checks.short(event_id)}")
        return table.filter(pl.col("event_id").ne_missing(event_id))
    assert before is not None
    limit = pl.lit(microseconds("before", before)).cast(COLUMNS["time"])
    return table.filter((pl.col("time") >= limit).fill_null(True))
