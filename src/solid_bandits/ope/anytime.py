"""Anytime-valid bounds of a policy's value, for any logger: they hold at all times at once, with no asymptotics.

Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2022), "Anytime-valid off-policy inference for contextual bandits"
(arXiv 2210.10768), with rewards on [0, 1]: the terms ξ_t >= -k_t of `terms` have the policy's value ν for their mean
given the past, so that for any m >= ν and bets 0 <= λ_t < 1 / (1 + k_t) from the past

    Π_t (1 + λ_t (ξ_t - m))

is a supermartingale that ever reaches 1/α with probability at most α (Ville). The lower bound is the least m whose
product has not reached 2/α; the upper bound is 1 minus that of the rewards 1 - r. Weights need no bound. The bets are
the predictable plug-in ones, √(2 log(2/α) / (σ²_{t-1} t log(1 + t))), at most half of what is allowed.
"""

import math

import numpy as np

from solid_bandits._compile import jit_apart
from solid_bandits._types import Floats
from solid_bandits.ope.estimators import Value, dr_terms
from solid_bandits.ope.terms import Terms, slack

MOST = 0.5
"""Of the largest bet that is allowed."""
HALVINGS = 32


def anytime(terms: Terms, level: float, reward_range: tuple[float, float]) -> Value:
    """The doubly robust mean, and bounds that hold at every time at once."""
    low, high = bounds(terms.lower, terms.upper, level)
    base, width = reward_range[0], reward_range[1] - reward_range[0]
    value = float(dr_terms(terms).mean())
    return Value(value, base + width * low, base + width * high, "anytime-valid")


def bounds(lower: Floats, upper: Floats, level: float) -> tuple[float, float]:
    """On [0, 1], from the terms of the two bounds."""
    tail = (1 - level) / 2
    slacks = slack(np.arange(1, len(lower) + 1, dtype=np.float64))
    least = least_value(lower, _bets(lower, slacks, tail), math.log(1 / tail))
    most = 1 - least_value(upper, _bets(upper, slacks, tail), math.log(1 / tail))
    if least > most:  # has a probability of at most 1 - level
        least = most = (least + most) / 2
    return least, most


def path(
    terms: Terms, level: float, reward_range: tuple[float, float], steps: list[int]
) -> list[tuple[float, float]]:
    """The bounds as they were after so many rows each."""
    base, width = reward_range[0], reward_range[1] - reward_range[0]
    found = (bounds(terms.lower[:step], terms.upper[:step], level) for step in steps)
    return [(base + width * low, base + width * high) for low, high in found]


def _bets(values: Floats, slacks: Floats, tail: float) -> Floats:
    found = np.zeros(len(values))
    plug_in(values, slacks, 2 * math.log(1 / tail), found)
    return found


@jit_apart
def plug_in(values: Floats, slacks: Floats, scale: float, bets: Floats) -> None:
    """Write λ_t, from the values before t."""
    mean, spread = 0.5, 0.25  # of one value that was never seen
    for t in range(values.shape[0]):
        count = t + 1.0
        bet = math.sqrt(scale / (spread / count * count * math.log(1.0 + count)))
        bets[t] = min(bet, MOST / (1.0 + slacks[t]))
        step = values[t] - mean
        mean += step / (count + 1.0)
        spread += step * (values[t] - mean)


@jit_apart
def least_value(values: Floats, bets: Floats, threshold: float) -> float:
    """The least m on [0, 1] whose product never reached the threshold; every product falls in m."""
    if not reaches(values, bets, 0.0, threshold):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if reaches(values, bets, middle, threshold):
            low = middle
        else:
            high = middle
    return low


@jit_apart
def reaches(values: Floats, bets: Floats, m: float, threshold: float) -> bool:
    """Whether the logarithm of the product for m ever reached the threshold."""
    wealth = 0.0
    for t in range(values.shape[0]):
        wealth += math.log1p(bets[t] * (values[t] - m))
        if wealth >= threshold:
            return True
    return False
