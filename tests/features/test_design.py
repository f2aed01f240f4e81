"""Named values as features: against what they say, and against their own past."""

import json
import math
from datetime import UTC, date, datetime

import numpy as np
import pytest

from histories import features_of, offer_of, seeds
from solid_bandits.features.design import Design
from solid_bandits.features.spec import Features


def told(design, context, arms=None):
    """Take a row in and return its features."""
    named = design.check(context, arms)
    design.take(named)
    return design.encode(named)


def grown(rows, design, change, blocked):
    """Features of before in the coordinates of now: new ones are 0, the others go through the basis."""
    wide = np.hstack([rows, np.zeros((len(rows), design.dim - (rows.shape[1] - blocked)))])
    if change.basis is not None:
        wide[:, blocked:] = wide[:, blocked:] @ change.basis.T
    return wide


@pytest.mark.parametrize("part", range(4))
def test_features_of_all_rows_move_as_the_changes_say(part):
    """50 random histories each: what was encoded before, moved along, is what is encoded now."""
    for rng in seeds(200)[part * 50 : part * 50 + 50]:
        features = features_of(rng)
        design = Design(features)
        blocked = int(design.blocked)
        seen, moved = [], []
        for _ in range(40):
            if features.arms and rng.random() < 0.1:
                come_and_go(design, rng)
                if not blocked:
                    moved = [
                        np.hstack([one, np.zeros((len(one), design.dim - one.shape[1]))]) for one in moved
                    ]
            named = design.check(*offer_of(features, rng, design.offered()))
            change = design.take(named)
            moved = [grown(one, design, change, blocked) for one in moved]
            seen.append(named)
            moved.append(design.encode(named))
        for named, one in zip(seen, moved, strict=True):
            now = design.encode(named)
            assert now.shape == one.shape
            np.testing.assert_allclose(one, now, rtol=0, atol=1e-6)


def come_and_go(design, rng):
    there = design.offered()
    if len(there) > 1 and rng.random() < 0.5:
        design.remove_arm(there[rng.integers(len(there))])
        return
    gone = sorted(design.removed)
    design.add_arm(gone[0] if gone and rng.random() < 0.5 else f"new {len(design.arms)}")


def test_two_hundred_histories_are_replayed_bit_for_bit_from_any_snapshot():
    for rng in seeds(200):
        features = features_of(rng)
        design = Design(features)
        twin = Design(Features.from_plain(json.loads(json.dumps(features.to_plain()))))
        for _ in range(30):
            if features.arms and rng.random() < 0.1:
                state = rng.bit_generator.state
                come_and_go(design, rng)
                rng.bit_generator.state = state
                come_and_go(twin, rng)
            offer = offer_of(features, rng, design.offered())
            named = design.check(*offer)
            logged = json.loads(json.dumps([named.context, named.arms, named.own]))
            again = twin.check(
                logged[0], logged[1] if logged[2] is None else dict(zip(logged[1], logged[2], strict=True))
            )
            changes = design.take(named), twin.take(again)
            assert changes[0].added == changes[1].added
            assert (changes[0].basis is None) == (changes[1].basis is None)
            if changes[0].basis is not None:
                assert changes[0].basis.tobytes() == changes[1].basis.tobytes()
            assert design.encode(named).tobytes() == twin.encode(again).tobytes()
            if rng.random() < 0.2:
                twin = Design.restored(features, json.loads(json.dumps(design.state())))
        assert json.dumps(design.state()) == json.dumps(twin.state())


@pytest.mark.parametrize(("factor", "offset"), [(1000.0, 0.0), (0.001, 0.0), (1.0, 1000.0), (-2.0, 7.0)])
def test_units_and_offsets_of_a_column_change_no_feature(factor, offset):
    rng = np.random.default_rng(3)
    designs = [Design(Features(["x", "y", "z"], ["a"], interactions=[("x", "y")])) for _ in range(2)]
    for _ in range(100):
        x, y = float(rng.normal(5.0, 2.0)), None if rng.random() < 0.2 else float(rng.random())
        z = "u" if rng.random() < 0.5 else "v"
        plain, other = ({"x": one, "y": y, "z": z} for one in (x, factor * x + offset))
        one, two = (told(design, row) for design, row in zip(designs, (plain, other), strict=True))
        columns = [place for place, name in enumerate(designs[0].names()) if "x" in name]
        two[:, [1 + place for place in columns]] *= math.copysign(1.0, factor)
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-9)


