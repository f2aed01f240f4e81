"""JSON that becomes declared classes: what is refused, and in which words."""

import json
import math
import random
import re
import struct

import numpy as np
import pytest

from solid_bandits._internal.decoding import AtLeastOne, Content, Count, NotNegative, convert, decode, encode
from solid_bandits._internal.types import Floats, Ints


class Row(Content):
    """Of a table in the file."""

    name: str
    worst: list[tuple[float, Count]] = []  # noqa: RUF012  # msgspec copies it
    share: NotNegative | None = None


class File(Content):
    """All of it."""

    runs: AtLeastOne
    rows: dict[str, Row]
    first: Row | None = None
    flag: bool = False


GOOD = {"runs": 3, "rows": {"a": {"name": "x"}}, "first": {"name": "y", "worst": [[1, 2]]}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runs": -1}, "runs must be an integer >= 1, got -1"),
        ({"runs": True}, "runs must be an integer, got True"),
        ({"runs": 1.5}, "runs must be an integer, got 1.5"),
        ({"runs": 2**53 + 1}, "runs must be an integer <= 9007199254740992, got 9007199254740993"),
        ({"rows": []}, "rows must be a table, got []"),
        ({"rows": {"../x": 3}}, "rows[...] must be a table, got an integer"),
        ({"rows": {"../x": {}}}, "rows[...].name is missing"),
        ({"first": {"name": None}}, "first.name must be text, got None"),
        ({"first": {"name": "y", "worst": [["z", 1]]}}, "first.worst[0][0] must be a number, got 'z'"),
        ({"first": {"name": "y", "worst": [[1]]}}, "first.worst[0] must be a list of length 2, got [1]"),
        ({"first": {"name": "y", "share": -0.5}}, "first.share must be a number >= 0.0, got -0.5"),
        ({"first": {"name": "y", "more": 1}}, "first.more is not a field of it"),
        ({"first": 3}, "first must be a table or null, got 3"),
        ({"more": 3}, "more is not a field of it"),
        ({"flag": 1}, "flag must be true or false, got 1"),
    ],
)
def test_the_field_and_what_was_received_are_named(change, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        convert(decode(json.dumps({**GOOD, **change}).encode()), File)
    assert str(caught.value) == message


def test_what_is_no_table_is_refused():
    for content, message in ((b"[1]", "it must be a table, got [1]"), (b"{}", "runs is missing")):
        with pytest.raises(ValueError, match=re.escape(message)):
            convert(decode(content), File)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"NaN", b"[1e999]", b'{"a": Infinity}', b'"\\ud800"', b'"\xff"', b"[" * 60 + b"]" * 60, b"[" * 10**5,
        b"9" * 5000, b"1 1", b"\0",
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(content):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        decode(content)


class Arrays(Content):
    """Lists of numbers that become arrays."""

    counts: Ints
    means: Floats


def test_arrays_come_back():
    given = Arrays(np.array([[1, 2], [3, 2**53]]), np.array([0.1, np.nan, -5e-324]))
    found = convert(decode(encode(given)), Arrays)
    assert (found.counts.dtype, found.means.dtype) == (np.int64, np.float64)
    assert np.array_equal(found.counts, given.counts)
    assert np.array_equal(found.means, given.means, equal_nan=True)


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [1.5]}, {"counts": [True]}, {"counts": [2**60]}, {"counts": [None]}, {"counts": 1}, {"counts": "1"},
        {"counts": [[1], [1, 2]]}, {"counts": [[1], 2]}, {"counts": [[[1]]]}, {"means": ["1"]}, {"means": {}},
    ],
)  # fmt: skip
def test_what_is_no_array_is_refused(change):
    (name,) = change
    with pytest.raises(ValueError, match=f"^{name} must be lists of (numbers|integers), equally long, got "):
        convert({"counts": [1], "means": [1.0], **change}, Arrays)


def test_numbers_come_back_exactly():
    chance = random.Random(0)
    numbers = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(2000)]
    finite = [one for one in numbers if math.isfinite(one)] + [2**64 - 1, 2**53 + 1, -0.0, 5e-324]
    assert list(map(repr, decode(encode(finite)))) == list(map(repr, finite))
    assert decode(encode([np.float64(0.1), np.int64(3), np.bool_(True), math.nan, math.inf])) == [
        0.1, 3, True, None, None
    ]  # fmt: skip
    found = convert(decode(encode(convert(GOOD, File), indent=2)), File)
    assert found == convert(GOOD, File)
