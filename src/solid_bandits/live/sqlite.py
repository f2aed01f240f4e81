"""Logs in one SQLite file: write-ahead, synced at each commit.

The writer holds a lock for as long as the store is open, and another process that wants to write is refused. A lock can
be lost (somebody removes the file), so safety does not depend on it: opening to write raises the file's *fence* by one,
and each group is written only if the fence is still the one that its writer got (`store.Store.append`).

On POSIX a process loses all its locks on a file when it closes the file once, anywhere: only SQLite, which knows that,
opens a store's files here. Other code of the process may open one (a copy, for example), and then another process can
remove the write-ahead log: its presence is checked before and after each commit.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString

from solid_bandits.live.events import Event
from solid_bandits.live.sql import AT_ONCE, COLUMNS, END, SqlStore, erase, keep
from solid_bandits.live.store import (
    DuplicateError,
    FencedError,
    FullError,
    ModelRow,
    Snapshot,
    StoreError,
)

VERSION = 2
"""Version of the tables, increased when an older file would be read wrongly."""
TABLES = """
CREATE TABLE fence (number INTEGER NOT NULL);
INSERT INTO fence VALUES (1);
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
PAGE_BYTES = 4 << 20
"""Bytes of events read at a time; a single one may have more."""
LONGEST_WAL = 64 << 20
"""Bytes of the write-ahead log from which the writer itself waits until it has been checkpointed."""
CACHE = 8 << 20
"""Bytes of pages that each connection caches; the system caches them too."""
WAIT = 10_000
"""Milliseconds that a connection waits for another."""
PATIENCE = 1_000
"""Milliseconds that the writer waits for readers to empty the write-ahead log before it postpones that."""
logger = logging.getLogger("solid_bandits.live")


