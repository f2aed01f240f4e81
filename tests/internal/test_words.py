"""One way to print a number."""

import math

import pytest

from solid_bandits._internal import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.5, "0.500"),
        (12.345, "12.3"),
        (999.6, "1,000"),
        (0.9999, "1.00"),
        (-1234567.8, "−1,234,568"),
        (1e-4, "0.000100"),
        (-3e-7, "−3.00e−07"),
        (2e12, "2.00e+12"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_a_number_has_three_figures(value, text):
    assert wording.number(value) == text


def test_a_chosen_number_is_said_as_it_was_given():
    assert [wording.given(value) for value in (1.0, 0.95, -0.1, 1 + 0.2)] == ["1", "0.95", "−0.1", "1.2"]
    assert wording.given(1 - 0.05 / 3, 5) == "0.98333"


def test_a_number_has_the_figures_and_the_sign_that_are_asked_for():
    assert wording.number(2.5, 6) == "2.50000"
    assert wording.number(2.5, sign="+") == "+2.50"
    assert wording.fixed(-0.001, 1, "+") == "+0.0"  # what rounds to 0 has no sign of its own


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (1234.5678, 1134.0, 1335.0, "1,235 [1,134, 1,335]"),
        (-0.01234, -0.0213, -0.0034, "−0.0123 [−0.0213, −0.0034]"),
        (-0.001, -1.5, 1.5, "0.0 [−1.5, 1.5]"),
        (2.0, 2.0, 2.0, "2.00 [2.00, 2.00]"),
        (0.5, None, None, "0.500 –"),
        (0.0, None, None, "0 –"),
        (1e12, 1e12 - 1, 1e12 + 1, "1.00e+12 [1.00e+12, 1.00e+12]"),
    ],
)
def test_numbers_have_the_decimals_that_their_interval_allows(value, low, high, text):
    half_width = None if low is None else (high - low) / 2
    assert f"{wording.measured(value, half_width)} {wording.ends(low, high)}" == text


@pytest.mark.parametrize(
    ("value", "half_width", "text"),
    [(26.81, 4.28, "26.8 ± 4.3"), (5.0, None, "5.00"), (5.0, 0.0, "5.00 ± 0"), (math.nan, 1.0, "–")],
)
def test_plus_minus(value, half_width, text):
    assert wording.plus_minus(value, half_width) == text


def test_a_bracket_tells_its_ends_apart():
    assert wording.bracket(2.4999, 2.5001) == "[2.49990, 2.50010]"
    assert wording.bracket(2.5, 2.5) == "[2.50000, 2.50000]"


@pytest.mark.parametrize(
    ("seconds", "figures", "text"),
    [
        (3.21e-6, 3, "3.21 µs"),
        (0.0454, 3, "45.4 ms"),
        (0.9999, 3, "1.00 s"),
        (42.4, 2, "42 s"),
        (75, 2, "75 s"),
        (100, 2, "2 min"),
        (7500, 2, "2 h 05 min"),
        (None, 2, "–"),
    ],
)
def test_times_have_the_unit_that_suits_them(seconds, figures, text):
    assert wording.duration(seconds, figures) == text


def test_counts():
    assert [wording.count(many, "policy", "policies") for many in (1, 1000)] == ["1 policy", "1,000 policies"]
    assert wording.count(0, "run") == "0 runs"
