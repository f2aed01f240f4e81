"""Decisions with ids: what a bandit answers, remembers, logs and refuses."""

import gc
import sys
import threading
import weakref
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import solid_bandits as sb
from bandits import ARMS, NAMES, carried, make, played, same_log
from solid_bandits._internal import extras
from solid_bandits.live import stored
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import FullError


def test_a_decision_has_the_callers_names_and_true_probabilities():
    bandit = make()
    choice = bandit.decide(ARMS, arms=NAMES, event_id="visit")
    assert choice.arm in NAMES
    assert choice.arms == tuple(NAMES)
    assert choice.probabilities.sum() == pytest.approx(1)
    assert choice.probabilities.min() >= 0.1 / 3 - 1e-15
    assert choice.probability == choice.probabilities[NAMES.index(choice.arm)]
    assert not choice.again
    assert bandit.decide(ARMS).event_id == "decision-2"


def test_the_same_id_gives_the_same_decision_and_changes_nothing():
    bandit = make()
    first = bandit.decide(ARMS, NAMES, "visit", time=10)
    before = carried(bandit)
    again = bandit.decide(ARMS, NAMES, "visit", time=99)
    assert carried(bandit) == before
    assert again.again
    assert (again.event_id, again.arm, again.time) == (first.event_id, first.arm, first.time)
    assert not first.again
    bandit.learn("visit", 1.0)
    assert bandit.decide(ARMS, NAMES, "visit").arm == first.arm  # also once it is settled
    with pytest.raises(ValueError, match="event_id 'visit' was decided among other arms"):
        bandit.decide(ARMS[:2], NAMES[:2], "visit")


def test_a_second_reward_changes_nothing_and_says_so():
    bandit = make()
    bandit.decide(ARMS, NAMES, "visit")
    first = bandit.learn("visit", 1.0)
    assert (first.event_id, first.status, first.reward) == ("visit", "learned", 1.0)
    assert first.message == "event_id 'visit' learned 1"
    before = carried(bandit)
    receipt = bandit.learn("visit", 0.25)
    assert carried(bandit) == before
    assert not receipt.counted
    assert receipt.reward == 1.0
    assert receipt.message == "event_id 'visit' had learned 1; 0.25 was not taken in"
    assert receipt.status == "conflict"
    assert bandit.learn("visit", 1.0).status == "again"
    bandit.decide(ARMS, NAMES, "late")
    bandit.expire()
    late = bandit.learn("late", 1.0)
    assert (late.event_id, late.status, late.reward) == ("late", "late", None)
    assert late.message == "event_id 'late' had expired without a reward; 1 was not taken in"


def test_many_rewards_are_checked_before_the_first_is_taken_in():
    bandit = make()
    for name in "abc":
        bandit.decide(ARMS, NAMES, name)
    before = carried(bandit)
    for wrong, message in (
        ({"a": 1.0, "x": 1.0}, "reward 1 of 2: event_id must be that of one of the last 100,000 decisions"),
        ([("a", 1.0), ("b", float("nan"))], "reward 1 of 2: reward must be finite"),
        ([("a", 1.0), 3], "rewards must be pairs"),
        (5, "rewards must be pairs"),
    ):
        with pytest.raises(ValueError, match=message):
            bandit.learn_many(wrong)
        assert carried(bandit) == before
    receipts = bandit.learn_many([("c", 1), ("a", 0.5), ("c", 2)])
    assert [one.counted for one in receipts] == [True, True, False]
    assert bandit.open_ids() == ["b"]


def test_what_never_comes_expires_with_a_default_or_without():
    bandit = make(sb.Greedy(), floor=0.0)
    for number in range(6):
        bandit.decide(ARMS, NAMES, f"e{number}", time=number)
    bandit.learn("e1", 1.0, time=6)
    assert bandit.expire(before=3, reward=0.0, time=7) == ["e0", "e2"]
    assert bandit.expire(before=5, time=8) == ["e3", "e4"]
    assert bandit.open_ids() == ["e5"]
    receipt = bandit.learn("e0", 5.0)
    assert (receipt.counted, receipt.reward) == (False, 0.0)
    assert bandit.learn("e3", 5.0).reward is None
    assert bandit.agent._compiled.state.regression.estimator.rewards == 3
    rows = {row["event_id"]: row for row in bandit.log().iter_rows(named=True)}
    assert [rows[f"e{i}"]["reward"] for i in range(6)] == [0.0, 1.0, 0.0, None, None, None]
    assert [rows[f"e{i}"]["defaulted"] for i in range(6)] == [True, False, True, None, None, None]
    assert rows["e3"]["reward_time"] == datetime(1970, 1, 1, 0, 0, 8, tzinfo=UTC)
    assert rows["e5"]["reward_time"] is None


