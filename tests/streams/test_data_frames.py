"""Data frames as streams: the same rounds whatever their shape and library; bad ones get one clear line."""

import os
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

import solid_bandits as sb

WIDE = pl.DataFrame(
    {
        "user": ["u", "v", "w"],
        "age": [20, 30, 40],
        "price_a": [1.0, 2.0, 3.0],
        "price_b": [4.0, None, 6.0],
        "open_a": [True, True, True],
        "open_b": [True, False, True],
        "reward_a": [1.0, 0.0, 0.5],
        "reward_b": [0.25, None, 1.0],
    }
)
ASKED = {
    "reward": "reward_{arm}",
    "features": ["price_{arm}"],
    "context": "age",
    "available": "open_{arm}",
    "event_id": "user",
}
LONG = pl.DataFrame(
    {
        "user": ["u", "u", "v", "w", "w"],
        "age": [20, 20, 30, 40, 40],
        "name": ["a", "b", "a", "a", "b"],
        "price": [1.0, 4.0, 2.0, 3.0, 6.0],
        "reward": [1.0, 0.25, 0.0, 0.5, 1.0],
    }
)
LONG_ASKED = {"reward": "reward", "round": "user", "arm": "name", "features": "price", "context": "age"}


def rounds(stream, seed=0, run=0):
    """All rounds of a run: features, counts, available, means; and their names."""
    found = list(stream.blocks(seed, run))
    assert len(found) == 1
    arrays = found[0].arrays
    return arrays.features.copy(), arrays.counts, arrays.available, arrays.means, list(found[0].event_ids)


def test_features_are_those_of_the_arm_and_the_context_in_its_block():
    stream = sb.streams.from_frame(WIDE, **ASKED, shuffle=False)
    features, counts, available, means, names = rounds(stream)
    assert features.tolist() == [
        [[1, 20, 1, 0, 0], [4, 0, 0, 20, 1]],
        [[2, 30, 1, 0, 0], [0, 0, 0, 30, 1]],
        [[3, 40, 1, 0, 0], [6, 0, 0, 40, 1]],
    ]
    assert counts.tolist() == [2, 2, 2]
    assert available.tolist() == [[True, True], [True, False], [True, True]]
    assert means.tolist() == [[1, 0.25], [0, 0], [0.5, 1]]
    assert names == ["u", "v", "w"]
    assert stream.arm_names == ["a", "b"]


def test_wide_long_polars_and_pandas_are_the_same():
    expected = rounds(sb.streams.from_frame(WIDE, **ASKED, shuffle=False))
    others = [
        sb.streams.from_frame(pd.DataFrame(WIDE.to_dict(as_series=False)), **ASKED, shuffle=False),
        sb.streams.from_frame(WIDE.lazy(), **ASKED, shuffle=False),
        sb.streams.from_frame(LONG, **LONG_ASKED, shuffle=False),
        sb.streams.from_frame(pd.DataFrame(LONG.to_dict(as_series=False)), **LONG_ASKED, shuffle=False),
        # Rows of a round need not follow each other in a frame; rounds come in the order in which they begin.
        sb.streams.from_frame(LONG[[0, 2, 4, 1, 3]], **LONG_ASKED, shuffle=False),
    ]
    for other in others:
        for one, two in zip(expected, rounds(other), strict=True):
            assert np.array_equal(one, two)


def test_arms_without_names_are_numbered_in_each_round():
    stream = sb.streams.from_frame(LONG, reward="reward", round="user", features="price", shuffle=False)
    features, counts, available, means, _ = rounds(stream)
    assert counts.tolist() == [2, 1, 2]
    assert features[:, :, 0].tolist() == [[1, 4], [2, 0], [3, 6]]
    assert (features[:, :, 1] == 1).all()  # one constant for all
    assert available.tolist() == [[True, True], [True, False], [True, True]]
    assert means.tolist() == [[1, 0.25], [0, 0], [0.5, 1]]
    assert stream.arm_names is None


def test_labels_give_one_for_the_right_arm():
    frame = pl.DataFrame({"x": [0.5, 1.5, 2.5], "kind": ["dog", "cat", "dog"]})
    stream = sb.streams.from_frame(frame, label="kind", context="x", shuffle=False)
    assert stream.arm_names == ["cat", "dog"]
    _, _, _, means, _ = rounds(stream)
    assert means.tolist() == [[0, 1], [1, 0], [0, 1]]
    other = sb.streams.classification(frame["x"].to_numpy()[:, None], frame["kind"].to_numpy(), shuffle=False)
    assert other.arm_names == stream.arm_names
    for one, two in zip(rounds(stream), rounds(other), strict=True):
        assert np.array_equal(one, two)


