"""Contract of an estimator: how it is computed, what it needs, when its interval is valid, and its result."""

from collections.abc import Callable
from typing import NamedTuple

from scipy.special import ndtri

from solid_bandits._internal.types import Floats
from solid_bandits.ope.terms import Found, Terms


class Value(NamedTuple):
    """An estimate: its value, its interval if there is one, and what the interval is for."""

    value: float | None
    low: float | None = None
    high: float | None = None
    interval: str = ""
    note: str = ""
    caution: str = ""
    """A warning to read before the numbers."""


def normal(value: float, error: float, level: float, kind: str, note: str = "") -> Value:
    """Return an estimate with the normal interval of its standard error."""
    half = float(ndtri(0.5 + level / 2)) * error
    return Value(value, value - half, value + half, kind, note)


class Settings(NamedTuple):
    """Arguments of `evaluate` that estimators read."""

    level: float
    """Confidence level of the interval."""
    ends: tuple[float, float] | None
    """The least and the largest possible reward, if known."""
    threshold: float | None
    """τ of switch-dr; None is tuned."""
    strength: float | None
    """λ of dros; None is tuned."""
    retraced: Callable[[Terms], Value] | None
    """`cadr` as in its paper, if the logger can be queried."""


class Estimator(NamedTuple):
    """An estimator.

    Example:
        >>> import solid_bandits as sb
        >>> [name for name, one in sb.ope.ESTIMATORS.items() if one.learning]
        ['cadr', 'anytime']
    """

    line: str
    """One-line description for readers."""
    estimate: Callable[[Found, Settings], Value]
    weighted: bool = True
    """Whether it needs the logger's probabilities."""
    ranged: bool = False
    """Whether it needs the range of rewards."""
    learning: bool = False
    """Whether its interval is valid if the logger learns."""
    normal: bool = True
    """Whether its interval is a normal approximation, which needs effective rewards."""
    ratio: Callable[[Terms], tuple[Floats, Floats]] | None = None
    """Numerators and denominators of the terms, if it is a ratio of two sums over rows, for the bootstrap."""
