"""The log in PostgreSQL, where several nodes share it.

Whoever writes to a model names a *fence*, a number that grows each time a node begins to lead it
(`service.leadership`), and the end of the log as it knows it. The row of the model in `leases` has both. A group of
events is one statement,

    UPDATE leases SET last = last + n WHERE model = m AND fence = f AND last = l; INSERT the events if that found a row,

so a write with a fence of the past, or by someone whose memory is not what the log says, changes nothing. Writers of
one model wait for each other at this row, and what is visible is on the disk (`synchronous_commit`): sequence numbers
appear in order, without gaps. No transaction stays open between two messages of a node, except the rare ones with a
snapshot, which the server ends if they hang.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, LiteralString
from uuid import uuid4

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from solid_bandits._files import first_line
from solid_bandits.service import events as made
from solid_bandits.service.store import (
    DECISION,
    DuplicateError,
    Event,
    FencedError,
    FullError,
    KeyRow,
    ModelRow,
    Snapshot,
    StoreError,
)

Connection = psycopg.Connection[Any]

VERSION = "1"
"""Of the tables: raised when those of before would be read wrongly."""
SETTINGS = """
SET search_path = solid_bandits;
SET synchronous_commit = on;
SET lock_timeout = '10s';
SET statement_timeout = '120s';
SET idle_in_transaction_session_timeout = '10s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3
"""
TABLES = """
CREATE SCHEMA IF NOT EXISTS solid_bandits;
CREATE TABLE about (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE models (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, spec text NOT NULL,
  created bigint NOT NULL
);
CREATE TABLE nodes (node text PRIMARY KEY, address text NOT NULL, until timestamptz NOT NULL);
CREATE TABLE leases (
  model integer PRIMARY KEY REFERENCES models (id), fence bigint NOT NULL, last bigint NOT NULL, node text
) WITH (fillfactor = 50);
CREATE TABLE events (
  model integer NOT NULL, sequence bigint NOT NULL, fence bigint NOT NULL, kind text NOT NULL, event_id text,
  subject text, time bigint NOT NULL, body text NOT NULL, numbers bytea, digest bytea NOT NULL,
  PRIMARY KEY (model, sequence)
);
CREATE UNIQUE INDEX events_by_id ON events (model, event_id, kind) WHERE event_id IS NOT NULL;
CREATE INDEX events_by_subject ON events (model, subject) WHERE subject IS NOT NULL;
CREATE TABLE snapshots (
  model integer NOT NULL, sequence bigint NOT NULL, time bigint NOT NULL, origin boolean NOT NULL,
  content bytea NOT NULL, PRIMARY KEY (model, sequence)
);
CREATE TABLE keys (
  id text PRIMARY KEY, name text NOT NULL, role text NOT NULL, digest bytea NOT NULL, created bigint NOT NULL,
  revoked bigint
)
"""
COLUMNS: LiteralString = "sequence, kind, event_id, subject, time, body, numbers, digest"
APPEND: LiteralString = f"""
WITH held AS (
  UPDATE leases SET last = last + %(count)s
  WHERE model = %(model)s AND fence = %(fence)s AND last = %(after)s RETURNING fence
)
INSERT INTO events (model, fence, {COLUMNS})
SELECT %(model)s, held.fence, one.* FROM held, unnest(
  %(sequence)b::bigint[], %(kind)b::text[], %(event_id)b::text[], %(subject)b::text[], %(time)b::bigint[],
  %(body)b::text[], %(numbers)b::bytea[], %(digest)b::bytea[]
) AS one
"""
KEPT = 2
"""Snapshots besides the origin."""
PREPARING = 0x5B00
"""Key of the advisory lock under which tables are made."""
PAGE_BYTES = 4 << 20
MOST_ROWS = 5_000
MOST_IDLE = 8
"""Connections that wait to be read with."""


class PostgresStore:
    """One database, of which every node has a store.

    Args:
        url: as PostgreSQL takes it, `postgresql://user:password@host/name`. All nodes must connect as the same user,
            and not through a pooler that shares sessions.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.node = f"solid-bandits-{uuid4().hex[:16]}"
        """Of this process: every session of it has this name, by which others may end them."""
        self.refused: Callable[[int, int], None] = lambda model, fence: None
        """Called with a model and the fence of a write to it that was refused."""
        self._writing: Connection | None = None
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # its words repeat the address, and so the password
            raise StoreError(
                "database must be an address, such as postgresql://user:password@host/name"
            ) from None
        with _said():
            self._prepare()

    def connect(self) -> Connection:
        """A new session of this node."""
        connection: Connection = psycopg.connect(
            self.url,
            autocommit=True,
            application_name=self.node,
            connect_timeout=5,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=10_000,
        )
        try:
            connection.execute(SETTINGS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        with self.connect() as connection, connection.transaction():
            # Two nodes may start at once.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (PREPARING,))
            there = connection.execute("SELECT to_regclass('solid_bandits.about')").fetchone()
            if there is None or there[0] is None:  # else this user need not have the right to make them
                connection.execute(TABLES)
                connection.execute("INSERT INTO about VALUES ('version', %s)", (VERSION,))
            found = connection.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
        if found is None or found[0] != VERSION:
            raise StoreError(
                f"database must have version {VERSION} of these tables, got {found and found[0]}; use the release "
                "that wrote them"
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A session for questions that may be asked twice; one that fails is not used again."""
        with _said():
            if self._closed:
                raise StoreError("the store is closed")
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self.connect()
            try:
                yield connection
            except BaseException:
                connection.close()
                self._drop_idle()  # the database may have been restarted: then they are lost too
                raise
            with self._lock:
                if not self._closed and len(self._idle) < MOST_IDLE:
                    self._idle.append(connection)
                    return
            connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()

    def _ask(self, question: LiteralString, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The answer of the database; asked again where an idle session was lost meanwhile."""
        for again in (True, False):
            try:
                with self.reading() as connection:
                    return connection.execute(question, values, binary=True).fetchall()
            except _LostError:
                if not again:
                    raise
        raise AssertionError("it was asked twice")

    def append(
        self,
        model: int,
        fence: int,
        events: Sequence[Event],
        snapshot: Snapshot | None = None,
        erased: Sequence[int] = (),
    ) -> None:
        """See `Store`."""
        with self._session() as connection:
            if snapshot is None:
                self._write(connection, model, fence, events)
            else:
                with connection.transaction():
                    self._write(connection, model, fence, events)
                    _keep(connection, model, snapshot, erased)
        if erased:
            with suppress(StoreError), self.reading() as connection:  # else the server does it in its time
                connection.execute("VACUUM events, snapshots")

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        """The one that writes; after an error that leaves the outcome open there will be another."""
        with _said():
            if self._writing is None or self._writing.closed:
                self._writing = self.connect()
            try:
                yield self._writing
            except (errors.IntegrityError, FencedError, DuplicateError):
                raise  # nothing was written, and the session is well
            except BaseException:
                self._writing.close()
                self._writing = None
                raise

    def _write(self, connection: Connection, model: int, fence: int, events: Sequence[Event]) -> None:
        if events:
            columns = dict(zip(Event._fields, map(list, zip(*events, strict=True)), strict=True))
            values = {"count": len(events), "model": model, "fence": fence, "after": events[0].sequence - 1}
            if connection.execute(APPEND, values | columns).rowcount:
                return
        # FOR UPDATE: a snapshot that follows in this transaction must not be one of a leader of the past.
        question: LiteralString = "SELECT fence, last FROM leases WHERE model = %s"
        locked = question + " FOR UPDATE" if connection.info.transaction_status else question
        found = connection.execute(locked, (model,)).fetchone()
        if found is None or found[0] != fence:
            newest = "none" if found is None else found[0]
            self.refused(model, fence)
            raise FencedError(f"fence must be the newest of model {model}, {newest}, got {fence}")
        if events:
            raise DuplicateError(f"events must go on after number {found[1]}, got {events[0].sequence}")

    def read(self, model: int, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """See `Store`."""
        question: LiteralString = (
            f"SELECT {COLUMNS} FROM events WHERE model = %s AND sequence > %s AND sequence <= %s "
            "ORDER BY sequence LIMIT %s"
        )
        count = 16
        while True:
            rows = self._ask(question, (model, after, (1 << 62) if until is None else until, count))
            yield from map(Event._make, rows)
            if len(rows) < count:
                return
            after = rows[-1][0]
            size = sum(len(row[5]) + len(row[6] or b"") for row in rows) / count
            count = max(1, min(int(PAGE_BYTES / (size + 100)), MOST_ROWS))

    def find(self, model: int, event_ids: Sequence[str]) -> list[Event]:
        """See `Store`."""
        rows = self._ask(
            f"SELECT {COLUMNS} FROM events WHERE model = %s AND event_id = ANY(%s::text[]) ORDER BY sequence",
            (model, list(event_ids)),
        )
        return list(map(Event._make, rows))

    def of_subject(self, model: int, subject: str) -> list[str]:
        """See `Store`."""
        question: LiteralString = (
            "SELECT event_id FROM events WHERE model = %s AND subject = %s ORDER BY sequence"
        )
        return [row[0] for row in self._ask(question, (model, subject))]

    def before(self, model: int, time: int) -> list[str]:
        """See `Store`."""
        question: LiteralString = (
            "SELECT event_id FROM events WHERE model = %s AND kind = %s AND time < %s ORDER BY sequence"
        )
        return [row[0] for row in self._ask(question, (model, DECISION, time))]

    def last(self, model: int) -> int:
        """See `Store`."""
        rows = self._ask("SELECT last FROM leases WHERE model = %s", (model,))
        return rows[0][0] if rows else 0

    def snapshot(self, model: int, until: int | None = None) -> Snapshot | None:
        """See `Store`."""
        rows = self._ask(
            "SELECT sequence, time, content FROM snapshots WHERE model = %s AND sequence <= %s "
            "ORDER BY sequence DESC LIMIT 1",
            (model, (1 << 62) if until is None else until),
        )
        return Snapshot(*rows[0]) if rows else None

    def snapshots(self, model: int) -> list[tuple[int, int, bool]]:
        """See `Store`."""
        question: LiteralString = (
            "SELECT sequence, time, origin FROM snapshots WHERE model = %s ORDER BY sequence"
        )
        return [(sequence, time, origin) for sequence, time, origin in self._ask(question, (model,))]

    def add_model(self, name: str, spec: str, created: int) -> ModelRow:
        """See `Store`."""
        with self.reading() as connection:
            found = connection.execute(
                "WITH made AS (INSERT INTO models (name, spec, created) VALUES (%s, %s, %s) RETURNING id) "
                "INSERT INTO leases (model, fence, last) SELECT id, 0, 0 FROM made RETURNING model",
                (name, spec, created),
            ).fetchone()
        assert found is not None  # it was an insertion
        return ModelRow(found[0], name, spec, created)

    def models(self) -> list[ModelRow]:
        """See `Store`."""
        rows = self._ask("SELECT id, name, spec, created FROM models ORDER BY id")
        return [ModelRow(*row) for row in rows]

    def add_key(self, key: KeyRow) -> None:
        """See `Store`."""
        with self.reading() as connection:
            connection.execute("INSERT INTO keys VALUES (%s, %s, %s, %s, %s, %s)", key)

    def keys(self) -> list[KeyRow]:
        """See `Store`."""
        rows = self._ask("SELECT id, name, role, digest, created, revoked FROM keys ORDER BY created, id")
        return [KeyRow(*row) for row in rows]

    def revoke_key(self, id: str, time: int) -> bool:
        """See `Store`."""
        with self.reading() as connection:
            question: LiteralString = "UPDATE keys SET revoked = %s WHERE id = %s AND revoked IS NULL"
            return connection.execute(question, (time, id)).rowcount > 0

    def close(self) -> None:
        """See `Store`."""
        self._closed = True
        self._drop_idle()
        if self._writing is not None:
            self._writing.close()


def _keep(connection: Connection, model: int, snapshot: Snapshot, erased: Sequence[int]) -> None:
    connection.execute(
        "INSERT INTO snapshots VALUES (%s, %s, %s, %s, %b) ON CONFLICT (model, sequence) "
        "DO UPDATE SET time = excluded.time, origin = excluded.origin, content = excluded.content",
        (model, snapshot.sequence, snapshot.time, bool(erased), snapshot.content),
    )
    if not erased:
        connection.execute(
            "DELETE FROM snapshots WHERE model = %(model)s AND NOT origin AND sequence NOT IN "
            "(SELECT sequence FROM snapshots WHERE model = %(model)s ORDER BY sequence DESC LIMIT %(kept)s)",
            {"model": model, "kept": KEPT},
        )
        return
    connection.execute("DELETE FROM snapshots WHERE model = %s AND sequence < %s", (model, snapshot.sequence))
    for sequence in erased:
        event = made.erased(sequence, snapshot.time)
        connection.execute(
            "UPDATE events SET kind = %s, event_id = %s, subject = %s, time = %s, body = %s, numbers = %s, "
            "digest = %s WHERE model = %s AND sequence = %s",
            (*event[1:], model, sequence),
        )


class _LostError(StoreError):
    """The session is gone."""


@contextmanager
def _said() -> Iterator[None]:
    """PostgreSQL's errors as those of a store."""
    try:
        yield
    except errors.UniqueViolation as error:
        raise DuplicateError(first_line(error)) from None
    except errors.DiskFull as error:
        raise FullError(f"database: {first_line(error)}") from None
    except psycopg.Error as error:
        lost = isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57")
        raise (_LostError if lost else StoreError)(f"database: {first_line(error)}") from None