def test_names_that_are_numbers_are_in_their_order():
    stream = sb.streams.classification(np.zeros((3, 1)), [10, 9, 2])
    assert stream.arm_names == ["2", "9", "10"]


def test_joint_features_are_not_stored():
    X = np.random.default_rng(0).normal(size=(5000, 20))
    stream = sb.streams.classification(X, np.arange(5000) % 50)
    assert stream.dim == 50 * 21
    assert sum(one.nbytes for one in stream.arrays.values()) == 5000 * 21 * 8


def test_each_run_has_an_order_of_its_own_and_every_row_once():
    stream = sb.streams.classification(np.arange(40.0)[:, None], np.arange(40) % 2)
    orders = [rounds(stream, seed, run)[4] for seed, run in ((0, 0), (0, 1), (1, 0), (0, 0))]
    assert orders[0] == orders[3]
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == list(range(40)) for order in orders)
    still = sb.streams.classification(np.arange(40.0)[:, None], np.arange(40) % 2, shuffle=False)
    assert rounds(still, 0, 1)[4] == list(range(40))


def test_the_fingerprint_is_that_of_the_data():
    one, same = (sb.streams.from_frame(WIDE, **ASKED) for _ in range(2))
    other = sb.streams.from_frame(WIDE.with_columns(age=pl.col("age") + 1), **ASKED)
    ordered = sb.streams.from_frame(WIDE, **ASKED, shuffle=False)
    assert one.fingerprint == same.fingerprint
    assert len({one.fingerprint, other.fingerprint, ordered.fingerprint}) == 3


def changed(frame, row, **cells):
    """The frame with other cells in one row."""
    return frame.with_columns(
        pl.when(pl.int_range(pl.len()) == row)
        .then(pl.lit(value, dtype=frame.schema[name]))
        .otherwise(pl.col(name))
        .alias(name)
        for name, value in cells.items()
    )


