"""Student's distribution: draws and tails, with 0 degrees of freedom standing for the normal distribution."""

import math

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Words
from solid_bandits.core.randomness import normal, uniform

MANY = 1000.0
"""Degrees of freedom from which Hill's expansion is accurate to all digits; below, a continued fraction needs few
terms."""
MOST_TERMS = 400


@jit
def student(degrees: float, rng: Words) -> float:
    """Draw from Student's distribution (Bailey 1994: Box and Muller's transform with another radius)."""
    if degrees == 0.0:
        return normal(rng)
    radius = math.sqrt(degrees * math.expm1(-2.0 / degrees * math.log(1.0 - uniform(rng))))
    return radius * math.cos(2.0 * math.pi * uniform(rng))


@jit
def student_next(degrees: float, drawn: int, squares: float, rng: Words) -> float:
    """Draw one more coordinate of a standard Student vector of any dimension.

    Given the `drawn` coordinates before it, whose squares sum to `squares`, it is Student with degrees + drawn degrees
    of freedom and squared scale (degrees + squares) / (degrees + drawn).
    """
    if degrees == 0.0:
        return normal(rng)
    more = degrees + drawn
    return math.sqrt((degrees + squares) / more) * student(more, rng)


@jit_apart
def student_below(degrees: float, point: float) -> float:
    """Return P(T <= `point`) = P(T >= -`point`), with all digits of the smaller tail."""
    if degrees == 0.0:
        return 0.5 * math.erfc(-point / math.sqrt(2.0))
    if degrees >= MANY:
        return 0.5 * math.erfc(-_as_normal(degrees, point) / math.sqrt(2.0))
    tail = 0.5 * _incomplete_beta(degrees, point * point)
    return 1.0 - tail if point > 0.0 else tail


@jit
def _as_normal(degrees: float, point: float) -> float:
    """Return the normal deviate of the same probability (Hill 1970, Algorithm 395)."""
    shifted = degrees - 0.5
    scale = 48.0 * shifted * shifted
    w = shifted * math.log1p(point * point / degrees)
    series = (((-0.4 * w - 3.3) * w - 24.0) * w - 85.5) / (0.8 * w * w + 100.0 + scale)
    deviate = ((series + w + 3.0) / scale + 1.0) * math.sqrt(w)
    return deviate if point >= 0.0 else -deviate


@jit
def _incomplete_beta(degrees: float, square: float) -> float:
    """Return I_x(k/2, 1/2) at x = k / (k + t²), the chance that |T| exceeds |t|, t² = `square`."""
    if square == 0.0:
        return 1.0
    a, x = 0.5 * degrees, degrees / (degrees + square)
    other = square / (degrees + square)
    log_front = math.lgamma(a + 0.5) - math.lgamma(a) - math.lgamma(0.5) + 0.5 * math.log(other)
    front = math.exp(log_front - a * math.log1p(square / degrees))
    if x < (a + 1.0) / (a + 2.5):
        return front * _fraction(a, 0.5, x) / a
    return 1.0 - 2.0 * front * _fraction(0.5, a, other)


@jit
def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of I_x(a, b) by Lentz's method."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        value *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return value
