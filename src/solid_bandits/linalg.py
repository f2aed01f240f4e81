"""Small dense linear algebra, compiled: what several policies share.

Matrices that hold one column per context-arm pair have shape (dim, pairs), so that the inner loops run over pairs in
contiguous memory and vectorise at any dimension.
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._compile import jit, jit_apart
from solid_bandits._types import Floats, Ints

PIVOT_FLOOR = 1e-15
"""Least pivot of a Cholesky factorisation relative to the largest diagonal entry: below it lies rounding noise."""
GRAM_RIDGE = 1e-9
"""Ridge added to V_ω relative to its trace, so that it can be inverted where the weights leave directions out."""
CANCELLATION = 1e-6
"""A squared norm of a difference below this fraction of its parts has lost digits and is computed again, directly."""
TILE = 4
"""Rows taken at once: each number read from memory then serves four products, and the sums stay in registers."""
BLOCK = 256
"""Columns taken at once: a block of them at any dimension we meet stays in the processor's second-level cache."""
NEGLIGIBLE = 2.0**-53
"""Weights are left out of V_ω while all of them together add at most this fraction of its mean eigenvalue to any
eigenvalue. That is a ten-millionth of the ridge, and less than the rounding of the sums that remain."""
KEPT = 0.25
"""Norms under an older W_s bound those under W as long as W ≽ KEPT · W_s; see `pruned_alternative`."""
SAFETY = 0.5
"""What rounding may take from such a bound before a pair is left out. With the ridge above, a norm's relative error is
below d² 2^-53 / GRAM_RIDGE: a two-thousandth at d = 65, a tenth at d = 1000."""
DEAR = 4
"""How many times more a norm costs when it is computed on its own than among those of all pairs."""
HALVINGS = 64
"""Of the logarithm of a multiplier in a bisection: from 400 decimal orders down to one unit in the last place."""


