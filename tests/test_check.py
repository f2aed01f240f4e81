"""Errors of arguments: the name, what it must be, and what was received."""

import pickle

import numpy as np
import pytest

from solid_bandits import _check


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _check.number("ridge", -1, above=0), "ridge must be > 0, got -1"),
        (lambda: _check.number("level", 1.0, above=0, below=1), "level must be > 0 and < 1, got 1.0"),
        (lambda: _check.number("share", 2, least=0, most=1), "share must be >= 0 and <= 1, got 2"),
        (lambda: _check.number("ridge", np.inf, above=0), "ridge must be finite and > 0, got inf"),
        (lambda: _check.number("z", np.nan), "z must be finite, got nan"),
        (lambda: _check.number("z", "much"), "z must be a number, got 'much'"),
        (lambda: _check.integer("runs", 0, least=1), "runs must be an integer >= 1, got 0"),
        (lambda: _check.integer("runs", True, least=1), "runs must be an integer >= 1, got True"),
        (lambda: _check.index("arm", 3, 3), "arm must be an integer from 0 to 2, got 3"),
        (
            lambda: _check.choice("scale", "papr", ["posterior", "paper"]),
            "scale must be one of posterior, paper, got 'papr'; did you mean 'paper'?",
        ),
        (
            lambda: _check.choice("scale", "x", ["posterior", "paper"]),
            "must be one of posterior, paper, got 'x'",
        ),
        (
            lambda: _check.array("theta", [[1.0]], "dim"),
            "theta must be an array of numbers of shape (dim), got shape (1, 1)",
        ),
        (lambda: _check.array("theta", [], "dim"), "none of them empty, got shape (0,)"),
        (
            lambda: _check.array("theta", "abc", "dim"),
            "must be an array of numbers of shape (dim), got 'abc'",
        ),
        (
            lambda: _check.array("theta", [0, np.nan], "dim"),
            "must be finite everywhere, got nan at index (1,)",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(_check.ArgumentError) as caught:
        call()
    assert message in str(caught.value)
    assert str(caught.value).startswith(caught.value.argument + " must be ")


def test_an_error_crosses_processes_whole():
    error = _check.ArgumentError("runs", "must be an integer >= 1, got 0")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.argument) == (str(error), "runs")


def test_what_fits_is_given_back():
    assert _check.number("x", np.float32(0.5), above=0, below=1) == 0.5
    assert _check.integer("x", np.int64(3), least=1) == 3
    assert _check.index("x", np.int64(2), 3) == 2
    assert _check.choice("x", "a", "ab") == "a"
    assert not _check.array("x", [1, 2], "dim").flags.writeable
