"""Replaying a log says how much it compared, finds what is missing at its end, and bears deletions while it runs."""

import pytest

import solid_bandits.live.sqlite as sqlite_module
import solid_bandits.service.model as model_module
from served import SPEC, TWO, replayed, stored, tampering
from solid_bandits.live import recovery
from solid_bandits.live.events import DELETION, ERASED
from solid_bandits.live.recovery import ReplayDiverged, check
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import StoreError
from solid_bandits.service.model import caught_up_model, source_of
from solid_bandits.service.open_store import FILE
from solid_bandits.service.schemas import DecisionAsked, DeletionAsked, RewardGiven


class Interrupted:
    """Calls `meanwhile` before the calls and single events of these numbers, as a service that runs beside might."""

    def __init__(self, *place, **given):
        super().__init__(*place, **given)
        self.meanwhile = {}
        self.number = 0

    def count(self):
        self.number += 1
        work = self.meanwhile.pop(self.number, None)
        if work is not None:
            work()

    def read(self, model, after=0, until=None):
        found = super().read(model, after, until)
        while True:
            self.count()
            try:
                event = next(found)
            except StopIteration:
                return
            yield event

    def find(self, model, event_ids):
        self.count()
        return super().find(model, event_ids)

    def last(self, model):
        self.count()
        return super().last(model)

    def snapshot(self, model, until=None):
        self.count()
        return super().snapshot(model, until)

    def snapshots(self, model):
        self.count()
        return super().snapshots(model)


class Place:
    """Where a log is kept: a directory, or a new database."""

    def __init__(self, directory, postgres=None):
        self.directory = directory
        self.url = None if postgres is None else postgres.database()
        self.fence = 1 if postgres is None else 0  # that of a model which nobody has led

    def open(self, *kinds):
        """A store, with what these classes add to it."""
        if self.url is None:
            return type("Opened", (*kinds, SqliteStore), {})(self.directory / FILE, create=True)
        from solid_bandits.live.postgres import PostgresStore

        return type("Opened", (*kinds, PostgresStore), {})(self.url)

    def execute(self, statement):
        """Damage it."""
        if self.url is None:
            with tampering(self.directory) as connection:
                connection.execute(statement)
            return
        import psycopg

        with psycopg.connect(self.url, options="-c search_path=solid_bandits") as connection:
            connection.execute(statement)


