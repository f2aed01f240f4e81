"""The writer: calls that wait share a commit, a node that does not lead only reads, what is too much is sent away."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from served import SPEC, TWO, service
from solid_bandits.service import model, writer
from solid_bandits.service.sqlite import SqliteStore


class Slow(SqliteStore):
    """Notes the sizes of the groups, and waits before each when told to."""

    def __init__(self, directory):
        super().__init__(directory, create=True)
        self.sizes = []
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def append(self, model, fence, events, snapshot=None, erased=()):
        self.begun.set()
        assert self.gate.wait(60)
        super().append(model, fence, events, snapshot, erased)
        self.sizes.append((model, fence, len(events)))


class Led:
    """Nodes that say what the test wants."""

    def __init__(self):
        self.number = 1

    def leader(self, model):
        return None

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
    store.gate.clear()
    with ThreadPoolExecutor(17) as pool:
        first = pool.submit(decide, client, "first")
        assert store.begun.wait(60)
        others = [pool.submit(decide, client, f"e{place}") for place in range(16)]
        client.get("/metrics")  # answered while they wait
        store.gate.set()
        answers = [one.result(timeout=60) for one in (first, *others)]
    assert {answer.status_code for answer in answers} == {200}
    assert store.sizes[0] == (1, 1, 1)
    assert sum(count for *_, count in store.sizes) == 17
    assert len(store.sizes) < 17
    assert [event.sequence for event in store.read(1)] == list(range(1, 18))


def test_each_model_has_its_own_group(slow):
    client, store, _ = slow
    client.post("/v1/models", json=SPEC | {"name": "other"})
    assert decide(client, "a", "other").status_code == decide(client, "a").status_code == 200
    assert sorted(store.sizes) == [(1, 1, 1), (2, 1, 1)]


def test_what_is_too_much_is_sent_away(slow, monkeypatch):
    client, store, _ = slow
    monkeypatch.setattr(writer, "MOST_WAITING", 3)
    store.gate.clear()
    with ThreadPoolExecutor(12) as pool:
        first = pool.submit(decide, client, "first")
        assert store.begun.wait(60)
        others = [pool.submit(decide, client, f"e{place}") for place in range(11)]
        refused = [one for one in others if _soon(one)]
        store.gate.set()
        answers = [one.result(timeout=60) for one in (first, *others)]
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * 4 + [503] * 8
    assert len(refused) == 8
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
    store.gate.clear()
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(decide, client, "first")
        assert store.begun.wait(60)
        others = [pool.submit(decide, client, f"e{place}") for place in range(6)]
        body = {"event_id": "fault", "reward": 1.0}
        fault = pool.submit(client.post, "/v1/models/news/rewards", json=body)
        assert not _soon(fault)  # all of them wait
        store.gate.set()
        answers = [one.result(timeout=60) for one in others]
    assert first.result().status_code == 200
    assert fault.result().status_code == 500
    assert {answer.status_code for answer in answers} == {503}
    assert all(decide(client, f"e{place}").status_code == 200 for place in range(6))


def _soon(call):
    try:
        call.result(timeout=5)
    except TimeoutError:
        return False
    return True


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
    with service(SqliteStore(store.path.parent), Led()) as other:
        later = decide(other, "c").json()
    assert client.get("/v1/models/news/stats").json()["last_sequence"] == 2
    nodes.number = 7
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
    with service(SqliteStore(store.path.parent), Led()) as other:
        decide(other, "c")
        assert other.post("/v1/models/news/deletions", json={"event_ids": ["c"]}).json() == {"decisions": 1}
        decide(other, "d")
    facts = client.get("/v1/models/news/stats").json()
    assert (facts["last_sequence"], facts["open"], facts["decisions"]) == (5, 3, 4)
    nodes.number = 2
    assert decide(client, "d").json()["again"]
