"""The writer: calls that wait share a commit, a node that does not lead only reads, what is too much is sent away."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from served import PATIENCE, SPEC, TWO, service, tampering, until
from solid_bandits.core.agent import Agent
from solid_bandits.live import stored
from solid_bandits.live.recovery import check
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service import model, writer
from solid_bandits.service.open_store import FILE


class Slow(SqliteStore):
    """Notes the sizes of the groups, and waits before each when told to."""

    def __init__(self, directory):
        super().__init__(directory / FILE, create=True)
        self.sizes = []
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def append(self, model, fence, events, snapshot=None, erased=()):
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        super().append(model, fence, events, snapshot, erased)
        self.sizes.append((model, fence, len(events)))


class Led:
    """Nodes that say what the test wants."""

    def __init__(self):
        self.number = 1

    def leader(self, model):
        return None

    def leads(self, model):
        return self.number is not None

    def fence(self, model):
        return self.number

    def start(self):
        pass

    def stop(self):
        pass


@pytest.fixture
def slow(tmp_path):
    store = Slow(tmp_path)
    nodes = Led()
    with service(store, nodes) as client:
        client.post("/v1/models", json=SPEC)
        yield client, store, nodes
        store.gate.set()
    store.close()


def decide(client, event_id, model="news"):
    return client.post(f"/v1/models/{model}/decisions", json={"event_id": event_id, "features": TWO})


def test_calls_that_wait_share_a_commit(slow):
    client, store, _ = slow
    waiting = queue_of_the_writer()
    store.gate.clear()
    with ThreadPoolExecutor(17) as pool:
        first = pool.submit(decide, client, "first")
        assert store.begun.wait(PATIENCE)
        others = [pool.submit(decide, client, f"e{place}") for place in range(16)]
        client.get("/metrics")  # answered while they wait
        until(lambda: waiting.qsize() == 16, "all of them wait")
        store.gate.set()
        answers = [one.result(timeout=PATIENCE) for one in (first, *others)]
    assert {answer.status_code for answer in answers} == {200}
    assert store.sizes[0] == (1, 1, 1)
    assert sum(count for *_, count in store.sizes) == 17
    assert len(store.sizes) < 17  # work on a group may be cut by its time, but not to single calls
    assert [event.sequence for event in store.read(1)] == list(range(1, 18))


def test_columns_of_very_different_spread_are_said_in_the_log_once(slow, caplog):
    """With the name of the model: callers cannot help it, and get their decisions."""
    client, _, _ = slow
    for place in range(20):
        features = [[1e6 * place, 0.0, 1.0], [0.0, 1.0, 1.0]]
        body = {"event_id": f"e{place}", "features": features}
        assert client.post("/v1/models/news/decisions", json=body).status_code == 200
    (record,) = [one for one in caplog.records if "spread" in one.getMessage()]
    assert record.levelname == "WARNING"
    assert record.name == "solid_bandits.service"
    assert record.getMessage().startswith("model 'news': features are of very different spread")


def test_each_model_has_its_own_group(slow):
    client, store, _ = slow
    client.post("/v1/models", json=SPEC | {"name": "other"})
    assert decide(client, "a", "other").status_code == decide(client, "a").status_code == 200
    assert sorted(store.sizes) == [(1, 1, 1), (2, 1, 1)]


def test_what_is_too_much_is_sent_away(slow):
    client, store, _ = slow
    object.__setattr__(queue_of_the_writer(whole=True)._budgets, "waiting_calls", 3)
    store.gate.clear()
    with ThreadPoolExecutor(12) as pool:
        first = pool.submit(decide, client, "first")
        assert store.begun.wait(PATIENCE)
        others = [pool.submit(decide, client, f"e{place}") for place in range(11)]
        until(lambda: sum(one.done() for one in others) == 8, "what is too much is refused")
        refused = [one for one in others if one.done()]
        store.gate.set()
        answers = [one.result(timeout=PATIENCE) for one in (first, *others)]
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * 4 + [503] * 8
    assert all(one.result().headers["retry-after"] == "1" for one in refused)


def test_a_fault_is_that_of_its_call_alone(slow, monkeypatch):
    """The others of its group may be tried again, and then are served."""
    client, store, _ = slow
    learn = model.Model.learn

    def failing(self, given, now):
        if given[0].event_id == "fault":
            raise ZeroDivisionError
        return learn(self, given, now)

    monkeypatch.setattr(model.Model, "learn", failing)
    waiting = queue_of_the_writer()
    store.gate.clear()
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(decide, client, "first")
        assert store.begun.wait(PATIENCE)
        others = [pool.submit(decide, client, f"e{place}") for place in range(6)]
        body = {"event_id": "fault", "reward": 1.0}
        fault = pool.submit(client.post, "/v1/models/news/rewards", json=body)
        until(lambda: waiting.qsize() == 7, "all of them wait")
        store.gate.set()
        answers = [one.result(timeout=PATIENCE) for one in others]
    assert first.result().status_code == 200
    assert fault.result().status_code == 500
    assert {answer.status_code for answer in answers} == {503}
    assert all(decide(client, f"e{place}").status_code == 200 for place in range(6))


@pytest.mark.parametrize("place", [2, 4], ids=["between others", "last"])
def test_a_call_that_is_refused_halfway_takes_its_group_with_it(slow, monkeypatch, place):
    """The bandit is not what its log says: no call of the group is answered, or written; they may be tried again."""
    client, store, _ = slow
    original = Agent.decide

    def failing(self, features):
        decision = original(self, features)
        if features[0][0] == 9:
            raise np.linalg.LinAlgError("Singular matrix")  # a ValueError
        return decision

    monkeypatch.setattr(Agent, "decide", failing)
    monkeypatch.setattr(stored, "SNAPSHOT_EVERY", 1)
    waiting = queue_of_the_writer()
    store.gate.clear()
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(decide, client, "first")
        assert store.begun.wait(PATIENCE)
        calls = []
        for number in range(5):
            features = [[9.0, 0.0, 0.5], [0.0, 1.0, 0.2]] if number == place else TWO
            body = {"event_id": f"e{number}", "features": features}
            calls.append(pool.submit(client.post, "/v1/models/news/decisions", json=body))
            until(lambda count=number + 1: waiting.qsize() == count, "it waits")
        store.gate.set()
        answers = [one.result(timeout=PATIENCE) for one in calls]
    assert first.result().status_code == 200
    assert [one.status_code for one in answers] == [500 if one == place else 503 for one in range(5)]
    assert [event.event_id for event in store.read(1)] == ["first"]
    assert not any(decide(client, f"e{number}").json()["again"] for number in range(5))
    assert "identical" in check(model.source_of(store.models()[0], store))


def queue_of_the_writer(whole=False):
    (running,) = [one for one in threading.enumerate() if one.name == "writer"]
    found = running._target.__self__
    return found if whole else found._calls


def test_a_commit_that_hangs_is_not_waited_for_without_an_end(slow, monkeypatch):
    """The call is refused, to be repeated; what it did is in the log once the disk goes on."""
    client, store, _ = slow
    decide(client, "before")
    monkeypatch.setattr(writer, "LONGEST_CALL", 0.3)
    store.gate.clear()
    answer = decide(client, "a")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["error"] == "the log was not written within 0.3 s; try again with the same event_id"
    monkeypatch.setattr(writer, "LONGEST_CALL", 60)
    store.gate.set()
    assert decide(client, "a").json()["again"]
    assert [event.event_id for event in store.read(1)] == ["before", "a"]


@pytest.mark.parametrize("when", ["with a call in its hands", "between two calls"])
def test_a_writer_that_dies_is_said_to_everybody(slow, monkeypatch, when, caplog):
    """Nobody waits for it: calls in its hands, calls that come later, and whoever asks for the health."""
    client, store, _ = slow
    decide(client, "a")
    assert client.get("/health").status_code == 200

    def dies(*_):
        raise SystemExit

    where = "_serve_model" if when == "with a call in its hands" else "_last_snapshot"
    monkeypatch.setattr(writer.Writer, where, dies)
    if where == "_last_snapshot":  # reached at the end alone, which is asked for here
        queue_of_the_writer().put(None)
        until(lambda: client.get("/health").status_code == 503, "it dies")
    for _ in range(2):
        answer = decide(client, "b")
        assert answer.status_code == 503
        assert answer.json() == {"error": writer.GONE}
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"error": writer.GONE})
    assert client.get("/v1/models/news/stats").status_code == 503
    assert client.get("/v1/models").status_code == 200
    assert writer.GONE in caplog.text
    assert [event.event_id for event in store.read(1)] == ["a"]


def test_the_end_does_not_wait_for_a_disk_that_hangs(tmp_path, monkeypatch, caplog):
    store = Slow(tmp_path)
    with service(store, Led()) as client:
        client.post("/v1/models", json=SPEC).raise_for_status()
        decide(client, "before").raise_for_status()
        monkeypatch.setattr(writer, "LONGEST_END", 0.2)
        monkeypatch.setattr(writer, "LONGEST_CALL", 0.2)
        store.gate.clear()
        assert decide(client, "a").status_code == 503
    assert "the writer did not end within 0.2 s" in caplog.text
    store.gate.set()
    until(lambda: not any(one.name == "writer" for one in threading.enumerate()), "the writer ends")
    store.close()


def led_with(number, store, nodes):
    """The node leads again, with another number to write with, which the store has from then on."""
    with tampering(store.path.parent) as connection:
        connection.execute("UPDATE fence SET number = ?", (number,))
    nodes.number = number


def test_a_node_that_does_not_lead_reads_and_does_not_write(slow):
    client, store, nodes = slow
    before = decide(client, "a").json()
    nodes.number = None
    refused = decide(client, "b")
    assert refused.status_code == 503
    assert "led by another node" in refused.json()["error"]
    assert decide(client, "a").status_code == 503  # also what it remembers: another may know better
    facts = client.get("/v1/models/news/stats").json()
    assert (facts["leader"], facts["last_sequence"]) == (False, 1)
    # Another node decides meanwhile: what is read here follows, and with the lead it goes on from there.
    with closing(SqliteStore(store.path)) as same, service(same, Led()) as other:
        later = decide(other, "c").json()
    assert client.get("/v1/models/news/stats").json()["last_sequence"] == 2
    led_with(7, store, nodes)
    assert decide(client, "c").json() == later | {"again": True}
    assert decide(client, "a").json() == before | {"again": True}
    assert decide(client, "d").status_code == 200
    assert store.sizes[-1] == (1, 7, 1)
    assert [event.event_id for event in store.read(1)] == ["a", "c", "d"]


def test_a_follower_goes_on_after_events_were_erased(slow):
    """What it would need to replay is gone: it takes the snapshot that came with the erasure."""
    client, store, nodes = slow
    for event_id in ("a", "b"):
        decide(client, event_id)
    nodes.number = None
    client.get("/v1/models/news/stats")
    with closing(SqliteStore(store.path)) as same, service(same, Led()) as other:
        decide(other, "c")
        assert other.post("/v1/models/news/deletions", json={"event_ids": ["c"]}).json() == {"decisions": 1}
        decide(other, "d")
    facts = client.get("/v1/models/news/stats").json()
    assert (facts["last_sequence"], facts["open"], facts["decisions"]) == (5, 3, 4)
    led_with(2, store, nodes)
    assert decide(client, "d").json()["again"]


WARM = """
import sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from solid_bandits.service.model import caught_up_model
from solid_bandits.service.schemas import DecisionAsked, ModelSpec, RewardGiven
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service.open_store import FILE
from solid_bandits.service.warm_up import warm_up

