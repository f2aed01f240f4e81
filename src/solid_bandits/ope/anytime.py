"""Bounds on the mean of a policy's value over the period of a log: for any logger, at all times at once, under drift.

The terms ξ_t of `bounded` have for their mean given the past μ_t, the policy's value (or a difference of two) in row t,
and ξ_t >= ℓ - k_t with ℓ = 0 for a value, -1 for a difference. With x_t a mean of the terms before t, and 0 <= λ (k_t -
ℓ + x_t) < 1,

    E[1 + λ (ξ_t - x_t) | past] = 1 + λ (μ_t - x_t) <= exp(λ (μ_t - x_t)),

so that

    M_n(λ) = exp(Σ_t log(1 + λ (ξ_t - x_t)) + λ Σ_t x_t - λ Σ_t μ_t)

is a supermartingale, and so is its mixture over λ; with probability at least 1 - α the mixture never reaches 1/α
(Ville). The μ_t enter only by their sum: the bounds are on their mean over the rows so far, however they change. This
is the betting of Waudby-Smith and Ramdas (2024, arXiv 2010.09686) with the exponential in place of the mean, as in
their empirical Bernstein bounds, and with log(1 + y) in place of its lower bound that these use. Nothing is
intersected over time: an earlier bound says nothing about a value that has changed since.

A λ that has become too large for k_t stops: from then on it counts the μ_t as ℓ. The grid of λ and its weights are
fixed, so the length of the log need not be known.
"""

import math

import numpy as np
import polars as pl

from solid_bandits._internal.compiling import jit_apart
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.ope.contract import Value
from solid_bandits.ope.terms import Terms, dr_terms

MOST = 0.95
"""Largest fraction of the allowed λ that is used."""
GRID: Floats = np.array([MOST * 0.6**power for power in range(26)])
"""Grid of λ, down to 3e-6."""
WEIGHTS = 1 / (1 + ((np.arange(26) - 7) / 3) ** 2)
"""The weights of the mixture before they are normalised: most lies on λ from 0.006 to 0.1."""
BEFORE = 3
"""Numbers that are carried from row to row besides the sums: the mean of the terms, their number, and how many λ have
become too large."""
HALVINGS = 60
CROSSED = (
    "the anytime-valid bounds have crossed, which happens with a probability of at most 1 - confidence where arms were "
    "drawn with the logged probabilities and rewards lie within their range"
)


def anytime(terms: Terms, level: float, reward_range: tuple[float, float]) -> Value:
    """Return the doubly robust mean, and bounds that hold at all times at once; no bounds if they have crossed."""
    low, high = bounds(terms, level)
    base, width = reward_range[0], reward_range[1] - reward_range[0]
    value = float(dr_terms(terms).mean())
    if low > high:
        return Value(value, note="no interval: its bounds have crossed", caution=CROSSED)
    return Value(value, base + width * low, base + width * high, "anytime-valid")


def bounds(terms: Terms, level: float) -> tuple[float, float]:
    """Return the two bounds on the mean value over all rows, on [0, 1]."""
    tail, end = (1 - level) / 2, np.array([len(terms.lower)])
    low = least_means(terms.lower, terms.lower_slack, 0.0, end, tail)
    high = -least_means(terms.upper, terms.upper_slack, -1.0, end, tail)
    return float(low[0]), float(high[0])


def difference(terms: Terms, tail: float, marks: Ints | None = None) -> tuple[Floats, Floats]:
    """Return bounds on a mean difference of two values over the first rows, for some numbers of rows, on [-1, 1].

    Args:
        terms: terms of the difference.
        tail: probability with which either bound may ever be wrong.
        marks: numbers of rows, in ascending order; None is all rows.
    """
    ends = np.array([len(terms.lower)]) if marks is None else marks
    low = least_means(terms.lower, terms.lower_slack, -1.0, ends, tail)
    high = -least_means(terms.upper, terms.upper_slack, -1.0, ends, tail)
    return low, high


def path(terms: Terms, level: float, reward_range: tuple[float, float]) -> pl.DataFrame:
    """Return the bounds as the log grew: columns rows, low and high; without rows at which they cross."""
    base, width = reward_range[0], reward_range[1] - reward_range[0]
    count, tail = len(terms.reward), (1 - level) / 2
    marks = np.array(sorted({int(step) for step in np.geomspace(min(10, count), count, 40)}))
    low = least_means(terms.lower, terms.lower_slack, 0.0, marks, tail)
    high = -least_means(terms.upper, terms.upper_slack, -1.0, marks, tail)
    found = pl.DataFrame({"rows": marks, "low": base + width * low, "high": base + width * high})
    return found.filter(pl.col("low") <= pl.col("high"))


def least_means(terms: Floats, slacks: Floats, least: float, marks: Ints, tail: float) -> Floats:
    """Return lower bounds on the mean of the μ_t over the first rows, for some numbers of rows.

    Args:
        terms: ξ_t.
        slacks: k_t, the amounts by which they may fall below `least`.
        least: ℓ: 0 or -1, the least possible μ_t; the largest is 1 + ℓ for a value, 1 for a difference.
        marks: numbers of rows, in ascending order.
        tail: probability with which any of the bounds may be wrong.
    """
    gains = np.zeros((len(marks), len(GRID)))
    follow(terms, slacks, least, marks, GRID, np.zeros(len(GRID)), np.zeros(BEFORE), gains)
    return where_reached(gains, marks.astype(np.float64), least, tail)


def where_reached(gains: Floats, counts: Floats, least: float, tail: float) -> Floats:
    """Return the m >= ℓ at which the mixtures of exp(gain - λ n m) equal 1 / tail; every part falls in m."""
    shares = np.log(WEIGHTS / WEIGHTS.sum()) + gains

    def beyond(mean: Floats) -> Bools:
        wealth = np.logaddexp.reduce(shares - GRID * (counts * mean)[:, None], axis=1)
        return np.asarray(wealth >= -math.log(tail))

    low, high = np.full(len(counts), least), np.ones(len(counts))
    possible = beyond(low) & (counts > 0)
    while (far := beyond(high) & possible).any():  # happens if the logged probabilities are false
        low, high = np.where(far, high, low), np.where(far, 2 * high, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        far = beyond(middle)
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return np.where(possible, low, least)


@jit_apart
def follow(
    terms: Floats,
    slacks: Floats,
    least: float,
    marks: Ints,
    grid: Floats,
    current: Floats,
    state: Floats,
    gains: Floats,
) -> None:
    """Write Σ log(1 + λ (ξ_t - x_t)) + λ Σ x_t of each λ, after each of some numbers of rows.

    `current` has the sums so far, and `state` what is carried besides (`BEFORE`): rows may come in parts.
    """
    mean, rows, top, mark = state[0], state[1], int(state[2]), 0
    for t in range(terms.shape[0]):
        centre = min(max(mean, least), 1.0)
        room = slacks[t] - least + centre
        while top < grid.shape[0] and grid[top] * room > MOST:  # a λ that is too large is not used again
            top += 1
        for j in range(top):
            current[j] += grid[j] * least
        for j in range(top, grid.shape[0]):
            current[j] += math.log1p(grid[j] * (terms[t] - centre)) + grid[j] * centre
        mean += (terms[t] - mean) / (rows + 2.0)  # as if there were one more term, 0
        rows += 1.0
        while mark < marks.shape[0] and marks[mark] == rows:
            for j in range(grid.shape[0]):
                gains[mark, j] = current[j]
            mark += 1
    state[0], state[1], state[2] = mean, rows, top
