"""Inverse gap weighting: every arm but the greedy one has probability 1 / (K + γ gap), the greedy one the rest."""

import math
from typing import Any

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.randomness import uniform
from solid_bandits.estimation.arms import count_available
from solid_bandits.estimation.regression import log_det_ratio, noise_deviation, value


@jit
def learning_rate(regression: Any, count: int) -> float:
    """Return √(n / R) with R = σ² (log(det V / det νI) + log(1 + n)), the sum of n squared errors of the predictions.

    It is γ / √K of the theorems, without numerical constants, in units of 1 / reward.
    """
    root = math.sqrt(log_det_ratio(regression) + math.log(1.0 + count))
    return math.sqrt(count) / (noise_deviation(regression) * root)


@jit
def draw_by_gaps(
    regression: Any,
    arms: Floats,
    available: Bools,
    theta: Floats,
    best: int,
    rate: float,
    rng: Words,
    out: Floats | None,
) -> int:
    """Draw an arm by its gap under θ, with γ = √K `rate`; its distribution goes to `out`, if asked for."""
    offered = count_available(available)
    weight = math.sqrt(offered) * rate
    top = value(regression, arms[best], theta)
    chosen, left, rest = best, uniform(rng), 1.0
    for arm in range(arms.shape[0]):
        share = 0.0
        if available[arm] and arm != best:
            share = 1.0 / (offered + weight * max(top - value(regression, arms[arm], theta), 0.0))
            if left >= 0.0 and left < share:
                chosen = arm
            left -= share
            rest -= share
        if out is not None:
            out[arm] = share
    if out is not None:
        out[best] = rest
    return chosen
