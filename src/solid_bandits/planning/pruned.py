"""The closest model with another optimal arm over many pairs, computing norms only where a pair can be the
minimiser.
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.estimation.linalg.triangular import cholesky, solve_columns, solve_lower, solve_transposed
from solid_bandits.estimation.linalg.vectors import best_arm, dot, sum_of_squares
from solid_bandits.planning.closest import write_differences

KEPT = 0.25
"""Factor c: norms under an older W_s bound those under W as long as W ≽ KEPT · W_s; see `pruned_alternative`."""
SAFETY = 0.5
"""Factor on such a bound that allows for rounding before a pair is left out. With the ridge of V_ω, a norm's relative
error is below d² 2^-53 / GRAM_RIDGE: a two-thousandth at d = 65, a tenth at d = 1000.
"""
DEAR = 4
"""Ratio of the cost of a norm computed on its own to its cost when all are computed together."""


class Bounds(NamedTuple):
    """Norms under an earlier W_s, kept by `pruned_alternative` from call to call.

    They save work and cannot change a result, so they are not part of a policy's state.
    """

    gram: Floats
    """W_s, shape (dim, dim)."""
    factor: Floats
    """Its Cholesky factor."""
    norms: Floats
    """‖φ*(x) - φ(x,a)‖²_{W_s^-1}, shape (contexts, arms)."""
    best: Ints
    """The best arm in each context when its norms were computed, shape (contexts,)."""
    computed: Ints
    """Number of pairs computed one by one since W_s was set, shape ()."""
    scratch: Floats
    """Scratch, shape (dim, dim)."""
    differences: Floats
    """Scratch, shape (dim, arms)."""
    column: Floats
    """Scratch, shape (dim,)."""
    lower: Floats
    """Scratch, shape (contexts, arms)."""


def make_bounds(n_contexts: int, n_arms: int, dim: int) -> Bounds:
    """Return the bounds before any call, which are empty."""
    return Bounds(
        gram=np.zeros((dim, dim)),
        factor=np.zeros((dim, dim)),
        norms=np.zeros((n_contexts, n_arms)),
        best=np.full(n_contexts, -1),
        computed=np.array(n_contexts * n_arms),  # so that the first W is adopted at once
        scratch=np.zeros((dim, dim)),
        differences=np.zeros((dim, n_arms)),
        column=np.zeros(dim),
        lower=np.zeros((n_contexts, n_arms)),
    )


@jit_apart
def pruned_alternative(
    features: Floats,
    columns: Floats,
    means: Floats,
    gram: Floats,
    factor: Floats,
    bounds: Bounds,
    delta: Floats,
) -> float:
    """Find what `closest_alternative` finds, with norms under W = `gram` only for pairs that can be the minimiser.

    If W ≽ c W_s then W^-1 ≼ W_s^-1 / c, so Δ² / ‖d‖²_{W^-1} >= c Δ² / ‖d‖²_{W_s^-1}: norms under an older W_s bound the
    distances from below. The pair with the smallest bound is computed first, and others only if their bound, less an
    allowance for rounding, is not above that pair's distance. W replaces W_s when W ≽ c W_s no longer holds. The result
    does not depend on W_s: every pair that can be the minimum is compared by its norm under W.

    Args:
        features: shape (contexts, arms, dim).
        columns: the same, shape (dim, pairs).
        means: μ_θ(x, a), shape (contexts, arms).
        gram: W, shape (dim, dim), positive definite.
        factor: scratch, shape (dim, dim).
        bounds: kept from call to call.
        delta: filled with θ - θ', shape (dim,); zeros where no model has another optimal arm.

    Returns:
        ‖θ - θ'‖²_W, infinite where there is no alternative.
    """
    cholesky(gram, factor)
    renew_bounds(columns, means, gram, factor, bounds)
    n_contexts, n_arms = means.shape
    limit = np.inf
    nearest = write_lower_bounds(means, bounds)
    if nearest >= 0:
        context, arm = nearest // n_arms, nearest % n_arms
        best = bounds.best[context]
        gap = means[context, best] - means[context, arm]
        norm = whiten_difference(features[context, best], features[context, arm], factor, bounds.column)
        limit = gap * gap / norm

    least = np.inf
    delta[:] = 0.0
    for context in range(n_contexts):
        best = bounds.best[context]
        for arm in range(n_arms):
            # Written so that a pair whose bound is NaN is kept.
            if arm == best or bounds.lower[context, arm] > limit:
                continue
            bounds.computed[()] += 1
            norm = whiten_difference(features[context, best], features[context, arm], factor, bounds.column)
            if norm > 0.0:
                gap = means[context, best] - means[context, arm]
                distance = gap * gap / norm
                if distance < least:
                    least = distance
                    for i in range(delta.shape[0]):
                        delta[i] = gap / norm * bounds.column[i]
                if least == 0.0:  # and the first such pair, which no other can replace
                    limit = -1.0
    solve_transposed(factor, delta)
    return least


@jit
def renew_bounds(columns: Floats, means: Floats, gram: Floats, factor: Floats, bounds: Bounds) -> None:
    """Renew the bounds for W = `gram`, whose factor is `factor`, and for the current best arms.

    W becomes the new W_s if it is not above KEPT · W_s, or if the bounds have become so loose that the pairs computed
    one by one have cost as much as new bounds would.
    """
    loose = DEAR * bounds.computed.item() > means.size
    if loose or not dominates(gram, bounds.gram, KEPT, bounds.scratch):
        for i in range(gram.shape[0]):
            for j in range(gram.shape[0]):
                bounds.gram[i, j], bounds.factor[i, j] = gram[i, j], factor[i, j]
        bounds.best[:] = -1
        bounds.computed[()] = 0
    n_contexts, n_arms = means.shape
    for context in range(n_contexts):
        best = best_arm(means[context])
        if best != bounds.best[context]:
            write_differences(columns, context * n_arms, best, bounds.differences)
            solve_columns(bounds.factor, bounds.differences)
            sum_of_squares(bounds.differences, bounds.norms[context])
            bounds.best[context] = best


@jit
def dominates(matrix: Floats, other: Floats, fraction: float, factor: Floats) -> bool:
    """Return whether `matrix` - `fraction` · `other` is positive definite, that is, has a Cholesky factor."""
    for j in range(matrix.shape[0]):
        pivot = matrix[j, j] - fraction * other[j, j] - dot(factor[j, :j], factor[j, :j])
        if not pivot > 0.0:
            return False
        root = math.sqrt(pivot)
        factor[j, j] = root
        for i in range(j + 1, matrix.shape[0]):
            value = matrix[i, j] - fraction * other[i, j] - dot(factor[i, :j], factor[j, :j])
            factor[i, j] = value / root
    return True


@jit
def write_lower_bounds(means: Floats, bounds: Bounds) -> int:
    """Write c Δ² / ‖d‖²_{W_s^-1}, less the rounding allowance, for all pairs; return the pair with the smallest."""
    n_contexts, n_arms = means.shape
    least = np.inf
    nearest = -1
    for context in range(n_contexts):
        optimal_mean = means[context, bounds.best[context]]
        for arm in range(n_arms):
            gap = optimal_mean - means[context, arm]
            bounds.lower[context, arm] = SAFETY * KEPT * gap * gap / bounds.norms[context, arm]
        for arm in range(n_arms):
            if bounds.lower[context, arm] < least:
                least, nearest = bounds.lower[context, arm], context * n_arms + arm
    return nearest


@jit
def whiten_difference(first: Floats, second: Floats, factor: Floats, out: Floats) -> float:
    """Write L^-1 (φ - φ') into `out`; return its squared length, ‖φ - φ'‖²_{(L Lᵀ)^-1}."""
    for i in range(out.shape[0]):
        out[i] = first[i] - second[i]
    solve_lower(factor, out)
    return dot(out, out)
