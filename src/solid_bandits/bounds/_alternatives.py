"""Closest alternatives: the information that an allocation gives against each pair, for all pairs at once."""

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from solid_bandits._internal.types import Floats

# Smallest accepted ratio of a Cholesky pivot to its diagonal entry, and of the smallest eigenvalue to the largest.
# Anything below is rounding noise.
_FLOOR = 1e-15
# Search range for the multiplier of a ball, in multiples of the largest eigenvalue.
_LEAST_MULTIPLIER, _LARGEST_MULTIPLIER = np.exp(-80.0), np.exp(60.0)
# Largest number of Newton steps towards that multiplier. More than ten are seldom needed; bisection alone would also
# finish within this many.
_MULTIPLIER_STEPS = 100
_EPS = float(np.finfo(np.float64).eps)


def unbounded(u: Floats, v: Floats, matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the information against each pair when θ' is any vector.

    With M = matrix = Σ_i y_i u_i u_iᵀ = L Lᵀ, the closest alternative of pair j is

        min βᵀ M β  s.t.  v_jᵀ β >= 1,   attained at  β_j = I_j M⁻¹ v_j,   I_j = 1 / (v_jᵀ M⁻¹ v_j).

    Args:
        u: information vectors, shape (variables, k).
        v: normals of the half-spaces, shape (pairs, k).
        matrix: M, positive definite, shape (k, k).

    Returns:
        W = L⁻¹ u as (variables, k), Z = L⁻¹ v as (pairs, k), and I as (pairs,).

    Reference: the closed form of the appendix "Implementation Details", eq. (pdlin.glr).

    """
    factor = inverse_factor(matrix)
    z = v @ factor
    return u @ factor, z, 1.0 / row_products(z, z)


def row_products(first: Floats, second: Floats) -> Floats:
    """Return the inner product of each row of one table with the same row of another."""
    return np.vecdot(first, second)


def inverse_factor(matrix: Floats) -> Floats:
    """Return L⁻ᵀ with matrix = L Lᵀ; pivots lost to rounding are raised, where a library's factorisation would
    fail.
    """
    upper, failed = dpotrf(matrix.T)
    if failed or (upper.diagonal() ** 2 < _FLOOR * matrix.diagonal()).any():
        upper = _lifted_cholesky(matrix).T
    return np.asarray(dtrtri(upper)[0])


def _lifted_cholesky(matrix: Floats) -> Floats:
    factor = np.zeros_like(matrix)
    for j in range(len(matrix)):
        column = matrix[j:, j] - factor[j:, :j] @ factor[j, :j]
        # The tolerance is relative to the row's own entry because its rounding errors are, whatever the scales of the
        # rows.
        root = np.sqrt(max(column[0], _FLOOR * matrix[j, j], 1e-300))
        factor[j:, j] = column / root
        factor[j, j] = root
    return factor


def bounded(
    v: Floats, matrix: Floats, theta: Floats, radius: float
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the information against each pair when θ' lies in a ball: ‖theta - β‖ <= radius.

    Returns:
        I, shape (pairs,); multipliers of the ball, 0 where it does not bind, shape (pairs,); the β_j in the eigenbasis
        of M = matrix, shape (pairs, k); its eigenvalues, shape (k,), and the basis, shape (k, k).

    """
    eigenvalues, basis = np.linalg.eigh(matrix)
    # Rounding may push the eigenvalues of a singular M to zero or below.
    eigenvalues = np.maximum(eigenvalues, _FLOOR * max(eigenvalues[-1], 1e-300))
    kappa, betas = _ball_multipliers(v @ basis, theta @ basis, eigenvalues, radius)
    return (betas * betas) @ eigenvalues, kappa, betas, eigenvalues, basis


def _ball_multipliers(v: Floats, theta: Floats, eigenvalues: Floats, radius: float) -> tuple[Floats, Floats]:
    """Return the closest alternatives inside a ball, in the eigenbasis of M, by a one-dimensional dual search per
    pair.

    min βᵀMβ s.t. vᵀβ >= 1 and ‖θ - β‖ <= R. With a multiplier κ >= 0 for the ball and A = M + κI, stationarity
    gives β(κ) = A⁻¹(κθ + τv) with τ chosen so that vᵀβ = 1 (the half-space is always active: without it, β = 0
    would be optimal). The part of θ - β(κ) along v is fixed by vᵀβ = 1; the rest, q(κ), behaves like a trust-region
    step: 1 / ‖q(κ)‖ is concave and nearly linear in κ, so Newton's method climbs from κ = 0 to where ‖θ - β(κ)‖ = R
    in a few steps. Each iterate is kept between multipliers known to be too small and too large, and is replaced by a
    bisection of the logarithm where rounding takes it outside.

    Args:
        v: normals, shape (pairs, k), in the eigenbasis.
        theta: centre of the ball, shape (k,), in the eigenbasis.
        eigenvalues: of M, positive, shape (k,).
        radius: R, large enough for each half-space to meet the ball.

    Returns:
        κ, shape (pairs,), 0 where the ball does not bind, and β(κ), shape (pairs, k).

    """
    kappas = np.zeros(len(v))
    betas = _ball_points(kappas, v, theta, eigenvalues)
    binding = np.flatnonzero(((theta - betas) ** 2).sum(axis=1) > radius * radius)
    if len(binding) == 0:
        return kappas, betas
    v = v[binding]
    excess = v @ theta - 1
    squares = row_products(v, v)
    fixed = v * (excess / squares)[:, None]
    goal = np.sqrt(np.maximum(radius**2 - excess**2 / squares, (_EPS * radius) ** 2))
    kappa = np.zeros(len(v))
    low = np.full(len(v), _LEAST_MULTIPLIER * eigenvalues[-1])
    high = np.full(len(v), _LARGEST_MULTIPLIER * eigenvalues[-1])
    beta = betas[binding]
    for _ in range(_MULTIPLIER_STEPS):
        free = theta - beta - fixed
        square = row_products(free, free)
        size = np.sqrt(square)
        # -½ d‖q‖²/dκ = qᵀA⁻¹q less its part along v, subtracted as vectors because a difference of squares may cancel.
        root = 1.0 / np.sqrt(eigenvalues + kappa[:, None])
        normal = v * root
        free *= root
        free -= normal * (row_products(free, normal) / row_products(normal, normal))[:, None]
        new = kappa + (size / goal - 1) * square / row_products(free, free)
        outside = size > goal
        low = np.where(outside, np.maximum(low, kappa), low)
        high = np.where(outside, high, np.minimum(high, kappa))
        done = np.abs(new - kappa) <= 4 * _EPS * kappa
        if done.all():
            break
        new = np.where((low < new) & (new < high), new, np.sqrt(low * high))
        kappa = np.where(done, kappa, new)
        beta = _ball_points(kappa, v, theta, eigenvalues)
    kappas[binding] = kappa
    betas[binding] = beta
    return kappas, betas


def _ball_points(kappa: Floats, v: Floats, theta: Floats, eigenvalues: Floats) -> Floats:
    """Return β(κ) for each pair."""
    weights = 1.0 / (eigenvalues + kappa[:, None])
    scaled = v * weights
    tau = (1.0 - kappa * (scaled @ theta)) / row_products(scaled, v)
    return np.asarray(kappa[:, None] * theta * weights + tau[:, None] * scaled)


def curvature_factor(
    v: Floats, theta: Floats, eigenvalues: Floats, kappa: Floats, betas: Floats, u: Floats, along: Floats
) -> Floats:
    """Return a matrix X with -Σ_j ∇²I_j = 2 X Xᵀ over the pairs whose ball binds.

    Differentiating the two active constraints (vᵀβ = 1, ‖θ - β‖ = R), dβ = -Π dM β with
    Π = A⁻¹ - A⁻¹N(NᵀA⁻¹N)⁻¹NᵀA⁻¹ and N = [v, θ - β]; hence ∂²I/∂y_i∂y_l = -2 (u_iᵀβ)(u_lᵀβ) u_iᵀΠu_l.

    Args:
        v: normals, shape (pairs, k), in the eigenbasis.
        theta: centre of the ball, shape (k,).
        eigenvalues: of M, shape (k,).
        kappa: multipliers of the ball, > 0, shape (pairs,).
        betas: the closest alternatives, shape (pairs, k).
        u: information vectors in the eigenbasis, shape (variables, k).
        along: u_iᵀβ_j, shape (variables, pairs).

    Returns:
        X, shape (variables, pairs * k).

    """
    root = 1.0 / np.sqrt(eigenvalues + kappa[:, None])
    first = v * root
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = (theta - betas) * root
    second -= row_products(second, first)[:, None] * first
    length = np.linalg.norm(second, axis=1, keepdims=True)
    second = np.where(length > 1e-150, second / np.maximum(length, 1e-150), 0.0)
    result = u[:, None, :] * root
    for axis in (first, second):
        result -= (u @ (root * axis).T)[:, :, None] * axis
    result *= along[:, :, None]
    return result.reshape(len(u), -1)
