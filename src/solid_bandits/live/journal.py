"""Where the rows of settled decisions go: into memory, or as parts into a directory."""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from solid_bandits import logs
from solid_bandits._files import StoreError, write_whole
from solid_bandits.logs.files import gather, in_order, parts
from solid_bandits.logs.schema import COLUMNS, TIME, empty

ROWS = 10_000
"""Of a part: as many wait as Python objects, at most, before they become a table."""


class Journal:
    """Rows in the order in which decisions were settled."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._waiting: list[dict[str, Any]] = []
        self._tables: list[pl.DataFrame] = []

    def add(self, row: dict[str, Any]) -> None:
        """Take in a row; a full part is written."""
        self._waiting.append(row)
        if len(self._waiting) >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Make a part of the rows that wait."""
        if not self._waiting:
            return
        table = as_table(self._waiting)
        if self.directory is None:
            self._tables.append(table)
        else:
            self._write(table)
        self._waiting = []

    def _write(self, table: pl.DataFrame) -> None:
        assert self.directory is not None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            last = parts(self.directory)[-1:]
            number = int(last[0].stem.removeprefix("part-")) + 1 if last else 1
            write_whole(self.directory / f"part-{number:08d}.parquet", table.write_parquet)
        except (OSError, ValueError) as error:
            raise StoreError(f"log {str(self.directory)!r} cannot be written ({error})") from None

    def held(self) -> pl.DataFrame:
        """The rows that are in memory."""
        return pl.concat([empty(), *self._tables, as_table(self._waiting)])

    def table(self) -> pl.DataFrame:
        """All rows, those of the directory included, in the order of the decisions."""
        before = empty() if self.directory is None else gather(self.directory)
        return in_order(pl.concat([before, self.held()]))

    def restore(self, held: pl.DataFrame) -> None:
        """Rows that were in memory when the bandit was saved."""
        self._tables = [held] if self.directory is None and held.height else []
        if self.directory is not None:
            rows = held.with_columns(pl.col("time", "reward_time").dt.epoch("us")).rows(named=True)
            self._waiting = [
                row | {name: np.array(row[name]) for name in ("features", "probabilities")} for row in rows
            ]

    def delete(self, event_id: str | None, before: datetime | float | None) -> int:
        """Remove the rows of an event, or of decisions before a time, everywhere; returns how many."""
        self.flush()
        removed = 0
        for place, table in enumerate(self._tables):
            kept = logs.delete(table, event_id, before)
            removed += table.height - kept.height
            self._tables[place] = kept
        for part in [] if self.directory is None else parts(self.directory):
            table = pl.read_parquet(part)
            kept = logs.delete(table, event_id, before)
            if kept.height < table.height:
                removed += table.height - kept.height
                write_whole(part, kept.write_parquet)
        return removed


def as_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a table: times in microseconds, features and probabilities as arrays.

    Lists are grouped from flat columns: polars takes a hundred times as long to make them of Python's.
    """
    if not rows:
        return empty()
    counts = [len(row["arms"]) for row in rows]
    features = np.concatenate([row["features"] for row in rows])
    flat = pl.DataFrame(
        {
            "__row": np.repeat(np.arange(len(rows)), counts),
            "arms": [arm for row in rows for arm in row["arms"]],
            "features": pl.Series(
                np.ascontiguousarray(features), dtype=pl.Array(pl.Float64, features.shape[1])
            ),
            "probabilities": np.concatenate([row["probabilities"] for row in rows]),
        }
    )
    lists = flat.with_columns(pl.col("features").arr.to_list()).group_by("__row", maintain_order=True).all()
    plain = {
        name: pl.Int64 if kind == TIME else kind for name, kind in COLUMNS.items() if name not in flat.columns
    }
    columns = {name: [row[name] for row in rows] for name in plain}
    table = pl.DataFrame(columns, schema=plain).hstack(lists.drop("__row"))
    return table.with_columns(pl.col("time", "reward_time").cast(TIME)).select(*COLUMNS)
