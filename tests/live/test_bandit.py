"""Decisions with ids: what a bandit answers, remembers, logs and refuses."""

import gc
import json
import threading
import weakref
import zipfile
from datetime import UTC, datetime
from io import BytesIO

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import solid_bandits as sb
from solid_bandits.policies.state import state_to_plain

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
NAMES = ["red", "blue", 3]


def make(policy=None, **more):
    return sb.Bandit(policy or sb.LinTS(), **({"dim": 2, "noise_std": 0.5, "floor": 0.1, "seed": 4} | more))


def carried(bandit):
    """All that a bandit carries, as comparable data."""
    records = [
        tuple(
            value.tolist() if isinstance(value, np.ndarray) else value
            for value in (getattr(record, name) for name in record.__slots__)
        )
        for record in bandit._memory
    ]
    counters = (bandit._decisions, bandit._sequence, bandit._learned, bandit._memory.opened)
    stream = bandit.agent._floor_stream.tolist()
    return state_to_plain(bandit.agent._compiled.state), records, counters, stream


def same_log(one, other):
    return one.log().equals(other.log(), null_equal=True)


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


def played(bandit, steps, seed, start=0):
    """Calls with ids and times, as a log of calls would have them."""
    rng = np.random.default_rng(seed)
    for number in range(start, start + steps):
        count = int(rng.integers(1, 6))
        bandit.decide(rng.normal(size=(count, 2)), [f"a{i}" for i in range(count)], f"e{number}", time=number)
        opened = bandit.open()
        if opened and rng.random() < 0.7:
            bandit.learn(opened[rng.integers(len(opened))], rng.normal(), time=number + 0.5)
        if rng.random() < 0.05:
            bandit.expire(before=number - 20, reward=0.0, time=number + 0.7)


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
    again = sb.Bandit.load(tmp_path / "bandit")
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
    ):
        with pytest.raises(ValueError, match=message):
            cold.warm_start(wrong)
        assert carried(cold) == before


BAD = [
    (lambda one: one.decide(np.ones((2, 3))), r"features must have shape \(arms, 2\), got \(2, 3\)"),
    (lambda one: one.decide([[1.0, np.nan]]), "features must be finite"),
    (lambda one: one.decide(ARMS, ["a", "b"]), "arms must be 3 names, one per row of features, got 2"),
    (lambda one: one.decide(ARMS, ["a", "b", "a"]), "arms must be different"),
    (lambda one: one.decide(ARMS, ["1", "b", 1]), "arms must be different"),
    (lambda one: one.decide(ARMS, "abc"), "arms must be a list of 3 names"),
    (lambda one: one.decide(ARMS, [1.5, 2.5, 3.5]), "arms must be text or whole numbers, got 1.5"),
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


CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.integers(0, 12), st.integers(0, 2**31)),
        st.tuples(st.just("learn"), st.integers(0, 12), st.floats(-5, 5)),
        st.tuples(st.just("expire"), st.sampled_from([None, 0.5]), st.none()),
        st.tuples(st.just("reload"), st.none(), st.none()),
        st.tuples(st.just("bad"), st.integers(0, len(BAD) - 1), st.none()),
    ),
    max_size=40,
)


@given(calls=CALLS, window=st.integers(1, 6))
def test_any_sequence_of_calls_against_a_plain_reference(tmp_path_factory, calls, window):
    bandit = sb.Bandit(sb.LinUCB(scale=0.0), dim=2, noise_std=1.0, window=window)  # greedy: nothing is random
    reference = Reference(window)
    for call, first, second in calls:
        if call == "decide":
            features = np.random.default_rng(second).normal(size=(1, 2))
            arm, again = reference.decide(f"e{first}", features)
            choice = bandit.decide(features, event_id=f"e{first}", time=0)
            assert (choice.arm, choice.again) == (arm, again)
        elif call == "learn":
            expected = reference.learn(f"e{first}", second)
            if expected is None:
                with pytest.raises(ValueError, match="event_id must be that of one of the last"):
                    bandit.learn(f"e{first}", second)
            else:
                assert bandit.learn(f"e{first}", second, time=0).counted is expected
        elif call == "expire":
            opened = reference.open()
            assert bandit.expire(reward=first, time=0) == opened
            for name in opened:
                reference.events[name]["open"] = False
                if first is not None:
                    reference.learned.append((reference.events[name]["row"], first))
        elif call == "reload":
            path = tmp_path_factory.mktemp("bandit") / "file"
            bandit.save(path)
            bandit = sb.Bandit.load(path)
        else:
            before = carried(bandit)
            with pytest.raises(ValueError, match="must"):
                BAD[first][0](bandit)
            assert carried(bandit) == before
    assert bandit.open() == reference.open()
    rows = np.array([row for row, _ in reference.learned]).reshape(-1, 2)
    rewards = np.array([reward for _, reward in reference.learned])
    theta = np.linalg.solve(np.eye(2) + rows.T @ rows, rows.T @ rewards)
    assert np.allclose(bandit.agent.theta, theta, rtol=1e-9, atol=1e-9)


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


def damaged(content, **changes):
    """The bytes of a bandit's file with fields of its main part changed."""
    members = {
        name: zipfile.ZipFile(BytesIO(content)).read(name)
        for name in zipfile.ZipFile(BytesIO(content)).namelist()
    }
    main = json.loads(members["bandit.json"])
    main.update(changes)
    members["bandit.json"] = json.dumps(main).encode()
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in members.items():
            archive.writestr(name, value)
    return out.getvalue()


def test_files_that_are_none_are_refused(tmp_path):
    bandit = make()
    played(bandit, 20, seed=9)
    path = tmp_path / "bandit"
    bandit.save(path)
    content = path.read_bytes()
    for wrong, message in (
        (b"", "cannot be read"),
        (content[:-40], "cannot be read"),
        (damaged(content, version=9), "must be of version 1"),
        (damaged(content, window=0), "window must be an integer >= 1"),
        (damaged(content, counters=[1, 2]), "counters must be three whole numbers"),
        (damaged(content, counters=[3, 5, 1]), "memory must have the last decisions"),
        (damaged(content, log=7), "log must be a directory"),
        (damaged(content, more=7), "other fields"),
        (damaged(content, agent={}), "must be a file that Agent.save wrote"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=f"bandit file .*{message}"):
            sb.Bandit.load(path)
    path.write_bytes(content)
    assert carried(sb.Bandit.load(path)) == carried(bandit)
    with pytest.raises(ValueError, match="cannot be written"):
        bandit.save(tmp_path / "nowhere" / "bandit")


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
    assert sb.Bandit.load(tmp_path / "bandit.zip").log().height == 1


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
