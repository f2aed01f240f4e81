"""Queries shared by both databases; `?` is the placeholder of a value."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, LiteralString

from solid_bandits.live import events as made
from solid_bandits.live.events import DECIDED
from solid_bandits.live.store import KeyRow, ModelRow, Snapshot

COLUMNS: LiteralString = "sequence, kind, event_id, subject, time, body, numbers, digest"
KEPT = 2
"""Number of snapshots kept besides the origin."""
AT_ONCE = 500
"""Number of rows, and of ids in a query, handled at a time."""
END = 1 << 62
"""A sequence number after every event."""


Execute = Callable[[LiteralString, tuple[Any, ...]], object]
"""Function that executes a statement within a transaction."""


class SqlStore(ABC):
    """The part of a `Store` that both databases share."""

    @abstractmethod
    def _ask(self, question: LiteralString, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query."""

    @abstractmethod
    def _change(self, statement: LiteralString, values: Sequence[Any]) -> int:
        """Execute a change in its own transaction; return the number of changed rows."""

    @abstractmethod
    def probe(self) -> None:
        """See `Store`."""

    def of_subject(self, model: int, subject: str, most: int = END) -> list[str]:
        """See `Store`."""
        question: LiteralString = (
            "SELECT event_id FROM events WHERE model = ? AND subject = ? ORDER BY sequence LIMIT ?"
        )
        return [row[0] for row in self._ask(question, (model, subject, most))]

    def before(self, model: int, time: int, most: int = END) -> list[str]:
        """See `Store`."""
        question: LiteralString = (
            "SELECT event_id FROM events WHERE model = ? AND kind IN (?, ?) AND time < ? "
            "ORDER BY sequence LIMIT ?"
        )
        return [row[0] for row in self._ask(question, (model, *DECIDED, time, most))]

    def places(self, model: int, event_ids: Sequence[str]) -> list[tuple[int, str, str]]:
        """See `Store`."""
        found: list[tuple[int, str, str]] = []
        for start in range(0, len(event_ids), AT_ONCE):
            some = event_ids[start : start + AT_ONCE]
            marks = ",".join(["?"] * len(some))
            question = (
                f"SELECT sequence, kind, event_id FROM events WHERE model = ? AND event_id IN ({marks})"
            )
            found += [(row[0], row[1], row[2]) for row in self._ask(question, (model, *some))]
        return sorted(found)

    def bodies(self, model: int, event_ids: Sequence[str]) -> list[tuple[str, str]]:
        """See `Store`."""
        marks = ",".join(["?"] * len(event_ids))
        which = f"model = ? AND kind IN (?, ?) AND event_id IN ({marks})"
        question = f"SELECT event_id, body FROM events WHERE {which} ORDER BY sequence"
        return [(row[0], row[1]) for row in self._ask(question, (model, *DECIDED, *event_ids))]

    def snapshot(self, model: int, until: int | None = None) -> Snapshot | None:
        """See `Store`."""
        question: LiteralString = (
            "SELECT sequence, time, content FROM snapshots WHERE model = ? AND sequence <= ? "
            "ORDER BY sequence DESC LIMIT 1"
        )
        rows = self._ask(question, (model, END if until is None else until))
        return Snapshot(*rows[0]) if rows else None

    def snapshots(self, model: int) -> list[tuple[int, int, bool]]:
        """See `Store`."""
        question: LiteralString = (
            "SELECT sequence, time, origin FROM snapshots WHERE model = ? ORDER BY sequence"
        )
        return [(sequence, time, bool(origin)) for sequence, time, origin in self._ask(question, (model,))]

    def models(self) -> list[ModelRow]:
        """See `Store`."""
        return [ModelRow(*row) for row in self._ask("SELECT id, name, spec, created FROM models ORDER BY id")]

    def add_key(self, key: KeyRow) -> None:
        """See `Store`."""
        self._change("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)", key)

    def keys(self) -> list[KeyRow]:
        """See `Store`."""
        question: LiteralString = (
            "SELECT id, name, role, digest, created, revoked FROM keys ORDER BY created, id"
        )
        return [KeyRow(*row) for row in self._ask(question)]

    def revoke_key(self, id: str, time: int) -> bool:
        """See `Store`."""
        return self._change("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (time, id)) > 0


def erase(execute: Execute, model: int, time: int, sequences: Sequence[int]) -> None:
    """Replace events by the remainder of erased ones."""
    for sequence in sequences:
        execute(
            "UPDATE events SET kind = ?, event_id = ?, subject = ?, time = ?, body = ?, numbers = ?, digest = ? "
            "WHERE model = ? AND sequence = ?",
            (*made.erased(sequence, time)[1:], model, sequence),
        )


def keep(execute: Execute, model: int, snapshot: Snapshot, origin: bool) -> None:
    """Add a snapshot, and remove those that are not to be kept next to it."""
    execute(
        "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?) ON CONFLICT (model, sequence) "
        "DO UPDATE SET time = excluded.time, origin = excluded.origin, content = excluded.content",
        (model, snapshot.sequence, snapshot.time, origin, snapshot.content),
    )
    if origin:
        execute("DELETE FROM snapshots WHERE model = ? AND sequence < ?", (model, snapshot.sequence))
    else:
        execute(
            "DELETE FROM snapshots WHERE model = ? AND NOT origin AND sequence NOT IN "
            "(SELECT sequence FROM snapshots WHERE model = ? ORDER BY sequence DESC LIMIT ?)",
            (model, model, KEPT),
        )
