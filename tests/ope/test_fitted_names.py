"""Would a name have helped? Policies that see other named values than the logger, learning from the first half."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import ope
from solid_bandits.live.tables import read_log
from solid_bandits.ope.named import asked_words

ARMS = ["x", "y"]


@pytest.fixture(scope="module")
def log():
    """Only age matters: above 40 x is right, below it y."""
    rng = np.random.default_rng(4)
    bandit = sb.Bandit(arms=ARMS, context=["age", "device"], floor=1.0, seed=1)
    for place in range(1200):
        values = {"age": float(rng.normal(40, 9)), "device": str(rng.choice(["ios", "tv"]))}
        decision = bandit.decide(values, event_id=f"e{place}")
        sign = 1.0 if decision.arm == "x" else -1.0
        bandit.learn(decision.event_id, sign * np.sign(values["age"] - 40) + 0.1 * float(rng.normal()))
    return bandit.log()


def test_a_policy_that_sees_the_age_is_worth_more_than_one_that_does_not(log):
    without = sb.Features(context=["device"], arms=ARMS)
    seeing, rest = ope.fitted(log, sb.Greedy())
    blind, same = ope.fitted(log, sb.Greedy(), features=without)
    assert rest.equals(same)
    assert rest.equals(log[600:])
    found = ope.evaluate(rest, {"seeing": seeing, "blind": blind}, ["ips"])
    assert found["seeing"].value("ips") > 0.7
    assert abs(found["blind"].value("ips")) < 0.3


def test_it_has_learnt_what_a_bandit_learns_from_the_first_half(log):
    features = sb.Features(context={"age": "number"}, arms=["y", "x"])
    found, _ = ope.fitted(log, sb.LinTS(), features=features, noise_std=0.5, seed=3)
    wanted = sb.Bandit.from_log(log[:600], sb.LinTS(), features=features, noise_std=0.5, seed=3)
    for age in (20.0, 39.0, 60.0):
        one, other = (
            made.agent.predict(made.design.encode(made.design.check({"age": age}, None)))
            for made in (found, wanted)
        )
        np.testing.assert_array_equal(one, other)
    assert found._learned == 600


def test_nothing_is_learnt_from_the_rows_that_are_evaluated(log):
    """The rest may say what it likes: what was learnt is the same."""
    both = sb.logs.with_features(log)
    turned = both.with_columns(reward=pl.when(pl.int_range(1200) < 600).then("reward").otherwise(7.0))
    asked = np.array(both["features"][0].to_list())
    one, other = (ope.fitted(each, sb.Greedy())[0].predict(asked) for each in (both, turned))
    np.testing.assert_array_equal(one, other)


def test_a_log_that_has_features_too_is_seen_by_its_names_where_they_are_given(log):
    both = sb.logs.with_features(log)
    features = sb.Features(context=["age"], arms=ARMS)
    by_numbers, rest = ope.fitted(both, sb.Greedy())
    by_names, _ = ope.fitted(both, sb.Greedy(), features=features)
    assert by_numbers.dim == 8
    found = ope.evaluate(rest, {"numbers": by_numbers, "names": by_names}, ["ips"])
    assert min(one.value("ips") for one in found.values()) > 0.7


def test_words_take_names_away(log, tmp_path):
    sb.logs.write(log, tmp_path / "log.parquet")
    reader, policies = asked_words(tmp_path / "log.parquet", ["greedy", "uniform"], without=["age"])
    assert list(policies) == ["uniform", "Greedy, of the first half", "Greedy without age, of the first half"]
    found = ope.evaluate(reader, policies, ["ips"])
    assert found["Greedy, of the first half"].value("ips") > 0.7
    assert abs(found["Greedy without age, of the first half"].value("ips")) < 0.3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda log: ope.fitted(log, sb.Greedy(), features=["age"]), "features must be sb.Features"),
        (
            lambda log: ope.fitted(log, sb.Greedy(), features=sb.Features(context=["age"], arms=["x"])),
            "must be among 'x', got 'y'",
        ),
        (
            lambda log: ope.fitted(log, sb.Greedy(), features=sb.Features(context=["agee"], arms=ARMS)),
            "features must be names of the log's context, got 'agee'; there are 'age', 'device'; did you mean 'age'",
        ),
        (
            lambda log: ope.fitted(
                log, sb.Greedy(), features=sb.Features(context=["age"], arm_features=["price"])
            ),
            "features must be names of the log's arm_features, got 'price'; there are none",
        ),
        (
            lambda log: asked_words(log, ["uniform"], without=["age"]),
            "without must go with a policy that learns from the log, .* got uniform",
        ),
        (
            lambda log: ope.evaluate(log, lambda context, names: "x", ["ips"]),
            r"such as names.index\('x'\), got 'x'",
        ),
        (
            lambda log: ope.evaluate(
                log, "uniform", ["cadr"], logger=sb.Bandit(arms=ARMS, context=["age", "device"])
            ),
            "logger must be a Bandit that decides from matrices .*: leave it out",
        ),
        (
            lambda log: ope.choose(log, {"one": sb.Greedy(), "other": sb.LinTS()}),
            r"log must have features .*sb.logs.with_features\(log\)",
        ),
        (
            lambda log: ope.replay(log, sb.Bandit(arms=ARMS, context=["age", "device"])),
            r"agent must be an Agent, .*sb.logs.with_features\(log\)",
        ),
        (
            lambda log: ope.replay(log, sb.Agent(sb.LinTS(), dim=6)),
            r"log must have features to replay .*sb.logs.with_features\(log\)",
        ),
        (
            lambda log: asked_words(log, ["greedy"], without=["size"]),
            "must be a name that the log has, got 'size'; ",
        ),
        (
            lambda log: ope.fitted(
                {"arm": ARMS * 9, "reward": [1.0] * 18},
                sb.Greedy(),
                features=sb.Features(context=["age"], arms=ARMS),
            ),
            "log must have named values in every row",
        ),
        (
            lambda log: ope.fitted({"arm": ARMS * 9, "reward": [1.0] * 18}, sb.Greedy()),
            "must have features, or named",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(log, call, words):
    with pytest.raises(ValueError, match=words):
        call(log)


def test_a_function_sees_the_context_by_its_names(log):
    """Older than 40: x; what such a policy earns is 1, and the other way round -1."""

    def by_age(context, names):
        return names.index("x" if context["age"] > 40 else "y")

    def turned(context, names):
        return 1 - by_age(context, names)

    found = ope.evaluate(log, {"by age": by_age, "turned": turned}, ["snips"])
    assert found["by age"].value("snips") == pytest.approx(1, abs=0.02)
    assert found["turned"].value("snips") == pytest.approx(-1, abs=0.02)


def test_the_hint_is_true(log):
    """What the errors advise works."""
    both = sb.logs.with_features(log)
    run = ope.replay(both, sb.Agent(sb.LinTS(), dim=8, noise_std=1.0))
    assert len(run.rewards) > 100
    assert ope.choose(both, {"one": sb.Greedy(), "other": sb.LinTS()}).decisions > 0


HOURS = {"t": "hour", "age": None}
DECLARED = {
    "types": sb.Features(HOURS, ARMS),
    "pairs": sb.Features(["age", "t"], ARMS, interactions=[("age", "t")], categories=5),
    "hybrid": sb.Features(HOURS, ARMS, ["price"], interactions=[("age", "price")]),
}


def played(features, rows=240, **settings):
    """A bandit that sees a time, an age and prices; x is right before noon."""
    rng = np.random.default_rng(5)
    bandit = sb.Bandit(features=features, floor=0.5, seed=2, noise_std=1.0, **settings)
    for place in range(rows):
        time = datetime(2026, 3, 1) + timedelta(minutes=37 * place)
        own = {arm: {"price": float(rng.normal())} for arm in ARMS} if features.arm_features else None
        given = {"t": time if features.context["t"] else str(time), "age": float(rng.normal())}
        choice = bandit.decide(given, own, event_id=f"e{place}")
        bandit.learn(choice.event_id, float((time.hour < 12) == (choice.arm == "x")) + 0.1 * rng.normal())
    return bandit


def shares_of(policy, rest):
    return ope.evaluate(rest, {"it": policy}, ["ips", "snips"])["it"].table


@pytest.mark.parametrize("features", DECLARED.values(), ids=DECLARED)
def test_a_bandit_and_its_store_are_evaluated_as_they_declare(features, tmp_path):
    bandit = played(features, store=tmp_path / "shop.db")
    wanted, rest = ope.fitted(bandit.log(), sb.Greedy(), features=features)
    assert wanted.design.features == features
    expected = shares_of(wanted, rest)
    for source in (bandit, tmp_path / "shop.db"):
        found, after = ope.fitted(source, sb.Greedy())
        assert found.design.features == features
        assert found.design.names() == wanted.design.names()
        assert shares_of(found, after).equals(expected)
    plain, rest = ope.fitted(bandit.log(), sb.Greedy())  # a log on its own has no declaration
    assert plain.design.features != features
    bandit.close()


def test_arms_that_came_later_are_added_to_those_declared():
    bandit = played(DECLARED["types"], rows=20)
    bandit.add_arm("z")
    for place in range(60):
        choice = bandit.decide({"t": "2026-03-01T10:00", "age": 1.0}, event_id=f"late{place}")
        bandit.learn(choice.event_id, float(place % 2))
    found, _ = ope.fitted(bandit, sb.Greedy())
    assert found.design.features == sb.Features(HOURS, [*ARMS, "z"])


def test_a_name_is_left_out_of_what_a_store_declares(tmp_path):
    features = sb.Features(
        HOURS | {"n": "category"}, ARMS, ["price"], [("age", "price"), ("n", "price")], categories=7
    )
    path = tmp_path / "shop.db"
    played(features, store=path).close()
    left = sb.Features({"t": "hour", "n": "category"}, ARMS, ["price"], [("n", "price")], categories=7)
    for where in ([], [f"policy={read_log(path)['policy'][0]}"]):
        _, policies = asked_words(path, ["greedy"], where=where, without=["age"])
        assert policies["Greedy, of the first half"].design.features == features
        assert policies["Greedy without age, of the first half"].design.features == left
