"""The log of a store as a table."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from solid_bandits._internal import tables
from solid_bandits.core.decision import Decision
from solid_bandits.features.spec import Features
from solid_bandits.live import events
from solid_bandits.live.events import DECIDED, Event
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import ModelRow, Store, StoreError

if TYPE_CHECKING:
    import polars as pl

NAME = "bandit"
"""Of the one model in a bandit's file."""
PART = 10_000
"""Decisions that are made a table of at a time."""


def is_store(path: Path) -> bool:
    """Return whether a file is one of SQLite, asking SQLite: opening it here would end this process's locks."""
    try:
        if not path.is_file() or not path.stat().st_size:
            return False
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        return error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN)
    except OSError:  # whoever reads it says why not
        return False
    return True


def read_log(path: Path) -> "pl.DataFrame":
    """A log from a file: of a bandit's store, also while the bandit is at work, or as `sb.logs.read` does."""
    if not is_store(path):
        from solid_bandits.logs.files import read

        return read(path)
    with closing(SqliteStore(path)) as store:
        row = the_model(store)
        return table_of(store, row.id, json.loads(row.spec)["policy"], 0, store.last(row.id))


def features_of(path: Path) -> Features | None:
    """The declaration of named features in a bandit's store; None of one that takes matrices, and of any other file."""
    if not is_store(path):
        return None
    with closing(SqliteStore(path)) as store:
        told = json.loads(the_model(store).spec)["settings"]["features"]
    return None if told is None else Features.from_plain(told)


def the_model(store: SqliteStore) -> ModelRow:
    """Return the row of the only bandit of a file."""
    rows = store.models()
    if [row.name for row in rows] != [NAME]:
        raise StoreError(f"{str(store.path)!r} must be the store of one bandit; it is not, or of a service")
    return rows[0]


def table_of(
    store: Store, model: int, policy: str, after: int, until: int, largest: int | None = None
) -> "pl.DataFrame":
    """The decisions with sequence numbers after one and until another, with their outcomes, also where these are later.

    Its columns are those of `sb.logs`; erased events are not there. With `largest`, a ValueError where features and
    probabilities have more bytes: the table is made in memory.
    """
    from solid_bandits.logs.records import as_table
    from solid_bandits.logs.schema import empty

    parts = [empty()]
    for decisions in _parts(store, model, after, until, largest):
        parts.append(as_table(decisions))
        for one in decisions:
            one.offered = None
    whole: pl.DataFrame = tables.concat(parts).with_columns(tables.lit(policy).alias("policy"))
    return whole


def _parts(store: Store, model: int, after: int, until: int, largest: int | None) -> Iterator[list[Decision]]:
    outcomes: dict[str, Event] = {}
    decisions: list[Decision] = []
    size = 0

    def finished() -> list[Decision]:
        missing = [one.event_id for one in decisions if one.event_id not in outcomes]
        later = store.find(model, missing)
        outcomes.update({event.event_id or "": event for event in later if event.kind not in DECIDED})
        for one in decisions:
            if one.event_id in outcomes:
                events.close_by(one, outcomes[one.event_id])
        return decisions

    for event in store.read(model, after, until):
        if event.kind in DECIDED:
            decisions.append(events.decision_in(event))
            size += len(event.numbers or b"")
            if largest is not None and size > largest:
                raise ValueError(
                    f"until must be at most {event.sequence - 1}: an answer has {largest >> 20} MiB at most"
                )
        elif event.event_id is not None:
            outcomes[event.event_id] = event
        if len(decisions) >= PART:
            yield finished()
            decisions = []
    yield finished()
