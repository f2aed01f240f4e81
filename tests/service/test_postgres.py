"""PostgreSQL as a store: the same answers as SQLite, and writes that the fence refuses."""

import sys
import threading

import psycopg
import pytest

from served import joined, until
from service_events import NOW, closing, decision, expiry, group
from solid_bandits.live import events as made
from solid_bandits.live import postgres as postgres_module
from solid_bandits.live.postgres import PostgresStore
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import DuplicateError, FencedError, FullError, KeyRow, Snapshot, StoreError
from solid_bandits.service.leadership import Leadership
from solid_bandits.service.open_store import FILE, open_store


@pytest.fixture
def url(postgres):
    return postgres.database()


@pytest.fixture
def store(url):
    opened = PostgresStore(url)
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgres"])
def led(request, tmp_path):
    """A store, a model and the fence to write to it with."""
    if request.param == "sqlite":
        opened = SqliteStore(tmp_path / FILE, create=True)
        yield opened, opened.add_model("news", "{}", NOW).id, 1
    else:
        opened = PostgresStore(request.getfixturevalue("postgres").database())
        model = opened.add_model("news", "{}", NOW).id
        leader = Leadership(opened, "http://one")
        leader.beat()
        yield opened, model, leader.fence(model)
        leader.stop()
    opened.close()


def test_what_was_appended_is_read(led):
    store, model, fence = led
    first, second = group(1, 700), group(701, 30)
    store.append(model, fence, first)
    store.append(model, fence, second)
    store.append(model, fence, [])
    assert list(store.read(model)) == first + second
    assert list(store.read(model, after=10, until=690)) == first[10:690]
    assert store.last(model) == 730
    assert list(store.read(model + 1)) == []
    assert store.last(model + 1) == 0


def test_every_column_comes_back_as_it_was(led):
    store, model, fence = led
    odd = [
        made._make(
            1, "decision", "ünïcode ☃ '\"\\{},", 5, {"arms": ["\x00", "NULL", ""]}, subject="", numbers=b""
        ),
        made._make(2, "decision", "NULL", 6, {}, subject="{a,b}", numbers=bytes(range(256))),
        made._make(3, "reward", "NULL", 7, {"reward": None}),
    ]
    store.append(model, fence, odd)
    assert list(store.read(model)) == odd


def test_events_are_found_by_id_subject_and_time(led):
    store, model, fence = led
    events = [
        decision(1, "a", subject="ann"),
        decision(2, "b", subject="bob"),
        decision(3, "c", subject="ann"),
        closing(4, "a", 1.0),
        expiry(5, "c", NOW + 5, None),
    ]
    store.append(model, fence, events)
    assert store.find(model, ["c", "a", "nobody"]) == [events[0], events[2], events[3], events[4]]
    assert store.find(model, []) == []
    assert store.of_subject(model, "ann") == ["a", "c"]
    assert store.of_subject(model, "eve") == []
    assert store.before(model, events[2].time) == ["a", "b"]


def test_an_id_is_there_once_of_each_kind_and_a_refused_group_leaves_nothing(led):
    store, model, fence = led
    store.append(model, fence, [decision(1, "a"), closing(2, "a", 0.0)])
    for wrong in ([decision(3, "b"), decision(4, "a")], [decision(2, "c")], [closing(3, "a", 1.0)]):
        with pytest.raises(DuplicateError):
            store.append(model, fence, wrong)
    assert store.last(model) == 2
    store.append(model, fence, [decision(3, "b")])
    assert [event.event_id for event in store.read(model)] == ["a", "a", "b"]


def test_snapshots_are_kept_as_said(led):
    store, model, fence = led
    assert store.snapshot(model) is None
    for number in range(1, 5):
        snapshot = Snapshot(number, NOW + number, b"%d\x00" % number * 1000)
        store.append(model, fence, [decision(number, f"e{number}")], snapshot)
    assert store.snapshots(model) == [(3, NOW + 3, False), (4, NOW + 4, False)]
    assert store.snapshot(model) == snapshot
    assert store.snapshot(model, until=3).content == b"3\x00" * 1000
    assert store.snapshot(model, until=2) is None


