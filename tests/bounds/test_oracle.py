"""The solver against a conic solver that knows nothing of it."""

import numpy as np
import pytest

import oracle
from solid_bandits.bounds import lower_bound, lower_bound_at, pure_exploration, verify
from solid_bandits.core.problem import Problem
from solid_bandits.problems import random

SIZES = [
    (1, 6, 3), (2, 4, 4), (3, 5, 6), (4, 8, 8), (2, 12, 10), (1, 16, 8), (8, 4, 12), (4, 12, 12),
    (4, 16, 16), (8, 8, 16),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(50))
def test_bound_agrees_with_the_conic_solver(seed):
    problem = random(*SIZES[seed % len(SIZES)], seed=seed)
    bound = lower_bound(problem)
    assert bound.converged
    # The conic allocation, scaled to be feasible, cannot cost less than the certified lower end.
    cost = oracle.lower_bound(problem)
    assert cost >= bound.lower * (1 - 1e-9)
    assert cost == pytest.approx(bound.value, rel=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_pure_exploration_agrees_with_the_conic_solver(seed):
    problem = random(*SIZES[seed % 4], seed=100 + seed)
    pure = pure_exploration(problem)
    assert pure.converged
    cost = oracle.pure_exploration(problem)
    assert cost >= pure.lower * (1 - 1e-9)
    assert cost == pytest.approx(pure.z_min, rel=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_bound_at_agrees_with_the_conic_solver(seed):
    problem = dense(seed)
    z = (1.2, 2.0, 10.0, 50.0)[seed % 4] * pure_exploration(problem).upper
    answer = lower_bound_at(problem, z)
    assert answer.converged
    assert oracle.lower_bound_at(problem, z) == pytest.approx(answer.value, rel=1e-4)


@pytest.mark.parametrize("stretch", [1.0, 1.02, 1.1, 1.5, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_bounded_alternatives_agree_with_the_conic_solver(seed, stretch):
    free = dense(seed)
    problem = Problem(
        free.features,
        free.theta,
        free.context_probs,
        free.noise_std,
        stretch * float(np.linalg.norm(free.theta)),
    )
    bound = lower_bound(problem)
    verify(problem, bound)
    assert bound.converged
    assert oracle.bounded(problem) == pytest.approx(bound.value, rel=1e-4, abs=1e-6)
    assert bound.value <= lower_bound(free).upper * (1 + 1e-9)
    pure = pure_exploration(problem)
    assert pure.converged
    answer = lower_bound_at(problem, 3 * pure.upper)
    verify(problem, answer)
    assert answer.converged
    assert oracle.bounded(problem, 3 * pure.upper) == pytest.approx(answer.value, rel=1e-4, abs=1e-5)


def test_a_parameter_of_full_norm_known_on_its_direction_has_no_alternative():
    # B = ‖θ‖ and θ is in the span of the optimal arms: whoever agrees with θ there has θ's norm already.
    features = [[[1, 0], [0, 1]]]
    bounded = Problem(features, theta=[1, 0], theta_bound=1.0)
    bound = lower_bound(bounded)
    assert bound.exploration_free
    verify(bounded, bound)
    assert lower_bound(Problem(features, theta=[1, 0])).value == pytest.approx(2.0, rel=1e-6)


def dense(seed):
    """A small problem with Gaussian features whose optimal arms span a plane."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(2, 5, 4))
    theta = rng.normal(size=4)
    return Problem(features, theta, context_probs=[0.3, 0.7], noise_std=0.5)
