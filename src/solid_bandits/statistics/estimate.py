"""A number and its interval."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """A number with its interval; None where the number or an end of the interval is unknown.

    A single run has a mean and no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def holds_zero(self) -> bool:
        """Whether the interval is known and 0 lies in it."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high


UNKNOWN = Estimate(None)
"""Estimate for results that do not allow one."""
