"""What an estimator is: how it is computed, what it needs, what its interval holds for, and what it answers."""

from collections.abc import Callable
from typing import NamedTuple

from scipy.special import ndtri

from solid_bandits._internal.types import Floats
from solid_bandits.ope.terms import Found, Terms


class Value(NamedTuple):
    """An estimate: its value, its interval where there is one, and what it is an interval of."""

    value: float | None
    low: float | None = None
    high: float | None = None
    interval: str = ""
    note: str = ""
    caution: str = ""
    """A sentence that a reader should see before the numbers."""


def normal(value: float, error: float, level: float, kind: str, note: str = "") -> Value:
    """An estimate with the normal interval of its standard error."""
    half = float(ndtri(0.5 + level / 2)) * error
    return Value(value, value - half, value + half, kind, note)


class Settings(NamedTuple):
    """The arguments of `evaluate` that estimators read."""

    level: float
    """The level of the interval."""
    ends: tuple[float, float] | None
    """The least and the largest reward there can be, where they are known."""
    threshold: float | None
    """τ of switch-dr; None is tuned."""
    strength: float | None
    """λ of dros; None is tuned."""
    retraced: Callable[[Terms], Value] | None
    """`cadr` as its paper has it, where the logger can be asked."""


class Estimator(NamedTuple):
    """An estimator.

    Example:
        >>> import solid_bandits as sb
        >>> [name for name, one in sb.ope.ESTIMATORS.items() if one.learning]
        ['cadr', 'anytime']
    """

    line: str
    """One line for readers."""
    estimate: Callable[[Found, Settings], Value]
    weighted: bool = True
    """Whether it needs the logger's probabilities."""
    ranged: bool = False
    """Whether it needs the range of rewards."""
    learning: bool = False
    """Whether its interval holds where the logger learns."""
    normal: bool = True
    """Whether its interval rests on a normal approximation: it then needs effective rewards."""
    ratio: Callable[[Terms], tuple[Floats, Floats]] | None = None
    """Terms above and below, where it is a ratio of two sums over rows, as the bootstrap needs it."""
