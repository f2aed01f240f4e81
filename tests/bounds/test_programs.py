"""The lower bound against closed forms, and what it says when there is nothing to solve or too little to go on."""

import numpy as np
import pytest

from solid_bandits.bounds import curve, lower_bound, lower_bound_at, pure_exploration, verify
from solid_bandits.core.problem import Problem
from solid_bandits.problems import random, toy


@pytest.mark.parametrize("xi", [1e-3, 0.01, 0.1, 0.3, 0.44])
@pytest.mark.parametrize("noise_std", [0.5, 1.0])
def test_toy_costs_ten_variances_on_arm_one_of_context_two(xi, noise_std):
    bound = lower_bound(toy(xi=xi, noise_std=noise_std))
    assert bound.converged
    assert bound.lower <= 10 * noise_std**2 * (1 + 1e-12)
    assert bound.upper >= 10 * noise_std**2 * (1 - 1e-12)
    assert bound.upper - bound.lower <= 1e-6 * bound.upper
    assert bound.value == pytest.approx(10 * noise_std**2, rel=1e-6)
    # The gap there is 0.2, so 10 σ² of regret are 50 σ² pulls.
    expected = np.zeros((2, 3))
    expected[1, 0] = 50 * noise_std**2
    np.testing.assert_allclose(bound.allocation, expected, atol=1e-3 * expected.max())
    assert bound.pulls == pytest.approx(50 * noise_std**2, rel=1e-3)
    assert bound.z_bar == pytest.approx(100 * noise_std**2, rel=1e-3)


@pytest.mark.parametrize("xi", [0.46, 0.6, 0.9])
def test_toy_beyond_its_range_is_cheaper_on_arm_three_of_context_one(xi):
    # The unknown direction is e2. The hardest pair to tell is arm 1 of context 2 with (φ_2 / Δ)² = 9, so 2σ² · 9
    # of information about e2 are needed; arm 3 of context 1 sells it at Δ / φ_2² = ξ / (2ξ)².
    bound = lower_bound(toy(xi=xi, noise_std=1))
    assert bound.value == pytest.approx(18 * xi / (2 * xi) ** 2, rel=1e-6)
    assert bound.allocation[0, 2] * xi == pytest.approx(bound.value, rel=1e-3)


@pytest.mark.parametrize("gaps", [[0.5], [0.3, 0.5, 0.9], [0.01, 0.1, 1.0, 2.0, 3.0]])
def test_orthogonal_arms_cost_the_textbook_sum(gaps):
    gaps = np.array(gaps)
    problem = Problem(np.eye(len(gaps) + 1)[None], np.append(4.0, 4.0 - gaps), noise_std=0.7)
    bound = lower_bound(problem)
    assert bound.value == pytest.approx((2 * 0.49 / gaps).sum(), rel=1e-6)
    np.testing.assert_allclose(bound.allocation[0, 1:], 2 * 0.49 / gaps**2, rtol=1e-3)
    assert bound.allocation[0, 0] == 0


def test_two_orthogonal_arms_need_eight_variances_over_squared_gap_to_tell_apart():
    # max over w of w(1-w) Δ²/(2σ²) = Δ²/(8σ²).
    pure = pure_exploration(Problem(np.eye(2)[None], [1.0, 0.6], noise_std=0.5))
    assert pure.z_min == pytest.approx(8 * 0.25 / 0.16, rel=1e-6)
    np.testing.assert_allclose(pure.policy, [[0.5, 0.5]], atol=1e-3)


def test_program_at_z_has_the_closed_form_of_two_orthogonal_arms():
    # z w(1-w) Δ²/(2σ²) = 1 with the smaller root w, and u*(z) = z w Δ.
    gap, variance, z = 0.4, 0.25, 60.0
    share = (1 - np.sqrt(1 - 8 * variance / (gap**2 * z))) / 2
    answer = lower_bound_at(Problem(np.eye(2)[None], [1.0, 0.6], noise_std=0.5), z)
    assert answer.value == pytest.approx(z * share * gap, rel=1e-6)
    np.testing.assert_allclose(answer.policy, [[1 - share, share]], rtol=1e-4)
    # λ* from stationarity: Δ = λ (1 - 2w) Δ²/(2σ²).
    assert answer.multiplier == pytest.approx(gap / ((1 - 2 * share) * gap**2 / (2 * variance)), rel=1e-4)


