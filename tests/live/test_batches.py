"""Many decisions of a bandit at once: one batch of its agent, in the log too, where it is replayed as one."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

import solid_bandits as sb
from bandits import carried, same_log
from solid_bandits.live import stored
from solid_bandits.live.events import grouped
from solid_bandits.live.recovery import ReplayDiverged, check
from solid_bandits.live.sqlite import SqliteStore


def make(**settings):
    return sb.Bandit(sb.RandUCB(half_life=50.0), dim=2, floor=0.1, seed=4, **settings)


def played(bandit, rounds, size=6, start=0, seed=0):
    """Batches, single decisions and rewards, in turn."""
    rng = np.random.default_rng(seed)
    for number in range(start, start + rounds):
        offers = rng.normal(size=(size, 4, 2))
        ids = [f"{number}-{place}" for place in range(size)]
        made = bandit.decide_many(offers, time=number, event_ids=ids, subjects=["anna", None] * (size // 2))
        bandit.decide(offers[0], event_id=f"{number}-alone", time=number)
        for one in made[3::2]:  # others have left a short window
            bandit.learn(one.event_id, float(rng.normal()), time=number)


def replayed(path):
    with closing(SqliteStore(path)) as store:
        return check(stored.source_of(store))


def test_it_is_one_batch_of_its_agent():
    bandit, twin = make(), make()
    offers = np.random.default_rng(1).normal(size=(5, 4, 2))
    for one in (bandit, twin):
        one.learn(one.decide(offers[0], event_id="first", time=0).event_id, 1.0, time=0)
    batch = twin.agent.decide_many(offers)
    masks = np.ones((5, 4), dtype=bool)
    made = bandit.decide_many(offers, arms=list("abcd"), event_ids=list("vwxyz"), available=masks, time=1)
    assert [one.place for one in made] == batch.places.tolist()
    assert np.array_equal([one.probabilities for one in made], batch.probabilities)
    assert [one.number for one in made] == [2, 3, 4, 5, 6]
    assert [one.batch for one in made] == [(place, 5) for place in range(5)]
    assert [one.event_id for one in made] == list("vwxyz")
    assert made[2].arm == "abcd"[made[2].place]
    assert bandit.decide(offers[1], arms=list("abcd"), event_id="w").arm == made[1].arm


def test_columns_are_tables_in_other_words():
    bandit, twin = make(), make()
    rng = np.random.default_rng(2)
    offers, masks = rng.normal(size=(4, 3, 2)), rng.random((4, 3)) < 0.6
    masks[:, 0] = True
    ids, subjects = ["a", "b", "a", "c"], ["x", None, "x", "y"]
    offers[2] = offers[0]
    masks[2] = masks[0]
    made = bandit.decide_many(offers, 5, event_ids=ids, subjects=subjects, available=masks)
    tables = [
        {"features": own, "event_id": name, "subject": about, "available": mask}
        for own, name, about, mask in zip(offers, ids, subjects, masks, strict=True)
    ]
    again = twin.decide_many(tables, 5)
    assert carried(bandit) == carried(twin)
    assert [one.again for one in made] == [one.again for one in again] == [False, False, True, False]
    assert [one.batch for one in made] == [(0, 3), (1, 3), (0, 3), (2, 3)]
    assert bandit.delete(subject="x") == 1
    assert bandit.open_ids() == ["b", "c"]


@pytest.mark.parametrize("window", [4, 1000])
def test_a_store_replays_batches_bit_for_bit(tmp_path, window, monkeypatch):
    """From events and from snapshots; with a window of 4, a batch of 6 is one of 4 and one of 2."""
    monkeypatch.setattr(stored, "SNAPSHOT_EVERY", 40)
    path = tmp_path / "shop.db"
    held, kept = make(window=window), make(window=window, store=path)
    for part in range(3):
        for one in (held, kept):
            played(one, 4, start=4 * part, seed=part)
        assert carried(kept, only_open=True) == carried(held, only_open=True)
        assert same_log(kept, held)
        kept._history.source.store.close()  # as a kill leaves it
        kept = sb.Bandit.open(path)
    kept.close()
    assert "identical" in replayed(path)
    with closing(SqliteStore(path)) as store:
        sizes = {len(group) for group in grouped(store.read(stored.source_of(store).row.id))}
    assert sizes == ({1, 2, 4} if window == 4 else {1, 6})


def test_one_of_a_batch_is_deleted(tmp_path):
    path = tmp_path / "shop.db"
    bandit = make(store=path)
    played(bandit, 3)
    assert bandit.delete("1-2") == 1
    assert bandit.delete(subject="anna") == 8
    played(bandit, 2, start=3, seed=9)
    state = carried(bandit, only_open=True)
    bandit._history.source.store.close()  # as a kill leaves it
    with sb.Bandit.open(path) as again:
        assert carried(again, only_open=True) == state
        assert "1-2" not in again.log()["event_id"].to_list()
        assert again.decide_many(np.ones((1, 1, 2)), event_ids=["new"])[0].batch is None
    assert "identical" in replayed(path)


@pytest.mark.parametrize("damage", ["last", "middle"])
def test_a_batch_that_is_not_whole_is_found(tmp_path, damage):
    path = tmp_path / "shop.db"
    bandit = make(store=path)
    bandit.decide_many(np.ones((5, 3, 2)))
    bandit._history.source.store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM events WHERE sequence = ?", (5 if damage == "last" else 3,))
        connection.commit()
    words = "not those after it" if damage == "last" else "event 3 is missing"
    with pytest.raises(ReplayDiverged, match=words):
        sb.Bandit.open(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"offers": np.ones((2, 2))}, r"offers must be an array of numbers of shape \(offers, arms, dim\)"),
        ({"offers": np.ones((2, 3, 5))}, r"offers must have shape \(offers, arms, 2\), got \(2, 3, 5\)"),
        (
            {"offers": np.ones((2, 3, 2)), "event_ids": ["a"]},
            "event_ids must have 2 entries, one per offer, got 1",
        ),
        ({"offers": np.ones((2, 3, 2)), "subjects": ["a", 3]}, "decision 1 of 2: subject must be"),
        ({"offers": np.ones((2, 3, 2)), "arms": ["a"]}, "arms must be 3 names"),
        (
            {"offers": np.ones((2, 3, 2)), "available": np.zeros((2, 3), dtype=bool)},
            "decision 0 of 2: available must have at least one arm",
        ),
        (
            {"offers": [{"features": np.ones((3, 2))}], "event_ids": ["a"]},
            "event_ids must be said in each table",
        ),
    ],
)
def test_what_will_not_do_changes_nothing(given, message):
    bandit = make()
    before = carried(bandit)
    with pytest.raises(ValueError, match=message):
        bandit.decide_many(**given)
    assert carried(bandit) == before