def test_numbers_are_standardised_by_all_that_was_seen_at_doubling_counts():
    rng = np.random.default_rng(4)
    design = Design(Features(["x"], ["a"]))
    seen, used = [], []
    for count in range(1, 200):
        seen.append(float(rng.gamma(2.0)) + 300.0)
        found = told(design, {"x": seen[-1]})[0, 2]
        if count & (count - 1) == 0:
            used = list(seen)
        if count > 2:
            assert found == pytest.approx((seen[-1] - np.mean(used)) / np.std(used), abs=1e-9)


def test_a_value_far_out_renews_at_once():
    design = Design(Features(["x"], ["a"]))
    for value in (1.0, 2.0, 3.0, 1.5, 2.5, 1.0, 3.0, 2.0, 2.0):
        told(design, {"x": value})
    assert abs(told(design, {"x": 1e29})[0, 2]) < 4.0


def test_a_constant_column_says_nothing_until_it_varies():
    design = Design(Features(["x"], ["a"]))
    assert [told(design, {"x": 7.0})[0, 2] for _ in range(5)] == [0.0] * 5
    assert told(design, {"x": 8.0})[0, 2] > 0.0
    assert told(design, {"x": 7.0})[0, 2] == 0.0  # the rows before stay where they were
    tiny = Design(Features(["x"], ["a"]))
    told(tiny, {"x": 0.1 + 0.2})
    assert told(tiny, {"x": 0.3})[0, 2] == 0.0  # rounding is no spread


def test_types_are_those_of_the_first_values_that_are_not_missing():
    design = Design(Features(["n", "b", "c", "t"], ["a"]))
    told(design, {"n": None})
    told(design, {"n": 3, "b": np.True_, "c": "ios", "t": ["x", "y"]})
    assert design.context.kinds == {"n": "number", "b": "boolean", "c": "category", "t": "tags"}
    found = told(design, {"n": 3, "b": False, "c": "web", "t": ["y"]})
    shown = dict(zip(design.names(), found[0, 1:], strict=True))
    assert {name for name, value in shown.items() if value == 1.0} == {"intercept", "c=web", "t=y"}
    assert shown["b"] == 0.0
    assert shown["n missing"] == 0.0


def test_missing_is_a_value_of_its_own():
    design = Design(Features(["n", "c"], ["a"]))
    for value in (1.0, 3.0, 8.0):
        told(design, {"n": value, "c": "x"})
    found = told(design, {})
    shown = dict(zip(design.names(), found[0, 1:], strict=True))
    assert shown["n missing"] == shown["c missing"] == 1.0
    assert shown["n"] == shown["c=x"] == 0.0


def test_categories_beyond_the_limit_share_one_column():
    design = Design(Features(["c"], ["a"], categories=3))
    for word in "abcdefg":
        told(design, {"c": word})
    assert design.names() == ["intercept", "c=a", "c=b", "c=c", "c other"]
    assert told(design, {"c": "zzz"})[0, 1:].tolist() == [1, 0, 0, 0, 1]


def test_so_many_features_that_no_category_gets_a_column():
    design = Design(Features(["c", "t"], ["a"], categories=1000, interactions=[("c", "t")]))
    for number in range(300):
        told(design, {"c": f"c{number}", "t": [f"t{number}-{one}" for one in range(20)]})
    assert design.dim < 4000
    assert "c other" in design.names()


def test_features_beyond_the_limit_are_refused_and_change_nothing():
    """998 names among 9 arms have 8,992 features, and nearly twice as many with a column for each missing value."""
    names = [f"x{number}" for number in range(997)]
    design = Design(Features([*names, "c"], [str(arm) for arm in range(9)], ["p"]))
    own = {"0": {"p": 1.0}}
    whole = dict.fromkeys(names, 1.0)
    design.take(design.check(whole, own))
    before = json.dumps(design.state())
    widths = design.context.width, design.own.width, design.context.room
    for _ in range(2):
        with pytest.raises(ValueError, match=r"features must be at most 10,000, got 1[78],\d{3}"):
            design.take(design.check({"c": "word"}, {"0": {}}))
        assert json.dumps(design.state()) == before
        assert (design.context.width, design.own.width, design.context.room) == widths
    assert design.add_arm("new") == 999
    for _ in range(2):
        with pytest.raises(ValueError, match=r"features must be at most 10,000, got 10,99\d"):
            design.add_arm("newer")
        assert design.arms[-1] == "new"
    row = design.check(whole, own)
    design.take(row)
    assert design.encode(row).shape == (1, design.dim)


