"""Calls that come again get the answer of then: after restarts, deletions, and within one group."""

import pytest

from served import SPEC, TWO, stored
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service import writer
from solid_bandits.service.model import caught_up_model
from solid_bandits.service.open_store import FILE
from solid_bandits.service.schemas import DecisionAsked, DeletionAsked, ModelSpec, RewardGiven


def decide(client, event_id, **asked):
    return client.post("/v1/models/news/decisions", json={"event_id": event_id, "features": TWO} | asked)


def learn(client, event_id, reward=1.0):
    return client.post("/v1/models/news/rewards", json={"event_id": event_id, "reward": reward})


@pytest.mark.parametrize("stops", [1, 2])
def test_closed_decisions_are_known_after_an_orderly_restart(tmp_path, stops):
    """A snapshot has open decisions alone; a repeated decision and reward of a closed one are answered as before."""
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        decided = decide(client, "a").json()
        learn(client, "a").raise_for_status()
        decide(client, "open").raise_for_status()
    for _ in range(stops):
        with stored(tmp_path) as client:
            again = decide(client, "a")
            assert again.status_code == 200, again.text
            assert again.json() == decided | {"again": True}
            receipt = learn(client, "a")
            assert (receipt.status_code, receipt.json()["status"]) == (200, "again"), receipt.text
            assert learn(client, "a", 0.5).status_code == 409
            assert decide(client, "open").json()["again"]
            assert learn(client, "never").status_code == 404


@pytest.fixture
def model(tmp_path):
    """Makes a model by itself: all that is asked of it is one group until `commit`."""
    store = SqliteStore(tmp_path / FILE, create=True)

    def make(**more):
        row = store.add_model("news", ModelSpec(**SPEC | more).model_dump_json(), 0)
        return caught_up_model(None, row, store), store

    yield make
    store.close()


def commit(model, store):
    model.history.fence = 1
    model.history.commit()


def asked(*ids, subject=None):
    return [DecisionAsked(features=TWO, event_id=one, subject=subject) for one in ids]


@pytest.mark.parametrize("which", [{"event_ids": ["a"]}, {"subject": "anna"}, {"before": 1.5}])
def test_a_deletion_reaches_the_events_of_its_own_group(model, which):
    model, store = model()
    model.decide(asked("a", subject="anna"), now=1_000_000)
    model.learn([RewardGiven(event_id="a", reward=1.0)], now=1_200_000)
    model.decide(asked("b"), now=2_000_000)
    assert model.delete(DeletionAsked(**which), now=3_000_000) == 1
    assert model.delete(DeletionAsked(**which), now=3_000_000) == 0
    (made,) = model.decide(asked("a"), now=3_500_000)
    assert not made.again
    commit(model, store)
    kinds = ["erased", "erased", "decision", "deletion", "decision"]
    assert [event.kind for event in store.read(model.row.id)] == kinds
    assert model.decide(asked("a"), now=4_000_000)[0].again
    assert caught_up_model(None, model.row, store).history.pack().content == model.history.pack().content


def test_an_id_twice_in_a_batch_longer_than_the_window_is_decided_once(model):
    model, store = model(window=2)
    first = model.decide(asked("a", "b", "c", "a"), now=1)
    assert [one.again for one in first] == [False, False, False, True]
    assert first[3].probabilities == first[0].probabilities
    second = model.decide(asked("d", "e", "c", "a"), now=2)  # c is forgotten on the way, a was before
    assert [one.again for one in second] == [False, False, True, True]
    commit(model, store)
    decided = [event.event_id for event in store.read(model.row.id) if event.kind == "decision"]
    assert decided == ["a", "b", "c", "d", "e"]


def test_what_waited_before_a_deletion_does_not_expire_the_decision_after_it(model):
    model, store = model(wait=10)
    model.decide(asked("a"), now=1_000_000)
    commit(model, store)
    model.delete(DeletionAsked(event_ids=["a"]), now=2_000_000)
    commit(model, store)
    model.decide(asked("a"), now=9_000_000)
    assert model.expire(now=12_000_000) == 0
    assert model.expire(now=19_000_000) == 1


def test_closed_decisions_do_not_wait(model):
    model, _ = model(wait=1_000)
    for place in range(50):
        model.decide(asked(f"e{place}"), now=place)
        model.learn([RewardGiven(event_id=f"e{place}", reward=1.0)], now=place)
    assert model.bandit.waiting == 0
    assert model.expire(now=10**12) == 0


def test_a_service_starts_again_with_many_arms(tmp_path):
    """From the snapshot of its end; its page has the same numbers."""
    features = [[place / 25, 1.0, 0.0] for place in range(25)]
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC | {"floor": 1.0})
        asked = [{"event_id": f"e{place}", "features": features} for place in range(300)]
        client.post("/v1/models/news/decisions", json={"decisions": asked}).raise_for_status()
        rewards = [{"event_id": f"e{place}", "reward": place % 5} for place in range(300)]
        client.post("/v1/models/news/rewards", json={"rewards": rewards}).raise_for_status()
        before = client.get("/v1/models/news/stats").json()
    with stored(tmp_path) as client:
        after = client.get("/v1/models/news/stats").json()
        assert len(after["arms"]) > 16
        for name in ("decisions", "rewards", "arms", "values", "last_sequence"):
            assert after[name] == before[name]


def test_a_model_that_cannot_be_loaded_does_not_keep_the_others_from_it(tmp_path, monkeypatch, caplog):
    with stored(tmp_path) as client:
        for name in ("news", "other"):
            client.post("/v1/models", json=SPEC | {"name": name})
    caught_up_model = writer.caught_up_model

    def failing(model, row, store, memory):
        if row.name == "news":
            raise IndexError("of the service's own making")
        return caught_up_model(model, row, store, memory)

    monkeypatch.setattr(writer, "caught_up_model", failing)
    with stored(tmp_path) as client:
        assert client.post("/v1/models/other/decisions", json={"features": TWO}).status_code == 200
        assert decide(client, "a").status_code == 500
        assert client.get("/health").status_code == 200
    assert "model 'news' cannot be loaded" in caplog.text
