"""Small dense linear algebra, compiled: what several policies share.

Matrices that hold one column per context-arm pair have shape (dim, pairs), so that the inner loops run over pairs in
contiguous memory and vectorise at any dimension.
"""

import math

import numpy as np

from solid_bandits._compile import jit, jit_apart
from solid_bandits._types import Floats

PIVOT_FLOOR = 1e-15
"""Least pivot of a Cholesky factorisation relative to the largest diagonal entry: below it lies rounding noise."""
GRAM_RIDGE = 1e-9
"""Ridge added to V_ω relative to its trace, so that it can be inverted where the weights leave directions out."""
CANCELLATION = 1e-6
"""A squared norm of a difference below this fraction of its parts has lost digits and is computed again, directly."""
HALVINGS = 64
"""Of the logarithm of a multiplier in a bisection: from 400 decimal orders down to one unit in the last place."""


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
def solve_columns(factor: Floats, columns: Floats) -> None:
    """Replace each column of `columns`, shape (dim, pairs), by the solution of L y = column."""
    dim, pairs = columns.shape
    for i in range(dim):
        row = columns[i]
        for j in range(i):
            scale = factor[i, j]
            if scale != 0.0:
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
    out[:] = 0.0
    for i in range(columns.shape[0]):
        scale = vector[i]
        if scale != 0.0:
            row = columns[i]
            for p in range(out.shape[0]):
                out[p] += scale * row[p]


@jit
def weighted_gram(columns: Floats, weights: Floats, scaled: Floats, gram: Floats) -> None:
    """Write V_ω = Σ_p w_p φ_p φ_pᵀ plus a ridge of GRAM_RIDGE times its mean eigenvalue into `gram`.

    `scaled`, shape (dim, pairs), is scratch.
    """
    dim, pairs = columns.shape
    for i in range(dim):
        for p in range(pairs):
            scaled[i, p] = weights[p] * columns[i, p]
    trace = 0.0
    for i in range(dim):
        for j in range(i + 1):
            gram[i, j] = dot(scaled[i], columns[j])
            gram[j, i] = gram[i, j]
        trace += gram[i, i]
    for i in range(dim):
        gram[i, i] += GRAM_RIDGE * trace / dim


@jit
def best_arm(values: Floats) -> int:
    """The first index of the largest value."""
    best = 0
    for arm in range(1, values.shape[0]):
        if values[arm] > values[best]:
            best = arm
    return best


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
        norms: scratch, shape (pairs,).
        delta: filled with θ - θ', shape (dim,); zeros where no model has another optimal arm.

    Returns:
        ‖θ - θ'‖²_W, infinite where there is no alternative.
    """
    dim = columns.shape[0]
    n_contexts, n_arms = means.shape
    for i in range(dim):
        for context in range(n_contexts):
            start = context * n_arms
            optimal = columns[i, start + best_arm(means[context])]
            for pair in range(start, start + n_arms):
                differences[i, pair] = optimal - columns[i, pair]
    cholesky(gram, factor)
    solve_columns(factor, differences)
    norms[:] = 0.0
    for i in range(dim):
        for pair in range(norms.shape[0]):
            norms[pair] += differences[i, pair] * differences[i, pair]

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
        for i in range(dim):
            delta[i] = closest_gap / norms[closest] * differences[i, closest]
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