def test_ids_are_remembered_for_the_window():
    bandit = make(window=3)
    for number in range(5):
        bandit.decide(ARMS, NAMES, f"e{number}")
    assert bandit.open_ids() == ["e2", "e3", "e4"]
    with pytest.raises(ValueError, match="one of the last 3 decisions, got 'e1'"):
        bandit.learn("e1", 1.0)
    assert not bandit.decide(ARMS, NAMES, "e1").again  # forgotten: a new decision
    assert bandit.log()["event_id"].to_list() == ["e0", "e2", "e3", "e4", "e1"]


@pytest.mark.parametrize("half_life", [None, 30.0])
def test_late_rewards_give_the_estimate_of_rewards_in_order(half_life):
    """Half of them late, a tenth never: the estimate is that of dense algebra, and of an agent told in order."""
    rng = np.random.default_rng(0)
    bandit = make(sb.EpsilonGreedy(epsilon=1.0), floor=0.0, half_life=half_life)
    twin = make(sb.EpsilonGreedy(epsilon=1.0), floor=0.0, half_life=half_life)
    rewards, waiting, rows = {}, [], []
    for number in range(300):
        features = rng.normal(size=(4, 2))
        choice = bandit.decide(features, event_id=f"e{number}")
        assert twin.decide(features, event_id=f"e{number}").arm == choice.arm
        kind = rng.random()
        if kind < 0.9:
            rewards[f"e{number}"] = reward = rng.normal()
            rows.append((features[choice.arm], reward, number))
            twin.learn(f"e{number}", reward)
            waiting.append(f"e{number}")
            while waiting and (kind < 0.45 or len(waiting) > 60):
                late = waiting.pop(rng.integers(len(waiting)))
                bandit.learn(late, rewards[late])
                kind = 1.0
    bandit.learn_many((late, rewards[late]) for late in waiting)
    kept = 1.0 if half_life is None else 2 ** (-1 / half_life)
    weights = np.array([kept ** (299 - number) for _, _, number in rows])
    features, values = np.array([row for row, _, _ in rows]), np.array([value for _, value, _ in rows])
    gram = np.eye(2) + (features.T * weights) @ features
    theta = np.linalg.solve(gram, (features.T * weights) @ values)
    assert np.allclose(bandit.agent.theta, theta, rtol=1e-10)
    assert np.allclose(twin.agent.theta, theta, rtol=1e-10)


@pytest.mark.parametrize("half_life", [None, 20.0])
@pytest.mark.parametrize(
    "policy", [sb.LinTS(), sb.RandUCB(ridge=0.2), sb.LinUCB(), sb.EpsilonGreedy()], ids=repr
)
def test_a_snapshot_and_the_calls_after_it_give_the_same_state(policy, half_life, tmp_path):
    bandit = make(policy, half_life=half_life, window=40)
    played(bandit, 60, seed=1)
    bandit.save(tmp_path / "bandit")
    again = sb.Bandit.load(tmp_path / "bandit")
    assert carried(again) == carried(bandit)
    for one in (bandit, again):
        played(one, 60, seed=2, start=60)
    assert carried(again) == carried(bandit)
    new = bandit.log().filter(pl.col("sequence") > bandit.log()["sequence"][59])
    assert again.log().filter(pl.col("sequence") > bandit.log()["sequence"][59]).equals(new)
    fresh = make(policy, half_life=half_life, window=40)  # and so do all the calls
    played(fresh, 60, seed=1)
    played(fresh, 60, seed=2, start=60)
    assert carried(fresh) == carried(bandit)


def test_a_log_that_became_tables_is_the_same(monkeypatch):
    """Closed decisions are made tables of, some at a time; also where some are deleted before or after that."""
    monkeypatch.setattr("solid_bandits.live.history.ROWS", 10**6)
    whole = make(window=30)
    played(whole, 80, seed=3)
    monkeypatch.setattr("solid_bandits.live.history.ROWS", 7)
    parts = make(window=30)
    played(parts, 80, seed=3)
    assert same_log(whole, parts)
    for gone in ({"event_id": "e5"}, {"event_id": ["e7", "e8", "e7", "no"]}, {"before": 40}, {"before": 40}):
        assert whole.delete(**gone) == parts.delete(**gone)
        assert same_log(whole, parts)
    assert whole.log()["event_id"].to_list() == [f"e{number}" for number in range(40, 80)]


def test_a_persons_decisions_are_deleted():
    bandit = make(window=4)
    for number in range(8):
        bandit.decide(ARMS, NAMES, f"e{number}", subject="anna" if number % 2 else None)
    bandit.learn("e7", 1.0)
    assert bandit.delete(subject="anna") == 4
    assert bandit.delete(subject="anna") == 0
    assert bandit.log()["event_id"].to_list() == ["e0", "e2", "e4", "e6"]
    assert bandit.recall("e7") is None


