"""The closest alternatives: how much information an allocation gives against each suboptimal pair, compiled."""

import numpy as np

from solid_bandits._compile import jit_allocating
from solid_bandits._types import Floats
from solid_bandits.alternatives.ball import ball_multiplier, eigenbasis
from solid_bandits.linalg.triangular import cholesky, solve_columns


@jit_allocating
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


@jit_allocating
def row_products(first: Floats, second: Floats) -> Floats:
    """The inner product of each row of one table with the same row of another."""
    result = np.zeros(len(first))
    for i in range(len(first)):
        total = 0.0
        for j in range(first.shape[1]):
            total += first[i, j] * second[i, j]
        result[i] = total
    return result


@jit_allocating
def inverse_factor(matrix: Floats) -> Floats:
    """L⁻ᵀ with matrix = L Lᵀ; pivots lost to rounding are lifted, since a library's factor would raise there."""
    factor = np.empty_like(matrix)
    cholesky(matrix, factor)
    inverse = np.eye(len(matrix))
    solve_columns(factor, inverse)
    return np.ascontiguousarray(inverse.T)


@jit_allocating
def bounded(
    v: Floats, matrix: Floats, theta: Floats, radius: float
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Information against each pair when θ' lies in a ball: ‖theta - β‖ <= radius.

    Returns:
        I, shape (pairs,); multipliers of the ball, 0 where it does not bind, shape (pairs,); the β_j in the eigenbasis
        of M = matrix, shape (pairs, k); its eigenvalues, shape (k,), and the basis, shape (k, k).

    """
    eigenvalues, basis = eigenbasis(matrix)
    rotated = np.dot(v, basis)
    centre = np.dot(theta, basis)
    betas = np.empty_like(v)
    kappa = np.empty(len(v))
    values = np.empty(len(v))
    for j in range(len(v)):
        kappa[j] = ball_multiplier(rotated[j], centre, eigenvalues, radius, betas[j])
        values[j] = (eigenvalues * betas[j] * betas[j]).sum()
    return values, kappa, betas, eigenvalues, basis


@jit_allocating
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
