"""The test whether the optimal arm of a context is identified, by which policies stop exploring."""

from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.estimation.arms import NARROW
from solid_bandits.estimation.linalg.vectors import best_arm, dot
from solid_bandits.estimation.regression import estimate_differences, squared_norm, write_theta


@jit
def best_of_rows(arms: Floats, theta: Floats) -> int:
    """Return argmax_a φ_aᵀθ, the first one in a tie."""
    best = 0
    largest = -np.inf
    for arm in range(arms.shape[0]):
        value = dot(arms[arm], theta)
        if value > largest:
            best, largest = arm, value
    return best


@jit
def two_best_of_rows(arms: Floats, theta: Floats) -> tuple[int, int]:
    """Return the best arm and the second best (-1 if there is none), the first ones in ties."""
    best = second = -1
    largest = next_largest = -np.inf
    for arm in range(arms.shape[0]):
        value = dot(arms[arm], theta)
        if best < 0 or value > largest:
            second, next_largest = best, largest
            best, largest = arm, value
        elif second < 0 or value > next_largest:
            second, next_largest = arm, value
    return best, second


@jit
def alternative_distance(regression: Any, arms: Floats, enough: float) -> float:
    """Return the least ‖θ-hat - θ'‖²_V over models θ' with another optimal arm among `arms` (Eq. "pdlin.glr").

    This is min_{a ≠ a*} Δ(a)² / ‖φ* - φ(a)‖²_{V^-1}; the search ends once it is at or below `enough`. θ-hat is in
    `regression.work.theta`.
    """
    theta, vector, work = regression.work.theta, regression.work.vector, regression.work.arms
    best, second = two_best_of_rows(arms, theta)
    least = np.inf
    if arms.shape[0] > NARROW:
        # Where the search ends early, the arm with the least gap nearly always ends it, at less than the cost of a
        # block.
        for i in range(vector.shape[0]):
            vector[i] = arms[best, i] - arms[second, i]
        gap = dot(vector, theta)
        sq_norm = squared_norm(regression, vector)
        if sq_norm > 0.0 and gap * gap <= enough * sq_norm:
            return gap * gap / sq_norm
    first = 0
    while first < arms.shape[0]:
        count = estimate_differences(regression, arms, best, first)
        for k in range(count):
            # A copy of the best arm (norm 0) is best in every model in which the best arm is.
            if work.sq_norms[k] > 0.0:
                least = min(least, work.means[k] * work.means[k] / work.sq_norms[k])
        if least <= enough:
            break
        first += count
    return least


class PastNorms(NamedTuple):
    """Past values of ‖φ* - φ‖²_{V^-1} in every context: V only grows, so current values are not larger.

    They save work; without them the results would be the same.
    """

    sq_norms: Floats
    """The norms, shape (contexts, arms)."""
    best: Ints
    """The arm of φ*, or -1 if there are no norms, shape (contexts,)."""
    rewards: Ints
    """Number of rewards in V at that time, shape (contexts,)."""


def make_past_norms(n_contexts: int, n_arms: int) -> PastNorms:
    """Return past norms without any entries."""
    return PastNorms(
        np.zeros((n_contexts, n_arms)), np.full(n_contexts, -1), np.zeros(n_contexts, dtype=np.int64)
    )


@jit
def all_beyond(arms: Floats, theta: Floats, best: int, sq_norms: Floats, threshold: float) -> bool:
    """Return whether Δ(a)² / ‖φ* - φ(a)‖² > `threshold` for every arm that is not a copy of the best one (norm 0)."""
    top = dot(arms[best], theta)
    for arm in range(arms.shape[0]):
        gap = top - dot(arms[arm], theta)
        if sq_norms[arm] > 0.0 and not gap * gap > threshold * sq_norms[arm]:
            return False
    return True


@jit
def is_identified(regression: Any, arms: Floats, past: PastNorms, context: int, threshold: float) -> bool:
    """Return whether every model with another optimal arm among `arms` is farther than `threshold`.

    Where past norms decide this, no new ones are computed. Leaves θ-hat in `regression.work.theta`.
    """
    theta, work = regression.work.theta, regression.work.arms
    write_theta(regression, theta)
    best = best_of_rows(arms, theta)
    sq_norms, rewards = past.sq_norms[context], regression.estimator.rewards.item()
    known = past.best[context] == best and past.rewards[context] <= rewards
    if known and all_beyond(arms, theta, best, sq_norms, threshold):
        return True
    first = 0
    while first < arms.shape[0]:
        count = estimate_differences(regression, arms, best, first)
        block = sq_norms[first : first + count]
        for k in range(count):
            block[k] = work.sq_norms[k]
        first += count
    past.best[context], past.rewards[context] = best, rewards
    return all_beyond(arms, theta, best, sq_norms, threshold)


@jit
def least_positive_gap(means: Floats) -> float:
    """Return the smallest positive gap over all contexts; 0 if there is none."""
    least = np.inf
    for context in range(means.shape[0]):
        best = means[context, best_arm(means[context])]
        for arm in range(means.shape[1]):
            gap = best - means[context, arm]
            if gap > 0.0:
                least = min(least, gap)
    return least if least < np.inf else 0.0


@jit
def matched_distance(means: Floats, sq_norms: Floats, least_gap: float, enough: float) -> float:
    """Return min_a max(Δ(a), least_gap)² / ‖φ(a)‖²_{V^-1} over the arms of one context: OAM's statistic.

    The search ends once it is below `enough`.
    """
    top = means[best_arm(means)]
    least = np.inf
    for arm in range(means.shape[0]):
        gap = max(top - means[arm], least_gap)
        if sq_norms[arm] > 0.0:
            least = min(least, gap * gap / sq_norms[arm])
            if least < enough:
                break
    return least