def test_open_decisions_are_deleted_where_nothing_is_a_table(monkeypatch):
    """Without polars there are no tables."""
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setattr(extras, "present", lambda module: False)
    bandit = make()
    bandit.decide(np.eye(2), event_id="a")
    assert bandit.delete(event_id="a") == 1
    assert bandit.open_ids() == []
    assert bandit.delete(event_id="a") == 0


def test_a_persons_decisions_are_deleted_after_loading(tmp_path):
    bandit = make(window=2)
    bandit.decide(ARMS, NAMES, "a", subject="anna")
    bandit.save(tmp_path / "bandit.json")
    loaded = sb.Bandit.load(tmp_path / "bandit.json")
    loaded.learn("a", 1.0)
    for _ in range(3):
        loaded.decide(ARMS, NAMES)
    assert loaded.log()["event_id"][0] == "a"
    assert loaded.delete(subject="anna") == 1
    assert "a" not in loaded.log()["event_id"].to_list()


@pytest.mark.parametrize("closed", [False, True])
def test_an_id_that_was_used_again_is_that_of_the_last_person(closed):
    bandit = make(window=2)
    bandit.decide(ARMS, NAMES, "a", subject="anna")
    for _ in range(3):
        bandit.decide(ARMS, NAMES)
    bandit.decide(ARMS, NAMES, "a", subject="bob")
    if closed:
        bandit.learn("a", 1.0)
    bandit.delete(subject="anna")
    assert bandit.recall("a").subject == "bob"
    assert bandit.log()["event_id"].to_list() == ["decision-2", "decision-3", "decision-4", "a"]
    assert bandit.delete(subject="anna") == 0
    assert bandit.delete(subject="bob") == 1
    assert bandit.log()["event_id"].to_list() == ["decision-2", "decision-3", "decision-4"]


def test_deletions_of_a_group_do_not_find_what_is_erased_already(tmp_path):
    """As in the service, where many calls share a commit: between them an id may be given to somebody else."""
    bandit = make(store=tmp_path / "shop.db")
    for name in ("e0", "e1"):
        bandit.decide(ARMS, NAMES, name, time=1, subject="anna")
    bandit._history.commit_every = 0
    assert bandit.delete(subject="anna") == 2
    assert bandit.delete(subject="anna") == bandit.delete(before=5) == 0
    bandit.decide(ARMS, NAMES, "e1", time=9, subject="bob")
    assert bandit.delete(subject="anna") == bandit.delete(before=5) == 0
    bandit._history.commit()
    assert (bandit.log()["event_id"].to_list(), bandit.open_ids()) == (["e1"], ["e1"])
    bandit.close()
    with sb.Bandit.open(tmp_path / "shop.db") as again:
        assert again.recall("e1").subject == "bob"


def test_a_deletion_that_fails_can_be_repeated(tmp_path):
    bandit = make(store=tmp_path / "shop.db")
    for number in range(6):
        bandit.decide(ARMS, NAMES, f"e{number}", time=number, subject="anna")
    before = carried(bandit, only_open=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteStore, "append", full)
        for wrong in ({"event_id": "e0"}, {"before": 2}, {"subject": "anna"}):
            with pytest.raises(FullError):
                bandit.delete(**wrong)
            assert len(bandit.open_ids()) == 6
            assert carried(bandit, only_open=True) == before
    assert bandit.delete(event_id="e0") == 1
    assert bandit.delete(before=3) == 2
    assert bandit.log()["event_id"].to_list() == ["e3", "e4", "e5"]
    assert bandit.delete(subject="anna") == 3
    bandit.close()


def full(*given):
    raise FullError("the disk is full")


def test_a_made_id_is_none_that_was_given_in_the_same_call():
    bandit = make()
    given = {"features": ARMS, "event_id": "decision-1"}
    made = bandit.decide_many([{"features": ARMS}, given, {"features": ARMS}])
    assert [one.event_id for one in made] == ["decision-2", "decision-1", "decision-3"]
    assert not any(one.again for one in made)
    assert bandit.open_ids() == ["decision-2", "decision-1", "decision-3"]


def test_the_features_of_a_record_cannot_be_written(tmp_path):
    with make(store=tmp_path / "shop.db") as bandit:
        bandit.decide(ARMS, NAMES, "a")
        held = bandit.recall("a")
    with sb.Bandit.open(tmp_path / "shop.db") as again:
        for one in (held, again.recall("a")):
            for array in (one.offered, one.features, one.probabilities):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 9.0
        assert again.learn("a", 1.0).counted


