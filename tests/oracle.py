"""The programs of the lower bound as conic programs, for a solver that shares no line with ours (cvxpy, Clarabel)."""

import warnings

import cvxpy as cp
import numpy as np

from solid_bandits.core.problem import Problem


def confusing_basis(problem: Problem) -> np.ndarray:
    """Orthonormal basis of the complement of the optimal arms' span, (dim, k)."""
    rows = problem.features[np.arange(problem.n_contexts), problem.optimal_arms]
    _, singular, right = np.linalg.svd(rows)
    return right[int((singular > 1e-10 * singular[0]).sum()) :].T


def lower_bound(problem: Problem) -> float:
    """(P): cost of the conic solver's allocation once scaled to be feasible, and never its own word for it."""
    basis = confusing_basis(problem)
    gaps = problem.gaps.ravel()
    vectors = problem.features.reshape(-1, problem.dim) @ basis
    keep = (gaps > 0) & (np.linalg.norm(vectors, axis=1) > 1e-9)
    vectors, gaps = vectors[keep], gaps[keep]
    # Each constraint divided by its right-hand side, each variable by its cost: unscaled, solvers go wrong here.
    normals = vectors * (np.sqrt(2) * problem.noise_std / gaps[:, None])
    eta = _solve(vectors / np.sqrt(gaps)[:, None], normals, None) / gaps
    return float(eta @ gaps / _information(vectors, eta, normals).min())


def pure_exploration(problem: Problem) -> float:
    """Pure exploration: the steps that the conic solver's policy needs, rescaled to be feasible."""
    features = problem.features.reshape(-1, problem.dim)
    normals = _differences(problem)
    eta = _solve(features, normals, problem)
    totals = eta.reshape(problem.gaps.shape).sum(axis=1) / problem.context_probs
    return float(totals.max() / _information(features, eta, normals).min())


def lower_bound_at(problem: Problem, z: float, support: np.ndarray | None = None) -> float:
    """(P_z), by linear matrix inequalities; or (P̃_α), with pulls on a support only."""
    eta, constraints = _pulls(problem, z)
    if support is not None:
        constraints.append(eta[np.flatnonzero(~support)] == 0)
    return _least_regret(problem, eta, constraints)


def lower_bound_in_total(problem: Problem, z: float) -> float:
    """(P̃_z): z pulls in all."""
    eta = cp.Variable(problem.gaps.size, nonneg=True)
    return _least_regret(problem, eta, [cp.sum(eta) == z])


def _least_regret(problem: Problem, eta: cp.Variable, constraints: list[cp.Constraint]) -> float:
    features = problem.features.reshape(-1, problem.dim)
    matrix = features.T @ cp.diag(eta) @ features
    constraints += [cp.matrix_frac(v, matrix) <= 1 for v in _differences(problem)]
    program = cp.Problem(cp.Minimize(problem.gaps.ravel() @ eta), constraints)
    return _optimum(program)


def bounded(problem: Problem, z: float | None = None) -> float:
    """(P), or (P_z) for a given z, with ‖θ'‖ <= B, each pair's closest alternative through the S-lemma.

    min βᵀMβ over vᵀβ >= 1 and ‖θ - β‖ <= R is at least 1 exactly if, for some multipliers κ, τ >= 0, the quadratic
    βᵀMβ + κ(‖θ - β‖² - R²) - τ(vᵀβ - 1) - 1 is nonnegative for every β: one linear matrix inequality.
    """
    unit = np.sqrt(2) * problem.noise_std
    gaps = problem.gaps.ravel()
    features = problem.features.reshape(-1, problem.dim)
    if z is None:
        basis = confusing_basis(problem)
        eta = cp.Variable(len(gaps), nonneg=True)
        constraints = []
    else:
        basis = np.eye(problem.dim)
        eta, constraints = _pulls(problem, z)
    inside = problem.theta - basis @ (basis.T @ problem.theta)
    radius = np.sqrt(problem.B**2 - inside @ inside) / unit
    theta = basis.T @ problem.theta / unit
    vectors = features @ basis
    matrix = vectors.T @ cp.diag(eta) @ vectors
    for v in _differences(problem) @ basis:
        if v @ theta + radius * np.linalg.norm(v) <= 1 + 1e-9:
            continue
        kappa, tau = cp.Variable(nonneg=True), cp.Variable(nonneg=True)
        side = cp.reshape(-kappa * theta - tau * v / 2, (len(theta), 1), order="C")
        corner = cp.reshape(kappa * (theta @ theta - radius**2) + tau - 1, (1, 1), order="C")
        block = cp.bmat([[matrix + kappa * np.eye(len(theta)), side], [side.T, corner]])
        constraints.append(block >> 0)
    program = cp.Problem(cp.Minimize(gaps @ eta), constraints)
    return _optimum(program)


def _pulls(problem: Problem, z: float) -> tuple[cp.Variable, list[cp.Constraint]]:
    eta = cp.Variable(problem.gaps.size, nonneg=True)
    totals = cp.sum(cp.reshape(eta, problem.gaps.shape, order="C"), axis=1)
    return eta, [totals == z * problem.context_probs]


def _differences(problem: Problem) -> np.ndarray:
    """(φ* - φ) σ√2 / Δ for every suboptimal pair."""
    best = problem.features[np.arange(problem.n_contexts), problem.optimal_arms][:, None, :]
    other = problem.gaps > 0
    normals = (best - problem.features)[other]
    return np.asarray(normals * (np.sqrt(2) * problem.noise_std / problem.gaps[other])[:, None])


def _solve(vectors: np.ndarray, normals: np.ndarray, by_context: Problem | None) -> np.ndarray:
    y = cp.Variable(len(vectors), nonneg=True)
    # Coordinates in which the even allocation has the identity as its matrix.
    whitening = np.linalg.inv(np.linalg.cholesky(vectors.T @ vectors)).T
    vectors, normals = vectors @ whitening, normals @ whitening
    scale = float(np.median(np.einsum("ij,ij->i", normals, normals)))
    normals = normals / np.sqrt(scale)
    matrix = vectors.T @ cp.diag(y) @ vectors
    constraints = [cp.matrix_frac(v, matrix) <= 1 for v in normals]
    cost = cp.sum(y)
    if by_context is not None:
        totals = cp.sum(cp.reshape(y, by_context.gaps.shape, order="C"), axis=1)
        cost = cp.Variable()
        constraints.append(totals == cost * by_context.context_probs)
    _optimum(cp.Problem(cp.Minimize(cost), constraints))
    return np.maximum(y.value, 0) * scale


def _information(vectors: np.ndarray, eta: np.ndarray, normals: np.ndarray) -> np.ndarray:
    inverse = np.linalg.pinv(vectors.T @ (vectors * eta[:, None]), hermitian=True)
    return np.asarray(1 / np.einsum("ij,jk,ik->i", normals, inverse, normals))


def _optimum(program: cp.Problem) -> float:
    with warnings.catch_warnings():
        # "Solution may be inaccurate" comes already at 1e-7, and the tests compare at 1e-4.
        warnings.simplefilter("ignore", UserWarning)
        return float(program.solve(solver=cp.CLARABEL))
