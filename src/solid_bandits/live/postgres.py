"""Logs in PostgreSQL, where several nodes share them.

Whoever writes to a model names a *fence*, a number that grows each time a node begins to lead it
(`service.leadership`), and the end of the log as it knows it. The row of the model in `leases` has both. A group of
events is one statement,

    UPDATE leases SET last = last + n WHERE model = m AND fence = f AND last = l; INSERT the events if that found a row,

so a write with a fence of the past, or by someone whose memory is not what the log says, changes nothing. Writers of
one model wait for each other at this row, and what is visible is on the disk (`synchronous_commit`): sequence numbers
appear in order, without gaps. No transaction stays open between two messages of a node, except the rare ones with a
snapshot, which the server ends if they hang.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString
from uuid import uuid4

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from solid_bandits._internal.files import first_line
from solid_bandits.live.events import Event
from solid_bandits.live.sql import COLUMNS, END, Execute, SqlStore, erase, keep
from solid_bandits.live.store import (
    DuplicateError,
    FencedError,
    FullError,
    ModelRow,
    Snapshot,
    StoreError,
)

logger = logging.getLogger("solid_bandits.live")
Connection = psycopg.Connection[Any]

VERSION = "2"
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
OLDER = """
SELECT what FROM (
  SELECT format('session %s (%s, %s)', pid, coalesce(application_name, ''), state) AS what, backend_xmin AS xmin
  FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  UNION ALL SELECT format('prepared transaction %s', gid), transaction FROM pg_prepared_xacts
  UNION ALL SELECT format('replication slot %s', slot_name), xmin FROM pg_replication_slots WHERE xmin IS NOT NULL
) AS older
WHERE age(xmin) > 0 ORDER BY age(xmin) DESC LIMIT 1
"""
"""Whose snapshot is older than the last transaction: what it may see, VACUUM leaves."""
VACUUMING = "the tables are being vacuumed"
AGAIN = 5.0
"""Seconds between two attempts to clean the tables."""
PREPARING = 0x5B00
"""Key of the advisory lock under which tables are made."""
PAGE_BYTES = 4 << 20
MOST_ROWS = 2_000
MOST_IDLE = 8
"""Connections that wait to be read with."""


class PostgresStore(SqlStore):
    """One database, of which every node has a store.

    Args:
        url: as PostgreSQL takes it, `postgresql://user:password@host/name`. All nodes must connect as the same user,
            and not through a pooler that shares sessions.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.node = f"solid-bandits-{uuid4().hex[:16]}"
        """Name of all sessions of this process, by which others may end them."""
        self.refused: Callable[[int, int], None] = lambda model, fence: None
        """Called with a model and the fence of a write to it that was refused."""
        self._writing: Connection | None = None
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self.erasing: str | None = None
        self._cleaner: threading.Thread | None = None
        self._dirty = False
        self._ended = threading.Event()
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # its words repeat the address, and so the password
            raise StoreError(
                "database must be an address, such as postgresql://user:password@host/name"
            ) from None
        with _store_errors():
            self._prepare()

    def connect(self) -> Connection:
        """Return a new session of this node."""
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
        """Yield a session for queries that may be repeated; a session that fails is not used again."""
        with _store_errors():
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
        """Return the database's answer; the query is repeated if an idle session was lost meanwhile."""
        for again in (True, False):
            try:
                with self.reading() as connection:
                    return connection.execute(_marked(question), values, binary=True).fetchall()
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
                    erase(_executing(connection), model, snapshot.time, erased)
                    self._write(connection, model, fence, events)
                    keep(_executing(connection), model, snapshot, bool(erased))
        if erased:
            with self._lock:
                self.erasing, self._dirty = VACUUMING, True
                if self._cleaner is None:
                    self._cleaner = threading.Thread(target=self._clean, name="vacuum", daemon=True)
                    self._cleaner.start()

    def _clean(self) -> None:
        """Vacuum in a separate thread until nothing erased is left in tables, which may take long."""
        while not self._closed:
            with self._lock:
                if not self._dirty:
                    self.erasing = self._cleaner = None
                    return
                self._dirty = False
            try:
                why = self._vacuumed()
            except StoreError as error:
                why = str(error)
            if why is not None:
                if why != self.erasing:
                    logger.warning("what was erased is in the tables still, %s; tried again later", why)
                self.erasing, self._dirty = why, True
                self._ended.wait(AGAIN)

    def _vacuumed(self) -> str | None:
        with _store_errors(), self.connect() as connection:
            connection.execute("SET statement_timeout = 0")
            # Transactions, also prepared ones, and replicas that began before now may see what was there before.
            found = connection.execute(OLDER).fetchone()
            connection.execute("VACUUM events, snapshots")
        return None if found is None else f"as {found[0]} may read it"

    def vacuum(self) -> None:
        """Write tables and indexes anew, so that their files have nothing of what was deleted; locks the tables."""
        with _store_errors(), self.connect() as connection:
            connection.execute("SET statement_timeout = 0")
            connection.execute("SET lock_timeout = 0")
            connection.execute("VACUUM (FULL, ANALYZE) events, snapshots")

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        """Yield the writing session; after an error that leaves the outcome open it is replaced."""
        with _store_errors():
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
        # As many rows as fit into a page, and one at least: sizes are known without reading what they are of.
        question: LiteralString = (
            f"SELECT {COLUMNS} FROM (SELECT *, sum(size) OVER (ORDER BY sequence) - size AS ahead FROM ("
            "SELECT *, octet_length(body) + coalesce(octet_length(numbers), 0) AS size FROM events "
            "WHERE model = ? AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
            ") AS page) AS counted WHERE ahead < ? ORDER BY sequence"
        )
        while rows := self._ask(
            question, (model, after, END if until is None else until, MOST_ROWS, PAGE_BYTES)
        ):
            yield from map(Event._make, rows)
            after = rows[-1][0]

    def find(self, model: int, event_ids: Sequence[str]) -> list[Event]:
        """See `Store`."""
        rows = self._ask(
            f"SELECT {COLUMNS} FROM events WHERE model = ? AND event_id = ANY(?::text[]) ORDER BY sequence",
            (model, list(event_ids)),
        )
        return list(map(Event._make, rows))

    def probe(self) -> None:
        """See `Store`."""
        self._change("UPDATE about SET value = value WHERE name = 'version'", ())

    def last(self, model: int) -> int:
        """See `Store`."""
        rows = self._ask("SELECT last FROM leases WHERE model = ?", (model,))
        return rows[0][0] if rows else 0

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

    def _change(self, statement: LiteralString, values: Sequence[Any]) -> int:
        with self.reading() as connection:
            return connection.execute(_marked(statement), values).rowcount

    def close(self) -> None:
        """See `Store`."""
        self._closed = True
        self._ended.set()
        self._drop_idle()
        if self._writing is not None:
            self._writing.close()


def _executing(connection: Connection) -> Execute:
    """Return a function that executes statements with `?` for values; bytes are passed unchanged."""
    return lambda statement, values: connection.execute(_marked(statement), values)


def _marked(statement: LiteralString) -> LiteralString:
    return statement.replace("?", "%s")


class _LostError(StoreError):
    """The session is gone."""


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turn PostgreSQL's errors into those of a store."""
    try:
        yield
    except errors.UniqueViolation as error:
        raise DuplicateError(first_line(error)) from None
    except errors.DiskFull as error:
        raise FullError(f"database: {first_line(error)}") from None
    except psycopg.Error as error:
        lost = isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57")
        raise (_LostError if lost else StoreError)(f"database: {first_line(error)}") from None