def test_many_decisions_are_checked_before_the_first_is_made():
    bandit, single = make(), make()
    offers = [{"features": ARMS, "arms": NAMES, "event_id": name} for name in "abca"]
    made = bandit.decide_many(offers, time=3)
    single.decide_many(offers[:3], time=3)
    for decision, name in zip(made, "abca", strict=True):
        assert decision.arm == single.decide(ARMS, NAMES, name, time=3).arm
    assert [decision.again for decision in made] == [False, False, False, True]
    assert carried(bandit) == carried(single)
    for wrong, message in (
        (
            [offers[0], {"features": ARMS, "arm": "a"}],
            "decision 1 of 2: it must be a table of features, arms",
        ),
        ([{"features": ARMS[:, :1]}], r"features must have shape \(arms, 2\)"),
        ([offers[0] | {"event_id": "d"}, offers[0] | {"arms": None}], "'a' was decided among other arms"),
        ([{"features": ARMS, "event_id": "d"}, {"features": ARMS[:2], "event_id": "d"}], "among other arms"),
    ):
        with pytest.raises(ValueError, match=message):
            bandit.decide_many(wrong)
        assert carried(bandit) == carried(single)


def test_one_decision_expires_alone():
    bandit = sb.Bandit(sb.Greedy(), dim=1)
    for event_id in ("a", "b", "c"):
        bandit.decide([[1.0]], event_id=event_id, time=1.0)
    assert bandit.waiting == 3
    assert bandit.expire(event_ids=["b"], reward=0.5, time=2.0) == ["b"]
    assert bandit.open_ids() == ["a", "c"]
    assert bandit.waiting == 2
    assert bandit.expire(event_ids=["b"]) == []  # it is closed
    assert bandit.expire(event_ids=["c"], before=0.5) == []  # not old enough
    assert bandit.log().row(1, named=True)["defaulted"]
    assert bandit.recall("nobody") is None
    with pytest.raises(ValueError, match="event_id must be"):
        bandit.expire(event_ids=["nobody"])


def test_features_of_a_deleted_decision_are_not_kept():
    bandit = make(log=False)
    bandit.decide(np.eye(2), event_id="a")
    kept = weakref.ref(bandit.recall("a").offered)
    bandit.delete("a")
    gc.collect()
    assert kept() is None


def test_deleting_forgets_the_id_and_keeps_the_estimate():
    bandit = make()
    played(bandit, 30, seed=5)
    theta = bandit.agent.theta
    bandit.delete(event_id="e3")
    assert "e3" not in bandit.log()["event_id"].to_list()
    with pytest.raises(ValueError, match="got 'e3'"):
        bandit.learn("e3", 1.0)
    assert np.array_equal(bandit.agent.theta, theta)
    for wrong in ({}, {"event_id": "e4", "before": 3}):
        with pytest.raises(ValueError, match="event_id, before or subject must be given"):
            bandit.delete(**wrong)


def test_a_bandit_from_a_log_knows_what_the_log_knows():
    first = make(sb.LinUCB(), window=500, floor=0.3)
    played(first, 120, seed=6)
    warm = sb.Bandit.from_log(first.log(), sb.LinUCB(), noise_std=0.5, floor=0.3)
    assert np.allclose(warm.agent.theta, first.agent.theta, rtol=1e-12)
    assert warm.agent._compiled.state.regression.step == 120
    assert warm.open_ids() == first.open_ids()
    late = first.open_ids()[0]
    for one in (first, warm):
        assert one.learn(late, 2.0).counted
        assert not one.learn("e0", 1.0).counted
    assert np.allclose(warm.agent.theta, first.agent.theta, rtol=1e-12)
    with pytest.raises(ValueError, match="log must have events that are new, got event_id 'e0' again"):
        warm.warm_start(first.log())


def test_a_warm_start_with_a_half_life_weighs_by_decisions():
    first = make(sb.Greedy(), half_life=25.0, floor=0.5, window=500)
    played(first, 100, seed=7)
    warm = sb.Bandit.from_log(first.log(), sb.Greedy(), noise_std=0.5, half_life=25.0)
    assert np.allclose(warm.agent.theta, first.agent.theta, rtol=1e-9)


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "store"])
def test_a_warm_start_longer_than_the_window_loses_no_reward(kept, tmp_path):
    """Late rewards come when their decisions leave the window, and a store says the same."""
    first = make(sb.Greedy(), window=100)
    for number in range(6):
        first.decide(ARMS, NAMES, f"e{number}", time=number)
    for number in range(5):
        first.learn(f"e{number}", number / 4, time=10 + number)
    store = {"store": tmp_path / "warm.db"} if kept else {}
    warm = make(sb.Greedy(), window=2, **store)
    assert warm.warm_start(first.log()) == 5
    assert np.allclose(warm.agent.theta, first.agent.theta, rtol=1e-12)
    assert warm.open_ids() == ["e5"]
    assert warm.log()["reward"].to_list() == first.log()["reward"].to_list()
    if kept:
        warm._history.source.store.close()  # as a kill leaves it
        with sb.Bandit.open(tmp_path / "warm.db") as again:
            assert carried(again, only_open=True) == carried(warm, only_open=True)


