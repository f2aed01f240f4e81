"""Who leads a model: one at a time, with a growing number, and another when that one dies, hangs or gives up."""

import asyncio
import threading
import time

import psycopg
import pytest

from served import PATIENCE, joined, until
from service_events import NOW, decision
from solid_bandits.live.postgres import PostgresStore
from solid_bandits.live.store import FencedError, StoreError
from solid_bandits.service.leadership import LOCKS, Leadership

LEASE = 1.0


class Node:
    """A store and what it leads; renewed by hand unless it was started."""

    def __init__(self, url, name, lease=LEASE):
        self.store = PostgresStore(url)
        self.leads = Leadership(self.store, f"http://{name}", lease)

    def close(self):
        self.leads.stop()
        self.store.close()


@pytest.fixture
def url(postgres):
    return postgres.database()


@pytest.fixture
def nodes(url):
    made = [Node(url, name) for name in ("one", "two", "three")]
    yield made
    for node in made:
        node.close()


@pytest.fixture
def model(nodes):
    return nodes[0].store.add_model("news", "{}", NOW).id


def run_out(node):
    """Let the lease of a node be over."""
    with psycopg.connect(node.store.url) as other:
        other.execute(
            "UPDATE solid_bandits.nodes SET until = clock_timestamp() WHERE node = %s", (node.store.node,)
        )


def die(node):
    """What the server sees of a node that was killed: its sessions are gone."""
    with psycopg.connect(node.store.url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s",
            (node.store.node,),
        )


def test_one_leads_and_the_others_know_where(nodes, model):
    for node in nodes:
        node.leads.beat()
    assert [node.leads.fence(model) for node in nodes] == [1, None, None]
    assert [node.leads.leader(model) for node in nodes] == [None, "http://one", "http://one"]
    for node in nodes:
        node.leads.beat()
    assert [node.leads.fence(model) for node in nodes] == [1, None, None]


def test_a_new_model_is_led_by_whoever_is_asked_first(nodes):
    for node in nodes:
        node.leads.beat()
    model = nodes[0].store.add_model("ads", "{}", NOW).id
    assert nodes[1].leads.leader(model) is None  # nobody is known to lead it
    assert nodes[1].leads.fence(model) == 1
    assert nodes[2].leads.fence(model) is None
    nodes[2].leads.beat()
    assert nodes[2].leads.leader(model) == "http://two"


def test_who_gives_up_is_followed_at_once(nodes, model):
    for node in nodes[:2]:
        node.leads.beat()
    nodes[0].leads.stop()
    nodes[1].leads.beat()
    assert nodes[1].leads.fence(model) == 2
    assert nodes[0].leads.fence(model) is None


def test_who_dies_is_followed_before_the_lease_ends(nodes, model):
    for node in nodes:
        node.leads.beat()
    die(nodes[0])
    nodes[2].leads.beat()
    assert nodes[2].leads.fence(model) == 2
    nodes[0].leads.beat()  # finds its session gone
    nodes[0].leads.beat()
    assert nodes[0].leads.fence(model) is None
    assert nodes[0].leads.leader(model) == "http://three"


def test_who_hangs_is_followed_after_the_lease_and_cannot_write(nodes, model):
    old, new, _ = nodes
    old.leads.beat()
    fence = old.leads.fence(model)
    old.store.append(model, fence, [decision(1, "a")])
    new.leads.beat()
    assert new.leads.fence(model) is None  # the lease runs
    run_out(old)
    new.leads.beat()
    assert new.leads.fence(model) == fence + 1
    new.store.append(model, fence + 1, [decision(2, "b")])
    # It goes on, and still believes to lead.
    assert old.leads.fence(model) == fence
    with pytest.raises(StoreError):  # its session was ended
        old.store.append(model, fence, [decision(2, "c")])
    with pytest.raises(FencedError):  # with another it is refused
        old.store.append(model, fence, [decision(3, "c")])
    assert old.leads.fence(model) is None
    assert [event.event_id for event in new.store.read(model)] == ["a", "b"]


def test_a_hanging_transaction_does_not_stop_a_takeover(nodes, model):
    """The leader stops between a write and its commit, with the row of the fence locked."""
    old, new, _ = nodes
    old.leads.beat()
    hanging = old.store.connect()
    hanging.autocommit = False
    hanging.execute("SELECT * FROM leases FOR UPDATE")
    run_out(old)
    new.leads.beat()
    assert new.leads.fence(model) == 2  # at the first look: it has not waited for the row in vain
    with pytest.raises(psycopg.OperationalError):
        hanging.execute("SELECT 1")
    hanging.close()


def test_a_lock_that_was_gained_without_the_row_is_given_back(nodes, model):
    """Somebody who is not late has the row locked: the next look tries again."""
    with psycopg.connect(nodes[0].store.url) as other:
        other.execute("SELECT * FROM solid_bandits.leases FOR UPDATE")
        nodes[0].leads.beat()
        assert nodes[0].leads.fence(model) is None
    nodes[1].leads.beat()
    assert nodes[1].leads.fence(model) == 1


