"""Decisions with ids: what a bandit answers, remembers, logs and refuses."""

import gc
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
from solid_bandits._files import StoreError
from solid_bandits.live import journal


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
    assert again._replace(again=False)[:4] == first[:4]
    bandit.learn("visit", 1.0)
    assert bandit.decide(ARMS, NAMES, "visit").arm == first.arm  # also once it is settled
    with pytest.raises(ValueError, match="event_id 'visit' was decided among other arms"):
        bandit.decide(ARMS[:2], NAMES[:2], "visit")


def test_a_second_reward_changes_nothing_and_says_so():
    bandit = make()
    bandit.decide(ARMS, NAMES, "visit")
    assert bandit.learn("visit", 1.0) == ("visit", True, 1.0, "event_id 'visit' learned 1")
    before = carried(bandit)
    receipt = bandit.learn("visit", 0.25)
    assert carried(bandit) == before
    assert not receipt.counted
    assert receipt.reward == 1.0
    assert receipt.message == "event_id 'visit' was learned with reward 1; reward 0.25 was not taken in"


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
    assert bandit.open() == ["b"]


def test_what_never_comes_expires_with_a_default_or_without():
    bandit = make(sb.Greedy(), floor=0.0)
    for number in range(6):
        bandit.decide(ARMS, NAMES, f"e{number}", time=number)
    bandit.learn("e1", 1.0, time=6)
    assert bandit.expire(before=3, reward=0.0, time=7) == ["e0", "e2"]
    assert bandit.expire(before=5, time=8) == ["e3", "e4"]
    assert bandit.open() == ["e5"]
    receipt = bandit.learn("e0", 5.0)
    assert (receipt.counted, receipt.reward) == (False, 0.0)
    assert bandit.learn("e3", 5.0).reward is None
    assert bandit.agent._compiled.state.estimator.rewards == 3
    rows = {row["event_id"]: row for row in bandit.log().iter_rows(named=True)}
    assert [rows[f"e{i}"]["reward"] for i in range(6)] == [0.0, 1.0, 0.0, None, None, None]
    assert [rows[f"e{i}"]["defaulted"] for i in range(6)] == [True, False, True, None, None, None]
    assert rows["e3"]["reward_time"] == datetime(1970, 1, 1, 0, 0, 8, tzinfo=UTC)
    assert rows["e5"]["reward_time"] is None


def test_ids_are_remembered_for_the_window():
    bandit = make(window=3)
    for number in range(5):
        bandit.decide(ARMS, NAMES, f"e{number}")
    assert bandit.open() == ["e2", "e3", "e4"]
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
    assert same_log(again, bandit)
    for one in (bandit, again):
        played(one, 60, seed=2, start=60)
    assert carried(again) == carried(bandit)
    assert same_log(again, bandit)
    fresh = make(policy, half_life=half_life, window=40)  # and so do all the calls
    played(fresh, 60, seed=1)
    played(fresh, 60, seed=2, start=60)
    assert carried(fresh) == carried(bandit)


def test_the_log_in_a_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("solid_bandits.live.journal.ROWS", 10)
    held, written = make(window=30), make(window=30, log=tmp_path / "log")
    for one in (held, written):
        played(one, 80, seed=3)
    assert len(list((tmp_path / "log").glob("part-*.parquet"))) > 3
    assert same_log(held, written)
    written.save(tmp_path / "bandit")
    again = sb.Bandit.load(tmp_path / "bandit", log=tmp_path / "log")
    assert same_log(again, written)
    for one in (held, written):
        one.flush()
    everything = sb.logs.read(tmp_path / "log")
    assert everything.height == held.log().height - len(held.open())
    assert written.delete(event_id="e5") == held.delete(event_id="e5") == 1
    assert written.delete(before=40) == held.delete(before=40) == 39
    assert same_log(held, written)
    assert sb.logs.read(tmp_path / "log").filter(pl.col("event_id") == "e5").height == 0


def test_features_of_a_deleted_decision_are_not_kept():
    bandit = make(log=False)
    bandit.decide(np.eye(2), event_id="a")
    kept = weakref.ref(bandit.recall("a").features)
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
        with pytest.raises(ValueError, match="event_id or before must be given"):
            bandit.delete(**wrong)


def test_a_bandit_from_a_log_knows_what_the_log_knows():
    first = make(sb.LinUCB(), window=500, floor=0.3)
    played(first, 120, seed=6)
    warm = sb.Bandit.from_log(first.log(), sb.LinUCB(), noise_std=0.5, floor=0.3)
    assert np.allclose(warm.agent.theta, first.agent.theta, rtol=1e-12)
    assert warm.agent._compiled.state.step == 120
    assert warm.open() == first.open()
    late = first.open()[0]
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