def test_an_empty_log_says_what_it_lacks():
    with pytest.raises(ValueError, match="log must have features of one dimension, got no row with features"):
        sb.Bandit.from_log(make().log())


def test_a_warm_start_from_a_table_without_probabilities():
    rows = np.random.default_rng(1).normal(size=(20, 2, 2))
    table = {"arm": [0, 1] * 10, "reward": [1.0, None] * 10, "features": rows.tolist()}
    warm = sb.Bandit.from_log(sb.logs.from_table(table), sb.Greedy(), noise_std=1.0)
    assert warm.open_ids() == []
    assert warm.agent._compiled.state.regression.estimator.rewards == 10
    with pytest.raises(ValueError, match="event_id '3' is of a log without probabilities"):
        warm.decide(rows[3], event_id="3")
    assert warm.log()["reward"].to_list() == [1.0, None] * 10
    assert warm.log()["probabilities"].null_count() == 20


def changed(log, row, **values):
    """The log with one row changed."""
    rows = log.rows(named=True)
    rows[row] |= values
    return pl.DataFrame(rows, schema=log.schema)


def test_a_warm_start_refuses_a_bad_log_whole():
    bandit = make()
    played(bandit, 5, seed=8)
    log = bandit.log()
    cold = make()
    before = carried(cold)
    other = log.with_columns(pl.lit("unknown").alias("arm"))
    wide = sb.Bandit(sb.Greedy(), dim=3, noise_std=1.0)
    wide.decide(np.ones((2, 3)), event_id="wide")
    for wrong, message in (
        (other, r"log row 0 \(event_id 'e0'\) must have its arm among its arms"),
        (pl.concat([log, log]), "each event_id once"),
        (wide.log(), "log row 0 must have features of dim 2, got 3"),
        (log.drop("arm"), "must have the columns of a log"),
        (
            changed(log, 4, reward=1e200),
            r"log row 4 \(event_id 'e4'\) must have a .*reward of at most 1e\+30",
        ),
        (changed(log, 3, arms=None), r"log row 3 \(event_id 'e3'\) must have .*arms"),
        (changed(log, 3, features=None), r"log row 3 \(event_id 'e3'\) must have features"),
        (changed(log, 3, event_id=None), r"log row 3 \(event_id None\) must have an event_id"),
        (changed(log, 3, event_id="x\n"), r"log row 3 \(event_id 'x\\n'\) must have an event_id"),
        (
            changed(
                log,
                2,
                arms=["a" * 201],
                arm="a" * 201,
                probabilities=[1.0],
                probability=1.0,
                features=[[1.0, 2.0]],
            ),
            "log row 2 .* must have arms whose names are text of 1 to 200 printable characters",
        ),
        (
            changed(log, 2, reward=1.0, reward_sequence=1),
            "log row 2 .* must have its reward after its decision",
        ),
        (log.with_columns(pl.lit(2**62).cast(pl.Datetime("us", "UTC")).alias("time")), "log row 0 .*time"),
        ("log.parquet", "log must be a polars table, such as sb.logs.read .*, got 'log.parquet'"),
        ({"arm": ["a"]}, "log must be a polars table"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            cold.warm_start(wrong)
        assert "\n" not in str(caught.value)
        assert carried(cold) == before
    for wrong in ("log.parquet", {"arm": ["a"]}, log.lazy()):
        with pytest.raises(ValueError, match="log must be a polars table"):
            sb.Bandit.from_log(wrong)
    assert cold.warm_start(log) == log["reward"].count()  # nothing of the others is in the way
    assert cold._learned == log["reward"].count()


BEYOND = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))
"""In the year 10000, as UTC has it."""
BAD = [
    (lambda one: one.decide(np.ones((2, 3))), r"features must have shape \(arms, 2\), got \(2, 3\)"),
    (lambda one: one.decide([[1.0, np.nan]]), "features must be finite"),
    (lambda one: one.decide(ARMS, ["a", "b"]), "arms must be 3 names, one per row of features, got 2"),
    (lambda one: one.decide(ARMS, ["a", "b", "a"]), "arms must be different"),
    (lambda one: one.decide(ARMS, ["1", "b", 1]), "arms must be different"),
    (lambda one: one.decide(ARMS, "abc"), "arms must be a list of 3 names"),
    (lambda one: one.decide(ARMS, [1.5, 2.5, 3.5]), "arms must be text or whole numbers, got 1.5"),
    (
        lambda one: one.decide(ARMS, ["\ud800", "b", "c"]),
        r"arms must have names of 1 to 200 printable characters, got '\\ud800'",
    ),
    (
        lambda one: one.decide(ARMS, ["a\n", "b", "c"]),
        "arms must have names of 1 to 200 printable characters",
    ),
    (
        lambda one: one.decide(ARMS, ["", "b", "c"]),
        "arms must have names of 1 to 200 printable characters, got ''",
    ),
    (
        lambda one: one.decide(ARMS, ["x" * 201, "b", "c"]),
        "arms must have names of 1 to 200 printable characters",
    ),
    (lambda one: one.decide(ARMS, [10**5000, 1, 2]), "arms must be whole numbers of at most 64 bits"),
    (lambda one: one.decide(ARMS, event_id="\ud800"), "event_id must be text"),
    (lambda one: one.decide(ARMS, time=-1e11), "time must be within the years 1 to 9999, got -1000"),
    (lambda one: one.decide(ARMS, time=BEYOND), "time must be within the years 1 to 9999, got datetime"),
    (lambda one: one.learn("known", 1.0, time=-1e11), "time must be within the years 1 to 9999"),
    (lambda one: one.expire(before=-1e11), "before must be within the years 1 to 9999"),
    (lambda one: one.recall([1]), r"event_id must be text, got \[1\]"),
    (lambda one: one.delete(event_id=[1]), "event_id must be text, got 1"),
    (lambda one: one.delete(event_id=1), "event_id must be text, or a list of texts, got 1"),
    (lambda one: one.delete(subject=1), "subject must be text, got 1"),
    (lambda one: one.expire(event_ids=1), "event_ids must be text, or a list of texts, got 1"),
    (lambda one: one.decide_many(1), "offers must be"),
    (lambda one: one.decide(ARMS, subject=""), "subject must be text of 1 to 200 printable characters"),
    (lambda one: one.delete(before=-1e11), "before must be within the years 1 to 9999"),
    (lambda one: one.decide(ARMS, event_id=7), "event_id must be text"),
    (lambda one: one.decide(ARMS, event_id=""), "event_id must be text"),
    (lambda one: one.decide(ARMS, event_id="x" * 201), "event_id must be text"),
    (lambda one: one.decide(ARMS, time="now"), "time must be a number"),
    (lambda one: one.decide(ARMS, time=datetime(2026, 1, 1)), "time must have a time zone"),
    (lambda one: one.learn("nobody", 1.0), "event_id must be that of one of the last 100,000 decisions"),
    (lambda one: one.learn(None, 1.0), "event_id must be that of one"),
    (lambda one: one.learn({}, 1.0), "event_id must be that of one"),
    (lambda one: one.learn_many([({}, 1.0)]), "reward 0 of 1: event_id must be that of one"),
    (lambda one: one.learn("known", float("nan")), "reward must be finite"),
    (lambda one: one.learn("known", "much"), "reward must be a number"),
    (lambda one: one.learn("known", 1e31), "reward must be"),
    (lambda one: one.expire(before="soon"), "before must be a number"),
    (lambda one: one.expire(reward=float("inf")), "reward must be finite"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_calls_are_one_line_and_change_nothing(call, message):
    bandit = make()
    bandit.decide(ARMS, NAMES, "known")
    before = carried(bandit)
    with pytest.raises(ValueError, match=message) as caught:
        call(bandit)
    assert "\n" not in str(caught.value)
    assert carried(bandit) == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policy": sb.Solid()}, "policy must be one that decides from features"),
        ({"window": 0}, "window must be an integer >= 1"),
        ({"floor": 1.5}, "floor must be >= 0 and <= 1, got 1.5"),
        ({"floor": -0.1}, "floor must be >= 0"),
        ({"half_life": 0.5}, "half_life must be >= 1 and <= 1e.12, got 0.5"),
        ({"log": 5}, "log must be"),
        ({"commit_every": 0}, "commit_every must be an integer >= 1, got 0"),
        ({"commit_every": 5}, "commit_every must be 1 without a store, got 5"),
        ({"log": False, "store": "shop.db"}, "log must be True with a store, which keeps one, got False"),
    ],
)
def test_bad_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make(**wrong)


