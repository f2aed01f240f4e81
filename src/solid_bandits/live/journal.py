"""Where the rows of settled decisions go: into memory, or as parts into a directory."""

import logging
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from solid_bandits import _check, logs
from solid_bandits._files import StoreError, first_line, path_of, write_whole
from solid_bandits.logs.files import in_order, numbered, parts
from solid_bandits.logs.schema import COLUMNS, TIME, check_log, empty

ROWS = 10_000
"""Of a part: as many wait as Python objects, at most, before they become a table."""
MOST = 10
"""Parts that wait in memory while they cannot be written; with so many a bandit takes in no more rows."""
DIRECTORY, MEMORY, NONE = "directory", "memory", "none"
"""Where a log may be."""
UNREADABLE = (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException)

logger = logging.getLogger("solid_bandits.live")


class Journal:
    """Rows in the order in which decisions were settled.

    A part that cannot be written waits in memory, in its place, until a later attempt succeeds: no row is lost, and
    whoever adds one is not disturbed.
    """

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self.written = 0
        """Rows that went into the directory, and were not deleted."""
        self.witness = ""
        """The event of one of them: a directory without it is another's."""
        self.failure: str | None = None
        """Why the last attempt to write failed; None if it did not."""
        self._waiting: list[dict[str, Any]] = []
        self._tables: list[pl.DataFrame] = []
        self.limit: tuple[int, list[int]] | None = None
        """Events, and decisions that were open, when this bandit's own history left that of the directory: what the
        directory has from after that is another history. None once that was moved aside."""

    @property
    def _stale(self) -> pl.Expr | None:
        """Which rows of the directory are of another history."""
        if self.limit is None:
            return None
        sequence, opened = self.limit
        # The last is of decisions that were open then, and left the window later without a reward.
        later = pl.max_horizontal("sequence", "reward_sequence") > sequence
        return (later | pl.col("sequence").is_in(opened)).fill_null(False)

    @property
    def pending(self) -> int:
        """Rows in memory."""
        return len(self._waiting) + sum(table.height for table in self._tables)

    def add(self, row: dict[str, Any]) -> None:
        """Take in a row; a full part is written. Where that fails it waits, and a line is logged the first time."""
        self._waiting.append(row)
        if len(self._waiting) < ROWS:
            return
        self._pack()
        if self.directory is not None:
            known = self.failure
            try:
                self._write(self.directory)
            except StoreError as error:
                if known is None:
                    logger.warning("%s; its rows wait in memory", error)

    def make_room(self) -> None:
        """Raise a StoreError where too many rows wait to take in more, and still cannot be written."""
        if self.directory is not None and len(self._tables) >= MOST:
            try:
                self._write(self.directory)
            except StoreError as error:
                raise StoreError(
                    f"{error}; {self.pending:,} rows wait in memory, the most that may, and nothing was changed"
                ) from None

    def flush(self) -> None:
        """Make a part of the rows that wait, and write it; a StoreError where that fails."""
        self._pack()
        if self.directory is not None:
            self._write(self.directory)

    def _pack(self) -> None:
        if self._waiting:
            self._tables.append(as_table(self._waiting))
            self._waiting = []

    def _write(self, directory: Path) -> None:
        try:
            if self._tables:
                directory.mkdir(parents=True, exist_ok=True)
                self._move_aside(directory)
            while self._tables:
                write_whole(_next(directory, "part"), self._tables[0].write_parquet)
                self.witness = self.witness or self._tables[0]["event_id"][0]
                self.written += self._tables.pop(0).height
        except UNREADABLE as error:
            self.failure = f"log {str(directory)!r} cannot be written ({first_line(error)})"
            raise StoreError(self.failure) from None
        self.failure = None

    def held(self) -> pl.DataFrame:
        """The rows that are in memory."""
        return pl.concat([empty(), *self._tables, as_table(self._waiting)])

    def table(self) -> pl.DataFrame:
        """All rows, those of the directory included, in the order of the decisions."""
        written = empty()
        if self.directory is not None:
            try:
                tables = [check_log(pl.read_parquet(part), part.name) for part in parts(self.directory)]
            except UNREADABLE as error:
                raise StoreError(
                    f"log {str(self.directory)!r} cannot be read ({first_line(error)})"
                ) from None
            written = pl.concat([written, *tables])
            if self._stale is not None:
                written = written.filter(~self._stale)
            if lack := self._lack(written):
                raise StoreError(f"log {str(self.directory)!r} {lack}")
        return in_order(pl.concat([written, self.held()]))

    def _lack(self, own: pl.DataFrame) -> str:
        """What is missing in the rows that the directory has of this history; nothing if all are there."""
        if own.height < self.written:
            return (
                f"has {own.height:,} of the {self.written:,} rows that were written to it; `delete` is how rows are "
                "removed"
            )
        return "" if not self.witness or self.witness in own["event_id"] else "is that of another bandit"

    def restore(self, held: pl.DataFrame, sequence: int, opened: list[int]) -> None:
        """Go on as a bandit that was saved after this many events, with these rows in memory and decisions open.

        What the directory has from after that is another history.
        """
        self._tables = list(held.iter_slices(ROWS)) if held.height else []
        if self.directory is None:
            return
        self.limit = sequence, opened
        needed = ["event_id", "sequence", "reward_sequence"]
        try:
            tables = [pl.read_parquet(part, columns=needed) for part in parts(self.directory)]
        except UNREADABLE as error:
            raise ValueError(f"log {str(self.directory)!r} cannot be read ({first_line(error)})") from None
        stale = self._stale
        assert stale is not None  # there is a limit
        own = pl.concat([empty().select(needed), *tables]).filter(~stale)
        if lack := self._lack(own):
            raise ValueError(
                f"log must be the directory that {self.written:,} rows were written to, got "
                f"{str(self.directory)!r}, which {lack}"
            )

    def _move_aside(self, directory: Path) -> None:
        """Put rows of another history into a file beside the parts, before anything is written."""
        stale = self._stale
        if stale is None:
            return
        moved, left, there = [], {}, []
        for part in parts(directory):
            short = pl.read_parquet(part, columns=["sequence", "reward_sequence"])
            kept = short.filter(~stale)
            there.append(kept["sequence"])
            if kept.height < short.height:
                table = pl.read_parquet(part)
                moved.append(table.filter(stale))
                left[part] = table.filter(~stale)
        if moved:
            rows = pl.concat(moved)
            target = _next(directory, "aside")
            write_whole(target, rows.write_parquet)  # first of all: at no moment is a row in no file
            for part, table in left.items():
                if table.height:
                    write_whole(part, table.write_parquet)
                else:
                    part.unlink()
            logger.warning(
                "log %r: %s rows from after the file of this bandit was saved were moved to %s",
                str(directory),
                f"{rows.height:,}",
                target.name,
            )
        # Rows that were in memory when the bandit was saved may have been written since.
        known = pl.concat(there).to_list() if there else []
        held = [table.height for table in self._tables]
        self._tables = [table.filter(~pl.col("sequence").is_in(known)) for table in self._tables]
        self.written += sum(held) - sum(table.height for table in self._tables)
        self._tables = [table for table in self._tables if table.height]
        self.limit = None

    def delete(self, event_id: str | None, before: datetime | float | None) -> int:
        """Remove the rows of an event, or of decisions before a time, everywhere; returns how many.

        A StoreError where a file cannot be read or written; what is left is removed by the same call later.
        """
        self._pack()
        removed = 0
        if self.directory is not None:
            try:
                self._move_aside(self.directory)
                for part in parts(self.directory):
                    gone = _delete_from(part, event_id, before)
                    self.written -= gone
                    removed += gone
                for part in numbered(self.directory, "aside"):
                    _delete_from(part, event_id, before)
                self.witness = _first(self.directory)
            except UNREADABLE as error:
                raise StoreError(
                    f"log {str(self.directory)!r} cannot be written ({first_line(error)}); delete again later"
                ) from None
        kept = [logs.delete(table, event_id, before) for table in self._tables]
        removed += sum(table.height for table in self._tables) - sum(table.height for table in kept)
        self._tables = [table for table in kept if table.height]
        return removed