def test_erased_events_are_gone(led):
    store, model, fence = led
    store.append(model, fence, [decision(1, "a", subject="ann"), closing(2, "a", 1.0), decision(3, "b")])
    store.append(model, fence, [], Snapshot(3, NOW, b"before"))
    after = Snapshot(4, NOW + 9, b"after")
    store.append(model, fence, [made.deletion(4, NOW + 9, 1)], after, [1, 2])
    found = list(store.read(model))
    assert found[:2] == [made.erased(1, NOW + 9), made.erased(2, NOW + 9)]
    assert [event.event_id for event in found] == [None, None, "b", None]
    assert store.of_subject(model, "ann") == []
    assert store.snapshots(model) == [(4, NOW + 9, True)]
    for number in range(5, 9):  # the origin stays
        store.append(model, fence, [decision(number, f"e{number}")], Snapshot(number, NOW, b""))
    assert [row[0] for row in store.snapshots(model)] == [4, 7, 8]


def test_models_and_keys(led):
    store, model, _ = led
    other = store.add_model("ads", '{"dim": 3}', NOW + 1)
    assert [(row.id, row.name) for row in store.models()] == [(model, "news"), (other.id, "ads")]
    with pytest.raises(DuplicateError):
        store.add_model("ads", "{}", NOW)
    keys = [KeyRow(f"k{number}", "n", "reader", bytes([number] * 32), number, None) for number in range(3)]
    for key in keys:
        store.add_key(key)
    assert store.keys() == keys
    assert store.revoke_key("k1", 7)
    assert not store.revoke_key("k1", 8)
    assert not store.revoke_key("k9", 8)
    assert store.keys()[1] == keys[1]._replace(revoked=7)


def test_a_number_of_the_past_writes_nothing(store):
    model = store.add_model("news", "{}", NOW).id
    leader = Leadership(store, "http://one")
    leader.beat()
    old = leader.fence(model)
    store.append(model, old, [decision(1, "a")])
    with psycopg.connect(store.url) as other:  # a takeover
        other.execute("UPDATE solid_bandits.leases SET fence = fence + 1")
    for events, snapshot in (
        ([decision(2, "b")], None),
        ([decision(2, "b")], Snapshot(2, NOW, b"")),
        ([], None),
        ([], Snapshot(1, NOW, b"")),
    ):
        with pytest.raises(FencedError, match=f"must be the newest of model {model}, {old + 1}, got {old}"):
            store.append(model, old, events, snapshot)
    assert store.last(model) == 1
    assert store.snapshots(model) == []
    assert leader.fence(model) is None  # the first refusal told it
    store.append(model, old + 1, [decision(2, "b")])
    leader.stop()


def test_a_number_of_the_future_and_an_unknown_model_write_nothing(store):
    model = store.add_model("news", "{}", NOW).id
    for number, fence in ((model, 1), (model + 1, 0)):
        with pytest.raises(FencedError):
            store.append(number, fence, [decision(1, "a")])


def test_a_gap_is_refused(store):
    """A writer whose memory is ahead of the log must not go on."""
    model = store.add_model("news", "{}", NOW).id
    with pytest.raises(DuplicateError, match="go on after number 0, got 2"):
        store.append(model, 0, [decision(2, "a")])


def test_writers_with_the_same_number_cannot_interleave(url):
    """Two stores that both believe to lead: of each sequence number one write wins, whole."""
    stores = [PostgresStore(url) for _ in range(2)]
    model = stores[0].add_model("news", "{}", NOW).id
    won = [0, 0]

    def write(place: int) -> None:
        for number in range(1, 301, 3):
            try:
                stores[place].append(model, 0, group(number, 3, f"{place}-"))
                won[place] += 1
            except DuplicateError:
                pass

    threads = [threading.Thread(target=write, args=(place,), daemon=True) for place in range(2)]
    for thread in threads:
        thread.start()
    joined(*threads)
    found = list(stores[0].read(model))
    assert [event.sequence for event in found] == list(range(1, 301))
    assert sum(won) == 100
    writers = [{event.event_id[0] for event in found[start : start + 3]} for start in range(0, 300, 3)]
    assert all(len(one) == 1 for one in writers)
    for one in stores:
        one.close()


def test_a_commit_waits_for_the_disk_and_for_nobody(store):
    with store.reading() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        assert connection.execute("SHOW lock_timeout").fetchone() == ("10s",)
        assert connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("10s",)


def test_sessions_that_were_ended_are_replaced(store):
    """As a restart of the database does, or another node that takes over."""
    model = store.add_model("news", "{}", NOW).id
    store.append(model, 0, [decision(1, "a")])
    with psycopg.connect(store.url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            (store.node,),
        )
    assert store.last(model) == 1  # reading asks again
    with pytest.raises(StoreError):  # a write does not: whether it was committed is unknown
        store.append(model, 0, [decision(2, "b")])
    store.append(model, 0, [decision(2, "b")])


def test_tables_of_another_version_are_left_alone(store):
    with psycopg.connect(store.url) as other:
        other.execute("UPDATE solid_bandits.about SET value = '9'")
    with pytest.raises(StoreError, match="must have version 2 of these tables, got 9"):
        PostgresStore(store.url)


