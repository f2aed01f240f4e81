"""Terms whose mean is a policy's value, or the difference of two, and that never fall far below it.

Rewards r are on [0, 1]. With v(a) = (π(a) - π'(a)) / g(a), the signed weights of the difference of two policies (π' = 0
for a single policy), and a control variate h(a),

    ξ_t = v(a_t) (r_t - h(a_t)) + Σ_a (π(a) - π'(a)) h(a)

has the mean Σ_a (π(a) - π'(a)) E[r(a)] given the past, whatever h is. With the reward model q for h its variance is
smallest, but it may fall far below 0 where weights are large. So h moves from q towards 0 where v(a) > 0, and towards 1
where v(a) < 0, just so far that the first part stays above -k_t (Waudby-Smith et al. 2022, arXiv 2210.10768, Section
2.2, for one policy). The upper bound is the lower one of π' - π.

k_t is computed from the rows before t: of a grid, it is the one that promises the shortest interval, given the variance
σ² of the terms without a limit, and τ²(k), which the limit would have added to it,

    √(2 N L (σ² + τ²(k))) + k L,   N the next power of 2 after t.

If g is known only for the chosen arm, h is 0 or 1 by the sign of π(a) - π'(a), and k_t is 0.
"""

import math
from typing import Any

import numpy as np

from solid_bandits._internal.compiling import jit_apart
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.ope.rows import Rows

LIMITS = np.concatenate([[0.0], 0.25 * 2.0 ** np.arange(26)])
"""Grid of k."""
COST = 5.0
"""L: approximately the logarithm of 1 / α plus the cost of a mixture."""


class Bounding:
    """Bounded terms of one contrast, made block by block, with the sums for the choice of k_t."""

    def __init__(self) -> None:
        self._added = np.zeros(len(LIMITS))
        self._sums = np.zeros(2)

    def terms(self, rows: Rows, signed: Floats, q: Floats, reward: Floats) -> tuple[Floats, Floats]:
        """Return ξ_t and k_t of the rows.

        Args:
            rows: rows of the log.
            signed: π(a) - π'(a), shape (rows, arms).
            q: the model's rewards, on the scale of `reward`, shape (rows, arms).
            reward: rewards on [0, 1], shape (rows,).
        """
        every = np.arange(len(reward))
        if rows.probabilities is None:
            own = signed[every, rows.place] / rows.propensity
            fixed = np.minimum(signed, 0.0).sum(axis=1)
            return own * (reward - (own < 0)) + fixed, np.zeros(len(reward))
        found, limits = np.zeros(len(reward)), np.zeros(len(reward))
        given = np.where(rows.mask, rows.probabilities, 0.0)
        scaled = np.clip(q, 0.0, 1.0)
        state = (self._added, self._sums, LIMITS)
        write_terms(signed, given, scaled, rows.counts, rows.place, reward, *state, found, limits)
        return found, limits


def unit(values: Any, ends: tuple[float, float]) -> Any:
    """Scale rewards to [0, 1]."""
    return (values - ends[0]) / (ends[1] - ends[0])


@jit_apart
def write_terms(
    signed: Floats,
    given: Floats,
    q: Floats,
    counts: Ints,
    place: Ints,
    reward: Floats,
    added: Floats,
    sums: Floats,
    limits: Floats,
    found: Floats,
    chosen: Floats,
) -> None:
    """Write ξ_t and k_t; `added` holds the sums of τ²(k), `sums` the number of rows and the sum of squares."""
    for t in range(reward.shape[0]):
        before = sums[0]
        k = 1.0
        if before > 0.0:
            length = 2.0 ** math.ceil(math.log2(before + 1.0))
            least = math.inf
            for i in range(limits.shape[0]):
                spread = (sums[1] + added[i]) / before
                price = math.sqrt(2.0 * length * COST * spread) + limits[i] * COST
                if price < least:
                    least, k = price, limits[i]
        chosen[t] = k
        baseline, own = 0.0, 0.0
        for a in range(counts[t]):
            if signed[t, a] == 0.0 or given[t, a] <= 0.0:
                continue
            size = abs(signed[t, a]) / given[t, a]
            room = q[t, a] if signed[t, a] > 0.0 else 1.0 - q[t, a]
            fall = size * room
            for i in range(limits.shape[0]):
                if fall <= limits[i]:
                    break
                added[i] += given[t, a] * (fall - limits[i]) ** 2
            capped = min(room, k / size)
            h = capped if signed[t, a] > 0.0 else 1.0 - capped
            baseline += signed[t, a] * h
            if a == place[t]:
                weight = signed[t, a] / given[t, a]
                own = weight * (reward[t] - h)
                sums[1] += (weight * (reward[t] - q[t, a])) ** 2
        sums[0] += 1.0
        found[t] = own + baseline