class Reference:
    """A bandit of a policy that always pulls the first arm, in plain Python: ids, window, log, store."""

    def __init__(self, window, kept):
        self.window, self.kept, self.events, self.decided, self.learned = window, kept, {}, 0, []

    def remembered(self):
        return {name for name, one in self.events.items() if one["number"] > self.decided - self.window}

    def known(self):
        return set(self.events) if self.kept else self.remembered()

    def decide(self, name, features):
        if name in self.known():
            return self.events[name]["arm"], True
        self.decided += 1
        self.events.pop(name, None)
        self.events[name] = {
            "number": self.decided,
            "reward": None,
            "open": True,
            "row": features[0],
            "arm": 0,
        }
        return 0, False

    def learn(self, name, reward):
        if name not in self.known():
            return None
        one = self.events[name]
        if not one["open"] or name not in self.remembered():
            return False
        one.update(open=False, reward=reward)
        self.learned.append((one["row"], reward))
        return True

    def open(self):
        remembered = self.remembered()
        return [name for name, one in self.events.items() if one["open"] and name in remembered]


DECIDE = st.tuples(st.just("decide"), st.integers(0, 7), st.integers(0, 2**31))
LEARN = st.tuples(st.just("learn"), st.integers(0, 7), st.floats(-5, 5))
OTHERS = [
    st.tuples(st.just("expire"), st.sampled_from([None, 0.5]), st.none()),
    st.tuples(st.just("reload"), st.none(), st.none()),
    st.tuples(st.just("disk"), st.booleans(), st.none()),
    st.tuples(st.just("bad"), st.integers(0, len(BAD) - 1), st.none()),
]
CALLS = st.lists(st.one_of(DECIDE, DECIDE, DECIDE, LEARN, LEARN, *OTHERS), min_size=20, max_size=50)


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "store"])
@given(calls=CALLS, window=st.integers(1, 6))
def test_any_sequence_of_calls_against_a_plain_reference(tmp_path_factory, kept, calls, window):
    """With a store also while the disk is full: a call is taken in whole or not at all."""
    folder = tmp_path_factory.mktemp("bandit")
    # Greedy: nothing is random.
    store = {"store": folder / "shop.db"} if kept else {}
    bandit = sb.Bandit(sb.LinUCB(scale=0.0, ridge=1.0), dim=2, noise_std=1.0, window=window, **store)
    reference, logged, disk_full = Reference(window, kept), {}, False
    append = SqliteStore.append
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("solid_bandits.live.history.ROWS", window % 2 + 1)
        patch.setattr(stored, "SNAPSHOT_EVERY", 7)
        for call, first, second in calls:
            before = carried(bandit, only_open=kept)
            if call == "disk":
                disk_full = kept and first
                patch.setattr(SqliteStore, "append", full if disk_full else append)
            elif call == "reload" and kept:
                if not disk_full:  # `close` takes a snapshot
                    bandit.close()
                    bandit = sb.Bandit.open(folder / "shop.db")
            elif call == "reload":  # the log goes on with what was open
                logged |= {row["event_id"]: row for row in bandit.log().iter_rows(named=True)}
                bandit.save(folder / "file")
                bandit = sb.Bandit.load(folder / "file")
            elif call == "bad":
                with pytest.raises(ValueError, match="must"):
                    BAD[first][0](bandit)
            else:
                try:
                    called(bandit, reference, call, first, second)
                    continue
                except FullError:
                    assert disk_full
                    assert bandit.open_ids() == reference.open()
            assert carried(bandit, only_open=kept) == before
        patch.setattr(SqliteStore, "append", append)
        assert bandit.open_ids() == reference.open()
        assert bandit._learned == len(reference.learned)
        rows = np.array([row for row, _ in reference.learned]).reshape(-1, 2)
        rewards = np.array([reward for _, reward in reference.learned])
        theta = np.linalg.solve(np.eye(2) + rows.T @ rows, rows.T @ rewards)
        assert np.allclose(bandit.agent.theta, theta, rtol=1e-9, atol=1e-9)
        logged |= {row["event_id"]: row for row in bandit.log().iter_rows(named=True)}
        assert {name: row["reward"] for name, row in logged.items()} == {
            name: one["reward"] for name, one in reference.events.items()
        }
        bandit.close()


