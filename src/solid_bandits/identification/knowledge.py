"""What has been seen, and the test that says when it is enough.

Let V_n and θ-hat_n be the least-squares estimator of all n rewards, and let the first k be set aside, k being the first
of 8d, 16d, 32d, ... at which V_k is well conditioned. With N(θ-hat_k, σ² V_k⁻¹) for a prior, the likelihood of the
later rewards under the prior, divided by that under θ, is

    M_n(θ) = √(det V_k / det V_n) exp((|θ - θ-hat_n|²_{V_n} - |θ - θ-hat_k|²_{V_k}) / 2σ²),

for the true θ a supermartingale of mean at most 1 if noise is sub-Gaussian with σ, whatever rule chose the arms and
however contexts came. So with probability at least 1 - δ it never reaches 1/δ, and one may stop where every θ does
under which, in some context, another arm is at least as good as the one that is answered. With W = V_n - V_k and θ~ the
estimate of the later rewards alone, the least exponent over the θ with xᵀθ <= 0 is

    c + (θ~ᵀx)²₊ / xᵀW⁻¹x,

c being the squares around their fits of the first and of the later rewards, less those of all of them.

It is the test of `ope.linear_test`, as it is of use inside a loop.
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_part
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.estimation.estimator import (
    Estimator,
    make_estimator,
    observe,
    squared_norm,
    write_theta,
)
from solid_bandits.estimation.linalg.vectors import dot

FIRST = 8
"""Rewards that are set aside for each dimension, at the least."""
CONDITION = 1e-3
"""The share of the mean eigenvalue of V_k that the harmonic mean of its eigenvalues must have."""
TINY = 1e-9
"""The ridge of an estimator that is to have none, in units of the largest squared norm of a feature."""


class Told(NamedTuple):
    """What a search is told."""

    delta: float
    noise_std: float
    heuristic: bool
    """Whether to stop by the threshold of papers' experiments, log((1 + log n) / δ), which is not proven."""


class Knowledge(NamedTuple):
    """All that a search has seen. Arrays are updated in place."""

    told: Told
    features: Floats
    """Shape (contexts, arms, dim)."""
    every: Estimator
    """Of all rewards."""
    later: Estimator
    """Of those after the first k."""
    aside: Floats
    """k (0 until it is known), log det V_k and the sum of squares around the fit of the first k, shape (3,)."""
    counts: Floats
    """N(x, a), shape (contexts, arms)."""
    tracked: Floats
    """What N(x, a) should be by the rule's allocations, shape (contexts, arms)."""
    drawn: Floats
    """How often each context came, shape (contexts,)."""
    theta: Floats
    """θ-hat_n, shape (dim,)."""
    best: Ints
    """The best arm of each context under it, shape (contexts,)."""
    answer: Ints
    """The best arm of each context under θ~: what is answered, shape (contexts,)."""
    row: Floats
    gains: Floats
    vector: Floats
    other: Floats
    """Scratch, each of shape (dim,)."""


def make_knowledge(features: Floats, told: Told) -> Knowledge:
    """Nothing has been seen."""
    contexts, arms, dim = features.shape
    ridge = TINY * float((features**2).sum(axis=2).max())
    return Knowledge(
        told,
        features,
        make_estimator(dim, ridge),
        make_estimator(dim, ridge),
        np.zeros(3),
        np.zeros((contexts, arms)),
        np.zeros((contexts, arms)),
        np.zeros(contexts),
        np.zeros(dim),
        np.zeros(contexts, dtype=np.int64),
        np.zeros(contexts, dtype=np.int64),
        *(np.zeros(dim) for _ in range(4)),
    )


@jit
def copy_into(values: Floats, out: Floats) -> None:
    """Copy a vector."""
    for i in range(out.shape[0]):
        out[i] = values[i]


@jit_part
def norm_of(known: Knowledge, features: Floats) -> float:
    """‖φ‖²_{V_n^-1}."""
    copy_into(features, known.vector)
    return squared_norm(known.every, known.vector)


@jit_part
def norm_of_difference(
    known: Knowledge, estimator: Estimator, context: int, first: int, second: int
) -> float:
    """‖φ(x, first) - φ(x, second)‖² in the inverse of an estimator's matrix; U^-T of it is left in `vector`."""
    one, other = known.features[context, first], known.features[context, second]
    for i in range(known.vector.shape[0]):
        known.vector[i] = one[i] - other[i]
    return squared_norm(estimator, known.vector)