def test_a_node_gets_over_a_lost_connection_of_its_own(nodes, model):
    """Its side of the connection is gone, the server's holds the lock on: nobody is late, nobody could lead."""
    node = nodes[0]
    node.leads.beat()
    lost, node.leads._session = node.leads._session, None
    node.leads.beat()
    assert node.leads.fence(model) == 2
    lost.close()


def test_numbers_only_grow_and_never_come_twice(url):
    """Two nodes contend for five models, and one of them dies again and again."""
    nodes = [Node(url, name, lease=0.3) for name in ("one", "two")]
    models = [nodes[0].store.add_model(f"m{number}", "{}", NOW).id for number in range(5)]
    seen: dict[int, list[int]] = {model: [] for model in models}
    ended = threading.Event()

    def contend(node):
        while not ended.is_set():
            node.leads.beat()
            for model in models:
                fence = node.leads.fence(model)
                if fence is None:
                    continue
                try:
                    last = node.store.last(model)
                    node.store.append(model, fence, [decision(last + 1, f"{model}-{last + 1}")])
                    seen[model].append(fence)
                except StoreError:
                    continue

    threads = [threading.Thread(target=contend, args=(node,), daemon=True) for node in nodes]
    for thread in threads:
        thread.start()
    place, deadline = 0, time.monotonic() + PATIENCE
    while place < 10 or any(len(set(fences)) < 2 for fences in seen.values()):
        assert time.monotonic() < deadline, "every model is led by two in turn"
        time.sleep(0.1 * (1 + place // 10))  # longer and longer, where the machine is busy
        die(nodes[place % 2])
        place += 1
    ended.set()
    joined(*threads)
    with psycopg.connect(url) as other:
        for model in models:
            rows = other.execute(
                "SELECT fence FROM solid_bandits.events WHERE model = %s ORDER BY sequence", (model,)
            ).fetchall()
            fences = [row[0] for row in rows]
            assert fences == sorted(fences)  # one leader after the other
            assert len(fences) >= len(
                seen[model]
            )  # all that was acknowledged, and what a killed session had done
            assert len(set(fences)) > 1
    for node in nodes:
        node.close()


def test_leases_are_renewed_in_the_background(url):
    one, two = Node(url, "one", 3.0), Node(url, "two", 3.0)
    model = one.store.add_model("news", "{}", NOW).id

    def lease():
        with psycopg.connect(url) as other:
            question = "SELECT until FROM solid_bandits.nodes WHERE node = %s"
            return other.execute(question, (one.store.node,)).fetchone()[0]

    one.leads.start()
    two.leads.start()
    for _ in range(2):
        before = lease()
        until(lambda before=before: lease() > before, "the lease is renewed")
    assert (one.leads.fence(model), two.leads.fence(model)) == (1, None)
    die(one)

    def followed():
        """Either may be first, and where the machine is so busy that a lease runs out, there may be more than one."""
        numbers = [node.leads.fence(model) for node in (one, two)]
        return numbers.count(None) == 1 and max(one for one in numbers if one is not None) > 1

    until(followed, "one of them leads again")
    one.close()
    two.close()


def test_a_node_whose_loop_hangs_is_followed(url):
    """Its thread could renew the lease for ever, and nobody would be served."""
    one, two = Node(url, "one", 5.0), Node(url, "two", 5.0)
    model = one.store.add_model("news", "{}", NOW).id

    async def hang():
        one.leads.start()
        assert one.leads.fence(model) == 1
        await asyncio.to_thread(two.leads.start)  # not in this loop
        await asyncio.sleep(0.6)
        assert two.leads.fence(model) is None  # it is well
        until(lambda: two.leads.fence(model) == 2, "it is followed")  # the loop does nothing else meanwhile

    asyncio.run(hang())
    one.close()
    two.close()


def test_a_lease_must_last(nodes):
    with pytest.raises(ValueError, match="lease must be > 0 seconds, got 0"):
        Leadership(nodes[0].store, "http://one", 0)


@pytest.mark.parametrize(
    "address", ["http://0.0.0.0:8080", "http://[::]:8080", "http://here:0", "here:8080", ""]
)
def test_an_address_must_be_one(nodes, address):
    with pytest.raises(ValueError, match="advertise must be where other nodes reach this one"):
        Leadership(nodes[0].store, address)


def test_sessions_of_others_are_left_alone(nodes, model):
    """Another program may use the same lock, by chance: it is not ended, and nobody leads."""
    with psycopg.connect(nodes[0].store.url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", (LOCKS, model))
        nodes[0].leads.beat()
        assert nodes[0].leads.fence(model) is None
        other.execute("SELECT pg_advisory_unlock_all()")
    nodes[0].leads.beat()
    assert nodes[0].leads.fence(model) == 1