def called(bandit, reference, call, first, second):
    """The same call to both, and the same answer; the bandit is asked first, as it may refuse."""
    if call == "decide":
        features = np.random.default_rng(second).normal(size=(1, 2))
        choice = bandit.decide(features, event_id=f"e{first}", time=0)
        assert (choice.arm, choice.again) == reference.decide(f"e{first}", features)
    elif call == "learn" and f"e{first}" not in reference.known():
        with pytest.raises(ValueError, match="event_id must be that of one of the"):
            bandit.learn(f"e{first}", second)
    elif call == "learn":
        receipt = bandit.learn(f"e{first}", second, time=0)
        assert receipt.counted is reference.learn(f"e{first}", second)
    else:
        opened = bandit.expire(reward=first, time=0)
        assert opened == reference.open()
        for name in opened:
            reference.events[name].update(open=False, reward=first)
            if first is not None:
                reference.learned.append((reference.events[name]["row"], first))


def test_threads_take_turns():
    bandit = make(sb.Greedy())
    failures = []

    def work(who):
        try:
            for number in range(200):
                bandit.decide(ARMS, NAMES, f"{who}-{number}")
                assert bandit.learn(f"{who}-{number}", 1.0).counted
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    assert bandit.agent._compiled.state.regression.estimator.rewards == 800
    assert bandit.log().height == 800


