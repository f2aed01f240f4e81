"""(P̃_z), the mismatch and (P̃_α) of the appendix on the lower bound."""

from dataclasses import replace

import numpy as np
import pytest

import exact
import oracle
from solid_bandits.bounds import (
    best_execution,
    execute,
    lower_bound,
    lower_bound_at,
    lower_bound_in_total,
    pure_exploration,
    verify,
)
from solid_bandits.core.problem import Problem
from solid_bandits.problems import random, toy


def drawn(seed, contexts=3, arms=4, dim=4):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(contexts, arms, dim))
    return Problem(features, rng.normal(size=dim), rng.dirichlet(np.ones(contexts)), noise_std=0.7)


def pairs_of(features_scale, gaps, probs):
    """Contexts with two arms each on axes of their own: context k has s e_2k (mean Δ_k) and s e_2k+1 (mean 0)."""
    count = len(gaps)
    features = np.zeros((count, 2, 2 * count))
    for k in range(count):
        features[k, 0, 2 * k] = features[k, 1, 2 * k + 1] = features_scale
    theta = np.zeros(2 * count)
    theta[::2] = np.asarray(gaps) / features_scale
    return Problem(features, theta, probs, noise_std=1.0)


@pytest.mark.parametrize("seed", range(8))
def test_total_agrees_with_the_conic_solver(seed):
    problem = drawn(seed)
    least = pure_exploration(problem).upper
    z = (1.5, 3.0, 20.0)[seed % 3] * least
    answer = lower_bound_in_total(problem, z)
    verify(problem, answer)
    assert answer.converged
    assert answer.allocation.sum() == pytest.approx(z, rel=1e-12)
    assert oracle.lower_bound_in_total(problem, z) == pytest.approx(answer.value, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_total_is_the_least_over_all_context_distributions(seed):
    problem = drawn(seed)
    z = 2.0 * pure_exploration(problem).upper
    answer = lower_bound_in_total(problem, z)
    # The contexts that the allocation wants, as a distribution: under it (P_z) is (P̃_z).
    wanted = answer.allocation.sum(axis=1) / z
    if wanted.min() > 1e-6:
        ideal = Problem(problem.features, problem.theta, wanted / wanted.sum(), problem.noise_std)
        assert lower_bound_at(ideal, z).value == pytest.approx(answer.value, rel=1e-5)
    for probs in (problem.context_probs, np.full(3, 1 / 3)):
        other = Problem(problem.features, problem.theta, probs, problem.noise_std)
        if z > pure_exploration(other).upper:
            assert lower_bound_at(other, z).upper >= answer.lower
    assert answer.upper >= lower_bound(problem).lower
    assert answer.z_min <= pure_exploration(problem).upper * (1 + 1e-3)


def test_one_context_has_no_mismatch():
    problem = drawn(3, contexts=1, arms=6)
    z = 3.0 * pure_exploration(problem).upper
    total, at = lower_bound_in_total(problem, z), lower_bound_at(problem, z)
    assert total.value == pytest.approx(at.value, rel=2e-6)
    played = execute(problem, total.allocation)
    assert played.mismatch == pytest.approx([1.0], rel=1e-12)
    assert played.pulls == pytest.approx(total.allocation, rel=1e-9)
    assert played.regret == pytest.approx(total.value, rel=1e-5)
    assert played.information == pytest.approx(1.0, rel=1e-4)
    assert best_execution(problem, total.allocation).value == pytest.approx(at.value, rel=2e-6)


def test_two_axes_have_a_closed_form():
    # 1/η_1 + 1/η_2 = Δ²/2 and η_1 + η_2 = z: the cheaper root of a quadratic.
    z, gap = 60.0, 1.0
    product = z / (gap**2 / 2)
    pulled = (z - np.sqrt(z * z - 4 * product)) / 2
    answer = lower_bound_in_total(pairs_of(1.0, [gap], [1.0]), z)
    assert answer.value == pytest.approx(gap * pulled, rel=1e-6)
    assert answer.allocation[0] == pytest.approx([z - pulled, pulled], rel=1e-3)
    assert answer.z_min == pytest.approx(8 / gap**2, rel=1e-3)


def test_contexts_on_axes_of_their_own_split_the_pulls():
    # With z_k pulls context k costs Δ_k times the root above, from z_k = 8/Δ_k² on; the best split by a fine grid.
    gaps, z = [1.0, 0.8], 90.0

    def cost(k, amount):
        inner = amount * amount - 8 * amount / gaps[k] ** 2
        return np.where(
            amount * gaps[k] ** 2 >= 8, gaps[k] * (amount - np.sqrt(np.maximum(inner, 0))) / 2, np.inf
        )

    first = np.linspace(0, z, 400_001)
    least = (cost(0, first) + cost(1, z - first)).min()
    answer = lower_bound_in_total(pairs_of(1.0, gaps, [0.5, 0.5]), z)
    assert answer.value == pytest.approx(least, rel=1e-6)


def test_mismatch_is_the_ratio_of_what_comes_to_what_is_wanted():
    problem = toy(first_context_prob=0.9, noise_std=1)
    eta = np.array([[10.0, 0.0, 0.0], [5.0, 85.0, 0.0]])
    played = execute(problem, eta)
    assert played.z == 100.0
    assert played.mismatch == pytest.approx([9.0, 1 / 9])
    assert played.pulls == pytest.approx(np.array([[90.0, 0.0, 0.0], [5 / 9, 85 / 9, 0.0]]))
    assert played.pulls.sum(axis=1) == pytest.approx(100 * problem.context_probs)
    assert played.regret == pytest.approx(5 / 9 * 0.2)
    # Information against the closest alternative, by the definition: the least (θ - θ')ᵀM(θ - θ')/2 over half-spaces.
    table, pulls = problem.features.reshape(-1, 3), played.pulls.ravel()
    matrix = table.T @ (table * pulls[:, None])
    best = problem.features[[0, 1], problem.optimal_arms]
    # M is singular up to the ridge that stands for nothing here: arm 1 of x_1 informs on one axis only.
    inverse = np.linalg.pinv(matrix + 1e-12 * np.eye(3))
    least = min(
        problem.gaps[x, a] ** 2
        / (2 * (best[x] - problem.features[x, a]) @ inverse @ (best[x] - problem.features[x, a]))
        for x in range(2)
        for a in range(3)
        if problem.gaps[x, a] > 0
    )
    assert played.information == pytest.approx(least, rel=1e-6)


def test_a_context_that_is_left_out_exploits():
    problem = toy(noise_std=1)
    played = execute(problem, [[0.0, 0.0, 0.0], [20.0, 30.0, 0.0]])
    assert played.mismatch[0] == np.inf
    assert played.pulls[0] == pytest.approx([25.0, 0.0, 0.0])
    assert played.regret == pytest.approx(10.0 * 0.2)
    answer = best_execution(problem, [[0.0, 0.0, 0.0], [20.0, 30.0, 0.0]])
    assert answer.value == np.inf
    verify(problem, answer)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_execution_of_an_allocation_with_every_pair_is_the_program_by_context(seed):
    problem = drawn(seed)
    z = 2.5 * pure_exploration(problem).upper
    everywhere = np.full((3, 4), z / 12)
    answer, at = best_execution(problem, everywhere), lower_bound_at(problem, z)
    verify(problem, answer)
    assert answer.value == pytest.approx(at.value, rel=2e-6)
    assert answer.factors * everywhere == pytest.approx(z * problem.context_probs[:, None] * answer.policy)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_execution_on_a_support_agrees_with_the_conic_solver(seed):
    problem = drawn(seed, contexts=2, arms=5)
    rng = np.random.default_rng(seed)
    # At least the best arm and two others, so that the features still span R^4.
    support = rng.uniform(size=(2, 5)) < 0.6
    support[[0, 1], problem.optimal_arms] = True
    support[:, :2] = True
    z = 40.0 * pure_exploration(problem).upper
    answer = best_execution(problem, np.where(support, z / support.sum(), 0.0))
    verify(problem, answer)
    if np.isfinite(answer.value):
        assert answer.converged
        assert oracle.lower_bound_at(problem, z, support) == pytest.approx(answer.value, rel=1e-4)
        assert answer.upper >= lower_bound_at(problem, z).lower
    assert not answer.policy[~support].any() or np.isnan(answer.policy).all()


def test_on_the_toy_the_two_programs_do_not_coincide():
    """The paper's change of variables fails where η̃ leaves out what η needs."""
    problem = toy(noise_std=1)
    prescribed = lower_bound_in_total(problem, 500)
    assert prescribed.allocation[0, 1] == 0 < lower_bound_at(problem, 500).policy[0, 1]
    assert best_execution(problem, prescribed.allocation).lower > lower_bound_at(problem, 500).upper
    rare = toy(first_context_prob=0.9, noise_std=1)
    prescribed = lower_bound_in_total(rare, 1000)
    impossible = best_execution(rare, prescribed.allocation)
    verify(rare, impossible)
    assert impossible.value == np.inf > lower_bound_at(rare, 1000).upper
    # ρ does not enter (P̃_z): what is realisable does not either.
    assert prescribed.value == pytest.approx(lower_bound_in_total(problem, 1000).value, rel=1e-9)
    assert execute(rare, prescribed.allocation).information < 0.2


def test_a_direction_that_nobody_looks_at_makes_every_correction_impossible():
    problem = pairs_of(1.0, [1.0, 1.0], [0.5, 0.5])
    blind = np.array([[50.0, 50.0], [100.0, 0.0]])
    answer = best_execution(problem, blind)
    assert answer.value == np.inf
    proof = verify(problem, answer)
    assert proof.lower == np.inf
    with pytest.raises(ValueError, match="prove only"):
        verify(problem, replace(answer, support=np.ones((2, 2), dtype=bool)))


def test_where_optimal_arms_tell_all_nothing_is_paid():
    # Optimal arms e_1 and e_2 span the plane.
    problem = Problem([[[1, 0], [0.5, 0.1]], [[0, 1], [0.1, 0.5]]], theta=[1.0, 1.0])
    answer = lower_bound_in_total(problem, 1e4)
    verify(problem, answer)
    assert answer.value == 0
    assert (answer.allocation * problem.gaps).sum() == 0
    assert best_execution(problem, answer.allocation).value == 0


def test_bounded_alternatives():
    free = drawn(1, contexts=2)
    problem = Problem(
        free.features, free.theta, free.context_probs, free.noise_std, 1.1 * float(np.linalg.norm(free.theta))
    )
    z = 3.0 * pure_exploration(problem).upper
    answer = lower_bound_in_total(problem, z)
    verify(problem, answer)
    assert answer.converged
    assert answer.upper <= lower_bound_in_total(free, z).upper * (1 + 1e-5)
    at = lower_bound_at(problem, z)
    assert answer.lower <= at.upper
    full = best_execution(problem, np.full((2, 4), z / 8))
    verify(problem, full)
    assert full.value == pytest.approx(at.value, rel=1e-5)


def test_a_large_problem_is_solved_on_a_part_of_its_pairs():
    problem = random(10, 30, 16, seed=2)
    z = 2.0 * pure_exploration(problem, tol=1e-3).upper
    answer = lower_bound_in_total(problem, z, tol=1e-4)
    verify(problem, answer)
    assert answer.converged
    assert answer.upper <= lower_bound_at(problem, z, tol=1e-4).upper * (1 + 1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_exact_arithmetic_refutes_nothing(seed):
    """Feasibility, cost and the lower end of (P̃_z), recomputed in fractions."""
    problem = drawn(seed, contexts=2, arms=3, dim=3)
    z = 2.0 * pure_exploration(problem).upper
    answer = lower_bound_in_total(problem, z)
    features, theta = exact.rational(problem.features.reshape(-1, 3)), exact.rational(problem.theta)
    eta, sigma = exact.rational(answer.allocation.ravel()), exact.rational([problem.noise_std])[0]
    means = features @ theta
    best = [3 * x + int(arm) for x, arm in enumerate(problem.optimal_arms)]
    gaps = [means[best[i // 3]] - means[i] for i in range(6)]
    # The allocation with its sum exactly z.
    eta = eta * (exact.rational([z])[0] / eta.sum())
    matrix = sum(eta[i] * np.outer(features[i], features[i]) for i in range(6))
    others = [i for i in range(6) if i not in best]
    for i in others:
        across = features[best[i // 3]] - features[i]
        assert gaps[i] ** 2 / (2 * sigma**2 * (across @ exact.solve(matrix, across))) >= 1
    assert sum(eta * gaps) <= exact.rational([answer.upper])[0]
    # Each alternative brought to where the arm is exactly as good; its weight as it is.
    total, prices = 0, [0] * 6
    for shift, x, a, weight in zip(
        *(getattr(answer.alternatives, name) for name in ("shifts", "contexts", "arms", "weights")),
        strict=True,
    ):
        shift, weight, pair = exact.rational(shift), exact.rational([weight])[0], 3 * int(x) + int(a)
        shift = shift * (gaps[pair] / ((features[best[int(x)]] - features[pair]) @ shift))
        total += weight
        prices = [
            price + weight * (row @ shift) ** 2 / (2 * sigma**2)
            for price, row in zip(prices, features, strict=True)
        ]
    least = min(gap - price for gap, price in zip(gaps, prices, strict=True))
    assert total + exact.rational([z])[0] * least >= exact.rational([answer.lower])[0]


def test_claims_that_the_evidence_does_not_carry_are_rejected():
    problem = toy(noise_std=1)
    answer = lower_bound_in_total(problem, 300)
    low = 0.99
    with pytest.raises(ValueError, match=r"upper is .* proves only"):
        verify(
            problem,
            replace(answer, value=low * answer.value, lower=low * answer.lower, upper=low * answer.upper),
        )
    with pytest.raises(ValueError, match="sum to 1"):
        verify(problem, replace(answer, allocation=low * answer.allocation))
    moved = answer.allocation.copy()
    moved[1, 1] += moved[0].sum()
    moved[0] = 0
    with pytest.raises(ValueError, match="information"):
        verify(problem, replace(answer, allocation=moved))
    best = best_execution(problem, lower_bound_in_total(problem, 1000).allocation)
    with pytest.raises(ValueError, match="may not be pulled"):
        verify(problem, replace(best, policy=np.full((2, 3), 1 / 3)))


def test_messages():
    problem = toy(noise_std=1)
    with pytest.raises(ValueError, match="no policy tells theta from its alternatives in so few steps"):
        lower_bound_in_total(problem, 10)
    with pytest.raises(
        ValueError, match=r"allocation must be pulls >= 0, some of them > 0, of shape \(2, 3\)"
    ):
        execute(problem, -np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"allocation must be .* shape \(2, 3\)"):
        best_execution(problem, np.ones((3, 2)))
    with pytest.raises(ValueError, match="finite"):
        execute(problem, np.full((2, 3), np.nan))