def test_curve_falls_to_the_bound():
    drawn = curve(random(3, 6, 5, seed=2), points=9, tol=1e-6)
    assert np.all(np.diff(drawn.lower) <= 1e-6 * drawn.upper[:-1])
    assert np.all(drawn.upper >= drawn.bound.lower)
    assert drawn.value[-1] == pytest.approx(drawn.bound.value, rel=0.05)
    assert drawn.value[0] > 1.5 * drawn.value[-1]
    slopes = np.diff(drawn.value) / np.diff(drawn.z)
    assert np.all(np.diff(slopes) >= -1e-5 * np.abs(slopes[:-1]))  # convex
    given = curve(random(3, 6, 5, seed=2), z=drawn.z[:3], tol=1e-6)
    np.testing.assert_allclose(given.value, drawn.value[:3], rtol=1e-5)


def test_optimal_arms_that_span_need_no_exploration():
    features = [[[1, 0], [0.5, 0.4]], [[0, 1], [0.3, 0.2]]]
    problem = Problem(features, theta=[1, 1])
    bound = lower_bound(problem)
    assert bound.exploration_free
    assert bound.value == bound.lower == bound.upper == bound.pulls == bound.z_bar == 0
    assert not bound.allocation.any()
    verify(problem, bound)
    far = lower_bound_at(problem, 1e6)
    assert far.value == 0
    np.testing.assert_array_equal(far.policy, [[1, 0], [1, 0]])


def test_one_arm_per_context_needs_nothing():
    problem = Problem([[[1, 0]], [[0, 1]]], theta=[1, 2])
    assert lower_bound(problem).exploration_free
    assert pure_exploration(problem).z_min == 0
    answer = lower_bound_at(problem, 3)
    assert answer.value == 0
    np.testing.assert_array_equal(answer.policy, [[1], [1]])


def test_arms_in_the_span_of_the_optimal_ones_get_nothing():
    problem = Problem([[[1, 0, 0], [0.5, 0, 0], [0, 1, 0]]], theta=[1, 0.2, 0])
    bound = lower_bound(problem)
    assert bound.value == pytest.approx(2 / 0.8, rel=1e-6)
    assert bound.allocation[0, 1] == 0


def test_ties_are_named():
    with pytest.raises(ValueError, match="context 1 has several optimal arms: 0 and 2"):
        lower_bound(Problem([[[1, 0], [0, 1], [0, 0]], [[1, 1], [0, 0], [1, 1]]], theta=[1, 0.5]))
    with pytest.raises(ValueError, match="context 0 has several optimal arms"):
        pure_exploration(Problem([[[0.1 + 0.2, 0], [0, 0.3]]], theta=[1, 1]))


def test_infeasible_z_is_told_what_would_do():
    problem = random(2, 4, 4, seed=1)
    pure = pure_exploration(problem)
    with pytest.raises(ValueError, match=r"z is .*; give z >= ") as caught:
        lower_bound_at(problem, 0.9 * pure.lower)
    assert float(str(caught.value).split(">=")[1]) == pytest.approx(pure.z_min, rel=1e-2)
    with pytest.raises(ValueError, match="to be resolved"):
        lower_bound_at(problem, pure_exploration(problem, tol=1e-9).z_min, exploration=pure)
    near = lower_bound_at(problem, 1.0001 * pure.upper)
    assert near.lower <= near.upper
    verify(problem, near)


def test_a_pair_rounding_cannot_place_is_named():
    problem = Problem([[[1, 0], [0.5, 1e-11], [0, 1]]], theta=[1, 0.3])
    with pytest.raises(ValueError, match=r"arm 1 of context 0 .* span of the optimal arms"):
        lower_bound(problem)


@pytest.mark.parametrize(("argument", "value"), [("tol", 0.0), ("tol", 2.0), ("z", -1.0), ("z", np.nan)])
def test_arguments_are_checked(argument, value):
    with pytest.raises(ValueError, match=argument):
        lower_bound_at(toy(), **{"z": 100.0, argument: value})


@pytest.mark.parametrize("seed", range(8))
def test_badly_scaled_problems_end_with_a_true_bracket_or_say_they_could_not(seed):
    # Gaps from 1e-6 to 1 and features from 1e-4 to 1e4: arms orthogonal in a random basis, so the value is known.
    rng = np.random.default_rng(seed)
    dim = 6
    lengths = 10.0 ** rng.uniform(-4, 4, dim)
    gaps = 10.0 ** rng.uniform(-6, 0, dim - 1)
    gaps[0] = 1e-6
    theta = np.append(1.0, 1.0 - gaps) / lengths
    problem = Problem(np.diag(lengths)[None], theta)
    # The problem that the floats describe, gaps recomputed exactly enough.
    exact = (lengths[0] * theta[0]).astype(np.longdouble) - lengths[1:].astype(np.longdouble) * theta[1:]
    truth = float((2 / exact).sum())
    bound = lower_bound(problem)
    assert bound.lower <= truth * (1 + 1e-9)
    assert bound.upper >= truth * (1 - 1e-9)
    verify(problem, bound)


