"""A leader that was paused past a takeover, step by step: what it believes is old, and nobody is told so."""

from contextlib import ExitStack

import psycopg
import pytest

from served import SPEC, TWO, bearer, service
from solid_bandits.live.postgres import PostgresStore
from solid_bandits.live.recovery import check
from solid_bandits.service import keys
from solid_bandits.service.leadership import Leadership
from solid_bandits.service.model import source_of

HOURS = 3600.0
"""A lease that is renewed by hand only: between two steps of a test nothing happens by itself."""


class Pair:
    """Two nodes in this process: the first leads, and is then taken over from without noticing."""

    def __init__(self, url, stack):
        self.stores = [PostgresStore(url) for _ in range(2)]
        for store in self.stores:
            stack.callback(store.close)
        key, _ = keys.create(self.stores[0], "admin", "test")
        self.leads, self.clients = [], []
        for store in self.stores:
            # Where it listens is known when it does.
            leads = Leadership(store, "http://127.0.0.1:9", HOURS)
            client = stack.enter_context(service(store, leads))
            client.headers = bearer(key)
            leads.address = str(client.base_url).rstrip("/")
            self.leads.append(leads)
            self.clients.append(client)
        with psycopg.connect(url) as connection:
            for leads in self.leads:
                connection.execute(
                    "UPDATE solid_bandits.nodes SET address = %s WHERE node = %s",
                    (leads.address, leads._store.node),
                )
        self.url = url
        assert self.clients[0].post("/v1/models", json=SPEC).status_code == 201
        self.model = self.stores[0].models()[0].id
        self.old, self.new = self.clients

    def take_over(self):
        with psycopg.connect(self.url) as connection:
            connection.execute(
                "UPDATE solid_bandits.nodes SET until = clock_timestamp() WHERE node = %s",
                (self.stores[0].node,),
            )
        self.leads[1].beat()
        assert self.leads[1].fence(self.model) == 2
        assert self.leads[0].fence(self.model) == 1  # it does not know


@pytest.fixture
def pair(postgres):
    with ExitStack() as stack:
        yield Pair(postgres.database(), stack)


def decide(client, event_id):
    return client.post("/v1/models/news/decisions", json={"event_id": event_id, "features": TWO})


def reward(client, event_id, value):
    return client.post("/v1/models/news/rewards", json={"event_id": event_id, "reward": value})


def is_retriable(answer):
    return answer.status_code == 503 and answer.headers["retry-after"] == "1"


def test_a_former_leader(pair):
    assert decide(pair.old, "a").status_code == 200
    assert reward(pair.old, "a", 1.0).json()["status"] == "learned"
    pair.take_over()
    made = decide(pair.new, "b").json()
    # A decision of the new leader is unknown to the former one: it must not say so.
    assert is_retriable(reward(pair.old, "b", 1.0))
    assert reward(pair.new, "b", 1.0).json()["status"] == "learned"
    # It has lost its lead, and hands on what it is asked once it knows to whom.
    pair.leads[0].beat()
    again = decide(pair.old, "b")
    assert again.json() == made | {"again": True}
    assert reward(pair.old, "b", 1.0).json()["status"] == "again"
    assert decide(pair.old, "c").status_code == 200
    assert [event.event_id for event in pair.stores[0].read(pair.model)] == ["a", "a", "b", "b", "c"]
    assert "3 decisions, 2 rewards compared (events 1 to 5), identical" in check(
        source_of(pair.stores[0].models()[0], pair.stores[0])
    )


@pytest.mark.parametrize("call", ["z", "a", None], ids=["new decision", "known decision", "known reward"])
def test_what_a_former_leader_is_asked_first(pair, call):
    """A new decision, one that it made itself, a reward that it has learned: all are checked before the answer."""
    decide(pair.old, "a")
    reward(pair.old, "a", 1.0)
    pair.take_over()
    before = pair.stores[0].last(pair.model)
    for _ in range(2):  # its session was ended; with a new one, the fence is in the way
        assert is_retriable(reward(pair.old, "a", 1.0) if call is None else decide(pair.old, call))
    assert pair.leads[0].fence(pair.model) is None
    assert pair.stores[0].last(pair.model) == before


def test_a_lead_that_comes_back(pair):
    """The former leader leads again, with all that happened meanwhile."""
    decide(pair.old, "a")
    pair.take_over()
    made = decide(pair.new, "b").json()
    assert is_retriable(decide(pair.old, "b"))
    pair.leads[1].stop()
    pair.leads[0].beat()
    assert pair.leads[0].fence(pair.model) == 3
    assert decide(pair.old, "b").json() == made | {"again": True}
    assert decide(pair.old, "c").status_code == 200
    assert "3 decisions, 0 rewards compared (events 1 to 3), identical" in check(
        source_of(pair.stores[0].models()[0], pair.stores[0])
    )
