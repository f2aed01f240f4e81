"""The log in one SQLite file: write-ahead, synced at each commit."""

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from solid_bandits.service import events as made
from solid_bandits.service.store import (
    DECISION,
    DuplicateError,
    Event,
    FullError,
    KeyRow,
    ModelRow,
    Snapshot,
    StoreError,
)

FILE = "service.db"
VERSION = 1
"""Of the tables: raised when a file of before would be read wrongly."""
TABLES = """
CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, spec TEXT NOT NULL, created INTEGER NOT NULL);
CREATE TABLE events (
  model INTEGER NOT NULL REFERENCES models (id), sequence INTEGER NOT NULL, kind TEXT NOT NULL, event_id TEXT,
  subject TEXT, time INTEGER NOT NULL, body TEXT NOT NULL, numbers BLOB, digest BLOB NOT NULL, fence INTEGER NOT NULL
);
CREATE UNIQUE INDEX events_in_order ON events (model, sequence);
CREATE UNIQUE INDEX events_by_id ON events (model, event_id, kind) WHERE event_id IS NOT NULL;
CREATE INDEX events_by_subject ON events (model, subject) WHERE subject IS NOT NULL;
CREATE TABLE snapshots (
  model INTEGER NOT NULL REFERENCES models (id), sequence INTEGER NOT NULL, time INTEGER NOT NULL,
  origin INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (model, sequence)
);
CREATE TABLE keys (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, digest BLOB NOT NULL, created INTEGER NOT NULL,
  revoked INTEGER
);
"""
COLUMNS = "sequence, kind, event_id, subject, time, body, numbers, digest"
KEPT = 2
"""Snapshots besides the origin."""
AT_ONCE = 500
"""Rows, and ids in a question, at a time."""
LONGEST_WAL = 64 << 20
"""Bytes of the write-ahead log at which the writer itself waits until it has been carried over."""
TRIES = 3
"""To empty the write-ahead log after a deletion, each as long as a connection waits; later the mover goes on."""
logger = logging.getLogger("solid_bandits.service")