def test_dates():
    kinds = {"day": "date", "weekday": "weekday", "hour": "hour"}
    design = Design(Features(kinds, ["a"]))
    at = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
    told(design, {"day": date(2026, 3, 2), "weekday": at, "hour": at})
    assert "weekday=Monday" in design.names()
    assert "hour=14" in design.names()
    assert design.context.raw({"day": "1970-01-11"})[1] == 10.0
    assert design.context.raw({"day": at.isoformat()})[1] == at.timestamp() / 86400


def test_arms_own_features_and_their_products_with_the_context():
    design = Design(Features(["age"], None, ["price"]))
    for age, low, high in ((20.0, 1.0, 2.0), (60.0, 3.0, 5.0), (33.0, 2.0, 4.0)):
        found = told(design, {"age": age}, {"x": {"price": low}, "y": {"price": high}})
    assert design.names() == ["intercept", "age", "price", "age × price"]
    assert (found[:, 0] == 1.0).all()
    np.testing.assert_allclose(found[:, 3], found[:, 1] * found[:, 2])


def test_a_hybrid_has_own_coefficients_for_the_context_and_shared_ones_for_the_arms_features():
    design = Design(Features({"vip": "boolean"}, ["x", "y"], ["price"]))
    told(design, {"vip": False}, {"x": {"price": 1.0}, "y": {"price": 2.0}})
    found = told(design, {"vip": True}, {"y": {"price": 3.0}})
    shown = dict(zip(design.names(), found[0], strict=True))
    assert set(shown) == {"intercept of x", "intercept of y", "vip of x", "vip of y", "price"}
    assert shown["intercept of y"] == shown["vip of y"] == 1.0
    assert shown["intercept of x"] == shown["vip of x"] == 0.0


WRONG = [
    ({"agee": 3}, "'agee' must be a declared name of context: there are 'age', 'device'; did you mean 'age'"),
    ({"age": "34"}, "age must be a number, got '34'; give a number"),
    ({"age": True}, "age must be a number, got True; give a number"),
    ({"age": "old"}, "age must be a number, got 'old'; to use words, declare it as a category, 'age': 'category'"),
    ({"age": float("nan")}, "age must not be NaN, got nan; leave out the name, or give None"),
    ({"age": float("inf")}, "age must be a number, got inf"),
    ({"device": ["a"]}, r"device must be text of 1 to 200 printable characters, or a whole number, got \['a'\]"),
    ({"device": ""}, "device must be text"),
    ([3, 4], r"context must be a table of values by their names, got \[3, 4\]"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "words"), WRONG)
def test_what_cannot_be_is_refused_in_one_line_and_changes_nothing(row, words):
    design = Design(Features({"age": "number", "device": "category"}, ["a", "b"]))
    told(design, {"age": 3, "device": "ios"})
    before = json.dumps(design.state())
    with pytest.raises(ValueError, match=words) as caught:
        design.check(row, None)
    assert "\n" not in str(caught.value)
    assert json.dumps(design.state()) == before


def test_a_batch_is_checked_by_the_types_that_its_own_rows_fix():
    design = Design(Features(["age"], ["a"]))
    batch = design.begin_check()
    design.check({"age": 3}, None, batch)
    with pytest.raises(ValueError, match="age must be a number, got 'three'"):
        design.check({"age": "three"}, None, batch)
    assert design.context.kinds == {"age": None}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"context": ["a"]}, "arms or arm_features must be given, got neither"),
        ({"context": ["a", "a"], "arms": ["x"]}, "context must name each feature once"),
        ({"context": {"a": "text"}, "arms": ["x"]}, "type of 'a' in context must be one of number,"),
        ({"arms": ["x", "x"]}, "arms must be different from each other"),
        ({"arms": "x"}, "arms must be a list of names, got 'x'"),
        (
            {"context": ["a"], "arm_features": ["a"]},
            "arm_features must have other names than context, got 'a'",
        ),
        (
            {"context": ["a"], "arms": ["x"], "interactions": [("a", "b")]},
            "interactions must be one of a, got 'b'",
        ),
        ({"arms": ["x"], "categories": 0}, "categories must be an integer >= 1, got 0"),
    ],
)
def test_declarations_that_cannot_be(arguments, words):
    with pytest.raises(ValueError, match=words):
        Features(**arguments)