NONE_OPEN = changed(WIDE, 2, open_a=False, open_b=False)
BAD = {
    "a missing column": (
        WIDE.drop("reward_b"),
        ASKED | {"features": ["prize_{arm}"]},
        r"column 'prize_a' is missing; there are 'user', 'age', .*did you mean 'price_a'\?",
    ),
    "no column of the template": (
        WIDE,
        {"reward": "gain_{arm}"},
        "reward must match columns, got 'gain_{arm}'; there",
    ),
    "NaN": (
        changed(WIDE, 1, price_a=float("nan")),
        ASKED,
        r"column 'price_a' must hold finite numbers .* got nan in row 1",
    ),
    "nothing": (
        changed(WIDE, 2, age=None),
        ASKED,
        "column 'age' must hold finite numbers .* got nothing in row 2",
    ),
    "infinity": (
        changed(WIDE, 0, reward_a=float("inf")),
        ASKED,
        "column 'reward_a' must hold finite numbers .* got inf in row 0",
    ),
    "a reward that is not known": (
        changed(WIDE, 0, reward_b=None),
        ASKED,
        "column 'reward_b' must hold .* got nothing in row 0",
    ),
    "no available arm": (NONE_OPEN, ASKED, "each round must have an available arm, got none in row 2"),
    "strings": (WIDE, ASKED | {"context": "user"}, "column 'user' must hold numbers, got 'u' in row 0"),
    "a mask of other numbers": (
        WIDE.with_columns(open_b=pl.Series([1, 0, 2])),
        ASKED,
        "column 'open_b' must hold true and false, or 1 and 0, got 2 in row 2",
    ),
    "no rows": (WIDE[:0], ASKED, "frame must have rows, got none"),
    "no frame": ([1, 2], ASKED, "frame must be a data frame of polars or pandas, got list"),
    "no reward": (WIDE, {"context": "age"}, "reward or label must be given, and not both, got neither"),
    "no template": (WIDE, {"reward": "reward_a"}, r"reward must have \{arm\} in it once .* or give round"),
    "arm without round": (LONG, {"reward": "reward", "arm": "name"}, "arm needs round"),
    "an arm twice": (
        changed(LONG, 1, name="a"),
        LONG_ASKED,
        "column 'name' must hold each arm once in a round, got 'a' in row 1",
    ),
    "a context that changes": (
        changed(LONG, 4, age=41),
        LONG_ASKED,
        "column 'age' must hold the same number in all rows of a round, got 41 in row 4",
    ),
    "a round without a name": (
        changed(LONG, 3, user=None),
        LONG_ASKED,
        "column 'user' must hold names, got nothing in row 3",
    ),
    "context without names": (
        LONG,
        {"reward": "reward", "round": "user", "context": "age"},
        "context needs arm",
    ),
    "a label that is missing": (
        WIDE.with_columns(user=pl.Series(["u", None, "w"])),
        {"label": "user", "context": "age"},
        "column 'user' must hold names, got nothing in row 1",
    ),
    "nothing to learn from": (
        LONG,
        {"reward": "reward", "round": "user", "intercept": False},
        "features must be given, or context",
    ),
    "context that is none": (
        WIDE,
        ASKED | {"context": None},
        "context must be a list of names of columns, got None",
    ),
    "features that are a number": (
        WIDE,
        ASKED | {"features": 5},
        "features must be a list of names of columns, got 5",
    ),
    "context in no order": (
        WIDE,
        ASKED | {"context": {"age", "user"}},
        "context must be a list of names of columns, got {",
    ),
    "a label beyond whole numbers": (
        pl.DataFrame({"y": [1.0, 1e300]}),
        {"label": "y"},
        r"column 'y' must hold names, all text or all whole numbers, got 1e\+300 in row 1",
    ),
    "a round beyond whole numbers": (
        pl.DataFrame({"r": [1.0, 1e300], "w": [0, 1]}),
        {"round": "r", "reward": "w"},
        r"column 'r' must hold names, .* got 1e\+300 in row 1",
    ),
    "a label that is a list": (
        pl.DataFrame({"y": [[1], [2]]}),
        {"label": "y"},
        r"column 'y' must hold names, .* got \[1\] in row 0",
    ),
    "a label that is no text": (
        pl.DataFrame({"y": [b"a", b"\xff"]}),
        {"label": "y"},
        r"column 'y' must hold names, .* got b'.xff' in row 1",
    ),
    "a label that is a duration": (
        pl.DataFrame({"y": [timedelta(1)]}),
        {"label": "y"},
        "column 'y' must hold names, .* in row 0",
    ),
    "a round of objects": (
        pl.DataFrame({"r": pl.Series([object()], dtype=pl.Object), "w": [1]}),
        {"round": "r", "reward": "w"},
        "column 'r' must hold names, .* got <object .* in row 0",
    ),
    "a context that is a list": (
        WIDE.with_columns(age=pl.Series([[1], [2], [3]])),
        ASKED,
        r"column 'age' must hold numbers, got \[1\] in row 0",
    ),
    "an event that is a list": (
        WIDE.with_columns(user=pl.Series([[1], [2], [3]])),
        ASKED | {"event_id": "user"},
        r"column 'user' must hold names, .* got \[1\] in row 0",
    ),
    "a column of pandas twice": (
        pd.DataFrame([[1, 2, 0, 1]], columns=["x", "x", "reward_a", "reward_b"]),
        {"reward": "reward_{arm}", "context": "x"},
        "column 'x' must be in the frame once, got 2 of that name",
    ),
    "text and numbers of pandas": (
        pd.DataFrame({"y": ["1", 1]}),
        {"label": "y"},
        "column 'y' must hold names, all text or all whole numbers, got 1 in row 1",
    ),
    "arrays of pandas": (
        pd.DataFrame({"y": ["a", "b"], "x": [np.ones(2), np.ones(3)]}),
        {"label": "y", "context": "x"},
        r"column 'x' must hold numbers, got \[1.0, 1.0\] in row 0",
    ),
    "a number of pandas that is too large": (
        pd.DataFrame({"y": ["a", "b"], "x": [1, 10**400]}),
        {"label": "y", "context": "x"},
        "column 'x' must hold finite numbers .* got 1000.* in row 1",
    ),
    "a lazy frame that fails": (
        WIDE.lazy().with_columns(age=pl.col("user").cast(pl.Int64)),
        ASKED,
        "frame must be a lazy frame that can be collected",
    ),
    "too large": (
        changed(WIDE, 1, price_a=1e31),
        ASKED,
        "column 'price_a' must hold finite numbers of at most 1e[+]30 in size, got 1e[+]31 in row 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_frames_get_one_line_with_the_row(case):
    frame, asked, message = BAD[case]
    with pytest.raises(ValueError, match=message) as caught:
        sb.streams.from_frame(frame, **asked)
    assert "\n" not in str(caught.value)


def test_a_word_among_the_numbers_of_pandas_is_found():
    frame = pd.DataFrame({"x": [1.0, 2.0, "three"], "reward_a": [1, 2, 3], "reward_b": [1, 2, 3]})
    with pytest.raises(ValueError, match="column 'x' must hold numbers, got 'three' in row 2"):
        sb.streams.from_frame(frame, reward="reward_{arm}", context="x")


def test_nullable_columns_of_pandas_and_columns_that_are_numbers():
    frame = pd.DataFrame(
        {0: pd.array([1, 2, None], dtype="Int64"), "reward_a": [1, 2, 3], "reward_b": [1, 2, 3]}
    )
    asked = {"reward": "reward_{arm}", "context": "0"}
    with pytest.raises(ValueError, match=r"column '0' must hold finite numbers .* got nan in row 2"):
        sb.streams.from_frame(frame, **asked)
    assert sb.streams.from_frame(frame[:2], **asked).length == 2


def test_rows_of_messages_are_those_of_the_frame_as_it_was_given():
    mixed = LONG[[0, 2, 4, 1, 3]].with_columns(price=pl.Series([1.0, 2.0, 3.0, None, 5.0]))
    with pytest.raises(ValueError, match=r"column 'price' .* got nothing in row 3"):
        sb.streams.from_frame(mixed, **LONG_ASKED)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [np.nan]], [0, 1], r"X must be finite everywhere, got nan at index \(1, 0\)"),
        ([[1.0], [2.0]], [0], r"y must have shape \(2,\), one for each row, got \(1,\)"),
        ([["a"], ["b"]], [0, 1], "X must be an array of numbers"),
        ([[1.0], [2.0]], [0.5, 1], "column 'y' must hold names, .* got 0.5 in row 0"),
        ([[1.0], [2.0]], [1, 1e300], r"column 'y' must hold names, .* got 1e\+300 in row 1"),
        ([[1.0], [2.0]], np.array(["a", 1], dtype=object), "'y' must hold names, all text .* got 1 in row 1"),
        (
            [[1.0], [2.0]],
            np.array([1, [2]], dtype=object),
            r"column 'y' must hold names, .* got \[2\] in row 1",
        ),
        ([[1.0], [2.0]], [[1], [1, 2]], "y must be text or whole numbers, one for each row, got"),
        ([[1.0], [2.0]], [1j, 2], "y must be text or whole numbers, got complex128"),
        (
            [[1.0], [2.0]],
            np.ma.array([1, 2], mask=[0, 1]),
            "y must be text or whole numbers, got masked values",
        ),
    ],
)
def test_bad_classifications(X, y, message):
    with pytest.raises(ValueError, match=message):
        sb.streams.classification(X, y)


