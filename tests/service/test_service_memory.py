"""Open decisions beyond their memory: the log has them, everything goes on as if memory had them, and a start needs no
more than the running service."""

import subprocess
import sys

import numpy as np
import pytest

from served import PATIENCE, SPEC, stored
from service_events import decided
from solid_bandits.live import events
from solid_bandits.live.remembered import Remembered
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.weighed import Weighed, size_of
from solid_bandits.service.model import caught_up_model
from solid_bandits.service.open_store import FILE
from solid_bandits.service.schemas import DecisionAsked, DeletionAsked, ModelSpec, RewardGiven

ROOM = 20_000


def offers(seed, count, prefix):
    rng = np.random.default_rng(seed)
    return [
        DecisionAsked(
            features=rng.normal(size=(5, 3)).tolist(),
            arms=[f"arm {place}" for place in range(5)],
            event_id=f"{prefix}{number}",
            subject=f"s{number % 7}",
        )
        for number in range(count)
    ]


def play(model, room, turns=12):
    """Decide, reward late, ask again, expire and delete; what was answered. After each turn memory keeps `room`."""
    answers, rng, most = [], np.random.default_rng(1), 0
    for turn in range(turns):
        asked = offers(turn, 12, f"{turn}-")
        now = 1_000_000 * (turn + 1)
        answers += model.decide(asked, now)
        for back in (0, 3, 7):
            rewards = [
                RewardGiven(event_id=f"{turn - back}-{n}", reward=rng.normal()) for n in (back, back + 1)
            ]
            answers += model.learn(rewards, now)
        if turn >= 5:
            answers += model.decide(offers(turn - 5, 12, f"{turn - 5}-"), now)  # again
        answers.append(model.expire(now))
        if turn == 8:
            answers.append(model.delete(DeletionAsked(subject="s3"), now))
        model.history.commit()
        model.shed(room)
        most = max(most, model.bandit._remembered.bytes)
    return answers, most


@pytest.mark.parametrize("more", [{}, {"half_life": 50}, {"wait": 6, "default_reward": 0.5}, {"window": 40}])
def test_decisions_are_the_same_however_little_memory_remembers(tmp_path, more):
    """Late rewards, repeated calls, defaults and deletions, of decisions whose features are in the log alone."""
    found = []
    for place, room in enumerate((1 << 40, ROOM, 0)):
        store = SqliteStore(tmp_path / f"{place}-{FILE}", create=True)
        row = store.add_model("news", ModelSpec(**SPEC | more).model_dump_json(), 0)
        model = caught_up_model(None, row, store, lambda room=room: room)
        model.history.fence = 1
        answers, most = play(model, room)
        assert most <= room
        again = caught_up_model(None, row, store, lambda room=room: room)
        assert again.bandit._remembered.bytes <= room
        assert again.bandit.open_ids() == model.bandit.open_ids()
        assert again.history.pack().content == model.history.pack().content
        found.append((answers, model.bandit.open_ids(), model.stats.answer(0)))
        store.close()
    assert found[0] == found[1] == found[2]


def test_sizes_are_counted_as_decisions_come_and_go():
    """The sum of what is there, whatever was closed, dropped and left to the log before."""
    bandit_rng = np.random.default_rng(0)
    remembered = Weighed(Remembered(30), {})
    made = []
    for number in range(1, 200):
        event = decided(number, f"e{number}", number, bandit_rng.normal(size=(3, 4)))
        one = events.decision_in(event)
        one.ordinal = number
        remembered.add(one)
        made.append(one)
        if number % 3 == 0:
            closed = made[bandit_rng.integers(max(0, number - 20), number)]
            if closed.status == "open" and remembered.find(closed.event_id) is closed:
                closed.status = "learned"
                remembered.close(closed)
                closed.offered = None
        if number % 7 == 0:
            remembered.shed(12_000)
            assert remembered.bytes <= 12_000
        assert remembered.bytes == sum(size_of(one) for one in remembered if one.arms is not None)
    assert len(remembered._order) <= 2 * len(remembered) + 1_001


