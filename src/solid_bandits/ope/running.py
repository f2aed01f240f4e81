"""What a logger earns beside what uniform and Greedy choices would have earned, kept up as its log grows.

Nothing is read again: a row with its reward is taken in once. With g the logger's probabilities in the row, a its arm
and r the reward, the term of a policy π is the doubly robust one,

    D = Σ_a π(a) q(a) + π(a) / g(a) (r - q(a)),

q being the ridge regression of the rows before it (`models`). Its mean, given these rows and the offer, is what π
would have earned. Uniform is π = 1/K; Greedy is the arm of the largest q, so that it has learnt from the same rewards.

Somebody looks at these numbers at any time and stops when he likes what he sees, so the intervals hold at all times at
once. They are those of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), "Time-uniform central limit theory and
asymptotic confidence sequences" (arXiv 2103.06476), by a Gaussian mixture: after n values of mean m and variance s²,

    m ± s √(2 (n ρ² + 1) / (n² ρ²) log(√(n ρ² + 1) / α)),

with the ρ that makes them narrowest at `NARROWEST` rows. What they hold is the mean, over the rows so far, of the
expected value given the past: it may change from row to row, and no row need be like another. They are asymptotic, and
values that are 0 but for a few rare ones are not yet normal in the mean: an interval is given from `FEWEST` values on,
and where there are more than 25 times the squared skewness (Cochran's rule), which for a click rate is 25 clicks.
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit, jit_apart
from solid_bandits._types import Floats, Ints, Plain
from solid_bandits.ope.models import RIDGE, walk

NARROWEST = 2000
FEWEST = 30
SKEWED = 25.0
"""Values that an interval needs, and how many for each unit of their squared skewness."""
RAREST = 1e-9
"""A probability below is taken for 0: what it weighs would be all there is."""
SERIES = ("policy", "uniform", "greedy", "over_uniform", "over_greedy")
"""What has a mean: three values per decision, and how far the policy that runs is ahead of the others."""
MOMENTS = 4
"""Columns of the moments: how many values, their mean, and the sums of squares and cubes around it."""


class Mean(NamedTuple):
    """A mean with its interval, where there is one."""

    value: float | None
    low: float | None
    high: float | None


def mean_of(moments: Floats, level: float = 0.95) -> Mean:
    """The mean of so many values, with an interval that holds at all times at once."""
    count, mean, squares, cubes = moments.tolist()
    if count == 0:
        return Mean(None, None, None)
    if count < FEWEST or squares <= 0:
        return Mean(mean, None, None)
    spread = math.sqrt(squares / (count - 1))
    skewness = cubes / count / spread**3
    if count <= SKEWED * skewness**2:
        return Mean(mean, None, None)
    half = spread * half_width(count, 1 - level)
    return Mean(mean, mean - half, mean + half)


def half_width(count: float, tail: float) -> float:
    """Of the mean of so many values of variance 1, at all times at once."""
    best = 0.0  # n ρ² at `NARROWEST`: where the derivative by it is 0, x = log((1 + x) / α²)
    for _ in range(30):
        best = math.log1p(best) - 2 * math.log(tail)
    time = count * best / NARROWEST
    return math.sqrt(2 * (time + 1) / (count * time) * math.log(math.sqrt(time + 1) / tail))


class Running:
    """The values so far.

    Args:
        dim: d, the number of features of an arm.
    """

    def __init__(self, dim: int) -> None:
        width = _check.integer("dim", dim, least=1) + 1
        self._triangle = np.eye(width)[None]
        self._weights = np.full((1, width), RIDGE)
        self._goals = np.zeros((1, width))
        self.moments = np.zeros((len(SERIES), MOMENTS))
        """Of the series, shape (series, 4)."""
        self.unsupported = np.zeros(2, dtype=np.int64)
        """Rows whose offer the logger could not have answered as uniform, and as Greedy, would."""

    @property
    def rows(self) -> int:
        """How many were taken in."""
        return int(self.moments[0, 0])

    def add(
        self, features: list[Floats], probabilities: list[Floats], places: list[int], rewards: list[float]
    ) -> None:
        """Take in rows: features (arms, dim) and probabilities (arms,) of the offer, the chosen place, the reward."""
        if not rewards:
            return
        counts = np.array([len(one) for one in probabilities])
        shape = (len(counts), int(counts.max()))
        described = np.zeros((*shape, self._weights.shape[1] - 1))
        given = np.zeros(shape)
        for row, (offer, chances) in enumerate(zip(features, probabilities, strict=True)):
            described[row, : counts[row]] = offer
            given[row, : counts[row]] = chances
        place, reward = np.array(places), np.array(rewards, dtype=np.float64)
        expected, nothing = np.zeros(shape), np.zeros(shape)
        model = (self._triangle, self._weights, self._goals, np.zeros_like(self._goals))
        codes = np.zeros(shape, dtype=np.int64)
        walk(*model, described, codes, counts, place, reward, nothing, expected, False)
        compare(expected, given, counts, place, reward, self.moments, self.unsupported)

    def state(self) -> Plain:
        """All of it, as plain numbers."""
        return {
            "triangle": self._triangle[0].tolist(),
            "weights": self._weights[0].tolist(),
            "goals": self._goals[0].tolist(),
            "moments": self.moments.tolist(),
            "unsupported": self.unsupported.tolist(),
        }

    @classmethod
    def restored(cls, dim: int, plain: Plain) -> "Running":
        """What `state` described; it goes on exactly."""
        found = cls(dim)
        for name, array in (
            ("triangle", found._triangle[0]),
            ("weights", found._weights[0]),
            ("goals", found._goals[0]),
            ("moments", found.moments),
            ("unsupported", found.unsupported),
        ):
            values = np.array(plain[name], dtype=array.dtype)
            if values.shape != array.shape or not np.isfinite(values).all():
                raise ValueError(f"{name} must be finite numbers of shape {array.shape}, got {values.shape}")
            array[...] = values
        return found


@jit_apart
def compare(
    expected: Floats,
    given: Floats,
    counts: Ints,
    place: Ints,
    reward: Floats,
    moments: Floats,
    unsupported: Ints,
) -> None:
    """Add the terms of each row to the moments, in the order of `SERIES`."""
    for i in range(counts.shape[0]):
        arms = counts[i]
        take(moments, 0, reward[i])
        total, best, least = 0.0, 0, 1.0
        for k in range(arms):
            total += expected[i, k]
            least = min(least, given[i, k])
            if expected[i, k] > expected[i, best]:
                best = k
        chosen = place[i]
        if least < RAREST:
            unsupported[0] += 1
        if given[i, best] < RAREST:
            unsupported[1] += 1
        if given[i, chosen] < RAREST:  # its weight would be all there is, or no number
            continue
        residual = (reward[i] - expected[i, chosen]) / given[i, chosen]
        uniform = (total + residual) / arms
        greedy = expected[i, best] + (residual if chosen == best else 0.0)
        take(moments, 1, uniform)
        take(moments, 2, greedy)
        take(moments, 3, reward[i] - uniform)
        take(moments, 4, reward[i] - greedy)


@jit_apart
def take_all(moments: Floats, rows: Ints, values: Floats) -> None:
    """One more value for each of some rows of the moments, in this order."""
    for i in range(rows.shape[0]):
        take(moments, rows[i], values[i])


@jit
def take(moments: Floats, row: int, value: float) -> None:
    """One more value (Welford; Pébay 2008 for the cubes)."""
    count = moments[row, 0] + 1.0
    step = value - moments[row, 1]
    part = step / count
    gained = step * part * (count - 1.0)
    moments[row, 0] = count
    moments[row, 1] += part
    moments[row, 3] += gained * part * (count - 2.0) - 3.0 * part * moments[row, 2]
    moments[row, 2] += gained