spec = ModelSpec(name="news", dim=3, noise_std=0.5, floor=0.1, seed=7)
warm_up(spec)
store, late, compile = SqliteStore(Path(sys.argv[1]) / FILE, create=True), [], Dispatcher.compile

def noted(self, *given):
    before = len(self.overloads)
    found = compile(self, *given)
    late.extend([self.py_func.__qualname__] * (len(self.overloads) - before))  # else it was there
    return found

Dispatcher.compile = noted
model = caught_up_model(None, store.add_model("news", spec.model_dump_json(), 0), store)
for number in range(300):  # more than statistics wait for
    model.decide([DecisionAsked(features=[[1, 0, 0.5], [0, 1, 0.2]], event_id=f"e{number}")], number)
    model.learn([RewardGiven(event_id=f"e{number}", reward=number % 3)], number)
offers = [DecisionAsked(features=[[1, 0, 0.5]] * (100 * many), event_id=f"many{many}") for many in (1, 2)]
model.decide(offers, 300)
model.stats.answer(300)
model.history.pack()
print(late)
"""


def test_nothing_is_compiled_after_the_warm_up(tmp_path):
    """In a process of its own: here others may have compiled it. All calls of all models would wait for it."""
    done = subprocess.run(
        [sys.executable, "-c", WARM, tmp_path], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout == "[]\n", done.stderr