@pytest.fixture(params=["sqlite", "postgres"])
def cluster(request):
    """None is a directory."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres")


class Writing:
    """A model that decides, learns and deletes; each group is written with the snapshots that are due."""

    def __init__(self, place):
        self.place = place
        self.store = place.open()
        row = self.store.add_model("news", model_module.ModelSpec(**SPEC).model_dump_json(), 0)
        self.model = caught_up_model(None, row, self.store)
        self.now = 0

    def do(self, work, *asked):
        self.now += 1_000_000
        work(*asked, self.now)
        self.model.history.fence = self.place.fence
        self.model.history.commit()

    def decide(self, *ids, reward=None):
        for event_id in ids:
            self.do(self.model.decide, [DecisionAsked(event_id=event_id, features=TWO)])
            if reward is not None:
                self.do(self.model.learn, [RewardGiven(event_id=event_id, reward=reward)])

    def delete(self, *ids):
        self.do(self.model.delete, DeletionAsked(event_ids=list(ids)))


@pytest.fixture
def begun(tmp_path, monkeypatch, cluster):
    """A log of 15 events, of which seven decisions are open, with snapshots every five and a deletion at its end."""
    monkeypatch.setattr("solid_bandits.live.stored.SNAPSHOT_EVERY", 5)
    monkeypatch.setattr(sqlite_module, "AT_ONCE", 1)  # each event is read when it is asked for
    writing = Writing(Place(tmp_path, cluster))
    writing.decide("a", "b", "c", reward=1.0)
    writing.decide(*"defghijk")
    writing.delete("a")
    yield writing
    writing.store.close()


def test_it_says_how_much_it_compared(begun):
    row = begun.store.models()[0]
    assert "nothing to replay; all 15 events were learnt from" in check(source_of(row, begun.store))
    begun.decide("l", "m", reward=2.0)
    begun.decide("n")
    assert check(source_of(row, begun.store)) == (
        "model 'news': 3 decisions, 2 rewards, 1 snapshot compared (events 16 to 20), identical; the others were "
        "learnt from and partly erased"
    )
    other = begun.store.add_model(
        "other", model_module.ModelSpec(**SPEC | {"name": "other"}).model_dump_json(), 0
    )
    assert check(source_of(other, begun.store)) == "model 'other': nothing to replay; it has no events"


@pytest.mark.parametrize("open_", [False, True], ids=["all with rewards", "the last are open"])
def test_the_end_of_a_log_is_missing(tmp_path, open_):
    """The snapshot that the service took at its end is beyond what is left of the log."""
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(20):
            client.post(
                "/v1/models/news/decisions", json={"event_id": f"e{place}", "features": TWO}
            ).raise_for_status()
            if not open_:
                client.post(
                    "/v1/models/news/rewards", json={"event_id": f"e{place}", "reward": 1}
                ).raise_for_status()
    last = 20 if open_ else 40
    with tampering(tmp_path) as connection:
        connection.execute("DELETE FROM events WHERE sequence > ?", (last - 20,))
    status, words = replayed(tmp_path)
    assert status == 1
    assert f"model 'news', events {last - 19} to {last} are missing: a snapshot at {last} exists\n" in words


def test_the_events_after_the_last_deletion_are_missing(begun):
    """The origin itself is beyond the end; what a snapshot has was learnt from events that are not there."""
    begun.decide("l")
    begun.place.execute("DELETE FROM events WHERE sequence > 12")
    missing = (
        "events 13 to 15 are" if begun.place.url is None else "event 15 is"
    )  # where the end is noted apart
    with pytest.raises(ReplayDiverged, match=f"'news', {missing} missing: a snapshot at 15 exists"):
        check(source_of(begun.store.models()[0], begun.store))


def test_the_end_is_missing_without_a_snapshot_of_it(begun):
    """PostgreSQL knows how long a log is; a directory has nothing that says so."""
    begun.decide("l", "m", "n")
    begun.place.execute("DELETE FROM events WHERE sequence > 17")
    row = begun.store.models()[0]
    if begun.place.url is None:
        assert "2 decisions, 0 rewards compared (events 16 to 17), identical" in check(
            source_of(row, begun.store)
        )
    else:
        with pytest.raises(ReplayDiverged, match="'news', event 18 is missing"):
            check(source_of(row, begun.store))


@pytest.mark.parametrize("deletions", [1, 2])
def test_a_deletion_at_any_moment_of_a_replay_is_no_difference(tmp_path, monkeypatch, cluster, deletions):
    """Between any two questions to the store: the replay goes on at the new origin, and counts what it compared."""
    monkeypatch.setattr("solid_bandits.live.stored.SNAPSHOT_EVERY", 5)
    monkeypatch.setattr(sqlite_module, "AT_ONCE", 1)
    said = []
    for moment in range(1, 100):
        writing = Writing(Place(tmp_path / str(moment), cluster))
        writing.decide("a", "b", "c", reward=1.0)
        writing.decide(*"defg")
        writing.delete("a", "d")
        writing.decide("h", "i", reward=3.0)
        writing.decide(*"jklm")
        replaying = writing.place.open(Interrupted)

        def meanwhile(writing=writing):
            writing.delete("b", "h", "l")
            writing.decide("n", "b", reward=2.0)  # an id that was erased, anew

        replaying.meanwhile = {moment: meanwhile}
        if deletions == 2:
            replaying.meanwhile[moment + 6] = lambda one=writing: one.delete("n", "m")
        said.append(check(source_of(replaying.models()[0], replaying)))
        ended = not any(one.kind in (ERASED, DELETION) and one.sequence > 19 for one in writing.store.read(1))
        replaying.close()
        writing.store.close()
        if ended:  # the replay had ended before the first of these moments
            break
    assert ended
    assert len(said) > 12
    others = "identical; the others were learnt from and partly erased"
    if deletions == 1:
        assert f"(events 21 to 24), {others}" in " ".join(said)  # the origin moved before the replay began
        if cluster is None:  # PostgreSQL's store has read all of it at once
            assert f"(events 12 to 17 and 21 to 24), {others}" in " ".join(said)
    else:  # the second deletion leaves nothing of the log after it
        if cluster is None:
            assert f"(events 12 to 17), {others}" in " ".join(said)
        assert "nothing to replay; all 25 events were learnt from" in " ".join(said)
    assert said[-1].endswith(f"6 decisions, 2 rewards, 1 snapshot compared (events 12 to 19), {others}")


def test_a_damage_after_a_deletion_is_found_while_deletions_go_on(begun):
    begun.decide("l", "m", "n")
    replaying = begun.place.open(Interrupted)
    begun.place.execute("UPDATE events SET time = time + 1 WHERE sequence = 17")
    replaying.meanwhile = {7: lambda: begun.delete("b")}
    with pytest.raises(ReplayDiverged, match=r"event 17 \(decision\): the event is not what was written"):
        check(source_of(replaying.models()[0], replaying))
    replaying.close()


def test_deletions_that_come_faster_than_it_replays_are_said(begun, monkeypatch):
    """Nothing is called identical that was not reached."""
    monkeypatch.setattr(recovery, "MOST_STARTS", 3)
    begun.decide("l", "m")
    spare = iter("bcdefg")

    class Deleting:
        def last(self, model):
            begun.delete(next(spare))
            begun.decide(f"n{begun.now}")
            return super().last(model)

    replaying = begun.place.open(Deleting)
    with pytest.raises(
        StoreError, match="'news': events were deleted during each of 3 attempts to replay it"
    ):
        check(source_of(replaying.models()[0], replaying))
    assert next(spare) == "e"
    replaying.close()
