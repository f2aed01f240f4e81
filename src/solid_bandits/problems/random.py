"""The generator of random problems ("Generation of Random Problems" in the appendix on experiments)."""

import numpy as np

from solid_bandits._internal import checks
from solid_bandits.core.problem import Problem, check_size

# Largest number of draws: far more than any feasible size needs (the paper's sizes take fewer than 10), but few enough
# to finish in seconds.
_MAX_DRAWS = 20_000


def random(
    n_contexts: int = 4,
    n_arms: int = 8,
    dim: int = 8,
    density: float = 0.5,
    noise_std: float = 1.0,
    seed: int = 0,
) -> Problem:
    """Draw a sparse problem whose optimal arms do not span R^d, so that greedy play is not enough.

    Entries of the features and of θ* are uniform in [0, 1] with probability `density`, else 0; contexts are
    equally likely. A draw is rejected if the optimal arms' features span R^d (the paper's rule), if some
    context has several optimal arms, or if all features together do not span R^d.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.random(n_contexts=4, n_arms=8, dim=8, seed=0)
        >>> problem.features.shape
        (4, 8, 8)
    """
    n_contexts = checks.integer("n_contexts", n_contexts, least=1)
    n_arms = checks.integer("n_arms", n_arms, least=2)
    dim = checks.integer("dim", dim, least=2)
    density = checks.number("density", density, above=0, most=1)
    seed = checks.integer("seed", seed, least=0)
    if n_contexts * n_arms < dim:
        raise ValueError(
            f"n_contexts * n_arms is {n_contexts * n_arms}, too few features to span dimension {dim}; "
            f"give at least {dim} pairs"
        )
    check_size(n_contexts, n_arms, dim)
    rng = np.random.default_rng(seed)
    for _ in range(_MAX_DRAWS):
        features = _sparse_uniform(rng, (n_contexts, n_arms, dim), density)
        problem = Problem(features, _sparse_uniform(rng, (dim,), density), noise_std=noise_std)
        if _is_kept(problem):
            return problem
    raise ValueError(
        f"no problem with n_contexts={n_contexts}, n_arms={n_arms}, dim={dim}, density={density} was kept in "
        f"{_MAX_DRAWS} draws (optimal arms must be unique and must not span R^{dim}); give fewer contexts, a "
        "larger dim, or another density"
    )


def _sparse_uniform(rng: np.random.Generator, shape: tuple[int, ...], density: float) -> np.ndarray:
    return rng.uniform(size=shape) * (rng.uniform(size=shape) < density)


def _is_kept(problem: Problem) -> bool:
    if np.any((problem.gaps == 0).sum(axis=1) > 1):
        return False
    optimal = problem.features[np.arange(problem.n_contexts), problem.optimal_arms]
    every = problem.features.reshape(-1, problem.dim)
    return bool(np.linalg.matrix_rank(optimal) < problem.dim == np.linalg.matrix_rank(every))
