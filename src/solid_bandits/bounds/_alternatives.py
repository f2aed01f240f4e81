"""The closest alternatives: how much information an allocation gives against each suboptimal pair, compiled."""

import numpy as np

from solid_bandits._compile import jit, jit_apart
from solid_bandits._types import Floats

# Halvings of the logarithm of the multiplier: from 400 decimal orders down to one unit in the last place.
_HALVINGS = 64


@jit_apart
def unbounded(u: Floats, v: Floats, matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Information against each pair when θ' is any vector.

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
    w = np.dot(u, factor)
    z = np.dot(v, factor)
    return w, z, 1.0 / row_products(z, z)


@jit_apart
def row_products(first: Floats, second: Floats) -> Floats:
    """The inner product of each row of one table with the same row of another."""
    result = np.zeros(len(first))
    for i in range(len(first)):
        total = 0.0
        for j in range(first.shape[1]):
            total += first[i, j] * second[i, j]
        result[i] = total
    return result


@jit_apart
def inverse_factor(matrix: Floats) -> Floats:
    """L⁻ᵀ with matrix = L Lᵀ; pivots lost to rounding are lifted, since a library's factor would raise there."""
    k = matrix.shape[0]
    low = np.zeros((k, k))
    inverse = np.zeros((k, k))
    for i in range(k):
        for j in range(i + 1):
            total = matrix[i, j]
            for h in range(j):
                total -= low[i, h] * low[j, h]
            if i == j:
                low[i, i] = np.sqrt(max(total, 1e-16 * matrix[i, i]))
            else:
                low[i, j] = total / low[j, j]
    for i in range(k):
        inverse[i, i] = 1.0 / low[i, i]
        for j in range(i):
            total = 0.0
            for h in range(j, i):
                total -= low[i, h] * inverse[j, h]
            inverse[j, i] = total / low[i, i]
    return inverse


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
    for _ in range(_HALVINGS):
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


@jit_apart
def curvature_factor(
    v: Floats, theta: Floats, eigenvalues: Floats, kappa: float, beta: Floats, u: Floats, along: Floats
) -> Floats:
    """A matrix X with -∇²I_j = 2 X Xᵀ for a pair whose ball binds.

    Differentiating the two active constraints (vᵀβ = 1, ‖θ - β‖ = R), dβ = -Π dM β with
    Π = A⁻¹ - A⁻¹N(NᵀA⁻¹N)⁻¹NᵀA⁻¹ and N = [v, θ - β]; hence ∂²I/∂y_i∂y_l = -2 (u_iᵀβ)(u_lᵀβ) u_iᵀΠu_l.

    Args:
        v: normal, shape (k,), in the eigenbasis.
        theta: centre of the ball, shape (k,).
        eigenvalues: of M, shape (k,).
        kappa: multiplier of the ball, > 0.
        beta: the closest alternative, shape (k,).
        u: information vectors in the eigenbasis, shape (variables, k).
        along: u_iᵀβ, shape (variables,).

    Returns:
        X, shape (variables, k).

    """
    root = 1.0 / np.sqrt(eigenvalues + kappa)
    first = v * root
    first = first / np.sqrt((first * first).sum())
    second = (theta - beta) * root
    second = second - (second * first).sum() * first
    length = np.sqrt((second * second).sum())
    scaled = u * root
    scaled = scaled - np.outer(np.dot(scaled, first), first)
    if length > 1e-150:
        second = second / length
        scaled = scaled - np.outer(np.dot(scaled, second), second)
    return scaled * along.reshape(-1, 1)