def test_a_warm_start_from_a_table_without_probabilities():
    rows = np.random.default_rng(1).normal(size=(20, 2, 2))
    table = {"arm": [0, 1] * 10, "reward": [1.0, None] * 10, "features": rows.tolist()}
    warm = sb.Bandit.from_log(sb.logs.from_table(table), sb.Greedy(), noise_std=1.0)
    assert warm.open() == []
    assert warm.agent._compiled.state.estimator.rewards == 10
    with pytest.raises(ValueError, match="event_id '3' is of a log without probabilities"):
        warm.decide(rows[3], event_id="3")
    assert warm.log().height == 0


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
            "log row 2 .* must have arms whose names are text of 1 to 200 printable signs",
        ),
        (
            changed(log, 2, reward=1.0, reward_sequence=1),
            "log row 2 .* must have its reward after its decision",
        ),
        (log.with_columns(pl.lit(2**62).cast(pl.Datetime("us", "UTC")).alias("time")), "log row 0 .*time"),
        ("log.parquet", "log must be a polars table, as sb.logs.read gives .*, got 'log.parquet'"),
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
        r"arms must have names of 1 to 200 printable signs, got '\\ud800'",
    ),
    (lambda one: one.decide(ARMS, ["a\n", "b", "c"]), "arms must have names of 1 to 200 printable signs"),
    (
        lambda one: one.decide(ARMS, ["", "b", "c"]),
        "arms must have names of 1 to 200 printable signs, got ''",
    ),
    (lambda one: one.decide(ARMS, ["x" * 201, "b", "c"]), "arms must have names of 1 to 200 printable signs"),
    (lambda one: one.decide(ARMS, [10**5000, 1, 2]), "arms must be whole numbers of at most 64 bits"),
    (lambda one: one.decide(ARMS, event_id="\ud800"), "event_id must be text"),
    (lambda one: one.decide(ARMS, time=-1e11), "time must be within the years 1 to 9999, got -1000"),
    (lambda one: one.decide(ARMS, time=BEYOND), "time must be within the years 1 to 9999, got datetime"),
    (lambda one: one.learn("known", 1.0, time=-1e11), "time must be within the years 1 to 9999"),
    (lambda one: one.expire(before=-1e11), "before must be within the years 1 to 9999"),
    (lambda one: one.recall([1]), r"event_id must be text, got \[1\]"),
    (lambda one: one.delete(event_id=[1]), r"event_id must be text, got \[1\]"),
    (lambda one: one.delete(before=-1e11), "before must be within the years 1 to 9999"),
    (lambda one: one.decide(ARMS, event_id=7), "event_id must be text"),
    (lambda one: one.decide(ARMS, event_id=""), "event_id must be text"),
    (lambda one: one.decide(ARMS, event_id="x" * 201), "event_id must be text"),
    (lambda one: one.decide(ARMS, time="now"), "time must be a number"),
    (lambda one: one.decide(ARMS, time=datetime(2026, 1, 1)), "time must have a time zone"),
    (lambda one: one.learn("nobody", 1.0), "event_id must be that of one of the last 100,000 decisions"),
    (lambda one: one.learn(None, 1.0), "event_id must be that of one"),
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
        ({"log": True}, "log must be a directory, None or False"),
        ({"log": 5}, "log must be a directory, None or False"),
    ],
)
def test_bad_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make(**wrong)


class Reference:
    """A bandit of a policy that always pulls the first arm, in plain Python: ids, window, log."""

    def __init__(self, window):
        self.window, self.events, self.decided, self.learned = window, {}, 0, []

    def known(self):
        return {name for name, one in self.events.items() if one["number"] > self.decided - self.window}

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
        if not one["open"]:
            return False
        one.update(open=False, reward=reward)
        self.learned.append((one["row"], reward))
        return True

    def open(self):
        known = self.known()
        return [name for name, one in self.events.items() if one["open"] and name in known]


DECIDE = st.tuples(st.just("decide"), st.integers(0, 7), st.integers(0, 2**31))
LEARN = st.tuples(st.just("learn"), st.integers(0, 7), st.floats(-5, 5))
OTHERS = [
    st.tuples(st.just("expire"), st.sampled_from([None, 0.5]), st.none()),
    st.tuples(st.just("reload"), st.none(), st.none()),
    st.tuples(st.just("disk"), st.booleans(), st.none()),
    st.tuples(st.just("flush"), st.none(), st.none()),
    st.tuples(st.just("bad"), st.integers(0, len(BAD) - 1), st.none()),
]
CALLS = st.lists(st.one_of(DECIDE, DECIDE, DECIDE, LEARN, LEARN, *OTHERS), min_size=20, max_size=50)