def test_without_a_log_there_is_none_to_read():
    bandit = make(log=False)
    bandit.decide(ARMS)
    with pytest.raises(ValueError, match="this bandit was made with log=False"):
        bandit.log()


def test_repr_says_what_it_is():
    bandit = make(sb.Greedy())
    bandit.decide(ARMS)
    assert repr(bandit) == f"Bandit({sb.Greedy()!r}, floor=0.1, 1 decisions, 1 open)"


def test_a_choice_for_an_id_says_what_to_give():
    bandit = make(sb.LinTS())
    with pytest.raises(ValueError, match="give its event_id"):
        bandit.learn(bandit.decide(np.eye(2)), 1.0)


def test_an_arm_that_is_not_available_is_not_on_offer():
    rng = np.random.default_rng(5)
    masked, offered = make(sb.RandUCB()), make(sb.RandUCB())
    for number in range(50):
        features, mask = rng.normal(size=(4, 2)), np.roll([True, False, True, True], number)
        names = np.array(["a", "b", "c", "d"])
        choice = masked.decide(features, names, available=mask)
        same = offered.decide(features[mask], names[mask])
        assert (choice.arm, choice.probability) == (same.arm, same.probability)
        assert choice.arms == tuple(names[mask])
        for bandit in (masked, offered):
            bandit.learn(choice.event_id, features[0, 0])
    hidden = ["time", "reward_time"]
    assert masked.log().drop(hidden).equals(offered.log().drop(hidden))
    assert make(sb.Greedy()).decide(np.eye(2), available=[False, True]).arm == 1


def test_a_mask_that_is_none_says_so():
    with pytest.raises(ValueError, match="available must be 2 truth values, one per arm, not indices"):
        make(sb.Greedy()).decide(np.eye(2), available=[0, 1])
    with pytest.raises(ValueError, match="available must have at least one arm, got none"):
        make(sb.Greedy()).decide(np.eye(2), available=[False, False])


def test_the_file_of_a_bandit_is_not_that_of_an_agent(tmp_path):
    make(sb.Greedy()).save(tmp_path / "bandit.json")
    with pytest.raises(
        ValueError, match=r"it is a bandit's, as Bandit.save writes; load it with Bandit.load"
    ):
        sb.Agent.load(tmp_path / "bandit.json")


def test_names_and_times_at_their_limits_can_be_logged(tmp_path):
    bandit = make(sb.Greedy())
    names = ["x" * 200, "\U0001f375 tea", 2**64 - 1]
    moments = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
    for event_id, moment in zip("ab", moments, strict=True):
        bandit.decide(ARMS, names, event_id, time=moment)
        bandit.learn(event_id, 1.0, time=moment)
    log = bandit.log()
    assert log["time"].to_list() == moments
    sb.logs.write_dsjson(log, tmp_path / "log.dsjson")
    sb.logs.write(log, tmp_path / "log.parquet")
    assert sb.logs.read(tmp_path / "log.parquet").equals(log)
    bandit.save(tmp_path / "bandit.json")
    assert carried(sb.Bandit.load(tmp_path / "bandit.json")) == carried(bandit)


def test_the_model_version_is_a_hash_of_all_that_decisions_depend_on(tmp_path):
    def version(policy=None, **more):
        bandit = make(policy or sb.LinTS(), **more)
        bandit.save(tmp_path / "bandit.json")
        again = sb.Bandit.load(tmp_path / "bandit.json")
        for one in (bandit, again):
            one.decide(np.ones((2, one.agent.dim)), event_id="a")
        found = bandit.log()["model_version"][0]
        assert again.log()["model_version"][0] == found
        return found

    others = [
        {"noise_std": 5.0}, {"noise_std": None}, {"seed": 9}, {"dim": 3}, {"floor": 0.2}, {"half_life": 10.0},
        {"theta_bound": 2.0}, {"policy": sb.LinTS(ridge=0.5)}, {"policy": sb.Greedy()},
    ]  # fmt: skip
    versions = [version(), *(version(**other) for other in others)]
    assert len(set(versions)) == len(versions)
    assert version(window=7, seed=np.int64(4)) == versions[0]  # decisions do not depend on the window
    number, digest, learned = versions[0].split("/")
    assert (number, len(digest), learned) == (sb.__version__, 8, "0")