@jit
def write_best(features: Floats, theta: Floats, best: Ints) -> None:
    """The best arm of each context under θ, the first of several that tie."""
    for context in range(features.shape[0]):
        largest = -np.inf
        for arm in range(features.shape[1]):
            value = dot(features[context, arm], theta)
            if value > largest:
                best[context], largest = arm, value


@jit
def is_preparing(known: Knowledge) -> bool:
    """Whether the first k rewards are still to come: until then arms are chosen by `most_uncertain`."""
    return known.aside[0] == 0.0


@jit_part
def most_uncertain(known: Knowledge, context: int) -> int:
    """The arm of the largest ‖φ‖_{V_n^-1} in a context, the first of several that tie."""
    best, largest = 0, -1.0
    for arm in range(known.features.shape[1]):
        size = norm_of(known, known.features[context, arm])
        if size > largest * (1 + 1e-9):
            best, largest = arm, size
    return best


@jit_part
def is_well_conditioned(known: Knowledge) -> bool:
    """Whether d / tr V⁻¹, the harmonic mean of the eigenvalues of V, is more than a share of their mean."""
    dim = known.vector.shape[0]
    trace, inverse = 0.0, 0.0
    for context in range(known.features.shape[0]):
        for arm in range(known.features.shape[1]):
            features = known.features[context, arm]
            trace += known.counts[context, arm] * dot(features, features)
    for i in range(dim):
        for j in range(dim):
            known.vector[j] = 1.0 if i == j else 0.0
        inverse += squared_norm(known.every, known.vector)
    return dim / inverse > CONDITION * trace / dim


@jit_part
def take_in(known: Knowledge, context: int, arm: int, reward: float) -> None:
    """Learn from a reward."""
    features, dim = known.features[context, arm], known.theta.shape[0]
    observe(known.every, features, reward, known.row, known.gains)
    known.counts[context, arm] += 1.0
    known.drawn[context] += 1.0
    if is_preparing(known):
        known.tracked[context, arm] += 1.0
        count = known.every.rewards.item()
        parts = count // (FIRST * dim)
        if count == parts * FIRST * dim and parts & (parts - 1) == 0 and is_well_conditioned(known):
            known.aside[0] = count
            known.aside[1] = known.every.log_det_ratio.item()
            known.aside[2] = known.every.residual.item()
    else:
        observe(known.later, features, reward, known.row, known.gains)
    write_theta(known.every, known.theta)
    write_best(known.features, known.theta, known.best)


@jit_part
def threshold(known: Knowledge) -> float:
    """What the statistic has to exceed: log(1/δ) + log(det V_n / det V_k) / 2, or the heuristic one."""
    if known.told.heuristic:
        return math.log((1.0 + math.log(max(known.every.rewards.item(), 1))) / known.told.delta)
    grown = known.every.log_det_ratio.item() - known.aside[1]
    return -math.log(known.told.delta) + 0.5 * max(grown, 0.0)


@jit_part
def least_ratio(known: Knowledge, estimator: Estimator, theta: Floats, best: Ints) -> float:
    """Min Δ(x, a)² / ‖φ* - φ(x, a)‖² over all arms that are no copies of the best; infinite where there are none."""
    least = np.inf
    for context in range(known.features.shape[0]):
        top = dot(known.features[context, best[context]], theta)
        for arm in range(known.features.shape[1]):
            norm = norm_of_difference(known, estimator, context, best[context], arm)
            if norm > 0.0:
                gap = top - dot(known.features[context, arm], theta)
                least = min(least, gap * gap / norm)
    return least


@jit_part
def statistic(known: Knowledge) -> float:
    """The least log-likelihood by which alternatives are refuted; -infinity before there is anything to test."""
    if is_preparing(known) or known.later.rewards.item() == 0:
        return -np.inf
    if known.told.heuristic:
        for context in range(known.best.shape[0]):
            known.answer[context] = known.best[context]
        least = least_ratio(known, known.every, known.theta, known.best)
        return 0.5 * least / known.told.noise_std**2
    theta = known.other
    write_theta(known.later, theta)
    write_best(known.features, theta, known.answer)
    apart = known.aside[2] + known.later.residual.item() - known.every.residual.item()
    least = least_ratio(known, known.later, theta, known.answer)
    return 0.5 * (min(apart, 0.0) + least) / known.told.noise_std**2


@jit
def is_found(known: Knowledge) -> bool:
    """Whether the answer is settled."""
    return statistic(known) > threshold(known)
