"""Bandits whose decisions bring named values: what they learn, what they keep, and how they come back."""

import json
import pickle
import shutil
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

import solid_bandits as sb
from histories import features_of, offer_of, seeds
from solid_bandits.live.named import chosen_of
from solid_bandits.live.recovery import check
from solid_bandits.live.snapshots import packed, sealed
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.stored import source_of


def news(**settings):
    return sb.Bandit(arms=["climate", "football"], context=["age", "device"], **settings)


def somebody(rng):
    return {"age": float(rng.normal(40, 10)), "device": str(rng.choice(["ios", "web", "tv"]))}


def reward_of(values, arm):
    return 0.02 * (values["age"] - 40) * (arm == "climate") + 0.3 * (values["device"] == "tv")


FORMS = [
    {"arms": ["x", "y", "z"], "context": ["n", "c"]},
    {"arms": ["x", "y", "z"], "context": ["n", "c"], "interactions": [("n", "c")]},
    {"arm_features": ["price"], "context": ["n", "c"]},
    {"arms": ["x", "y", "z"], "arm_features": ["price"], "context": ["n", "c"]},
]


@pytest.mark.parametrize("form", FORMS)
def test_the_estimate_is_ridge_regression_on_all_rows_in_the_coordinates_in_force(form):
    """Columns, arms and coordinates came one after the other; θ is as if they had been there from the start."""
    rng = np.random.default_rng(0)
    bandit = sb.Bandit(sb.LinTS(ridge=2.0), **form, noise_std=0.5, seed=1)
    rows, rewards = [], []
    for number in range(90):
        values = {"n": float(rng.gamma(2.0)) + 2026.0, "c": "abcdef"[rng.integers(1 + number // 15)]}
        if rng.random() < 0.2:
            del values["n"]
        arms = (
            {name: {"price": float(rng.normal(3.0, 9.0))} for name in "xyz"}
            if "arm_features" in form
            else None
        )
        decision = bandit.decide(values, arms)
        reward = float(rng.normal())
        bandit.learn(decision.event_id, reward)
        rows.append(chosen_of(decision.named, decision.place))
        rewards.append(reward)
        if number == 50 and "arms" in form:
            bandit.add_arm("late")
            if arms is None:
                bandit.remove_arm("y")
    design, dim = bandit.design, bandit.design.dim
    found = np.vstack([design.encode(one) for one in rows])
    if design.blocked:
        blocks = np.zeros((len(found), len(design.arms), dim))
        blocks[np.arange(len(found)), found[:, 0].astype(int)] = found[:, 1:]
        found = blocks.reshape(len(found), -1)
    theta = np.linalg.solve(2.0 * np.eye(found.shape[1]) + found.T @ found, found.T @ np.array(rewards))
    np.testing.assert_allclose(bandit.agent.theta.reshape(-1), theta, rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_why_sums_to_the_estimate_and_to_the_squared_width(form):
    rng = np.random.default_rng(2)
    bandit = sb.Bandit(sb.LinTS(), **form, noise_std=0.5)
    for _ in range(40):
        values = {"n": float(rng.normal()), "c": str(rng.choice(["a", "b"]))}
        arms = {name: {"price": float(rng.normal())} for name in "xyz"} if "arm_features" in form else None
        decision = bandit.decide(values, arms)
        bandit.learn(decision.event_id, float(rng.normal()))
    why = decision.why
    means, deviations = bandit.agent.predict(bandit.design.encode(decision.named))
    place = decision.place
    assert why.estimate == pytest.approx(means[place], abs=1e-12)
    assert why.squared_width == pytest.approx((deviations[place] / 0.5) ** 2, abs=1e-12)
    others = {arm: mean for arm, mean in zip(decision.arms, means, strict=True) if arm != decision.arm}
    assert why.runner_up == max(others, key=others.get)
    assert sum(part.other_estimate for part in why.parts.values()) == pytest.approx(max(others.values()))
    assert set(why.parts) >= {"constant", "n", "c"}
    assert why.table().height == len(why.parts)
    assert str(why).count("\n") == len(why.parts)


@pytest.mark.parametrize("noise_std", [None, 0.3])
@pytest.mark.parametrize(("factor", "offset"), [(1000.0, 0.0), (0.001, 0.0), (1.0, 1000.0)])
def test_units_and_offsets_of_a_column_change_no_decision(factor, offset, noise_std):
    """From the first row on: seeds are fixed, and no two arms come within rounding of each other here."""
    rng = np.random.default_rng(6)
    pair = [news(seed=3, noise_std=noise_std) for _ in range(2)]
    for _ in range(400):
        values = somebody(rng)
        other = {**values, "age": factor * values["age"] + offset}
        noise = rng.normal(0.0, 0.3)
        one, two = pair[0].decide(values), pair[1].decide(other)
        assert one.arm == two.arm
        np.testing.assert_allclose(one.probabilities, two.probabilities, rtol=0, atol=1e-9)
        for bandit, decision in zip(pair, (one, two), strict=True):
            bandit.learn(decision.event_id, reward_of(values, decision.arm) + noise)


def test_a_late_reward_is_learnt_in_the_coordinates_in_force():
    rng = np.random.default_rng(7)
    bandit = sb.Bandit(sb.LinTS(ridge=1.0), arms=["x"], context=["n", "c"], noise_std=1.0)
    first = bandit.decide({"n": 5.0, "c": "a"})
    for _ in range(30):
        bandit.decide({"n": float(rng.normal(90.0, 5.0)), "c": str(rng.choice(["b", "c"]))})
    bandit.learn(first.event_id, 2.0)
    row = bandit.design.encode(first.named)[0, 1:]
    np.testing.assert_allclose(bandit.agent.theta[0], 2.0 * row / (1.0 + row @ row), atol=1e-12)


def test_arms_come_and_go():
    rng = np.random.default_rng(8)
    bandit = news(seed=0)
    for _ in range(60):
        values = somebody(rng)
        decision = bandit.decide(values)
        bandit.learn(decision.event_id, reward_of(values, decision.arm))
    waiting = bandit.decide(somebody(rng), arms=["football"])
    theta = bandit.agent.theta
    bandit.add_arm("travel", like="climate")
    assert bandit.agent.theta[2] == pytest.approx(theta[0], abs=1e-9)
    bandit.remove_arm("football")
    assert bandit.decide({"age": 3}).arms == ("climate", "travel")
    kept = bandit.agent.theta[1].copy()
    bandit.learn(waiting.event_id, 5.0)  # late rewards still count
    assert not np.allclose(bandit.agent.theta[1], kept)
    kept = bandit.agent.theta[1].copy()
    bandit.add_arm("football")
    np.testing.assert_array_equal(bandit.agent.theta[1], kept)
    assert bandit.decide({"age": 3}).arms == ("climate", "football", "travel")


def state(bandit):
    return sealed(packed(bandit))


def walk(bandit, rng, calls):
    """Decisions, rewards, expiries, arms that come and go."""
    features = bandit.design.features
    for _ in range(calls):
        kind = rng.random()
        there = bandit.design.offered()
        if kind < 0.08 and features.arms:
            if len(there) > 1 and rng.random() < 0.5:
                bandit.remove_arm(there[rng.integers(len(there))], time=1.0)
            else:
                like = there[0] if bandit.design.blocked and rng.random() < 0.5 else None
                gone = sorted(bandit.design.removed)
                if gone and rng.random() < 0.5:
                    bandit.add_arm(gone[0], time=1.0)
                else:
                    bandit.add_arm(f"new {len(bandit.design.arms)}", like, time=1.0)
        elif kind < 0.14:
            offers = [offer_of(features, rng, there) for _ in range(3)]
            bandit.decide_many([{"context": one, "arms": arms} for one, arms in offers], time=7.0)
        elif kind < 0.6:
            bandit.decide(*offer_of(features, rng, there), time=float(rng.integers(100)))
        elif (waiting := bandit.open_ids()) and kind < 0.95:
            bandit.learn(str(rng.choice(waiting)), float(rng.normal()), time=float(rng.integers(100)))
        elif waiting:
            bandit.expire(event_ids=[waiting[0]], reward=0.0, time=5.0)


@pytest.mark.parametrize("part", range(4))
def test_two_hundred_histories_come_back_bit_for_bit_from_kills_and_by_replay(part, tmp_path, monkeypatch):
    """50 each. A kill is what is on the disk at some moment; every store is then replayed from its first event."""
    monkeypatch.setattr("solid_bandits.live.stored.SNAPSHOT_EVERY", 15)
    for number, rng in enumerate(seeds(200)[part * 50 : part * 50 + 50]):
        folder = tmp_path / str(number)
        folder.mkdir()
        policy = sb.RandUCB() if number % 2 else sb.LinTS()
        bandit = sb.Bandit(policy, features=features_of(rng), floor=0.1, seed=number, store=folder / "a.db")
        for cut in "bc":
            walk(bandit, rng, 18)
            for file in folder.glob(f"{chr(ord(cut) - 1)}.db*"):  # what a kill here would leave
                if not file.name.endswith(".lock"):
                    shutil.copy(file, folder / file.name.replace(f"{chr(ord(cut) - 1)}.db", f"{cut}.db"))
            again = sb.Bandit.open(folder / f"{cut}.db")
            walk_on = rng.bit_generator.state
            for one in (bandit, again):
                rng.bit_generator.state = walk_on
                walk(one, rng, 6)
            assert state(bandit) == state(again)
            bandit.close()
            bandit = again
        bandit.close()
        store = SqliteStore(folder / "c.db")
        assert "identical" in check(source_of(store))
        store.close()


def test_moved_as_one_file(tmp_path):
    rng = np.random.default_rng(9)
    bandit = news(seed=4)
    for _ in range(30):
        bandit.decide(somebody(rng))
    bandit.learn(bandit.open_ids()[3], 1.0)
    bandit.save(tmp_path / "bandit.json")
    again = sb.Bandit.load(tmp_path / "bandit.json")
    assert state(again) == state(bandit)
    for one in again.open_ids():
        again.learn(one, 0.5)
        bandit.learn(one, 0.5)
    assert again.agent.theta.tobytes() == bandit.agent.theta.tobytes()


def test_a_bandit_from_the_log_of_another_learns_what_it_did():
    rng = np.random.default_rng(10)
    bandit = news(seed=4)
    for number in range(50):
        values = somebody(rng)
        decision = bandit.decide(values)
        if number % 3:
            bandit.learn(decision.event_id, reward_of(values, decision.arm))
    log = bandit.log()
    again = sb.Bandit.from_log(log, arms=["climate", "football"], context=["age", "device"], seed=4)
    assert json.dumps(again.design.state()) == json.dumps(bandit.design.state())
    np.testing.assert_allclose(again.agent.theta, bandit.agent.theta, atol=1e-12)
    younger = sb.Bandit.from_log(log, arms=["climate", "football"], context=["device"])
    assert younger.design.names()[0] == "intercept"
    assert not any("age" in name for name in younger.design.names())


def test_a_frame_is_a_decision_a_row():
    frame = pl.DataFrame({"age": [30.0, None, 50.0], "device": ["ios", "web", None], "name": ["a", "b", "c"]})
    one, two, three = (news(seed=1) for _ in range(3))
    found = one.decide(frame, event_id=["1", "2", "3"])
    rows = frame.select("age", "device").rows(named=True)
    tables = two.decide_many([{"context": row} for row in rows])
    assert [decision.arm for decision in found] == [decision.arm for decision in tables]
    assert [decision.event_id for decision in found] == ["1", "2", "3"]
    by_pandas = three.decide(pd.DataFrame(frame.to_dict(as_series=False)))
    assert [decision.named.context for decision in by_pandas] == [
        decision.named.context for decision in found
    ]
    with pytest.raises(ValueError, match="frame must have the columns age, device, got no 'device'"):
        one.decide(frame.drop("device"))
    with pytest.raises(ValueError, match="event_id must be a list of 3, one a row"):
        one.decide(frame, event_id="x")


def test_frames_are_refused_in_words():
    frame = pl.DataFrame({"age": [30.0], "device": ["ios"]})
    shop = sb.Bandit(arm_features=["price"], context=["age"])
    for call, words in [
        (lambda: news().decide(frame.lazy()), "context must be a frame with its rows, got a LazyFrame"),
        (lambda: news().decide(frame, arms=["climate"]), "arms must be left out with a data frame"),
        (lambda: news().decide(frame, available=[True]), "available must be left out with a data frame"),
        (
            lambda: shop.decide(frame, arms={"tea": {"price": 3.0}}),
            "context must be values by names where arms bring",
        ),
        (lambda: sb.Bandit(dim=2).decide(frame), "context must be a matrix where features have no names"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def test_why_of_a_decision_that_is_asked_again_or_comes_from_a_store(tmp_path):
    with news(store=tmp_path / "news.db") as bandit:
        first = bandit.decide({"age": 3}, event_id="visit")
        bandit.decide({"age": 9}, event_id="other")
        bandit.learn("other", 1.0)
        twice = bandit.decide_many([{"context": {"age": 3}, "event_id": "visit"}] * 2)
        again = [bandit.decide({"age": 3}, event_id="visit"), bandit.recall("visit"), *twice]
        assert all(one.why == first.why for one in again)
        expected = first.why, bandit.recall("other").why
    with sb.Bandit.open(tmp_path / "news.db") as bandit:
        assert (bandit.recall("visit").why, bandit.recall("other").why) == expected
        assert bandit.decide({"age": 3}, event_id="visit").why == expected[0]
    matrices = sb.Bandit(dim=1)
    matrices.decide([[1.0], [2.0]], event_id="visit")
    for one in (matrices.recall("visit"), matrices.decide([[1.0], [2.0]], event_id="visit"), sb.Decision(0)):
        with pytest.raises(
            ValueError, match="a matrix has no names, and a client does not know the estimate"
        ):
            _ = one.why


def test_the_arms_on_offer_can_be_asked_for():
    bandit = news()
    bandit.add_arm("travel")
    bandit.remove_arm("climate")
    assert bandit.arms == bandit.decide({}).arms == ("football", "travel")
    assert sb.Bandit(arm_features=["price"]).arms is None
    assert sb.Bandit(dim=2).arms is None


def test_ids_are_asked_again_and_name_their_arms():
    bandit = news()
    first = bandit.decide({"age": 3}, event_id="visit")
    again = bandit.decide({"age": 3}, event_id="visit")
    assert again.again
    assert again.arm == first.arm
    assert bandit.decisions == 1
    with pytest.raises(sb.errors.ConflictError, match="event_id 'visit' was decided among other arms"):
        bandit.decide({"age": 3}, arms=["climate"], event_id="visit")


def prices(arms):
    return {arm: {"price": float(number)} for number, arm in enumerate(arms)}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_a_repeated_call_may_name_an_arm_that_was_removed(own, kept, tmp_path):
    """With a store and a window of 1, the decision of then is in the log alone."""
    settings = {"arm_features": ["price"]} if own else {}
    if kept:
        settings |= {"store": tmp_path / "x.db", "window": 1}
    bandit = sb.Bandit(arms=["a", "b", "c"], context=["x"], floor=0.1, **settings)
    some, two = (prices("ab"), prices("bc")) if own else (["a", "b"], ["b", "c"])
    first = bandit.decide({"x": 1.0}, arms=some, event_id="v")
    if kept:
        bandit.decide({"x": 2.0}, arms=some, event_id="w")
    bandit.remove_arm("b")
    asked = {"context": {"x": 1.0}, "arms": some, "event_id": "v"}
    fresh = {"context": {"x": 3.0}, "arms": prices("ac") if own else None, "event_id": "q"}
    before = state(bandit)
    again = bandit.decide({"x": 1.0}, arms=some, event_id="v")
    assert again.again
    assert (again.arm, again.arms) == (first.arm, ("a", "b"))
    assert state(bandit) == before
    many = bandit.decide_many([asked, fresh])
    assert [one.again for one in many] == [True, False]
    assert many[1].arms == ("a", "c")
    with pytest.raises(sb.errors.ConflictError, match="event_id 'v' was decided among other arms"):
        bandit.decide({"x": 1.0}, arms=two, event_id="v")
    for event_id in ("new", None):
        with pytest.raises(ValueError, match="got 'b', which was removed"):
            bandit.decide({"x": 1.0}, arms=some, event_id=event_id)
    with pytest.raises(ValueError, match="event_id must be"):
        bandit.decide({"x": 1.0}, arms=some, event_id="")
    bandit.close()


@pytest.mark.parametrize("own", [False, True])
def test_a_saved_bandit_has_decisions_among_arms_that_were_removed(own, tmp_path):
    bandit = sb.Bandit(
        arms=["a", "b", "c"], context=["x"], arm_features=["price"] if own else None, floor=0.1
    )
    bandit.decide({"x": 1.0}, prices("abc") if own else None, event_id="v")
    bandit.remove_arm("c")
    bandit.save(tmp_path / "bandit")
    loaded = sb.Bandit.load(tmp_path / "bandit")
    assert state(loaded) == state(bandit)
    assert loaded.learn("v", 1.0).counted
    assert loaded.recall("v").arms == ("a", "b", "c")


def test_a_word_of_a_deleted_decision_is_gone_from_a_bandit_made_anew():
    bandit = sb.Bandit(arms=["a", "b"], context=["user"], floor=0.1)
    bandit.decide({"user": "anna@example.org"}, subject="anna")
    bandit.decide({"user": "bob"}, subject="bob")
    bandit.delete(subject="anna")
    assert "user=anna@example.org" in bandit.design.names()
    anew = sb.Bandit.from_log(bandit.log(), arms=["a", "b"], context=["user"])
    assert "user=bob" in anew.design.names()
    assert b"anna" not in state(anew)


def test_decisions_can_be_pickled_and_deleted():
    bandit = news()
    decision = bandit.decide({"age": 3}, event_id="visit")
    assert pickle.loads(pickle.dumps(decision)).named.context == {"age": 3}
    with pytest.raises(ValueError, match="why must be asked of a decision with named features"):
        _ = pickle.loads(pickle.dumps(decision)).why
    bandit.delete("visit")
    assert bandit.log().height == 0
    with pytest.raises(ValueError, match="why must be asked of a decision whose named values are known"):
        _ = decision.why


WRONG = [
    (lambda one: one.decide({"agee": 3}), "'agee' must be a declared name of context"),
    (lambda one: one.decide({"age": "old"}), "age must be a number, got 'old'"),
    (lambda one: one.decide({"age": float("nan")}), "age must not be NaN, got nan"),
    (lambda one: one.decide([[1.0, 2.0]]), "context must be a table of values by their names"),
    (lambda one: one.decide({"age": 3}, arms=["golf"]), r"arms must be among 'climate', 'football', got 'golf'"),
    (lambda one: one.decide({"age": 3}, arms=[["golf"], "x"]), r"arms must be among .*, got \['golf'\], which is not"),
    (lambda one: one.decide({"age": 3}, available=[True]), "available must be left out where arms have names"),
    (lambda one: one.decide_many([{"context": {"age": 3}}, {"context": {"age": "x"}}]), "decision 1 of 2: age must"),
    (lambda one: one.add_arm("climate"), "arm must be a new one, got 'climate', which is there"),
    (lambda one: one.add_arm("x", like="golf"), "like must be an arm, got 'golf'"),
    (lambda one: one.remove_arm("golf"), "arm must be one that is there, got 'golf'"),
    (lambda one: one.add_arm(""), "arms must have names of 1 to 200 printable characters, got ''"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_what_cannot_be_is_refused_in_one_line_and_changes_nothing(call, words):
    bandit = news()
    bandit.decide({"age": 30.0, "device": "ios"})
    before = state(bandit)
    with pytest.raises(ValueError, match=words) as caught:
        call(bandit)
    assert "\n" not in str(caught.value)
    assert state(bandit) == before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "dim must be given where decisions bring matrices"),
        ({"dim": 2, "arms": ["a"]}, "dim must be left out where features have names, got 2 and arms"),
        ({"context": ["age"]}, "arms or arm_features must be given, got neither"),
        (
            {"features": sb.Features(arms=["a"]), "context": ["b"]},
            "context must be left out where features is given",
        ),
    ],
)
def test_bandits_that_cannot_be(settings, words):
    with pytest.raises(ValueError, match=words):
        sb.Bandit(**settings)
    plain = sb.Bandit(dim=2)
    with pytest.raises(
        ValueError, match=r"features must be a matrix of shape .arms, 2., got values by names"
    ):
        plain.decide({"age": 3})
    with pytest.raises(ValueError, match="arms must be declared to be changed by name"):
        plain.add_arm("x")


class Count(NamedTuple):
    count: Any


class Counting(NamedTuple):
    state: Count


class Learnt(NamedTuple):
    regression: Any
    seen: Any


class Seeing(NamedTuple):
    state: Learnt


@sb.extend.jit
def first(agent, arms, available, out):
    return 0, False


@sb.extend.jit
def count(agent, features, reward):
    agent.state.count[0] += 1


@dataclass(frozen=True)
class First(sb.extend.DecisionPolicy):
    kernels = sb.extend.Kernels(first, count, certain=True)

    def start(self, setting, rng):
        return Counting(Count(np.zeros(1, dtype=np.int64)))


@dataclass(frozen=True)
class Keeping(sb.extend.RegressionPolicy):
    """It keeps an array as wide as the features, and does not say how this changes with them."""

    kernels = sb.extend.Kernels(first, None, certain=True)

    def start(self, setting, rng):
        return Seeing(Learnt(self.make_regression(setting), np.zeros(setting.dim)))


@pytest.mark.parametrize("more", [{}, {"arm_features": ["price"]}])
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (First(), "policy must be a RegressionPolicy to grow with named features, .* got First"),
        (Keeping(), "policy must say how its state changes with its features, got Keeping"),
    ],
)
def test_a_policy_that_cannot_grow_is_refused_when_the_bandit_is_made(policy, words, more):
    with pytest.raises(ValueError, match=words) as caught:
        sb.Bandit(policy, arms=["a", "b"], context=["x"], **more)
    assert "\n" not in str(caught.value)
    assert sb.Bandit(policy, dim=2).decide([[1.0, 2.0]]).arm == 0  # it may decide from a matrix


def test_the_version_of_a_model_depends_on_what_is_declared():
    versions = {
        sb.Bandit(context=context, arms=["a", "b"]).decide({}).version.split("/")[1]
        for context in (["age"], ["age", "device"], {"age": "number"})
    }
    assert len(versions) == 3
