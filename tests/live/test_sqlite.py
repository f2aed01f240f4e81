"""The log in SQLite: synced, in order, erased without a trace. What every store promises: service/test_postgres.py."""

import os
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from served import tampering
from service_events import decided, expiry, outcome
from solid_bandits.live import events, sqlite
from solid_bandits.live.events import DECISION, ERASED
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import (
    FencedError,
    FullError,
    Snapshot,
    StoreError,
)
from solid_bandits.service.open_store import FILE


@pytest.fixture
def store(tmp_path):
    found = SqliteStore(tmp_path / FILE, create=True)
    found.add_model("news", "{}", 1)
    yield found
    found.close()


def reward(sequence, event_id=None, value=1.0):
    return outcome(sequence, event_id or f"e{sequence}", 10 * sequence, value)


def decision(sequence, subject=None, secret=0.0):
    offered = np.array([[secret], [2.0]])
    return decided(sequence, f"e{sequence}", 10 * sequence, offered, subject=subject, arms=(0, "b"))


def test_every_connection_syncs_at_each_commit(store):
    """FULL in write-ahead mode: the log is synced before COMMIT returns. Read back on every connection."""
    for connection in (store._writing, store._reading):
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)


def test_events_are_read_as_they_were_written(store):
    written = [
        decision(1, "anna"),
        reward(2, "e1"),
        expiry(3, "e9", 30, None),
        events.deletion(4, 40, 2),
    ]
    store.append(1, 1, written[:2])
    store.append(1, 1, written[2:])
    assert list(store.read(1)) == written
    assert list(store.read(1, after=1, until=3)) == written[1:3]
    assert store.find(1, ["e9", "e1", "nobody"]) == written[:3]
    assert store.last(1) == 4
    assert store.of_subject(1, "anna") == ["e1"]
    assert store.before(1, 11) == ["e1"]
    assert store.before(1, 10) == []
    assert all(events.is_sound(one) for one in store.read(1))
    assert events.decision_in(written[0]).arms == (0, "b")


def test_many_events_are_read_in_parts(store):
    written = [reward(sequence) for sequence in range(1, 1_204)]
    store.append(1, 1, written)
    assert list(store.read(1)) == written
    assert store.find(1, [one.event_id for one in reversed(written)]) == written


def test_of_erased_events_nothing_stays_in_the_files(store, tmp_path):
    secret = 123456789.0625
    store.append(1, 1, [decision(1, "anna-who-is-secret", secret), reward(2, "e1"), reward(3)])
    store.append(1, 1, [], Snapshot(3, 50, b"anna-who-is-secret in a snapshot"))
    traces = [b"anna-who-is-secret", events.decision_in(decision(1, None, secret)).offered.tobytes()[:8]]
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert all(trace in content for trace in traces)
    store.append(1, 1, [events.deletion(4, 60, 1)], Snapshot(4, 60, b"new"), [1, 2])
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(trace in content for trace in traces)
    found = list(store.read(1))
    assert [one.kind for one in found] == [ERASED, ERASED, "reward", "deletion"]
    assert all(events.is_sound(one) for one in found)
    assert store.find(1, ["e1"]) == []
    assert store.of_subject(1, "anna-who-is-secret") == []


def contents(directory):
    return b"".join(path.read_bytes() for path in directory.iterdir())


@pytest.mark.parametrize("later", [[], [decision(4)]], ids=["the deletion again", "any commit"])
def test_what_a_reader_kept_in_the_files_goes_later(store, tmp_path, monkeypatch, caplog, later):
    """While somebody reads, the write-ahead log cannot be emptied: a commit, a repeated deletion or a start does."""
    monkeypatch.setattr(sqlite, "PATIENCE", 1)
    secret = b"anna-who-is-secret"
    store.append(1, 1, [decision(1, secret.decode())])
    reader = sqlite3.connect(store.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM events").fetchall()
    store.append(1, 1, [events.deletion(2, 60, 1)], Snapshot(2, 60, b"new"), [1])
    assert "what was erased is in" in caplog.text
    store.append(1, 1, [decision(3)])
    assert secret in contents(tmp_path)
    killed = tmp_path.with_name(f"{tmp_path.name}-killed")  # what a server leaves that is killed now
    shutil.copytree(tmp_path, killed)
    reader.close()
    store.append(1, 1, later)
    assert secret not in contents(tmp_path)
    assert secret in contents(killed)
    with closing(SqliteStore(killed / FILE, write=True)):
        assert secret not in contents(killed)


def test_a_log_that_another_process_took_away_is_not_written_to(store, tmp_path, monkeypatch):
    """Nobody would find what is in it: neither before a commit, nor after one that met it, is it acknowledged."""
    store.append(1, 1, [decision(1)])
    check = store._check_fence
    monkeypatch.setattr(
        store, "_check_fence", lambda fence: check(fence) or (tmp_path / f"{FILE}-wal").unlink()
    )
    with pytest.raises(StoreError, match=r"has taken .*service\.db-wal' away"):
        store.append(1, 1, [decision(2)])
    monkeypatch.undo()
    for wrong in (
        lambda: store.append(1, 1, [decision(3)]),
        lambda: store.append(1, 1, []),
        lambda: list(store.read(1)),
    ):
        with pytest.raises(StoreError, match="open the store again"):
            wrong()


class NoRoom:
    """A connection whose checkpoints find no room."""

    def __init__(self, connection):
        self._connection = connection

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, words, *values):
        if "wal_checkpoint" in words:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.execute(words, *values)


