"""Requests that another node must answer: handed on with the caller's key, a few times at most, or sent back."""

import socket
import threading

import pytest

from served import SPEC, TWO, joined, service
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import Alone
from solid_bandits.service.forwarding import HOPS
from solid_bandits.service.open_store import FILE


class Elsewhere(Alone):
    """Another node leads everything."""

    def __init__(self, address=None):
        self.address = address

    def leader(self, model):
        return self.address

    def leads(self, model):
        return False

    def fence(self, model):
        return None


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(tmp_path / FILE, create=True)
    yield opened
    opened.close()


@pytest.fixture
def silent():
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_the_leader_answers_through_another_node(store):
    elsewhere = Elsewhere()
    with service(store) as leader, service(store, elsewhere) as other:
        elsewhere.address = str(leader.base_url)
        assert leader.post("/v1/models", json=SPEC).status_code == 201
        body = {"event_id": "a", "features": TWO}
        through = other.post("/v1/models/news/decisions", json=body)
        assert through.status_code == 200
        assert not through.json()["again"]
        direct = leader.post("/v1/models/news/decisions", json=body)
        assert direct.json() == through.json() | {"again": True}
        learned = other.post("/v1/models/news/rewards", json={"event_id": "a", "reward": 1.0})
        assert learned.json()["status"] == "learned"
        # What the leader refuses is refused with its words.
        wrong = {"event_id": "a", "reward": 0.0}
        refused = other.post("/v1/models/news/rewards", json=wrong)
        assert refused.status_code == 409
        assert refused.json() == leader.post("/v1/models/news/rewards", json=wrong).json()
        # Reads are answered by the node itself, from the log.
        assert other.get("/v1/models/news/stats").json()["last_sequence"] == 2
        assert not other.get("/v1/models/news/stats").json()["leader"]


def test_a_node_asks_for_the_key_before_it_hands_anything_on(store):
    with service(store) as leader, service(store, Elsewhere(str(leader.base_url))) as other:
        leader.post("/v1/models", json=SPEC)
        answer = other.post(
            "/v1/models/news/decisions", json={"features": TWO}, headers={"Authorization": "Bearer no"}
        )
        assert answer.status_code == 401


def test_unreachable_server(store):
    with service(store, Elsewhere("http://127.0.0.1:9")) as other:
        other.post("/v1/models", json=SPEC)
        answer = other.post("/v1/models/news/decisions", json={"features": TWO})
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.json() == {"error": "the leader of this model does not answer; try again"}


def test_a_leader_that_hangs_is_waited_for_only_while_it_leads(store, silent):
    elsewhere = Elsewhere(silent)
    with service(store, elsewhere) as other:
        other.post("/v1/models", json=SPEC)
        found = []
        waiting = threading.Thread(
            target=lambda: found.append(other.post("/v1/models/news/decisions", json={"features": TWO}))
        )
        waiting.start()
        waiting.join(0.7)
        assert found == []  # it still leads
        elsewhere.address = "http://127.0.0.1:9"
        joined(waiting)
        assert found[0].status_code == 503
        assert found[0].headers["retry-after"] == "1"
        assert found[0].json() == {"error": "another node leads this model now; try again"}


@pytest.mark.parametrize("hops", ["2", "3", "-1", "many", "99999", ""])
def test_a_request_does_not_wander(store, silent, hops):
    with service(store, Elsewhere(silent)) as other:
        other.post("/v1/models", json=SPEC)
        answer = other.post("/v1/models/news/decisions", json={"features": TWO}, headers={HOPS: hops})
        assert answer.status_code == 503
        assert answer.json() == {"error": "the leader of this model is changing; try again"}


def test_two_nodes_that_point_at_each_other(store):
    """Each takes the other for the leader: the request comes back after two steps."""
    one, two = Elsewhere(), Elsewhere()
    with service(store, one) as first, service(store, two) as second:
        one.address, two.address = str(second.base_url), str(first.base_url)
        first.post("/v1/models", json=SPEC)
        answer = first.post("/v1/models/news/decisions", json={"features": TWO})
        assert answer.status_code == 503
        assert answer.json() == {"error": "the leader of this model is changing; try again"}