def test_objects_that_are_names_or_numbers_are_taken():
    whole = sb.streams.classification([[1.0], [2.0]], np.array([10**30, 2], dtype=object))
    assert whole.arm_names == ["2", str(10**30)]
    text = sb.streams.classification([[1.0], [2.0]], np.array(["b", "a"], dtype=object))
    assert text.arm_names == ["a", "b"]
    frame = pd.DataFrame({"r": [10**30, 10**30], "x": [1, 2.5], "w": [True, 0]}, dtype=object)
    long = sb.streams.from_frame(frame, round="r", reward="w", features="x")
    assert (long.length, long.n_arms) == (1, 2)
    assert long.arrays["own"][0, :, 0].tolist() == [1.0, 2.5]


ORDERS = """
import polars as pl, solid_bandits as sb, sys
for labels in (["1", "01", "1.0", "001"], ["1", "nan", "3", "2"], ["10", "9", "-1"], ["b", "a", "1"]):
    frame = pl.DataFrame({"y": labels, "x": range(len(labels))})
    stream = sb.streams.from_frame(frame, label="y", context="x")
    frame.write_csv(sys.argv[1])
    filed = sb.streams.from_file(sys.argv[1], label="y", context="x")
    print(stream.arm_names, filed.arm_names == stream.arm_names, stream.fingerprint)
"""


def test_the_order_of_arms_is_the_same_in_every_process(tmp_path):
    found = {
        subprocess.run(
            [sys.executable, "-c", ORDERS, str(tmp_path / "data.csv")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1
    orders = [line.partition("]")[0] + "]" for line in found.pop().splitlines()]
    assert orders == [
        "['001', '01', '1', '1.0']",
        "['1', '2', '3', 'nan']",
        "['-1', '9', '10']",
        "['1', 'a', 'b']",
    ]


def test_more_features_than_are_taken():
    with pytest.raises(ValueError, match=r"context must leave .* at most 10000, got 0 \+ 200 \* 101"):
        sb.streams.classification(np.zeros((200, 100)), np.arange(200))
