"""When a policy stops exploring: the likelihood-ratio test and the thresholds that several policies share.

They are those of SOLID's experiments, so that policies differ in how they explore and not in when they stop.
"""

import math

import numpy as np

from solid_bandits._compile import jit
from solid_bandits._types import Floats
from solid_bandits.alternatives.closest import difference_norm
from solid_bandits.linalg.vectors import best_arm, dot, symmetric_product
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork


@jit
def squared_width(view: View, log_n: float, count: int, dimension_scale: float = 1.0) -> float:
    """σ² (log count + κ d log log n), the logarithm of 0 read as 0: β_{t-1} at count t - 1, γ_t at count S_t."""
    dimension_part = dimension_scale * view.features.shape[2] * math.log(log_n)
    return view.noise_std**2 * (math.log(max(count, 1)) + dimension_part)


@jit
def log_horizon(view: View, step: int) -> float:
    """`log n`; the current step takes the place of an unknown horizon, and 3 that of a smaller one."""
    return math.log(max(view.horizon if view.horizon > 0 else step, 3))


@jit
def exploitation_threshold(view: View, step: int) -> float:
    """β_{t-1} = σ² (log(t-1) + d log log n) at t = `step`."""
    return squared_width(view, log_horizon(view, step), step - 1)


@jit
def confidence_width(view: View, step: int, explored: int) -> float:
    """γ_t = σ² (log s + d log log n), s exploring rounds counted with this one."""
    return squared_width(view, log_horizon(view, step), explored)


@jit
def least_positive_gap(means: Floats) -> float:
    """The smallest positive gap of all contexts; 0 where there is none."""
    least = np.inf
    for context in range(means.shape[0]):
        best = means[context, best_arm(means[context])]
        for arm in range(means.shape[1]):
            gap = best - means[context, arm]
            if gap > 0.0:
                least = min(least, gap)
    return least if least < np.inf else 0.0


@jit
def alternative_distance(
    regression: Regression, means: Floats, work: RegressionWork, view: View, context: int, enough: float
) -> float:
    """Least ‖θ-hat - θ'‖²_V over models θ' with another optimal arm in `context` (Eq. "pdlin.glr").

    This is min_{a ≠ a*} Δ(x,a)² / ‖φ*(x) - φ(x,a)‖²_{V^-1}; the search ends once it is at or below `enough`.
    """
    features, sq_norms = view.features[context], regression.sq_norms[context]
    best = best_arm(means[context])
    symmetric_product(regression.inverse, features[best], work.direction)
    least = np.inf
    for arm in range(features.shape[0]):
        if arm != best:
            parts = sq_norms[arm] + sq_norms[best]
            cross = dot(features[arm], work.direction)
            norm = difference_norm(regression.inverse, features[best], features[arm], parts, cross)
            # A copy of the best arm (norm 0) is best in every model in which the best one is.
            if norm > 0.0:
                gap = means[context, best] - means[context, arm]
                least = min(least, gap * gap / norm)
                if least <= enough:
                    break
    return least


@jit
def is_identified(
    regression: Regression, work: RegressionWork, view: View, context: int, threshold: float
) -> bool:
    """Whether every model with another optimal arm in `context` is farther than `threshold`."""
    return alternative_distance(regression, regression.means, work, view, context, threshold) > threshold
