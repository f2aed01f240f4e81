"""Columns of named values as rounds: the features of `sb.Features`, from frames and files, wide and long."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits.features.design import Design
from solid_bandits.logs.named import expanded

ARMS = ["milk", "tea", "water"]


def table(rng, rows=40):
    """Numbers, words, truths and tags, some missing; rewards and prices by arm; arms that are not there."""
    words = ["ios", "tv", "web", None]
    data = {
        "age": [None if rng.random() < 0.2 else float(rng.normal(40, 9)) for _ in range(rows)],
        "device": [words[rng.integers(4)] for _ in range(rows)],
        "member": [bool(rng.random() < 0.5) for _ in range(rows)],
    }
    for arm in ARMS:
        data[f"price_{arm}"] = [float(rng.normal(3, 1)) for _ in range(rows)]
        data[f"kind_{arm}"] = [["mild", "strong"][rng.integers(2)] for _ in range(rows)]
        data[f"reward_{arm}"] = rng.normal(size=rows).tolist()
        data[f"there_{arm}"] = [arm == "tea" or bool(rng.random() < 0.7) for _ in range(rows)]
    return pl.DataFrame(data)


DECLARED = {
    "blocks": sb.Features(["age", "device", "member"], ARMS),
    "own": sb.Features(["age", "device"], None, ["price", "kind"]),
    "hybrid": sb.Features(["device", "member"], ["water", "tea", "milk"], ["price", "kind"]),
}


def offers(frame, features):
    """Each row as a caller would say it, and the arms that are there."""
    for row in frame.iter_rows(named=True):
        there = [arm for arm in features.arms or ARMS if row[f"there_{arm}"]]
        own = {arm: {name: row[f"{name}_{arm}"] for name in features.arm_features} for arm in there}
        yield {name: row[name] for name in features.context}, own if features.arm_features else there


def expected(frame, features):
    """One at a time by the design: first all rows taken in, then each encoded."""
    design, named = Design(features), []
    for context, arms in offers(frame, features):
        named.append(design.check(context, arms))
        design.take(named[-1])
    return [(one.arms, expanded(design, design.encode(one))) for one in named]


def same(stream, frame, features):
    arms = list(features.arms or ARMS)
    rounds = list(stream.every())
    found = np.concatenate([one.arrays.features for one in rounds])
    mask = np.concatenate([one.arrays.available for one in rounds])
    means = np.concatenate([one.arrays.means for one in rounds])
    assert stream.arm_names == arms
    assert len(stream.feature_names) == stream.dim
    for place, (names, rows) in enumerate(expected(frame, features)):
        slots = [arms.index(name) for name in names]
        assert np.flatnonzero(mask[place]).tolist() == sorted(slots)
        for slot, row, name in zip(slots, rows, names, strict=True):
            assert found[place, slot].tobytes() == row.tobytes()
            assert means[place, slot] == frame[f"reward_{name}"][place]


@pytest.mark.parametrize("kind", DECLARED)
def test_features_of_rounds_are_those_of_decisions(kind, tmp_path):
    frame, features = table(np.random.default_rng(1)), DECLARED[kind]
    given = {"reward": "reward_{arm}", "available": "there_{arm}", "named": features}
    same(sb.streams.from_frame(frame, **given), frame, features)
    same(sb.streams.from_frame(pd.DataFrame(frame.to_dict(as_series=False)), **given), frame, features)
    frame.write_parquet(tmp_path / "data.parquet")
    frame.write_csv(tmp_path / "data.csv")
    for name in ("data.parquet", "data.csv"):
        same(sb.streams.from_file(tmp_path / name, **given), frame, features)


@pytest.mark.parametrize("kind", ["own", "hybrid"])
def test_rows_of_arms_are_the_same_rounds(kind):
    frame, features = table(np.random.default_rng(2)), DECLARED[kind]
    rows = [
        {"visit": place, "name": arm}
        | {name: row[name] for name in ("age", "device", "member")}
        | {name: row[f"{name}_{arm}"] for name in ("price", "kind", "reward", "there")}
        for place, row in enumerate(frame.iter_rows(named=True))
        for arm in features.arms or ARMS
    ]
    stream = sb.streams.from_frame(
        pl.DataFrame(rows), round="visit", arm="name", reward="reward", available="there", named=features
    )
    wide = sb.streams.from_frame(frame, reward="reward_{arm}", available="there_{arm}", named=features)
    places = [stream.arm_names.index(arm) for arm in wide.arm_names]
    one, other = (
        np.concatenate([each.arrays.features for each in which.every()]) for which in (stream, wide)
    )
    np.testing.assert_array_equal(one[:, places], other)


def test_names_of_the_context_alone_and_a_label():
    frame = pl.DataFrame({"age": [20.0, 30.0, 50.0], "device": ["ios", None, "tv"], "right": ["x", "y", "x"]})
    stream = sb.streams.from_frame(frame, label="right", named=["age", "device"], shuffle=False)
    assert stream.feature_names[:5] == ["intercept", "age", "device=ios", "device missing", "device=tv"]
    (rounds,) = stream.every()
    spread = np.std([20.0, 30.0])  # renewed after one, two, four rows
    np.testing.assert_allclose(rounds.arrays.features[2, 0, :5], [1.0, (50 - 25) / spread, 0, 0, 1])
    results = sb.simulate(stream, {"it": sb.Greedy()}, horizon=3, runs=2, jobs=1)
    assert results.final()["runs"].item() == 2


def test_cells_of_text_are_read_as_their_types_want_them(tmp_path):
    (tmp_path / "data.csv").write_text(
        "code,size,seen,tags,win,reward_a,reward_b\n007,1.5,2026-03-01,x|y,true,1,0\n012,,2026-03-02,,false,0,1\n"
    )
    told = {"code": "category", "size": None, "seen": "weekday", "tags": "tags", "win": None}
    stream = sb.streams.from_file(tmp_path / "data.csv", reward="reward_{arm}", named=told)
    assert stream.naming.design.context.kinds == told | {"size": "number", "win": "boolean"}
    assert {"code=007", "size", "seen=Sunday", "tags=x", "tags missing", "win"} <= set(stream.feature_names)


FRAME = pl.DataFrame({"age": [1.0, 2.0], "reward_a": [0.0, 1.0], "reward_b": [1.0, 0.0]})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"named": ["size"]}, "column 'size' is missing; there are 'age'"),
        ({"named": ["age"], "context": "age"}, "context must be left out where named is given"),
        ({"named": ["age"], "intercept": False}, "intercept must be True where features have names"),
        ({"named": sb.Features(["age"], ["a"])}, "named must have the arms of the data, a, b, got a"),
        ({"named": {"age": "tags"}}, "row 0, round 0: age must be a list"),
        ({"named": {"age": "size"}}, "type of 'age' in context must be one of"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changed, words):
    with pytest.raises(ValueError, match=words):
        sb.streams.from_frame(FRAME, reward="reward_{arm}", **changed)


def test_streams_that_declare_otherwise_have_another_fingerprint(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    names = [["age"], {"age": "number"}]
    found = {
        sb.streams.from_file(tmp_path / "a.parquet", reward="reward_{arm}", named=one).fingerprint
        for one in names
    }
    assert len(found) == 2


def mixed(cells, rest):
    rows = [f"{one},{place % 2},{(place + 1) % 2}" for place, one in enumerate([*cells, *rest])]
    return "\n".join(["sku,reward_a,reward_b", *rows]) + "\n"


@pytest.mark.parametrize(
    ("cells", "rest", "names"),
    [
        (["", "A1", "12", "true"], [], ["intercept", "sku missing", "sku=A1", "sku=12", "sku=true"]),
        (["true", "false", ""], [], ["intercept", "sku", "sku missing"]),
        (["12", "7.5"], [], ["intercept", "sku"]),
        (["A1"] * 70_000, ["12"], ["intercept", "sku=A1", "sku=12"]),  # further than the file's first piece
    ],
    ids=["codes", "truths", "numbers", "pieces"],
)
def test_the_first_cell_that_is_not_empty_fixes_the_type_of_a_column(tmp_path, cells, rest, names):
    path = tmp_path / "sku.csv"
    path.write_text(mixed(cells, rest))
    stream = sb.streams.from_file(path, reward="reward_{arm}", named=["sku"])
    assert sorted(stream.feature_names[: len(names)]) == sorted(names)
    framed = sb.streams.from_frame(pl.read_csv(path), reward="reward_{arm}", named=["sku"])
    if set(cells) & {"A1", "12"}:  # polars reads `true` among codes as text, as the file's reader does
        assert stream.feature_names == framed.feature_names


def test_codes_whose_first_is_a_number_are_refused(tmp_path):
    path = tmp_path / "sku.csv"
    path.write_text(mixed(["12", "A1"], []))
    with pytest.raises(
        ValueError, match="sku must be a number, got 'A1'; to use words, declare it as a category"
    ):
        sb.streams.from_file(path, reward="reward_{arm}", named=["sku"])


def test_nan_is_missing_in_pandas_and_an_error_in_polars_wherever_a_frame_is_taken():
    data = {"arm": ["a", "b", "a"], "reward": [1.0, 0.0, 1.0], "age": [3.0, float("nan"), 5.0]}
    wide = {"reward_a": [0.0, 1.0, 1.0], "reward_b": [1.0, 0.0, 1.0]}
    takers = [
        lambda frame: sb.Bandit(arms=["a", "b"], context=["age"], seed=0).decide(frame),
        lambda frame: sb.logs.from_table(frame, context=["age"]),
        lambda frame: sb.streams.from_frame(frame, reward="reward_{arm}", named=["age"]),
    ]
    for take in takers:
        with pytest.raises(ValueError, match=r"(row|decision) 1\b.*age must not be NaN, got nan"):
            take(pl.DataFrame(data | wide))
        take(pl.DataFrame(data | wide).with_columns(pl.col("age").fill_nan(None)))
        take(pd.DataFrame(data | wide))
    log = sb.logs.from_table(
        pd.DataFrame(data | {"device": ["ios", float("nan"), "tv"]}), context=["age", "device"]
    )
    assert sb.logs.values(log).rows() == [(3.0, "ios"), (None, None), (5.0, "tv")]
    stream = sb.streams.from_frame(pd.DataFrame(wide | data), reward="reward_{arm}", named=["age"])
    assert stream.feature_names[:3] == ["intercept", "age", "age missing"]


def test_whole_numbers_of_pandas_are_categories_where_one_is_missing():
    frame = pd.DataFrame({"zip": [12345, None], "arm": ["a", "b"], "reward": [1.0, 0.0]})
    log = sb.logs.from_table(frame, context={"zip": "category"})
    assert sb.logs.values(log).rows() == [("12345",), (None,)]
    bandit = sb.Bandit(arms=["a", "b"], context={"zip": "category"}, seed=0)
    bandit.decide(frame)
    assert sb.logs.values(bandit.log()).rows() == [("12345",), (None,)]


def test_times_of_nanoseconds_and_decimals_are_values():
    bandit = sb.Bandit(arms=["a", "b"], context={"day": "date", "price": None}, seed=0)
    bandit.decide({"day": np.datetime64("2026-03-01T04", "ns"), "price": Decimal("1.5")})
    assert sb.logs.values(bandit.log()).rows() == [("2026-03-01T04:00:00", 1.5)]