class SqliteStore(SqlStore):
    """One file, whose events one thread writes. Each reading thread has its own connection.

    Args:
        path: path of the file.
        create: whether to create it if it is missing.
        write: whether to lock it against other writers; `fence` is the number to write with.
    """

    def __init__(self, path: Path, *, create: bool = False, write: bool = False) -> None:
        self.path = path = Path(os.path.realpath(path))  # lock and write-ahead log are found by its name
        if not create and not path.is_file():
            raise StoreError(f"{str(path)!r} must be a store, but there is no such file")
        self.fence = 1
        self._process = os.getpid()
        self._held: sqlite3.Connection | None = None
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._mover: threading.Thread | None = None
        self._carrying = threading.Lock()
        """Held during a checkpoint, because SQLite refuses a second one at once, without waiting."""
        self._owed = write  # the last writer may have been killed between a deletion and its checkpoint
        """Whether the write-ahead log may still contain erased data."""
        self._longest = LONGEST_WAL
        self._ahead = f"{self.path}-wal"
        try:
            with _store_errors(self.path):
                if create:
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if path.is_file():  # checked first, so that nothing is left next to a refused file
                    self._look(create)
                if write:
                    self._held = _lock_of(path)
                if create:
                    # Before SQLite creates it, because its other files get the permissions of this one.
                    with suppress(OSError):  # it exists, or SQLite will say why not
                        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                self._writing = self._connected()
                if not self._has_tables(self._writing):
                    self._writing.execute("PRAGMA journal_mode=WAL")
                    self._writing.executescript(f"BEGIN;{TABLES}PRAGMA user_version={VERSION};COMMIT;")
                if write:
                    question = "UPDATE fence SET number = number + 1 RETURNING number"
                    (self.fence,) = self._writing.execute(question).fetchone()
                    self._empty(self._writing)
                self._ahead_id = self._id_of_ahead()
        except BaseException:  # do not leave a refused file open
            self.close()
            raise

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=WAIT / 1e3, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        with self._lock:
            self._open.append(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute(f"PRAGMA cache_size=-{CACHE >> 10}")
        return connection

    def _look(self, create: bool) -> None:
        """Raise an error for a file that is neither a store nor, if allowed, an empty file."""
        if self.path.stat().st_nlink > 1:
            raise StoreError(
                f"{str(self.path)!r} must have one name, but there are hard links to it; make copies"
            )
        with closing(sqlite3.connect(self.path)) as connection:
            if not self._has_tables(connection) and not create:
                raise StoreError(f"{str(self.path)!r} must be a store, but is empty")

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        question = "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
        version, count = connection.execute(question).fetchone()
        if version == 0 and count:
            raise StoreError(f"{str(self.path)!r} must be a store, but is a database of something else")
        if version not in (0, VERSION):
            raise StoreError(
                f"{str(self.path)!r} must be of version {VERSION} of these tables, got {version}; use the release "
                "that wrote it"
            )
        return version == VERSION

    def _id_of_ahead(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._ahead)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _check_ahead(self) -> None:
        if self._id_of_ahead() != self._ahead_id:
            raise StoreError(
                f"{str(self.path)!r}: another process has taken {self._ahead!r} away, to which this one wrote: nothing "
                "more is written; open the store again, and do not open or copy its files while this process has it"
            )

    @property
    def erasing(self) -> str | None:
        """See `Store`."""
        return (
            "others are reading the write-ahead log, which is cut once they have ended"
            if self._owed
            else None
        )

    def start_checkpointer(self) -> None:
        """Checkpoint in a separate thread, once a second from now on, so that the writer need not wait for it.

        For a server, and no other command.
        """
        self._writing.execute("PRAGMA wal_autocheckpoint=0")
        self._mover = threading.Thread(target=self._move, name="checkpointer", daemon=True)
        self._mover.start()

    def _move(self) -> None:
        connection = self._connected()
        while not self._ended.wait(1.0):
            if self._owed:
                self._empty(connection, 100)  # while it waits for readers, the writer waits for it
                continue
            try:
                with self._carrying:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error:  # for instance, a full disk, which the writer will report
                continue

    def _empty(self, connection: sqlite3.Connection, patience: int = 0) -> str | None:
        """Checkpoint everything and truncate the write-ahead log; return None, or the reason if `patience` milliseconds
        ran out.

        Commits stay valid in any case.
        """
        try:
            with self._carrying:
                connection.execute(f"PRAGMA busy_timeout={patience}")
                busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if busy:
                    return "others are reading"
                self._owed = False
                return None
        except sqlite3.Error as error:
            return str(error)
        finally:
            connection.execute(f"PRAGMA busy_timeout={WAIT}")

    @property
    def _reading(self) -> sqlite3.Connection:
        self.check_process()
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
        self.check_process()
        if not events and snapshot is None:
            if self._owed:  # for instance, a repeated deletion
                self._empty(self._writing)
            self._check_ahead()
            with _store_errors(self.path):
                self._check_fence(fence)
            return
        with _store_errors(self.path), self._transaction() as connection:
            self._check_fence(fence)
            if erased:
                assert snapshot is not None  # erasures come with one
                erase(connection.execute, model, snapshot.time, erased)
            connection.executemany(
                f"INSERT INTO events (model, fence, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(model, fence, *event) for event in events],
            )
            if snapshot is not None:
                keep(connection.execute, model, snapshot, bool(erased))
        if erased:
            with self._carrying:  # a checkpoint that ends now began before the commit
                self._owed = True
            if why := self._empty(self._writing, PATIENCE):
                logger.warning("what was erased is in %r still, %s; tried again later", self._ahead, why)
        elif self._mover is None:
            if self._owed:
                self._empty(self._writing)
        elif self._wal() > self._longest:
            why = self._empty(self._writing, PATIENCE)  # if in vain, commits continue without each waiting
            self._longest = LONGEST_WAL + (self._wal() if why else 0)

    def _wal(self) -> int:
        try:
            return os.stat(self._ahead).st_size
        except OSError:
            return 0

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._check_ahead()
        connection = self._writing
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._check_ahead()  # otherwise nobody would find the commit

    def check_process(self) -> None:
        """Raise an error in a forked process, whose connections and lock belong to its parent."""
        if os.getpid() != self._process:
            raise StoreError(
                f"{str(self.path)!r} was opened by process {self._process}, of which this one is a fork; open it after "
                "the fork, in one process"
            )

    def _check_fence(self, fence: int) -> None:
        (newest,) = self._writing.execute("SELECT number FROM fence").fetchone()
        if newest != fence:
            raise FencedError(
                f"{str(self.path)!r} was opened by another process meanwhile, which goes on with it"
            )

    def read(self, model: int, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """See `Store`."""
        self._check_ahead()
        question: LiteralString = (
            f"SELECT {COLUMNS} FROM events WHERE model = ? AND sequence > ? AND sequence <= ? "
            "ORDER BY sequence LIMIT ?"
        )
        while rows := self._page(question, (model, after, END if until is None else until, AT_ONCE)):
            yield from rows
            after = rows[-1].sequence

    def _page(self, question: LiteralString, values: Sequence[Any]) -> list[Event]:
        """Return the first rows of a query, as many as `PAGE_BYTES` hold, and at least one."""
        found: list[Event] = []
        size = 0
        with _store_errors(self.path), closing(self._reading.execute(question, values)) as rows:
            for row in rows:  # SQLite reads each row on demand
                found.append(Event._make(row))
                size += len(found[-1].body) + len(found[-1].numbers or b"")
                if size > PAGE_BYTES:
                    break
        return found

    def find(self, model: int, event_ids: Sequence[str]) -> list[Event]:
        """See `Store`."""
        found: list[Event] = []
        for start in range(0, len(event_ids), AT_ONCE):
            some = event_ids[start : start + AT_ONCE]
            marks = ",".join(["?"] * len(some))
            question = f"SELECT {COLUMNS} FROM events WHERE model = ? AND event_id IN ({marks})"
            found += map(Event._make, self._ask(question, (model, *some)))
        return sorted(found, key=lambda event: event.sequence)

    def _ask(self, question: LiteralString, values: Sequence[Any] = ()) -> list[Any]:
        with _store_errors(self.path):
            return self._reading.execute(question, values).fetchall()

    def _change(self, statement: LiteralString, values: Sequence[Any]) -> int:
        with _store_errors(self.path):
            return self._reading.execute(statement, values).rowcount

    def vacuum(self) -> None:
        """Rewrite the file without any deleted data, as long as nobody else has it."""
        with _store_errors(self.path):
            self._writing.execute("VACUUM")
            self._empty(self._writing, WAIT)

    def probe(self) -> None:
        """See `Store`."""
        self._change("UPDATE fence SET number = number", ())

    def last(self, model: int) -> int:
        """See `Store`."""
        return self._ask("SELECT max(sequence) FROM events WHERE model = ?", (model,))[0][0] or 0

    def add_model(self, name: str, spec: str, created: int) -> ModelRow:
        """See `Store`."""
        with _store_errors(self.path):
            cursor = self._reading.execute(
                "INSERT INTO models (name, spec, created) VALUES (?, ?, ?)", (name, spec, created)
            )
            assert cursor.lastrowid is not None  # it was an insert
            return ModelRow(cursor.lastrowid, name, spec, created)

    def close(self) -> None:
        """See `Store`."""
        self._ended.set()
        if self._mover is not None:
            self._mover.join()  # it waits at most a second; a hanging file cannot be closed
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()
        if self._held is not None:
            self._held.close()

    def __del__(self) -> None:
        """Close the connections of a store that nobody closed, about which Python 3.13 would warn."""
        with suppress(Exception):  # a store that was never opened has none
            self.close()


def _lock_of(path: Path) -> sqlite3.Connection:
    """Return the writer's lock, a transaction in an empty file next to the store; raise a StoreError if it is taken.

    SQLite's locks are the same on every system, distinguish two connections of one process, and stay with the parent
    when a process is forked.
    """
    lock = sqlite3.connect(f"{path}.lock", timeout=0.0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        why = "is open already, here or in another process" if busy else f"cannot be locked ({error})"
        raise StoreError(f"{str(path)!r} {why}; close it there first, or give another file") from None
    return lock


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into those of a store."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise DuplicateError(str(error)) from None
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise (FullError if full else StoreError)(f"{str(path)!r}: {error}") from None
