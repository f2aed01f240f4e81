"""Running values of a logger beside those of uniform and Greedy choices, updated as its log grows.

Nothing is read again: a row with its reward is taken in once. With g the logger's probabilities in the row, a its arm
and r the reward, the term of a policy π is the doubly robust one,

    D = Σ_a π(a) q(a) + π(a) / g(a) (r - q(a)),

q being the ridge regression of the rows before it (`models`). Its mean, given these rows and the offer, is what π
would have earned. Uniform is π = 1/K; Greedy is the arm of the largest q, so that it has learnt from the same rewards.

Somebody looks at these numbers at any time and stops when he likes what he sees, so the intervals hold at all times at
once. While all rewards lie on [0, 1] it is taken that they must, and the intervals are those of `anytime`, which need
no approximation: no click is too rare, no logger too quick, and drift does no harm to what they hold, the mean over the
rows so far.

Other rewards have no range. Their intervals are those of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024),
"Time-uniform central limit theory and asymptotic confidence sequences" (arXiv 2103.06476), by a Gaussian mixture: after
n values of mean m and variance s²,

    m ± s √(2 (n ρ² + 1) / (n² ρ²) log(√(n ρ² + 1) / α)),

with the ρ that makes them narrowest at `NARROWEST` rows. They hold the same mean, which may change from row to row.
They are asymptotic, and values that are the same but for a few rare ones are not yet normal in the mean: an interval is
given from `FEWEST` values on, and where there are more than 25 times the squared skewness (Cochran's rule). The
skewness of a sample says nothing of rewards that have not come yet on arms that are rarely played, so the values of
uniform and Greedy need `ENOUGH` effective rewards besides.
"""

import math
from typing import Any

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit, jit_apart, jit_part
from solid_bandits._internal.types import Floats, Ints, Plain
from solid_bandits.ope.anytime import BEFORE, GRID, follow, where_reached
from solid_bandits.ope.bounded import LIMITS, write_terms
from solid_bandits.ope.models import RIDGE, predict_in_order
from solid_bandits.statistics.estimate import UNKNOWN, Estimate

NARROWEST = 2000
FEWEST = 30
SKEWED = 25.0
"""Values that an interval needs, and how many for each unit of their squared skewness."""
ENOUGH = 25
"""Effective rewards that the value of another policy needs for its interval (studies/off_policy/rare_rewards.py)."""
RAREST = 1e-9
"""A probability below is taken for 0: what it weighs would be all there is."""
SERIES = ("policy", "uniform", "greedy", "over_uniform", "over_greedy")
"""The series with a running mean: three values per decision, and the lead of the running policy over the others."""
MOMENTS = 4
"""Columns of the moments: how many values, their mean, and the sums of squares and cubes around it."""
SUMS = 6
"""Columns of the sums for effective rewards: of w, w², w r, w² r, w² r² and Σ_a π(a)² / g(a), r measured from the first
reward."""


def mean_of(moments: Floats, level: float = 0.95) -> Estimate:
    """Return the mean of `count` values, with an interval that holds at all times at once."""
    count, mean, squares, cubes = moments.tolist()
    if count == 0:
        return UNKNOWN
    if count < FEWEST or squares <= 0:
        return Estimate(mean)
    spread = math.sqrt(squares / (count - 1))
    skewness = cubes / count / spread**3
    if count <= SKEWED * skewness**2:
        return Estimate(mean)
    half = spread * half_width(count, 1 - level)
    return Estimate(mean, mean - half, mean + half)


def half_width(count: float, tail: float) -> float:
    """Return half the width of the interval of a mean of values with variance 1, at all times at once."""
    best = 0.0  # n ρ² at `NARROWEST`: where the derivative by it is 0, x = log((1 + x) / α²)
    for _ in range(30):
        best = math.log1p(best) - 2 * math.log(tail)
    time = count * best / NARROWEST
    return math.sqrt(2 * (time + 1) / (count * time) * math.log(math.sqrt(time + 1) / tail))