def aligned_zeros(rows: int, columns: int) -> Floats:
    """Zeros, shape (rows, columns), from the start of a cache line on: no vector then straddles two lines."""
    line = 64
    raw = np.zeros(rows * columns + line // 8)
    start = -raw.ctypes.data % line // 8
    return raw[start : start + rows * columns].reshape(rows, columns)


@jit
def cholesky(matrix: Floats, factor: Floats) -> None:
    """Write the lower triangular L with L Lᵀ = `matrix` into `factor`, zeros above the diagonal.

    Never fails: a pivot that rounding made too small or negative is raised to PIVOT_FLOOR.
    """
    dim = matrix.shape[0]
    largest = 0.0
    for i in range(dim):
        largest = max(largest, matrix[i, i])
    floor = max(PIVOT_FLOOR * largest, 1e-300)
    for j in range(dim):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        root = math.sqrt(max(pivot, floor))
        factor[j, j] = root
        for i in range(j):
            factor[i, j] = 0.0
        for i in range(j + 1, dim):
            value = matrix[i, j]
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            factor[i, j] = value / root


@jit
def cholesky_update(factor: Floats, vector: Floats) -> None:
    """Turn the factor of V into the factor of V + v vᵀ by plane rotations; `vector` is overwritten."""
    dim = factor.shape[0]
    for k in range(dim):
        root = math.hypot(factor[k, k], vector[k])
        cosine = root / factor[k, k]
        sine = vector[k] / factor[k, k]
        factor[k, k] = root
        for i in range(k + 1, dim):
            factor[i, k] = (factor[i, k] + sine * vector[i]) / cosine
            vector[i] = cosine * vector[i] - sine * factor[i, k]


@jit
def solve_transposed(factor: Floats, vector: Floats) -> None:
    """Replace `vector` by the solution of Lᵀ x = vector."""
    dim = factor.shape[0]
    for i in range(dim - 1, -1, -1):
        vector[i] /= factor[i, i]
        for j in range(i):
            vector[j] -= factor[i, j] * vector[i]


@jit
def solve_lower(factor: Floats, vector: Floats) -> None:
    """Replace `vector` by the solution of L y = vector."""
    for i in range(factor.shape[0]):
        value = vector[i]
        for j in range(i):
            value -= factor[i, j] * vector[j]
        vector[i] = value / factor[i, i]


@jit
def solve_columns(factor: Floats, columns: Floats) -> None:
    """Replace each column of `columns`, shape (dim, pairs), by the solution of L y = column."""
    dim, pairs = columns.shape
    for i in range(dim):
        row = columns[i]
        whole = i - i % TILE
        for j in range(0, whole, TILE):
            l0, l1, l2, l3 = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
            y0, y1, y2, y3 = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
            for p in range(pairs):
                row[p] -= l0 * y0[p] + l1 * y1[p] + l2 * y2[p] + l3 * y3[p]
        for j in range(whole, i):
            scale = factor[i, j]
            other = columns[j]
            for p in range(pairs):
                row[p] -= scale * other[p]
        inverse = 1.0 / factor[i, i]
        for p in range(pairs):
            row[p] *= inverse


@jit_apart
def inverse_from_factor(factor: Floats, inverse: Floats) -> None:
    """Write (L Lᵀ)^-1 into `inverse`."""
    inverse[:] = 0.0
    for i in range(factor.shape[0]):
        inverse[i, i] = 1.0
    solve_columns(factor, inverse)
    for column in range(factor.shape[0]):
        solve_transposed(factor, inverse[:, column])


@jit
def dot(first: Floats, second: Floats) -> float:
    """Inner product of two vectors."""
    total = 0.0
    for i in range(first.shape[0]):
        total += first[i] * second[i]
    return total


@jit
def symmetric_product(matrix: Floats, vector: Floats, out: Floats) -> None:
    """Write `matrix` times `vector` into `out`; the matrix is symmetric, so its rows are read."""
    for i in range(matrix.shape[0]):
        out[i] = dot(matrix[i], vector)


@jit
def inner_products(columns: Floats, vector: Floats, out: Floats) -> None:
    """Write φ_pᵀ v for every column φ_p of `columns`, shape (dim, pairs), into `out`, shape (pairs,)."""
    dim, pairs = columns.shape
    whole = dim - dim % TILE
    out[:] = 0.0
    for i in range(0, whole, TILE):
        v0, v1, v2, v3 = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        r0, r1, r2, r3 = columns[i], columns[i + 1], columns[i + 2], columns[i + 3]
        for p in range(pairs):
            out[p] += v0 * r0[p] + v1 * r1[p] + v2 * r2[p] + v3 * r3[p]
    for i in range(whole, dim):
        scale = vector[i]
        row = columns[i]
        for p in range(pairs):
            out[p] += scale * row[p]


@jit
def _add_tile(block: Floats, count: int, i: int, j: int, gram: Floats) -> None:
    """Add Σ_p b_ip b_jp over the first `count` columns to the TILE x TILE entries of `gram` from (i, j) on.

    Sixteen sums in registers: eight numbers read per sixteen products, which keeps the multipliers busy.
    """
    a0, a1, a2, a3 = block[i], block[i + 1], block[i + 2], block[i + 3]
    b0, b1, b2, b3 = block[j], block[j + 1], block[j + 2], block[j + 3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for p in range(count):
        x0, x1, x2, x3 = a0[p], a1[p], a2[p], a3[p]
        y0, y1, y2, y3 = b0[p], b1[p], b2[p], b3[p]
        s00, s01, s02, s03 = s00 + x0 * y0, s01 + x0 * y1, s02 + x0 * y2, s03 + x0 * y3
        s10, s11, s12, s13 = s10 + x1 * y0, s11 + x1 * y1, s12 + x1 * y2, s13 + x1 * y3
        s20, s21, s22, s23 = s20 + x2 * y0, s21 + x2 * y1, s22 + x2 * y2, s23 + x2 * y3
        s30, s31, s32, s33 = s30 + x3 * y0, s31 + x3 * y1, s32 + x3 * y2, s33 + x3 * y3
    g0, g1, g2, g3 = gram[i], gram[i + 1], gram[i + 2], gram[i + 3]
    g0[j], g0[j + 1], g0[j + 2], g0[j + 3] = g0[j] + s00, g0[j + 1] + s01, g0[j + 2] + s02, g0[j + 3] + s03
    g1[j], g1[j + 1], g1[j + 2], g1[j + 3] = g1[j] + s10, g1[j + 1] + s11, g1[j + 2] + s12, g1[j + 3] + s13
    g2[j], g2[j + 1], g2[j + 2], g2[j + 3] = g2[j] + s20, g2[j + 1] + s21, g2[j + 2] + s22, g2[j + 3] + s23
    g3[j], g3[j + 1], g3[j + 2], g3[j + 3] = g3[j] + s30, g3[j + 1] + s31, g3[j + 2] + s32, g3[j + 3] + s33


@jit_apart
def add_symmetric_product(block: Floats, count: int, gram: Floats) -> None:
    """Add B Bᵀ to `gram`, B being the first `count` columns of `block`; only on and below the diagonal's tiles."""
    dim = gram.shape[0]
    whole = dim - dim % TILE
    for i in range(0, whole, TILE):
        for j in range(0, i + 1, TILE):
            _add_tile(block, count, i, j, gram)
    for i in range(whole, dim):
        for j in range(i + 1):
            gram[i, j] += dot(block[i, :count], block[j, :count])


@jit
def mirror_and_add_ridge(gram: Floats) -> None:
    """Copy what is below the diagonal above it, and add GRAM_RIDGE times the mean eigenvalue to the diagonal."""
    dim = gram.shape[0]
    trace = 0.0
    for i in range(dim):
        for j in range(i):
            gram[j, i] = gram[i, j]
        trace += gram[i, i]
    for i in range(dim):
        gram[i, i] += GRAM_RIDGE * trace / dim


@jit
def weighted_gram(columns: Floats, weights: Floats, block: Floats, gram: Floats) -> None:
    """Write V_ω = Σ_p w_p φ_p φ_pᵀ plus a ridge of GRAM_RIDGE times its mean eigenvalue into `gram`.

    `block`, shape (dim, any width), is scratch for columns √w φ.
    """
    dim, pairs = columns.shape
    width = min(block.shape[1], BLOCK)
    gram[:] = 0.0
    for start in range(0, pairs, width):
        count = min(width, pairs - start)
        # The last row is written last, so it can hold the roots of the weights until then.
        roots = block[dim - 1]
        for k in range(count):
            roots[k] = math.sqrt(weights[start + k])
        for i in range(dim):
            row, out = columns[i], block[i]
            for k in range(count):
                out[k] = roots[k] * row[start + k]
        add_symmetric_product(block, count, gram)
    mirror_and_add_ridge(gram)


@jit
def weights_that_matter(weights: Floats, least: float, chosen: Ints) -> tuple[int, float]:
    """Write the pairs whose weight is above `least` into `chosen`: (how many, the sum of the weights left out)."""
    count = 0
    left_out = 0.0
    for pair in range(weights.shape[0]):
        if weights[pair] > least:
            chosen[count] = pair
            count += 1
        else:
            left_out += weights[pair]
    return count, left_out


@jit_apart
def sparse_weighted_gram(
    columns: Floats, weights: Floats, feature_bound: float, chosen: Ints, block: Floats, gram: Floats
) -> None:
    """What `weighted_gram` writes, without the pairs whose weights cannot matter: none, or below NEGLIGIBLE.

    Pairs left out would add at most (Σ w_p) L² to any eigenvalue. Where that is not negligible, or where few are left
    out, all are taken.
    """
    dim, pairs = columns.shape
    width = min(block.shape[1], BLOCK)
    total = 0.0
    for pair in range(pairs):
        total += weights[pair]
    # Well below NEGLIGIBLE, because features are shorter than their bound.
    least = 2.0**-7 * NEGLIGIBLE * total / (pairs * dim)
    count, left_out = weights_that_matter(weights, least, chosen)
    negligible = False
    if 2 * count < pairs:
        gram[:] = 0.0
        for start in range(0, count, width):
            here = min(width, count - start)
            for i in range(dim):
                row, out = columns[i], block[i]
                for k in range(here):
                    pair = chosen[start + k]
                    out[k] = math.sqrt(weights[pair]) * row[pair]
            add_symmetric_product(block, here, gram)
        trace = 0.0
        for i in range(dim):
            trace += gram[i, i]
        negligible = left_out * feature_bound * feature_bound <= NEGLIGIBLE * trace / dim
    if negligible:
        mirror_and_add_ridge(gram)
    else:
        weighted_gram(columns, weights, block, gram)


@jit
def best_arm(values: Floats) -> int:
    """The first index of the largest value."""
    best = 0
    for arm in range(1, values.shape[0]):
        if values[arm] > values[best]:
            best = arm
    return best


@jit
def write_differences(columns: Floats, first: int, best: int, differences: Floats) -> None:
    """Write φ*(x) - φ(x,a) for every arm a of the context whose first pair is `first`, into as many columns."""
    for i in range(columns.shape[0]):
        row, out = columns[i], differences[i]
        optimal = row[first + best]
        for arm in range(out.shape[0]):
            out[arm] = optimal - row[first + arm]


@jit
def sum_of_squares(columns: Floats, out: Floats) -> None:
    """Write the squared length of each column into `out`."""
    out[:] = 0.0
    for i in range(columns.shape[0]):
        row = columns[i]
        for p in range(out.shape[0]):
            out[p] += row[p] * row[p]


@jit
def closest_alternative(
    columns: Floats,
    means: Floats,
    gram: Floats,
    factor: Floats,
    differences: Floats,
    norms: Floats,
    delta: Floats,
) -> float:
    """The closest model with another optimal arm in some context, in closed form (Eq. "pdlin.glr" of the appendix).

    Minimises Δ(x,a)² / ‖φ*(x) - φ(x,a)‖²_{W^-1} over all contexts x and arms a ≠ a*(x), W being `gram`; at the
    minimiser θ - θ' = Δ / ‖d‖²_{W^-1} W^-1 d with d = φ*(x) - φ(x,a).

    Args:
        columns: features, shape (dim, pairs).
        means: μ_θ(x, a), shape (contexts, arms).
        gram: W, shape (dim, dim), positive definite.
        factor: scratch, shape (dim, dim).
        differences: scratch, shape (dim, pairs).
        norms: filled with ‖φ*(x) - φ(x,a)‖²_{W^-1}, shape (pairs,).
        delta: filled with θ - θ', shape (dim,); zeros where no model has another optimal arm.

    Returns:
        ‖θ - θ'‖²_W, infinite where there is no alternative.
    """
    n_contexts, n_arms = means.shape
    for context in range(n_contexts):
        first = context * n_arms
        write_differences(columns, first, best_arm(means[context]), differences[:, first : first + n_arms])
    cholesky(gram, factor)
    solve_columns(factor, differences)
    sum_of_squares(differences, norms)

    closest = -1
    least = np.inf
    closest_gap = 0.0
    for context in range(n_contexts):
        optimal_mean = means[context, best_arm(means[context])]
        for arm in range(n_arms):
            pair = context * n_arms + arm
            # The optimal arm itself, and copies of it, give no alternative: their difference is exactly zero.
            if norms[pair] > 0.0:
                gap = optimal_mean - means[context, arm]
                distance = gap * gap / norms[pair]
                if distance < least:
                    closest, least, closest_gap = pair, distance, gap
    delta[:] = 0.0
    if closest >= 0:
        for i in range(delta.shape[0]):
            delta[i] = closest_gap / norms[closest] * differences[i, closest]
        solve_transposed(factor, delta)
    return least


class Bounds(NamedTuple):
    """What `pruned_alternative` keeps from call to call: norms under an earlier W_s.

    They save work and cannot change a result, so they are no part of a policy's state.
    """

    gram: Floats
    """W_s, shape (dim, dim)."""
    factor: Floats
    """Its Cholesky factor."""
    norms: Floats
    """‖φ*(x) - φ(x,a)‖²_{W_s^-1}, shape (contexts, arms)."""
    best: Ints
    """The arm that was best in a context when its norms were computed, shape (contexts,)."""
    computed: Ints
    """Pairs computed one by one since W_s was taken, shape ()."""
    scratch: Floats
    """Shape (dim, dim)."""
    differences: Floats
    """Scratch, shape (dim, arms)."""
    column: Floats
    """Scratch, shape (dim,)."""
    lower: Floats
    """Scratch, shape (contexts, arms)."""


def make_bounds(n_contexts: int, n_arms: int, dim: int) -> Bounds:
    """Bounds before any call: none."""
    return Bounds(
        gram=np.zeros((dim, dim)),
        factor=np.zeros((dim, dim)),
        norms=np.zeros((n_contexts, n_arms)),
        best=np.full(n_contexts, -1),
        computed=np.array(n_contexts * n_arms),  # so that the first W is taken at once
        scratch=np.zeros((dim, dim)),
        differences=np.zeros((dim, n_arms)),
        column=np.zeros(dim),
        lower=np.zeros((n_contexts, n_arms)),
    )


@jit
def dominates(matrix: Floats, other: Floats, fraction: float, factor: Floats) -> bool:
    """Whether `matrix` - `fraction` · `other` is positive definite: whether it has a Cholesky factor."""
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
def whiten_difference(first: Floats, second: Floats, factor: Floats, out: Floats) -> float:
    """Write L^-1 (φ - φ') into `out`; return its squared length, ‖φ - φ'‖²_{(L Lᵀ)^-1}."""
    for i in range(out.shape[0]):
        out[i] = first[i] - second[i]
    solve_lower(factor, out)
    return dot(out, out)


@jit
def renew_bounds(columns: Floats, means: Floats, gram: Floats, factor: Floats, bounds: Bounds) -> None:
    """Make the bounds fit for use with W = `gram`, whose factor is `factor`, and with the best arms of now.

    W becomes the new W_s where it is not above KEPT · W_s, and where the bounds have become so loose that pairs
    computed one by one have cost as much as new bounds do.
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
def write_lower_bounds(means: Floats, bounds: Bounds) -> int:
    """Write c Δ² / ‖d‖²_{W_s^-1}, less what rounding may have added, for all pairs; return the pair with the least."""
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
    """What `closest_alternative` finds, computing norms under W = `gram` only for pairs that can be the minimiser.

    If W ≽ c W_s then W^-1 ≼ W_s^-1 / c, so Δ² / ‖d‖²_{W^-1} >= c Δ² / ‖d‖²_{W_s^-1}: norms under an older W_s bound the
    distances from below. The pair with the least bound is computed first; others only if their bound, less what
    rounding may have added to it, is not above that pair's distance. W_s gives way to W when W ≽ c W_s no longer holds.
    The result does not depend on W_s: every pair that can be least is compared by its norm under W.

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
            # Written so that a bound that is no number keeps its pair.
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
                if least == 0.0:  # and the first of its kind: no other can replace it
                    limit = -1.0
    solve_transposed(factor, delta)
    return least


@jit
def difference_norm(inverse: Floats, first: Floats, second: Floats, parts: float, cross: float) -> float:
    """‖φ - φ'‖²_{V^-1} from ‖φ‖² + ‖φ'‖² (`parts`) and φᵀV^-1φ' (`cross`), directly where that loses digits."""
    norm = parts - 2.0 * cross
    if norm > CANCELLATION * parts:
        return norm
    norm = 0.0
    for i in range(first.shape[0]):
        row = 0.0
        for j in range(first.shape[0]):
            row += inverse[i, j] * (first[j] - second[j])
        norm += row * (first[i] - second[i])
    return max(norm, 0.0)


@jit_apart
def ball_multiplier(v: Floats, theta: Floats, eigenvalues: Floats, radius: float, beta: Floats) -> float:
    """Closest alternative inside a ball, in the eigenbasis of M: the one-dimensional dual search.

    min βᵀMβ s.t. vᵀβ >= 1 and ‖θ - β‖ <= R. With a multiplier κ >= 0 for the ball and A = M + κI, stationarity
    gives β(κ) = A⁻¹(κθ + τv) with τ chosen so that vᵀβ = 1 (the half-space is always active: without it β = 0
    would do). ‖θ - β(κ)‖ falls as κ grows, from the unbounded solution (κ = 0) to the projection of θ on the
    hyperplane (κ = ∞), so κ is found by bisection of its logarithm.

    Args:
        v: normal, shape (k,), in the eigenbasis.
        theta: centre of the ball, shape (k,), in the eigenbasis.
        eigenvalues: of M, positive, shape (k,).
        radius: R, large enough for the half-space to meet the ball.
        beta: written: the closest alternative, on the inner side of the bisection.

    Returns:
        κ; 0 where the ball does not bind.

    """
    if _ball_excess(0.0, v, theta, eigenvalues, radius, beta) <= 0:
        return 0.0
    top = eigenvalues.max()
    low = np.log(top) - 80.0
    high = np.log(top) + 10.0
    while _ball_excess(np.exp(high), v, theta, eigenvalues, radius, beta) > 0 and high < np.log(top) + 60.0:
        high += 10.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _ball_excess(np.exp(middle), v, theta, eigenvalues, radius, beta) > 0:
            low = middle
        else:
            high = middle
        if high - low < 1e-14:
            break
    kappa = np.exp(high)
    _ball_excess(kappa, v, theta, eigenvalues, radius, beta)
    return float(kappa)


@jit
def _ball_excess(
    kappa: float, v: Floats, theta: Floats, eigenvalues: Floats, radius: float, beta: Floats
) -> float:
    """Write β(κ) and return ‖θ - β(κ)‖² - R²."""
    along = 0.0
    norm = 0.0
    for i in range(v.shape[0]):
        scaled = v[i] / (eigenvalues[i] + kappa)
        along += theta[i] * scaled
        norm += v[i] * scaled
    tau = (1.0 - kappa * along) / norm
    excess = -radius * radius
    for i in range(v.shape[0]):
        beta[i] = (kappa * theta[i] + tau * v[i]) / (eigenvalues[i] + kappa)
        excess += (theta[i] - beta[i]) ** 2
    return excess
