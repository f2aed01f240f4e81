"""Allocations held against the certified value of (P)."""

import numpy as np

import solid_bandits as sb


def assert_solves(problem, solution):
    """The allocation costs within 1% of the certified value of (P), and is feasible."""
    exact = sb.bounds.lower_bound(problem, tol=1e-4)
    cost = float((solution.pulls * problem.gaps).sum())
    assert exact.lower * (1 - 1e-6) <= cost <= exact.upper * 1.01
    assert solution.bracket[0] <= exact.upper * (1 + 1e-6)
    if exact.value > 0:
        assert least_information(problem, solution.pulls) > 1 - 1e-3


def least_information(problem, pulls):
    """min over suboptimal pairs of gap² / (2σ² ‖φ* - φ‖²_{V^-1}), optimal arms pulled (nearly) for ever."""
    weights = pulls.copy()
    rows = np.arange(problem.n_contexts)
    weights[rows, problem.optimal_arms] = 1e7 * max(pulls.max(), 1)
    V = np.einsum("xa,xai,xaj->ij", weights, problem.features, problem.features)
    d = problem.features[rows, problem.optimal_arms][:, None] - problem.features
    norms = np.einsum("xai,ij,xaj->xa", d, np.linalg.pinv(V, rcond=1e-13, hermitian=True), d)
    suboptimal = problem.gaps > 0
    return (problem.gaps[suboptimal] ** 2 / (2 * problem.noise_std**2 * norms[suboptimal])).min()
