"""What a parameter may be is declared once: checks and words follow from it."""

from dataclasses import dataclass

import pytest

from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.parameters import Constraint, check_parameters, parameter, parameters_of


@dataclass(frozen=True)
class Declared:
    size: float = parameter(1.0, above=0)
    share: float = parameter(0.5, least=0, most=1)
    count: int = parameter(3, least=1, most=9)
    way: str = parameter("left", choices=("left", "right"))
    strict: bool = parameter(False)
    ridge: float | str = parameter("auto", above=0, word="auto")
    limit: float | None = parameter(None, least=0, none=True)
    plain: object = "whatever"

    def __post_init__(self):
        check_parameters(self)


WORDS = {
    "size": "a number > 0",
    "share": "a number from 0 to 1",
    "count": "an integer from 1 to 9",
    "way": "'left' or 'right'",
    "strict": "True or False",
    "ridge": "a number > 0 or 'auto'",
    "limit": "a number >= 0 or None",
}


def test_words_say_what_is_checked():
    assert {one.name: one.constraint.words for one in parameters_of(Declared)} == WORDS
    three = Constraint(choices=("a", "b", "c"), none=True)
    assert three.words == "'a', 'b', 'c' or None"


def test_parameters_are_those_of_the_class_or_of_an_object():
    assert {one.name: one.value for one in parameters_of(Declared)}["share"] == 0.5
    assert {one.name: one.value for one in parameters_of(Declared(share=0.25))}["share"] == 0.25


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": -1}, "size must be > 0, got -1"),
        ({"size": 1e21}, "size must be from 1e-20 to 1e+20, got 1e+21; use other units"),
        ({"share": 2}, "share must be >= 0 and <= 1, got 2"),
        ({"count": 0}, "count must be an integer >= 1, got 0"),
        ({"count": 10}, "count must be an integer from 1 to 9, got 10"),
        ({"count": True}, "count must be an integer >= 1, got True"),
        ({"way": "letf"}, "way must be one of left, right, got 'letf'; did you mean 'left'?"),
        ({"strict": 1}, "strict must be True or False, got 1"),
        ({"ridge": "atuo"}, "ridge must be a number > 0 or 'auto', got 'atuo'"),
        ({"ridge": 0}, "ridge must be > 0, got 0"),
        ({"ridge": None}, "ridge must be a number, got None"),
        ({"limit": -1}, "limit must be >= 0 and <= 1e+20, got -1"),
    ],
)
def test_messages(given, message):
    with pytest.raises(ArgumentError) as caught:
        Declared(**given)
    assert str(caught.value) == message
    assert caught.value.argument in given


def test_what_fits_is_kept():
    Declared(size=2, share=1, count=9, way="right", strict=True, ridge=0.5, limit=0.0, plain=None)


@pytest.mark.parametrize(("least", "refused"), [(1, 0.5), (0, -1.0)])
def test_a_least_without_a_most_is_held(least, refused):
    Constraint(least=least).check("cap", 1.0)
    with pytest.raises(ArgumentError, match=rf"cap must be .*{least}.*, got {refused}"):
        Constraint(least=least).check("cap", refused)


def test_a_bound_other_than_zero_is_held_without_a_most():
    Constraint(above=1).check("factor", 1.5)
    with pytest.raises(ArgumentError, match=r"factor must be > 1, got 1"):
        Constraint(above=1).check("factor", 1)