def test_no_room_after_a_commit_does_not_undo_it(store, caplog):
    store.append(1, 1, [decision(1)])
    store._writing = NoRoom(store._writing)
    store.append(1, 1, [events.deletion(2, 60, 1)], Snapshot(2, 60, b"new"), [1])
    assert [one.kind for one in store.read(1)] == [ERASED, "deletion"]
    assert "disk is full; tried again later" in caplog.text


@pytest.mark.parametrize("settings", [{}, {"write": True}, {"create": True, "write": True}], ids=repr)
def test_a_database_of_something_else_is_left_as_it_is(tmp_path, settings):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.executescript("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"other\.db' must be a store, but is a database of something else"):
        SqliteStore(path, **settings)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["other.db"]


def test_an_empty_file_becomes_a_store_only_where_one_is_made(tmp_path):
    path = tmp_path / FILE
    path.touch()
    with pytest.raises(StoreError, match="must be a store, but is empty"):
        SqliteStore(path)
    assert path.read_bytes() == b""
    SqliteStore(path, create=True).close()
    SqliteStore(path).close()


def test_a_store_has_one_lock_whatever_it_is_called(tmp_path):
    """The write-ahead log is named after the file, so a hard link would have another."""
    path, link, hard = tmp_path / "new" / FILE, tmp_path / "link.db", tmp_path / "hard.db"
    with closing(SqliteStore(path, create=True, write=True)):
        link.symlink_to(path)
        with pytest.raises(StoreError, match="is open already"):
            SqliteStore(link, write=True)
    hard.hardlink_to(path)
    for name in (path, hard):
        with pytest.raises(StoreError, match="must have one name, but there are hard links"):
            SqliteStore(name)


def test_a_long_write_ahead_log_is_cut(tmp_path, monkeypatch):
    """Once, not at each commit from then on."""
    monkeypatch.setattr(sqlite, "LONGEST_WAL", 100_000)
    store = SqliteStore(tmp_path / FILE, create=True)
    store.start_checkpointer()
    store.add_model("news", "{}", 1)
    store.append(1, 1, [decision(sequence) for sequence in range(1, 2_000)])
    assert (tmp_path / f"{FILE}-wal").stat().st_size == 0
    store.close()


@pytest.mark.skipif(os.name == "nt", reason="rights are kept otherwise there")
def test_files_are_the_owners_alone(tmp_path):
    old = os.umask(0o022)
    try:
        store = SqliteStore(tmp_path / "new" / FILE, create=True)
        store.add_model("news", "{}", 1)
    finally:
        os.umask(old)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "new").iterdir()}
    assert modes == dict.fromkeys((FILE, f"{FILE}-wal", f"{FILE}-shm"), 0o600)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    store.close()


def test_a_full_disk_is_said_and_nothing_is_half_written(store):
    store.append(1, 1, [reward(1)])
    pages = store._writing.execute("PRAGMA page_count").fetchone()[0]
    store._writing.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(FullError, match="full"):
        store.append(1, 1, [decision(sequence) for sequence in range(2, 500)])
    assert store.last(1) == 1
    store._writing.execute("PRAGMA max_page_count=1000000")
    store.append(1, 1, [decision(2)])
    assert store.last(1) == 2


def test_what_was_written_is_carried_over(tmp_path):
    """By the thread, while the writer goes on; the write-ahead log does not grow without end."""
    store = SqliteStore(tmp_path / FILE, create=True)
    store.start_checkpointer()
    store.add_model("news", "{}", 1)
    for sequence in range(1, 200):
        store.append(1, 1, [decision(sequence)])
    store.close()
    assert not (tmp_path / f"{FILE}-wal").exists()  # carried over whole by the last to close
    with closing(SqliteStore(tmp_path / FILE)) as again:
        assert again.last(1) == 199


def test_other_files_and_versions_are_refused(tmp_path):
    with pytest.raises(StoreError, match=r"service\.db' must be a store, but there is no such file"):
        SqliteStore(tmp_path / FILE)
    (tmp_path / FILE).write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(tmp_path / FILE)
    other = tmp_path / "other"
    SqliteStore(other / FILE, create=True).close()
    with tampering(other) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(StoreError, match="version 2 of these tables, got 99"):
        SqliteStore(other / FILE)


def test_a_refused_file_is_not_left_open(tmp_path, monkeypatch):
    made = []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **named: made.append(connect(*given, **named)) or made[-1]
    )
    (tmp_path / FILE).write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(tmp_path / FILE)
    assert len(made) == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


def test_any_change_of_an_event_is_seen():
    sound = decision(1, "anna")
    assert sound.kind == DECISION
    for place, value in enumerate([2, "reward", "e2", "bert", 11, "{}", b"12345678", b"x" * 16]):
        assert not events.is_sound(sound._replace(**{sound._fields[place]: value}))


def test_a_writer_is_alone_and_a_former_one_is_refused(tmp_path):
    """By the lock; where somebody removes it, by the fence, also where nothing is to be written. Readers may come."""
    first = SqliteStore(tmp_path / FILE, create=True, write=True)
    first.add_model("news", "{}", 1)
    first.append(1, first.fence, [decision(1)])
    with pytest.raises(StoreError, match="is open already, here or in another process"):
        SqliteStore(tmp_path / FILE, write=True)
    with closing(SqliteStore(tmp_path / FILE)) as reader:
        assert reader.last(1) == 1
    (tmp_path / f"{FILE}.lock").unlink()
    second = SqliteStore(tmp_path / FILE, write=True)
    for given in ([decision(2)], []):
        with pytest.raises(FencedError, match="was opened by another process meanwhile"):
            first.append(1, first.fence, given)
    second.append(1, second.fence, [decision(2)])
    first.close()
    second.close()
    third = SqliteStore(tmp_path / FILE, write=True)
    assert (third.last(1), third.fence) == (2, second.fence + 1)
    third.close()
