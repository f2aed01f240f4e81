"""Errors of arguments: the name, what it must be, and what was received."""

import pickle
from decimal import Decimal

import numpy as np
import pytest

from solid_bandits._internal import checks


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks.number("ridge", -1, above=0), "ridge must be > 0, got -1"),
        (lambda: checks.number("level", 1.0, above=0, below=1), "level must be > 0 and < 1, got 1.0"),
        (lambda: checks.number("share", 2, least=0, most=1), "share must be >= 0 and <= 1, got 2"),
        (lambda: checks.number("ridge", np.inf, above=0), "ridge must be finite and > 0, got inf"),
        (lambda: checks.number("z", np.nan), "z must be finite, got nan"),
        (lambda: checks.number("z", "much"), "z must be a number, got 'much'"),
        (lambda: checks.number("z", "1"), "z must be a number, got '1'"),
        (lambda: checks.number("z", True), "z must be a number, got True"),
        (lambda: checks.number("z", np.True_), "z must be a number, got np.True_"),
        (lambda: checks.number("z", Decimal("0.5")), "z must be a number, got Decimal('0.5')"),
        (lambda: checks.number("z", 1 + 0j), "z must be a number, got (1+0j)"),
        (lambda: checks.number("z", np.array([1.0])), "z must be a number, got array([1.])"),
        (lambda: checks.number("z", None), "z must be a number, got None"),
        (lambda: checks.number("z", 10**400), "z must be a number that fits a float, got 1000"),
        (lambda: checks.integer("runs", 0, least=1), "runs must be an integer >= 1, got 0"),
        (lambda: checks.integer("runs", True, least=1), "runs must be an integer >= 1, got True"),
        (lambda: checks.index("arm", 3, 3), "arm must be an integer from 0 to 2, got 3"),
        (
            lambda: checks.choice("scale", "papr", ["posterior", "paper"]),
            "scale must be one of posterior, paper, got 'papr'; did you mean 'paper'?",
        ),
        (
            lambda: checks.choice("scale", "x", ["posterior", "paper"]),
            "must be one of posterior, paper, got 'x'",
        ),
        (
            lambda: checks.array("theta", [[1.0]], "dim"),
            "theta must be an array of numbers of shape (dim), got shape (1, 1)",
        ),
        (lambda: checks.array("theta", [], "dim"), "none of them empty, got shape (0,)"),
        (
            lambda: checks.array("theta", "abc", "dim"),
            "must be an array of numbers of shape (dim), got <U3 of 'abc'",
        ),
        (
            lambda: checks.array("theta", ["1", "2"], "dim"),
            "must be an array of numbers of shape (dim), got <U1 of ['1', '2']",
        ),
        (
            lambda: checks.array("theta", [1j], "dim"),
            "must be an array of numbers of shape (dim), got complex128 of [1j]",
        ),
        (
            lambda: checks.array("theta", [Decimal(1)], "dim"),
            "must be an array of numbers of shape (dim), got object of [Decimal('1')]",
        ),
        (
            lambda: checks.array("theta", np.array(["2020-01-01"], dtype="datetime64[D]"), "dim"),
            "must be an array of numbers of shape (dim), got datetime64[D] of ",
        ),
        (
            lambda: checks.array("theta", np.ma.array([1.0, 2.0], mask=[False, True]), "dim"),
            "must be an array of numbers of shape (dim), got masked values",
        ),
        (
            lambda: checks.array("theta", [[1, 2], [3]], "dim", "arms"),
            "must be an array of numbers of shape (dim, arms), got [[1, 2], [3]]",
        ),
        (
            lambda: checks.array("theta", [0, np.nan], "dim"),
            "must be finite everywhere, got nan at index (1,)",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(checks.ArgumentError) as caught:
        call()
    assert message in str(caught.value)
    assert str(caught.value).startswith(caught.value.argument + " must be ")


class Liar(int):
    """Says of every comparison what suits it."""

    def __lt__(self, other):
        return other > 1

    def __le__(self, other):
        return True

    __ge__ = __le__

    def __gt__(self, other):
        return False


class LyingText(str):
    """Says that it is every other word."""

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize("liar", [Liar(-5), Liar(10**6)])
def test_what_a_number_says_of_itself_counts_for_nothing(liar):
    """An index that compiled code would follow anywhere."""
    assert 0 <= liar < 3
    with pytest.raises(checks.ArgumentError, match="arm must be an integer from 0 to 2, got"):
        checks.index("arm", liar, 3)
    with pytest.raises(checks.ArgumentError, match="dim must be an integer"):
        checks.integer("dim", liar, least=1, most=100)
    honest = checks.index("arm", Liar(2), 3)
    assert (type(honest), honest) == (int, 2)


def test_what_a_word_says_of_itself_counts_for_nothing():
    with pytest.raises(checks.ArgumentError, match="scale must be one of a, b, got 'x'"):
        checks.choice("scale", LyingText("x"), ["a", "b"])
    for wrong in (None, 1, b"a", ["a"], np.array(["a", "b"])):
        with pytest.raises(checks.ArgumentError, match="scale must be one of a, b, got"):
            checks.choice("scale", wrong, ["a", "b"])


def test_durations_are_no_numbers():
    """NumPy counts them among its integers."""
    for check in (lambda value: checks.number("x", value), lambda value: checks.integer("x", value, least=0)):
        with pytest.raises(checks.ArgumentError, match="x must be a"):
            check(np.timedelta64(1, "s"))


def test_what_was_received_is_said_in_one_line():
    assert "\n" not in checks.short(np.ones((50, 50)))
    with pytest.raises(checks.ArgumentError) as caught:
        checks.number("x", np.ones((50, 50)))
    assert "\n" not in str(caught.value)


def test_an_error_crosses_processes_whole():
    error = checks.ArgumentError("runs", "must be an integer >= 1, got 0")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.argument) == (str(error), "runs")


def test_what_fits_is_given_back():
    assert checks.number("x", np.float32(0.5), above=0, below=1) == 0.5
    assert checks.number("x", np.int8(3)) == 3
    assert checks.integer("x", np.int64(3), least=1) == 3
    assert checks.index("x", np.int64(2), 3) == 2
    assert checks.choice("x", "a", "ab") == "a"
    assert not checks.array("x", [1, 2], "dim").flags.writeable
    for numbers in (
        [1, 0],
        [True, False],
        np.array([1, 0], dtype=np.uint8),
        np.array([1, 0], dtype=np.float16),
    ):
        checked = checks.array("x", numbers, "dim")
        assert (checked.dtype, checked.tolist()) == (np.float64, [1, 0])