@pytest.mark.parametrize(("directory", "full"), [(False, False), (True, False), (True, True)])
@given(calls=CALLS, window=st.integers(1, 6))
def test_any_sequence_of_calls_against_a_plain_reference(tmp_path_factory, calls, window, directory, full):
    """Also while the disk is full: a call is taken in whole or not at all, and no row is lost or written twice."""
    folder = tmp_path_factory.mktemp("bandit")
    log = folder / "log" if directory else None
    # Greedy: nothing is random.
    bandit = sb.Bandit(sb.LinUCB(scale=0.0), dim=2, noise_std=1.0, window=window, log=log)
    reference = Reference(window)
    write = journal.write_whole

    def write_if_room(path, fill):
        if full:
            raise OSError(28, "No space left on device")
        write(path, fill)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "ROWS", window % 2 + 1)
        patch.setattr(journal, "MOST", 2)
        patch.setattr(journal, "write_whole", write_if_room)
        for call, first, second in calls:
            before = carried(bandit)
            try:
                if call == "disk":
                    full = first
                elif call == "flush":
                    bandit.flush()
                    assert bandit.log_failure is None
                    assert not directory or bandit.log_pending == 0
                elif call == "reload":
                    bandit.save(folder / "file")
                    bandit = sb.Bandit.load(folder / "file", log=log)
                    assert carried(bandit) == before
                elif call == "bad":
                    with pytest.raises(ValueError, match="must"):
                        BAD[first][0](bandit)
                    assert carried(bandit) == before
                else:
                    called(bandit, reference, call, first, second)
            except StoreError:  # whether it comes depends on the calls before
                assert full
                assert directory
                assert "No space left on device" in bandit.log_failure
                assert carried(bandit) == before
        full = False
        bandit.flush()
    assert bandit.open() == reference.open()
    assert bandit._learned == len(reference.learned)
    rows = np.array([row for row, _ in reference.learned]).reshape(-1, 2)
    rewards = np.array([reward for _, reward in reference.learned])
    theta = np.linalg.solve(np.eye(2) + rows.T @ rows, rows.T @ rewards)
    assert np.allclose(bandit.agent.theta, theta, rtol=1e-9, atol=1e-9)
    logged = bandit.log().select("event_id", "reward").rows()
    assert logged == [(name, one["reward"]) for name, one in reference.events.items()]
    if directory:
        parts = [pl.read_parquet(part)["sequence"] for part in journal.parts(log)]
        assert not parts or not pl.concat(parts).is_duplicated().any()
        assert list(log.glob("aside-*")) == []


def called(bandit, reference, call, first, second):
    """The same call to both, and the same answer; the bandit is asked first, as it may refuse."""
    if call == "decide":
        features = np.random.default_rng(second).normal(size=(1, 2))
        choice = bandit.decide(features, event_id=f"e{first}", time=0)
        assert (choice.arm, choice.again) == reference.decide(f"e{first}", features)
    elif call == "learn" and f"e{first}" not in reference.known():
        with pytest.raises(ValueError, match="event_id must be that of one of the last"):
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
    assert bandit.agent._compiled.state.estimator.rewards == 800
    assert bandit.log().height == 800


def test_without_a_log_there_is_none_to_read():
    bandit = make(log=False)
    bandit.decide(ARMS)
    with pytest.raises(ValueError, match="this bandit was made with log=False"):
        bandit.log()


def test_repr_says_what_it_is():
    bandit = make(sb.Greedy())
    bandit.decide(ARMS)
    assert repr(bandit) == "Bandit(Greedy(ridge=1.0), floor=0.1, 1 decisions, 1 open)"


def test_a_log_is_of_one_bandit(tmp_path):
    """Ids begin anew in a new bandit: rows of the same ids would take each other's place."""
    first = make(sb.LinTS(), log=tmp_path / "log")
    first.learn(first.decide(np.eye(2)).event_id, 1.0)
    first.flush()
    with pytest.raises(ValueError, match="log must be a directory without decisions"):
        make(sb.LinTS(), log=tmp_path / "log")
    first.save(tmp_path / "bandit.zip")
    assert sb.Bandit.load(tmp_path / "bandit.zip", log=tmp_path / "log").log().height == 1


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
    make(sb.Greedy()).save(tmp_path / "bandit.zip")
    with pytest.raises(ValueError, match=r"zip archive, as Bandit.save writes; load it with Bandit.load"):
        sb.Agent.load(tmp_path / "bandit.zip")


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
    bandit.save(tmp_path / "bandit.zip")
    assert carried(sb.Bandit.load(tmp_path / "bandit.zip")) == carried(bandit)


def test_the_model_version_is_a_hash_of_all_that_decisions_depend_on(tmp_path):
    def version(policy=None, **more):
        bandit = make(policy or sb.LinTS(), **more)
        bandit.save(tmp_path / "bandit.zip")
        again = sb.Bandit.load(tmp_path / "bandit.zip")
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
