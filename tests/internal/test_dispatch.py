"""Functions that choose their code by type, in Python and in compiled code alike."""

from typing import NamedTuple

import numba
import pytest

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.dispatch import by_type, variant


class Doubling(NamedTuple):
    offset: float


class Squaring(NamedTuple):
    offset: float


class Unknown(NamedTuple):
    offset: float


@by_type
def grow(kind: object, value: float) -> float:
    """Make it larger."""
    raise NotImplementedError


@jit
def _double(kind, value):
    return 2.0 * value + kind.offset


@jit
def _square(kind, value):
    return value * value + kind.offset


variant(grow, Doubling, _double)
variant(grow, Squaring, _square)


@numba.njit
def compiled(kind, value):
    return grow(kind, value)


@pytest.mark.parametrize("call", [grow, compiled], ids=["in Python", "compiled"])
def test_the_type_of_the_first_argument_chooses(call):
    assert call(Doubling(1.0), 5.0) == 11
    assert call(Squaring(1.0), 5.0) == 26
    # Resolved when it compiles: each type has code of its own, and both stay good.
    assert call(Doubling(2.0), 5.0) == 12


def test_types_that_no_one_registered_have_no_code():
    with pytest.raises(KeyError):
        grow(Unknown(1.0), 5.0)
    with pytest.raises((KeyError, numba.core.errors.TypingError)):
        compiled(Unknown(1.0), 5.0)


def test_the_declaration_keeps_its_name_and_its_words():
    assert grow.__name__ == "grow"
    assert grow.__doc__ == "Make it larger."


def test_declarations_do_not_share_their_variants():
    @by_type
    def shrink(kind: object, value: float) -> float:
        """Make it smaller."""
        raise NotImplementedError

    with pytest.raises(KeyError):
        shrink(Doubling(1.0), 5.0)
