import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import solid_bandits as sb
from certified import assert_solves
from solid_bandits.planning.allocation import make_allocation, solve_allocation


def solved(problem, means=None):
    solution, work = make_allocation(*problem.features.shape)
    means = problem.means if means is None else means
    solve_allocation(problem.features, problem.noise_std, means, solution, work)
    return solution


@given(st.integers(1, 4), st.integers(2, 8), st.integers(1, 7), st.floats(0.01, 10), st.integers(0, 10**6))
def test_the_allocation_solves_p_to_one_per_cent(n_contexts, n_arms, dim, noise_std, seed):
    rng = np.random.default_rng(seed)
    problem = sb.Problem(
        rng.normal(size=(n_contexts, n_arms, dim)), rng.normal(size=dim), noise_std=noise_std
    )
    assert_solves(problem, solved(problem))


@pytest.mark.parametrize("seed", range(6))
def test_warm_starts_solve_moving_problems(seed):
    """From one estimate to the next: along a random walk of θ the answers stay within 1%, in few Newton steps."""
    rng = np.random.default_rng(seed)
    problem = sb.problems.random(4, 8, 8, seed=seed)
    solution, work = make_allocation(*problem.features.shape)
    steps = []
    theta = problem.theta.copy()
    for round_ in range(200):
        theta += 0.01 * rng.normal(size=8)
        moved = sb.Problem(problem.features, theta, noise_std=problem.noise_std)
        solve_allocation(problem.features, problem.noise_std, moved.means, solution, work)
        steps.append(solution.steps.item())
        if round_ % 20 == 0:
            assert_solves(moved, solution)
    assert np.mean(steps) < 12


def test_the_toy_s_allocation_is_the_closed_form():
    solution = solved(sb.problems.toy(noise_std=0.5))
    assert solution.pulls[1, 0] == pytest.approx(2.5 / 0.2, rel=0.01)
    assert np.delete(solution.pulls.ravel(), 3) == pytest.approx(0, abs=1e-12)


def test_the_allocation_does_not_depend_on_units():
    """Features times c and θ / c: the same problem. σ times c: c² times the pulls."""
    problem = sb.problems.random(3, 6, 5, seed=3)
    pulls = solved(problem).pulls
    for scale in (1e-4, 1e4):
        other = sb.Problem(scale * problem.features, problem.theta / scale, noise_std=problem.noise_std)
        assert solved(other).pulls == pytest.approx(pulls, rel=1e-6)
    louder = sb.Problem(problem.features, problem.theta, noise_std=3 * problem.noise_std)
    assert solved(louder).pulls == pytest.approx(9 * pulls, rel=1e-6)


def test_nothing_to_learn_asks_for_nothing():
    spanning = sb.Problem([[[1, 0], [0.5, 0.5]], [[0, 1], [0.2, 0.2]]], [1, 1])
    assert solved(spanning).pulls.max() == 0
    assert solved(spanning, means=np.zeros((2, 2))).pulls.max() == 0
    single = sb.Problem([[[1.0, 2.0]]], [1, 1])
    assert solved(single).pulls.max() == 0


def test_ties_and_tiny_gaps_give_finite_allocations():
    problem = sb.problems.random(2, 6, 4, seed=0)
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-300, 1e-12, 1e-6):
        means = rng.normal(size=(2, 6))
        means[:, 1] = means.max(axis=1)
        means[:, 2] = means.max(axis=1) - size
        solution = solved(problem, means)
        assert np.isfinite(solution.pulls).all()
        assert np.isfinite(solution.bracket).all()