LIMITED = """
import re, resource, sys
from pathlib import Path
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service.model import caught_up_model
from solid_bandits.service.open_store import FILE
from solid_bandits.service.schemas import RewardGiven
from solid_bandits.service.warm_up import warm_up
from solid_bandits.service.schemas import ModelSpec

store = SqliteStore(Path(sys.argv[1]) / FILE)
(row,) = store.models()
warm_up(ModelSpec.model_validate_json(row.spec))
taken = int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
limit = taken + (int(sys.argv[2]) << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
model = caught_up_model(None, row, store, lambda: 16 << 20)
receipts = model.learn([RewardGiven(event_id=f"e{place}", reward=1.0) for place in range(model.bandit.waiting)], 1)
print(len(receipts), all(one.counted for one in receipts))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as Linux does")
@pytest.mark.parametrize("snapshot", [True, False], ids=["from a snapshot", "from its events"])
def test_a_start_needs_no_more_memory_than_the_service_may_have(tmp_path, snapshot):
    """200 open decisions of 100,000 numbers each, 160 MB, read and rewarded within 96 MiB more than without a model."""
    store = SqliteStore(tmp_path / FILE, create=True)
    spec = ModelSpec(name="news", policy="linucb", dim=100, noise_std=0.5, theta_bound=1.0, floor=0.1, seed=7)
    row = store.add_model("news", spec.model_dump_json(), 0)
    model = caught_up_model(None, row, store, lambda: 16 << 20)
    model.history.fence = 1
    features = np.random.default_rng(0).normal(size=(1000, 100))
    for place in range(200):
        asked = {"event_id": f"e{place}", "arms": None, "available": None, "subject": None}
        model.decide([DecisionAsked.model_construct(features=features, **asked)], place)
        model.history.commit()
        model.shed(16 << 20)
    if snapshot:
        model.history.last_snapshot()
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, tmp_path, "96"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout == "200 True\n", done.stderr[-2000:]


def test_a_service_with_hardly_any_memory_answers_as_any_other(tmp_path):
    with stored(tmp_path, decisions_memory=0) as client:
        client.post("/v1/models", json=SPEC)
        asked = [one.model_dump() for one in offers(0, 50, "e")]
        first = client.post("/v1/models/news/decisions", json={"decisions": asked}).json()["decisions"]
        again = client.post("/v1/models/news/decisions", json={"decisions": asked}).json()["decisions"]
        assert again == [one | {"again": True} for one in first]
        rewards = [{"event_id": f"e{place}", "reward": place} for place in range(50)]
        for status in ("learned", "again"):
            receipts = client.post("/v1/models/news/rewards", json={"rewards": rewards}).json()["rewards"]
            assert {one["status"] for one in receipts} == {status}
    with stored(tmp_path, decisions_memory=0) as client:
        again = client.post("/v1/models/news/decisions", json={"decisions": asked}).json()["decisions"]
        assert again == [one | {"again": True} for one in first]


def test_the_windows_of_all_models_have_a_bound(tmp_path):
    """Each open decision takes memory, whatever is left to the log."""
    with stored(tmp_path, windows=1_000) as client:
        assert client.post("/v1/models", json=SPEC | {"window": 700}).status_code == 201
        refused = client.post("/v1/models", json=SPEC | {"name": "other", "window": 301})
        assert refused.status_code == 507
        words = "window must be at most 300, what other models leave of 1,000; got 301"
        assert refused.json() == {"error": words}
        assert client.post("/v1/models", json=SPEC | {"window": 700}).status_code == 201  # it is there
        assert client.post("/v1/models", json=SPEC | {"name": "other", "window": 300}).status_code == 201


def test_an_id_of_the_log_with_another_number_of_arms_is_refused_before_it_is_read(tmp_path, monkeypatch):
    """A thousand large decisions would be read into memory for a thousand small offers else."""
    with stored(tmp_path, decisions_memory=0) as client:
        client.post("/v1/models", json=SPEC)
        asked = [one.model_dump() for one in offers(0, 50, "e")]
        client.post("/v1/models/news/decisions", json={"decisions": asked}).raise_for_status()
        monkeypatch.setattr(SqliteStore, "find", None)
        small = [{"event_id": one["event_id"], "features": one["features"][:1]} for one in asked]
        answer = client.post("/v1/models/news/decisions", json={"decisions": small})
        assert answer.status_code == 409
        words = "event_id 'e0' was decided among other arms, 5 of them, got 1"
        assert answer.json() == {"error": words}
