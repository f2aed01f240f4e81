"""What release 0.2.0 wrote is refused in words by every door, and stays as it was.

`of_0_2_0` has a store of a service with one model, three decisions and two rewards, in SQLite and in PostgreSQL, a file
of an agent and one of a bandit, all written by that release (keys taken out). Its events have the columns of today's,
so what refuses them is the version of the tables alone; its snapshots would not be believed, and the models of a log
that cannot be replayed from its first event would be lost.
"""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import solid_bandits as sb
from solid_bandits import cli
from solid_bandits.live import postgres as postgres_module
from solid_bandits.live.postgres import PostgresStore
from solid_bandits.live.snapshots import opened
from solid_bandits.service.open_store import FILE, open_store

BEFORE = Path(__file__).with_name("of_0_2_0")
OLDER_SQLITE = "must be of version 2 of these tables, got 1; use the release that wrote it"
OLDER_POSTGRES = "database must have version 2 of these tables, got 1; use the release that wrote them"
TABLES = ("about", "models", "leases", "events", "snapshots", "keys", "nodes")


@pytest.fixture
def sqlite(tmp_path):
    """The directory of a service of 0.2.0."""
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as connection:
        connection.executescript((BEFORE / "sqlite.sql").read_text())
        connection.execute("PRAGMA journal_mode=WAL")
    return tmp_path


@pytest.fixture
def database(postgres):
    """The database of a service of 0.2.0."""
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((BEFORE / "postgres.sql").read_text())
    return url


def rows(url):
    """All that a database holds."""
    with psycopg.connect(url, autocommit=True) as connection:
        return {
            table: sorted(map(repr, connection.execute(f"SELECT * FROM solid_bandits.{table}")))
            for table in TABLES
        }


def content(directory):
    """All that a directory holds."""
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in directory.iterdir()}


@pytest.fixture
def said(monkeypatch, capsys):
    """What a command says that is refused."""

    def called(*arguments):
        monkeypatch.setattr("sys.argv", ["solid-bandits", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 2
        return capsys.readouterr().err

    return called


COMMANDS = (("serve", "--port", "0"), ("keys", "list"), ("keys", "create", "admin"), ("vacuum",))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_directory_of_the_release_before_is_refused(sqlite, said, command):
    before = content(sqlite)
    assert OLDER_SQLITE in said(*command, "--data", sqlite)
    assert content(sqlite) == before


def test_a_store_of_the_release_before_is_refused_by_replay_and_in_python(sqlite, said):
    before = content(sqlite)
    assert OLDER_SQLITE in said("replay", sqlite)
    for made in (
        lambda: open_store(sqlite, None),
        lambda: open_store(sqlite, None, create=True),
        lambda: sb.Bandit.open(sqlite / FILE),
        lambda: sb.Bandit(sb.Greedy(), dim=2, noise_std=1.0, seed=7, store=sqlite / FILE),
    ):
        with pytest.raises((sb.errors.StoreError, ValueError), match=OLDER_SQLITE):
            made()
    assert content(sqlite) == before


@pytest.mark.parametrize("command", [*COMMANDS, ("replay",)], ids=" ".join)
def test_a_database_of_the_release_before_is_refused(database, said, command):
    before = rows(database)
    if command[0] == "serve":
        command = (*command, "--advertise", "http://127.0.0.1:8080")
    assert OLDER_POSTGRES in said(*command, "--database", database)
    assert rows(database) == before


def test_its_version_is_all_that_refuses_a_database(database, monkeypatch):
    """Read as a database of today, the log of before is one whose snapshots are not believed."""
    monkeypatch.setattr(postgres_module, "VERSION", "1")
    store = PostgresStore(database)
    try:
        (row,) = store.models()
        assert [event.kind for event in store.read(row.id)].count("decision") == 3
        snapshot = store.snapshot(row.id)
        assert snapshot is not None
        with pytest.raises(ValueError, match="it is not what a bandit wrote"):
            opened(snapshot.content)
    finally:
        store.close()


def test_files_of_the_release_before_are_refused():
    with pytest.raises(ValueError, match="must have version 4, got 2: it was written by another version"):
        sb.Agent.load(BEFORE / "agent.json")
    with pytest.raises(ValueError, match=r"got an archive: it was written by release 0\.2 or earlier"):
        sb.Bandit.load(BEFORE / "bandit")