def test_two_nodes_may_make_the_tables_at_once(url):
    errors = []

    def make() -> None:
        try:
            PostgresStore(url).close()
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=make, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    joined(*threads)
    assert errors == []


def test_an_address_that_leads_nowhere_is_said_without_its_password():
    for url in ("postgresql://me:secret@localhost:1/none", "nonsense:secret"):
        with pytest.raises(StoreError) as caught:
            PostgresStore(url)
        assert "secret" not in str(caught.value)


def test_without_its_library_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "solid_bandits.live.postgres", None)
    with pytest.raises(ValueError, match=r"database needs pip install 'solid-bandits\[service-postgres\]'"):
        open_store(None, "postgresql://localhost/none")


def test_a_full_disk_is_named_and_gone_on_from(store):
    """The server says so for the statement alone, as it does when a table cannot grow."""
    model = store.add_model("news", "{}", NOW).id
    store.append(model, 0, [decision(1, "a")])
    with psycopg.connect(store.url, autocommit=True) as other:
        other.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
        )
        other.execute(
            "CREATE TRIGGER full_disk BEFORE INSERT ON solid_bandits.events "
            "FOR EACH STATEMENT EXECUTE FUNCTION full_disk()"
        )
        with pytest.raises(FullError, match="could not extend file"):
            store.append(model, 0, [decision(2, "b")])
        assert store.last(model) == 1  # nor has the row of the fence changed
        other.execute("DROP TRIGGER full_disk ON solid_bandits.events")
    store.append(model, 0, [decision(2, "b")])
    assert [event.event_id for event in store.read(model)] == ["a", "b"]


def heap(connection, table="events"):
    """The bytes of a table's file."""
    connection.execute("CHECKPOINT")
    question = "SELECT pg_read_binary_file(pg_relation_filepath(%s))"
    return connection.execute(question, (f"solid_bandits.{table}",)).fetchone()[0]


def test_what_was_erased_leaves_the_tables_once_nobody_may_read_it(url, monkeypatch):
    """An old transaction keeps it, which is said, with its session; later it is tried again. Files are written anew."""
    monkeypatch.setattr(postgres_module, "AGAIN", 0.05)
    store = PostgresStore(url)
    model = store.add_model("news", "{}", NOW).id
    leader = Leadership(store, "http://one")
    leader.beat()
    fence = leader.fence(model)
    store.append(
        model, fence, [decision(number, f"e{number}", subject="anna-secret") for number in range(1, 51)]
    )
    with psycopg.connect(url, application_name="old-backup") as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM solid_bandits.events").fetchone()
        deleted = [made.deletion(51, NOW, 50)]
        store.append(model, fence, deleted, Snapshot(51, NOW, b"x"), list(range(1, 51)))
        until(lambda: "old-backup" in (store.erasing or ""), "the session is named")
        assert len(store.find(model, ["e1"])) == 0
        old.rollback()
    until(lambda: store.erasing is None, "it is tried again")
    store.vacuum()
    with psycopg.connect(url, autocommit=True) as superuser:
        assert b"anna-secret" not in heap(superuser)
        assert b"erased" in heap(superuser)
    leader.stop()
    store.close()


def test_pages_of_a_log_are_read_whole_whatever_sizes_events_have(led):
    """Small ones, then such as fill a page alone: every one once, in order, and a few in memory at a time."""
    store, model, fence = led
    events = [
        made._make(
            number, "decision", f"e{number}", NOW, {}, numbers=bytes(6 << 20 if number % 9 == 0 else 8)
        )
        for number in range(1, 31)
    ]
    for event in events:
        store.append(model, fence, [event])
    assert list(store.read(model)) == events
    assert list(store.read(model, after=8, until=20)) == events[8:20]


def test_places_and_words_of_events_are_read_without_their_numbers(led):
    store, model, fence = led
    store.append(
        model, fence, [decision(1, "a", "s"), decision(2, "b", "s"), closing(3, "a", 1.0), decision(4, "c")]
    )
    assert store.places(model, ["a", "c", "none"]) == [
        (1, "decision", "a"),
        (3, "reward", "a"),
        (4, "decision", "c"),
    ]
    assert [(one, words[:5]) for one, words in store.bodies(model, ["b", "a"])] == [
        ("a", '{"arm'),
        ("b", '{"arm'),
    ]
    assert store.of_subject(model, "s", 1) == ["a"]
    assert store.before(model, NOW + 10, 2) == ["a", "b"]
    store.probe()