class SqliteStore:
    """One file in a directory, whose events one thread writes. Threads that read have a connection each.

    What was written is carried over from the write-ahead log to the file by a thread of its own once a second, as the
    writer would have to wait for it.
    """

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        self.path = directory / FILE
        if not create and not self.path.is_file():
            raise StoreError(f"{str(directory)!r} must be the directory of a service, but has no {FILE}")
        if create:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Before SQLite makes it: its other files get the rights of this one.
            with suppress(OSError):  # then SQLite says why not
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._mover: threading.Thread | None = None
        self._carrying = threading.Lock()
        """Held while something is carried over: SQLite refuses a second one at once, without waiting."""
        self._owed = False
        """Whether the write-ahead log may have what was erased."""
        self._longest = LONGEST_WAL
        self._ahead = f"{self.path}-wal"
        with _said(self.path):
            self._writing = self._connected()
            self._prepare()

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=10.0, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("PRAGMA cache_size=-65536")
        with self._lock:
            self._open.append(connection)
        return connection

    def _prepare(self) -> None:
        version = self._writing.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._writing.execute("PRAGMA journal_mode=WAL")
            self._writing.executescript(f"BEGIN;{TABLES}PRAGMA user_version={VERSION};COMMIT;")
        elif version != VERSION:
            raise StoreError(
                f"{str(self.path)!r} must be of version {VERSION} of these tables, got {version}; use the release "
                "that wrote it"
            )

    def carry_over(self) -> None:
        """Leave what was written to a thread of its own, from now on: what a server does, and no other command."""
        self._writing.execute("PRAGMA wal_autocheckpoint=0")
        self._owed = True  # the last server may have been killed between a deletion and what follows it
        self._empty(self._writing)
        self._mover = threading.Thread(target=self._move, name="carries the log over", daemon=True)
        self._mover.start()

    def _move(self) -> None:
        connection = self._connected()
        connection.execute("PRAGMA busy_timeout=100")  # while it waits for readers the writer waits for it
        while not self._ended.wait(1.0):
            if self._owed:
                self._empty(connection)
                continue
            try:
                with self._carrying:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error:  # a full disk, say: the writer finds it out, and says so
                continue

    def _empty(self, connection: sqlite3.Connection, tries: int = 1) -> bool:
        """Carry all over and cut the write-ahead log to nothing; whether that was done.

        Errors are logged and no more: what was committed stays so.
        """
        words = "others are reading"
        for _ in range(tries):
            try:
                with self._carrying:
                    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                    if not busy:
                        self._owed = False
                        return True
            except sqlite3.Error as error:
                words = str(error)
        logger.warning(
            "%r: the write-ahead log could not be emptied, %s; tried again later", str(self.path), words
        )
        return False

    @property
    def _reading(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = self._connected()
        return found

    def append(
        self,
        model: int,
        fence: int,
        events: Sequence[Event],
        snapshot: Snapshot | None = None,
        erased: Sequence[int] = (),
    ) -> None:
        """See `Store`."""
        if not events and snapshot is None:
            if self._owed:  # a deletion that was repeated, say
                self._empty(self._writing)
            return  # nobody else leads
        with _said(self.path), self._transaction() as connection:
            connection.executemany(
                f"INSERT INTO events (model, fence, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(model, fence, *event) for event in events],
            )
            if snapshot is not None:
                self._keep(connection, model, snapshot, erased)
        if erased:
            with self._carrying:  # what the mover ends now began before the commit
                self._owed = True
            self._empty(self._writing, TRIES)
        elif self._mover is not None and self._wal() > self._longest:
            done = self._empty(self._writing)  # where it could not be, commits go on, and do not each wait
            self._longest = LONGEST_WAL + (0 if done else self._wal())

    def _wal(self) -> int:
        try:
            return os.stat(self._ahead).st_size
        except OSError:
            return 0

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._writing
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _keep(
        self, connection: sqlite3.Connection, model: int, snapshot: Snapshot, erased: Sequence[int]
    ) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
            (model, snapshot.sequence, snapshot.time, bool(erased), snapshot.content),
        )
        for sequence in erased:
            event = made.erased(sequence, snapshot.time)
            connection.execute(
                "UPDATE events SET kind=?, event_id=?, subject=?, time=?, body=?, numbers=?, digest=? "
                "WHERE model=? AND sequence=?",
                (*event[1:], model, sequence),
            )
        if erased:
            connection.execute(
                "DELETE FROM snapshots WHERE model=? AND sequence<?", (model, snapshot.sequence)
            )
        else:
            connection.execute(
                "DELETE FROM snapshots WHERE model=?1 AND NOT origin AND sequence NOT IN "
                "(SELECT sequence FROM snapshots WHERE model=?1 ORDER BY sequence DESC LIMIT ?2)",
                (model, KEPT),
            )

    def read(self, model: int, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """See `Store`."""
        last = (1 << 62) if until is None else until
        while True:
            with _said(self.path):
                rows = self._reading.execute(
                    f"SELECT {COLUMNS} FROM events WHERE model=? AND sequence>? AND sequence<=? "
                    "ORDER BY sequence LIMIT ?",
                    (model, after, last, AT_ONCE),
                ).fetchall()
            if not rows:
                return
            yield from map(Event._make, rows)
            after = rows[-1][0]

    def find(self, model: int, event_ids: Sequence[str]) -> list[Event]:
        """See `Store`."""
        found: list[Event] = []
        for start in range(0, len(event_ids), AT_ONCE):
            some = event_ids[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            with _said(self.path):
                rows = self._reading.execute(
                    f"SELECT {COLUMNS} FROM events WHERE model=? AND event_id IN ({marks})", (model, *some)
                ).fetchall()
            found += map(Event._make, rows)
        return sorted(found, key=lambda event: event.sequence)

    def _ids(self, where: str, *values: object) -> list[str]:
        with _said(self.path):
            rows = self._reading.execute(
                f"SELECT event_id FROM events WHERE {where} ORDER BY sequence", values
            )
            return [row[0] for row in rows]

    def of_subject(self, model: int, subject: str) -> list[str]:
        """See `Store`."""
        return self._ids("model=? AND subject=?", model, subject)

    def before(self, model: int, time: int) -> list[str]:
        """See `Store`."""
        return self._ids("model=? AND kind=? AND time<?", model, DECISION, time)

    def last(self, model: int) -> int:
        """See `Store`."""
        with _said(self.path):
            row = self._reading.execute("SELECT max(sequence) FROM events WHERE model=?", (model,)).fetchone()
        return row[0] or 0

    def snapshot(self, model: int, until: int | None = None) -> Snapshot | None:
        """See `Store`."""
        with _said(self.path):
            row = self._reading.execute(
                "SELECT sequence, time, content FROM snapshots WHERE model=? AND sequence<=? "
                "ORDER BY sequence DESC LIMIT 1",
                (model, (1 << 62) if until is None else until),
            ).fetchone()
        return None if row is None else Snapshot(*row)

    def snapshots(self, model: int) -> list[tuple[int, int, bool]]:
        """See `Store`."""
        with _said(self.path):
            rows = self._reading.execute(
                "SELECT sequence, time, origin FROM snapshots WHERE model=? ORDER BY sequence", (model,)
            ).fetchall()
        return [(sequence, time, bool(origin)) for sequence, time, origin in rows]

    def add_model(self, name: str, spec: str, created: int) -> ModelRow:
        """See `Store`."""
        with _said(self.path):
            cursor = self._reading.execute(
                "INSERT INTO models (name, spec, created) VALUES (?, ?, ?)", (name, spec, created)
            )
            assert cursor.lastrowid is not None  # it was an insertion
            return ModelRow(cursor.lastrowid, name, spec, created)

    def models(self) -> list[ModelRow]:
        """See `Store`."""
        with _said(self.path):
            rows = self._reading.execute("SELECT id, name, spec, created FROM models ORDER BY id").fetchall()
        return [ModelRow(*row) for row in rows]

    def add_key(self, key: KeyRow) -> None:
        """See `Store`."""
        with _said(self.path):
            self._reading.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)", key)

    def keys(self) -> list[KeyRow]:
        """See `Store`."""
        with _said(self.path):
            rows = self._reading.execute(
                "SELECT id, name, role, digest, created, revoked FROM keys ORDER BY created, id"
            ).fetchall()
        return [KeyRow(*row) for row in rows]

    def revoke_key(self, id: str, time: int) -> bool:
        """See `Store`."""
        with _said(self.path):
            cursor = self._reading.execute(
                "UPDATE keys SET revoked=? WHERE id=? AND revoked IS NULL", (time, id)
            )
            return cursor.rowcount > 0

    def close(self) -> None:
        """See `Store`."""
        self._ended.set()
        if self._mover is not None:
            self._mover.join()  # it waits for nobody for longer than a second; a file that hangs cannot be closed
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """SQLite's errors as those of a store."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise DuplicateError(str(error)) from None
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise (FullError if full else StoreError)(f"{str(path)!r}: {error}") from None