def new_journal(log: str | os.PathLike[str] | bool | None) -> Journal | None:
    """The journal of a new bandit; None where it keeps no log."""
    if log is None or log is False:
        return None if log is False else Journal(None)
    if not isinstance(log, str | os.PathLike):
        raise ValueError(f"log must be a directory, None or False, got {_check.short(log)}")
    directory = path_of("log", log)
    try:
        used = bool(parts(directory))
    except OSError as error:
        raise ValueError(f"log {os.fspath(log)!r} cannot be read ({first_line(error)})") from None
    if used:
        raise ValueError(
            f"log must be a directory without decisions, got {os.fspath(log)!r}, which holds those of another "
            "bandit; go on with that one by Bandit.load, or give another directory"
        )
    return Journal(directory)


def old_journal(
    log: str | os.PathLike[str] | bool | None, kind: str, written: int, witness: str
) -> Journal | None:
    """The journal of a bandit that was saved with one of this kind; a directory must be named again."""
    if log is None:
        if kind == DIRECTORY:
            raise ValueError(
                "log must be the directory of this bandit's log, which it was saved with, or False to go on without "
                "one, got None"
            )
        return None if kind == NONE else Journal(None)
    if kind != DIRECTORY or not isinstance(log, str | os.PathLike):
        return new_journal(log)
    journal = Journal(path_of("log", log))
    journal.written, journal.witness = written, witness
    if written and not Path(log).is_dir():
        raise ValueError(
            f"log must be the directory that {written:,} rows were written to, got {os.fspath(log)!r}, which is no "
            "directory"
        )
    return journal


def _first(directory: Path) -> str:
    """The event of the first row of all."""
    for part in parts(directory):
        events = pl.read_parquet(part, columns=["event_id"])["event_id"]
        if len(events):
            return str(events[0])
    return ""


def _next(directory: Path, kind: str) -> Path:
    """The next file of a kind."""
    there = numbered(directory, kind)
    number = int(there[-1].stem.removeprefix(f"{kind}-")) + 1 if there else 1
    return directory / f"{kind}-{number:08d}.parquet"


def _delete_from(part: Path, event_id: str | None, before: datetime | float | None) -> int:
    table = pl.read_parquet(part)
    kept = logs.delete(table, event_id, before)
    if kept.height < table.height:
        write_whole(part, kept.write_parquet)
    return table.height - kept.height


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