@pytest.mark.parametrize("seed", range(8))
def test_badly_scaled_random_problems_keep_their_certificate(seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(3, 6, 6)) * 10.0 ** rng.uniform(-4, 4, size=(3, 6, 1))
    problem = Problem(features, rng.normal(size=6), noise_std=10.0 ** rng.uniform(-2, 2))
    try:
        answers = [lower_bound(problem), pure_exploration(problem)]
        answers.append(lower_bound_at(problem, 2 * answers[1].upper))
    except ValueError as error:
        assert "double precision" in str(error)  # noqa: PT017 — either outcome is right, a wrong number is not
        return
    for answer in answers:
        assert 0 <= answer.lower <= answer.upper
        verify(problem, answer)


@pytest.mark.parametrize("size", [(4, 8, 8), (6, 30, 10)])
def test_warm_start_gives_the_same_answer(size):
    problem = random(*size, seed=4)
    moved = Problem(
        problem.features, problem.theta * (1 + 1e-3 * np.random.default_rng(0).normal(size=size[2]))
    )
    for warm, cold in (
        (lower_bound(moved, warm_start=lower_bound(problem)), lower_bound(moved)),
        (pure_exploration(moved, warm_start=pure_exploration(problem)), pure_exploration(moved)),
    ):
        assert warm.converged
        assert cold.converged
        assert max(warm.lower, cold.lower) <= min(warm.upper, cold.upper)
        verify(moved, warm)


def test_warm_start_reuses_the_reduction_only_where_features_and_optimal_arms_are_the_same():
    problem = random(4, 16, 16, seed=4)
    start = lower_bound(problem)
    moved = Problem(problem.features, problem.theta * 1.001)
    assert lower_bound(moved, warm_start=start).restart.reduction is start.restart.reduction
    touched = problem.features.copy()
    touched[0, 0] += 1e-3
    for other in (
        Problem(touched, problem.theta),
        Problem(problem.features, -problem.theta),
        Problem(problem.features, problem.theta, theta_bound=2 * float(np.linalg.norm(problem.theta))),
    ):
        warm = lower_bound(other, warm_start=start)
        cold = lower_bound(other)
        assert warm.restart.reduction is not start.restart.reduction
        assert max(warm.lower, cold.lower) <= min(warm.upper, cold.upper)
        verify(other, warm)


@pytest.mark.parametrize("change", [0.0, 1e-6, 1e-2, 0.3])
def test_warm_start_is_certified_however_far_theta_moved(change):
    problem = random(4, 16, 16, seed=3)
    start = lower_bound(problem)
    for seed in range(3):
        factor = 1 + change * np.random.default_rng(seed).normal(size=16)
        moved = Problem(problem.features, problem.theta * factor)
        warm = lower_bound(moved, warm_start=start)
        cold = lower_bound(moved)
        assert warm.converged
        assert max(warm.lower, cold.lower) <= min(warm.upper, cold.upper)
        verify(moved, warm)


def test_warm_start_from_another_shape_or_optimal_arm_is_harmless():
    start = lower_bound(random(4, 8, 8, seed=4))
    for other in (random(3, 6, 5, seed=1), random(4, 8, 8, seed=9)):
        assert lower_bound(other, warm_start=start).value == pytest.approx(lower_bound(other).value, rel=2e-6)


def test_large_problems_are_solved_on_a_part_of_their_pairs():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 20, 12))
    theta = rng.normal(size=12) * np.append(np.ones(4), np.zeros(8))
    best = np.argmax(features @ theta, axis=1)
    features[np.arange(20), best, 4:] = 0.0
    problem = Problem(features, theta)
    for answer in (lower_bound(problem), pure_exploration(problem, tol=1e-5)):
        assert answer.converged
        verify(problem, answer)


def test_answers_are_read_only():
    bound = lower_bound(toy())
    with pytest.raises(ValueError, match="read-only"):
        bound.allocation[0, 0] = 1.0
    with pytest.raises(AttributeError):
        bound.value = 0.0
