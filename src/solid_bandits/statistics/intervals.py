"""Intervals of means, differences, ratios and shares: samples of numbers in, an `Estimate` out."""

import math

import numpy as np
from scipy.special import betaincinv, stdtrit

from solid_bandits._internal.types import Floats
from solid_bandits.statistics.estimate import UNKNOWN, Estimate

CONFIDENCE = 0.95
"""Confidence level of every interval that is only displayed."""


def student_quantile(freedom: float, level: float) -> float:
    """Return Student's quantile for a two-sided interval."""
    return float(stdtrit(freedom, 0.5 + level / 2))


def student(values: Floats, level: float = CONFIDENCE) -> Estimate:
    """Return the mean with Student's interval; a point where all values are equal, unknown for a single value."""
    count = len(values)
    mean = float(values.mean())
    if count < 2:
        return Estimate(mean)
    return _around(mean, float(values.var(ddof=1)) / count, count - 1, level)


def welch(last: Floats, first: Floats, level: float = CONFIDENCE) -> Estimate:
    """Return mean of `last` - mean of `first`, two independent samples, with Welch's interval."""
    difference = float(last.mean() - first.mean())
    if min(len(last), len(first)) < 2:
        return Estimate(difference)
    parts = [(float(sample.var(ddof=1)) / len(sample), len(sample) - 1) for sample in (last, first)]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return Estimate(difference, difference, difference)
    # The variances are divided by the total, so that their squares do not underflow.
    freedom = 1 / sum((part / variance) ** 2 / freedom for part, freedom in parts)
    return _around(difference, variance, freedom, level)


def ratio(above: Floats, below: Floats, level: float = CONFIDENCE) -> Estimate:
    """Return mean of `above` / mean of `below`, paired, with Fieller's interval.

    The interval consists of every r for which a Student test does not reject mean(above - r below) = 0; it is unknown
    where that set is not an interval because `below` is too near 0.
    """
    count = len(above)
    if count > 1 and np.array_equal(above, below):
        return Estimate(1.0, 1.0, 1.0)
    top, bottom = float(above.mean()), float(below.mean())
    if bottom == 0:
        return UNKNOWN
    value = top / bottom
    if count < 2:
        return Estimate(value)
    scale = student_quantile(count - 1, level) ** 2 / count
    # In units of the two means, so that neither small nor large ones lose digits; r / value solves a r² - 2 b r + c <=
    # 0. Where the upper mean is 0, the lower mean is its unit.
    unit = top if top != 0 else bottom
    cov = np.cov(above / unit, below / bottom)
    a = 1 - scale * cov[1, 1]
    b = top / unit - scale * cov[0, 1]
    c = (top / unit) ** 2 - scale * cov[0, 0]
    if a <= 0:
        return Estimate(value)
    root = math.sqrt(max(b * b - a * c, 0.0))
    low, high = sorted(float((b + sign * root) / a * (unit / bottom)) for sign in (-1, 1))
    return Estimate(value, low, high)


def share(hits: int, count: int, level: float = CONFIDENCE) -> Estimate:
    """Return the share of hits with the Clopper-Pearson interval."""
    tail = (1 - level) / 2
    low = float(betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1 - tail)) if hits < count else 1.0
    return Estimate(hits / count, low, high)


def _around(value: float, variance: float, freedom: float, level: float) -> Estimate:
    half = student_quantile(freedom, level) * math.sqrt(variance)
    return Estimate(value, value - half, value + half)
