"""Nodes as processes on one database, under load: killed, stopped, contending, and without their database.

Each scenario is played once; `attacks/service_nodes.py` plays them many times.
"""

import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from nodes import PATIENCE, kill_leader, nodes, pause_leader, take_lock
from solid_bandits.live.recovery import check
from solid_bandits.service.model import source_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running(postgres):
    with nodes(postgres.database(), count=3) as found:
        yield found


@pytest.fixture
def loaded(running):
    """With clients at work; afterwards, what they were told is compared with the log."""
    running.start(seed=len(running.sent))
    running.served_again(time.monotonic())
    yield running
    running.served_again(time.monotonic())
    running.stop()
    outcome = running.outcome()
    assert outcome.well, outcome
    assert outcome.acknowledged > 0


@pytest.mark.long
def test_a_leader_that_is_stopped_and_goes_on(loaded):
    before = loaded.leader_there()
    pause_leader(loaded)  # waits until another leads, and until this one has noticed
    # It follows: what it answers is what the log says.
    loaded.until(
        lambda: sequence(loaded, before) >= loaded.store.last(loaded.model) - 200, "it does not follow"
    )


def sequence(running, node):
    answer = httpx.get(f"{node.url}/v1/models/news/stats", headers=running.headers, timeout=PATIENCE)
    return answer.json()["last_sequence"]


@pytest.mark.long
def test_nodes_that_contend(loaded):
    """The session with the lock ends again and again, while its node is well and writes."""
    for _ in range(3):
        take_lock(loaded)


@pytest.mark.long
def test_a_database_that_crashes(loaded, postgres):
    postgres.stop("immediate")
    began = time.monotonic()
    postgres.start()
    loaded.served_again(began)


def test_all_nodes_answer_the_same(running):
    """Decisions through any node, reads from any node, and a model that another has made."""
    spec = {
        "name": "ads",
        "policy": "lints",
        "dim": 2,
        "noise_std": 1.0,
        "seed": 3,
        "wait": 3.0,
        "default_reward": 0.25,
    }
    one, two = running.nodes[:2]
    with httpx.Client(headers=running.headers, timeout=PATIENCE) as client:

        def insist(method, url, **body):
            answers = []

            def answered():
                answers.append(client.request(method, url, **body))
                return answers[-1].status_code != 503

            running.until(answered, url)
            return answers[-1]

        assert insist("POST", f"{one.url}/v1/models", json=spec).status_code == 201
        assert insist("POST", f"{two.url}/v1/models", json=spec | {"dim": 5}).status_code == 409
        counted = 0
        for number in range(6):
            node = (two, one)[number % 2]
            body = {"event_id": f"e{number}", "features": [[1.0, 0.0], [0.0, 1.0]]}
            answer = insist("POST", f"{node.url}/v1/models/ads/decisions", json=body)
            assert answer.status_code == 200
            if number:
                given = {"event_id": f"e{number}", "reward": 1.0}
                learned = insist("POST", f"{node.url}/v1/models/ads/rewards", json=given)
                counted += learned.status_code == 200
                assert (
                    learned.status_code == 200 or "had expired" in learned.json()["error"]
                )  # a busy machine

        def expired():
            logs = [client.get(f"{node.url}/v1/models/ads/log?format=dsjson").text for node in (one, two)]
            return logs[0] == logs[1] and len(logs[0].splitlines()) == 6 == logs[0].count("-0.25") + counted

        running.until(expired, "the default is not learnt, or nodes differ")

        def agreed():
            facts = [client.get(f"{node.url}/v1/models/ads/stats").json() for node in running.nodes]
            return sum(one["leader"] for one in facts) == 1 and {one["last_sequence"] for one in facts} == {
                12
            }

        running.until(agreed, "not one leads, or nodes differ")
    row = next(row for row in running.store.models() if row.name == "ads")
    expired = f"{6 - counted} expired decision{'s' * (counted != 5)}"
    words = (
        f"6 decisions, {counted} reward{'s' * (counted != 1)}, {expired} compared (events 1 to 12), identical"
    )
    assert words in check(source_of(row, running.store))


@pytest.mark.long
def test_a_leader_that_ends_in_order_leaves_a_snapshot(loaded):
    known = 0

    def left():
        """Where the machine is so busy that another led when the signal came, the other is asked."""
        nonlocal known
        before, known = loaded.leader_there(), loaded.store.last(loaded.model)
        assert before.end() == 0
        loaded.remove(before)
        newest = loaded.store.snapshot(loaded.model)
        if newest is None or newest.sequence < known:
            loaded.add()
            return False
        return True

    loaded.until(left, "no snapshot is left")
    loaded.served_again(time.monotonic())
    assert known > 0


def test_a_killed_leader(loaded):
    before = loaded.leader_there()
    kill_leader(loaded)
    assert loaded.leader() is not before


def test_nobody_has_printed_a_traceback(running):
    for said in running.said():
        assert "Traceback" not in said


@pytest.mark.long
def test_leaders_that_are_cut_off():
    """In network namespaces, once in each way, by the attack itself."""
    attack = Path(__file__).parents[2] / "attacks" / "service_nodes.py"
    none = [word for kind in ("kills", "stops", "locks", "crashes") for word in (f"--{kind}", "0")]
    done = subprocess.run(
        [sys.executable, str(attack), *none, "--cuts", "1"], capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "leaders are not cut off" in done.stdout:
        pytest.skip(done.stdout.splitlines()[-1])
    rows = [line.split("|") for line in done.stdout.splitlines()[2:]]
    assert [row[2].strip() for row in rows] == ["1"] * 4
    assert [[cell.strip() for cell in row[4:6]] for row in rows] == [["0", "0"]] * 4  # lost, doubled