class Running:
    """The values so far.

    Args:
        dim: d, the number of features of an arm; None where rows bring what was expected of each arm (q above), as a
            bandit with named features says it: Greedy is then its arm of the largest expectation.
    """

    def __init__(self, dim: int | None) -> None:
        self._given = dim is None
        width = 1 if dim is None else checks.integer("dim", dim, least=1) + 1
        self._triangle = np.eye(width)[None]
        self._weights = np.full((1, width), RIDGE)
        self._goals = np.zeros((1, width))
        self.moments = np.zeros((len(SERIES), MOMENTS))
        """The moments of the series, shape (series, 4)."""
        self.unsupported = np.zeros(2, dtype=np.int64)
        """Rows whose offer the logger could not have answered as uniform, and as Greedy, would."""
        self._sums = np.zeros((2, SUMS))
        self._ends = np.zeros(3)
        self._unbounded = np.zeros(1, dtype=np.int64)
        """Rows whose reward is not on [0, 1], or whose arm could not have been chosen."""
        sides = (len(SERIES), 2)  # of each series the lower bound and the upper one
        self._added = np.zeros((*sides, len(LIMITS)))
        self._squares = np.zeros((*sides, 2))
        self._current = np.zeros((*sides, len(GRID)))
        self._before = np.zeros((*sides, BEFORE))

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return int(self.moments[0, 0])

    @property
    def ends(self) -> tuple[float, float, float]:
        """The first reward, and the least and the largest one so far."""
        first, low, high = self._ends.tolist()
        return first, first + low, first + high

    @property
    def effective_rewards(self) -> tuple[float, float]:
        """The effective rewards of uniform and of Greedy, as `diagnostics.effective_rewards` counts them."""
        first, low, high = self._ends
        count, mean, spread, _ = self.moments[0]
        weights, squares, rewards, crossed, powers, second = self._sums.T
        least = np.full(2, np.inf)
        for base, sign in ((low, 1.0), (high, -1.0)):  # u = r - low, then high - r
            total = sign * (rewards - base * weights)
            power = powers - 2 * base * crossed + base**2 * squares
            plain = count * (mean - first - base) ** 2
            share = plain / (spread / count + plain / count) if high > low else 0.0
            least = np.minimum(least, np.divide(total**2, power, out=np.zeros(2), where=power > 0))
            least = np.minimum(least, np.divide(share * count, second, out=np.zeros(2), where=second > 0))
        return float(least[0]), float(least[1])

    def notes(self) -> list[str]:
        """Why values that are known have no interval."""
        if not self._unbounded[0]:
            return []
        known = zip(("uniform choices", "Greedy"), self.effective_rewards, self.unsupported, strict=True)
        few = [f"{name} ({count:.0f})" for name, count, missing in known if count < ENOUGH and not missing]
        if not few or self.rows < FEWEST:
            return []
        return [
            f"No intervals for {' and '.join(few)}: fewer than {ENOUGH} effective rewards are too few for these. "
            "With rewards on [0, 1] there are bounds that always hold; so there are in an evaluation with reward_range."
        ]

    def values(self, level: float) -> dict[str, Estimate]:
        """By the names of `SERIES`; without a value where the logger could not have answered, and without an interval
        where rewards have no range and there are too few effective ones.
        """
        if self._unbounded[0]:
            found = {
                name: mean_of(moments, level) for name, moments in zip(SERIES, self.moments, strict=True)
            }
        else:
            found = self._bounded(level)
        enough = [not self._unbounded[0] or count >= ENOUGH for count in self.effective_rewards]
        for name, supported, known in zip(("uniform", "greedy"), self.unsupported == 0, enough, strict=True):
            for series in (name, f"over_{name}"):
                if not supported:
                    found[series] = UNKNOWN
                elif not known:
                    found[series] = Estimate(found[series].value)
        return found

    def _bounded(self, level: float) -> dict[str, Estimate]:
        """The values with the bounds of `anytime`, for rewards on [0, 1]."""
        rows, tail = float(self.rows), (1 - level) / 2
        if not rows:
            return dict.fromkeys(SERIES, UNKNOWN)
        values, leads = self._current[:3], self._current[3:]
        at_least = where_reached(values[:, 0], np.full(3, rows), 0.0, tail)
        turned = np.concatenate([values[:, 1], leads[:, 1], leads[:, 0]])
        others = where_reached(turned, np.full(len(turned), rows), -1.0, tail)
        low = [*at_least, *others[5:]]
        high = [*-others[:3], *-others[3:5]]
        found = {}
        for name, mean, one, other in zip(SERIES, self.moments[:, 1].tolist(), low, high, strict=True):
            found[name] = Estimate(mean, float(one), float(other)) if one <= other else Estimate(mean)
        return found

    def add(
        self, features: list[Floats], probabilities: list[Floats], places: list[int], rewards: list[float]
    ) -> None:
        """Take in rows: features (arms, dim) and probabilities (arms,) of the offer, the chosen place, the reward.

        Expectations, shape (arms,), stand where features do where rows bring them.
        """
        if not rewards:
            return
        counts = np.array([len(one) for one in probabilities])
        shape = (len(counts), int(counts.max()))
        described = np.zeros(shape if self._given else (*shape, self._weights.shape[1] - 1))
        given = np.zeros(shape)
        for row, (offer, chances) in enumerate(zip(features, probabilities, strict=True)):
            described[row, : counts[row]] = offer
            given[row, : counts[row]] = chances
        place, reward = np.array(places), np.array(rewards, dtype=np.float64)
        expected = described
        if not self._given:
            expected, codes = np.zeros(shape), np.zeros(shape, dtype=np.int64)
            model = (self._triangle, self._weights, self._goals)
            predict_in_order(*model, described, codes, counts, place, reward, expected, False)
        if not self.rows:
            self._ends[0] = reward[0]
        shifted = reward - self._ends[0]
        self._ends[1:] = min(self._ends[1], shifted.min()), max(self._ends[2], shifted.max())
        compare(expected, given, counts, place, reward, shifted, self.moments, self.unsupported, self._sums)
        own = given[np.arange(len(place)), place]
        self._unbounded[0] += int(((reward < 0) | (reward > 1) | (own < RAREST)).sum())
        if not self._unbounded[0]:
            self._bet(expected, given, counts, place, reward)

    def _bet(self, expected: Floats, given: Floats, counts: Ints, place: Ints, reward: Floats) -> None:
        """Take rows into the bounds: the terms of each series, and what is bet on them."""
        uniform = (np.arange(given.shape[1]) < counts[:, None]) / counts[:, None]
        offered = np.where(uniform > 0, expected, -np.inf)
        greedy = np.eye(given.shape[1])[offered.argmax(axis=1)]
        asked = (None, uniform, greedy, given - uniform, given - greedy)
        q, marks, nothing = np.clip(expected, 0.0, 1.0), np.zeros(0, dtype=np.int64), np.zeros((0, len(GRID)))
        for series, signed in enumerate(asked):
            for side, sign in enumerate((1.0, -1.0)):
                terms, slacks = sign * reward, np.zeros(len(reward))  # of the policy itself: what it earned
                if signed is not None:
                    learnt = self._added[series, side], self._squares[series, side], LIMITS
                    terms = np.zeros(len(reward))
                    write_terms(sign * signed, given, q, counts, place, reward, *learnt, terms, slacks)
                least = 0.0 if side == 0 and series < 3 else -1.0
                carried = self._current[series, side], self._before[series, side]
                follow(terms, slacks, least, marks, GRID, *carried, nothing)

    def _arrays(self) -> dict[str, Any]:
        return {
            "triangle": self._triangle[0],
            "weights": self._weights[0],
            "goals": self._goals[0],
            "moments": self.moments,
            "unsupported": self.unsupported,
            "sums": self._sums,
            "ends": self._ends,
            "unbounded": self._unbounded,
            "added": self._added,
            "squares": self._squares,
            "current": self._current,
            "before": self._before,
        }

    def state(self) -> Plain:
        """All of it, as plain numbers."""
        return {name: array.tolist() for name, array in self._arrays().items()}

    @classmethod
    def restored(cls, dim: int | None, plain: Plain) -> "Running":
        """The object that `state` described; it goes on exactly."""
        found = cls(dim)
        for name, array in found._arrays().items():
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
    shifted: Floats,
    moments: Floats,
    unsupported: Ints,
    sums: Floats,
) -> None:
    """Add the terms of each row to the moments, in the order of `SERIES`, and its weights to the sums."""
    for i in range(counts.shape[0]):
        arms = counts[i]
        add_value(moments, 0, reward[i])
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
        add_value(moments, 1, uniform)
        add_value(moments, 2, greedy)
        add_value(moments, 3, reward[i] - uniform)
        add_value(moments, 4, reward[i] - greedy)
        weight = 1.0 / given[i, chosen]
        add_weight(sums[0], weight / arms, shifted[i])
        add_weight(sums[1], weight if chosen == best else 0.0, shifted[i])
        sums[1, 5] += 1.0 / max(given[i, best], RAREST)
        for k in range(arms):
            sums[0, 5] += 1.0 / max(given[i, k], RAREST) / arms**2


@jit_part
def add_weight(sums: Floats, weight: float, reward: float) -> None:
    """Add a row to the first of the sums."""
    sums[0] += weight
    sums[1] += weight * weight
    sums[2] += weight * reward
    sums[3] += weight * weight * reward
    sums[4] += (weight * reward) ** 2


@jit_apart
def add_values(moments: Floats, rows: Ints, values: Floats) -> None:
    """Add one more value for each of some rows of the moments, in this order."""
    for i in range(rows.shape[0]):
        add_value(moments, rows[i], values[i])


@jit
def add_value(moments: Floats, row: int, value: float) -> None:
    """Add one more value (Welford; Pébay 2008 for the cubes)."""
    count = moments[row, 0] + 1.0
    step = value - moments[row, 1]
    part = step / count
    gained = step * part * (count - 1.0)
    moments[row, 0] = count
    moments[row, 1] += part
    moments[row, 3] += gained * part * (count - 2.0) - 3.0 * part * moments[row, 2]
    moments[row, 2] += gained
