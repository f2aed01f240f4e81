"""The certificate: it accepts every answer of the solver and rejects claims that the evidence does not carry."""

from dataclasses import replace

import numpy as np
import pytest

from solid_bandits.bounds import Alternatives, lower_bound, lower_bound_at, pure_exploration, verify
from solid_bandits.core.problem import Problem
from solid_bandits.problems import random, toy


@pytest.fixture(scope="module")
def problem():
    return random(3, 6, 5, seed=7)


@pytest.fixture(scope="module")
def bound(problem):
    return lower_bound(problem)


@pytest.mark.parametrize("seed", range(10))
def test_every_answer_verifies(seed):
    drawn = random(3, 5, 6, seed=seed)
    pure = pure_exploration(drawn)
    for answer in (lower_bound(drawn), pure, lower_bound_at(drawn, 2 * pure.upper)):
        proof = verify(drawn, answer)
        assert answer.lower <= proof.lower * (1 + 1e-9)
        assert proof.upper * (1 - 1e-9) <= answer.upper
        assert answer.upper - answer.lower <= 1e-6 * answer.upper


def test_rejects_a_value_too_small(problem, bound):
    claim = replace(bound, value=0.99 * bound.value, lower=0.98 * bound.lower, upper=0.99 * bound.upper)
    with pytest.raises(ValueError, match=r"upper is .* proves only"):
        verify(problem, claim)


def test_rejects_a_value_too_large(problem, bound):
    claim = replace(bound, value=1.01 * bound.value, lower=1.01 * bound.lower, upper=1.02 * bound.upper)
    with pytest.raises(ValueError, match=r"lower is .* prove only"):
        verify(problem, claim)


def test_rejects_a_value_outside_its_bracket(problem, bound):
    with pytest.raises(ValueError, match="outside"):
        verify(problem, replace(bound, value=2 * bound.value))


def test_rejects_an_infeasible_allocation(problem, bound):
    small = 0.99
    claim = replace(
        bound,
        allocation=small * bound.allocation,
        value=small * bound.value,
        lower=small * bound.lower,
        upper=small * bound.upper,
    )
    with pytest.raises(ValueError, match=r"information 0\.99"):
        verify(problem, claim)
    moved = np.array(bound.allocation)
    moved[bound.allocation == bound.allocation.max()] = 0.0
    with pytest.raises(ValueError, match="information"):
        verify(problem, replace(bound, allocation=moved))


def test_rejects_wrong_shapes_and_signs(problem, bound):
    with pytest.raises(ValueError, match="shape"):
        verify(problem, replace(bound, allocation=bound.allocation[:1].copy()))
    with pytest.raises(ValueError, match="allocation"):
        verify(problem, replace(bound, allocation=-bound.allocation))
    negative = replace(bound.alternatives, weights=-bound.alternatives.weights)
    with pytest.raises(ValueError, match="weight"):
        verify(problem, replace(bound, alternatives=negative))


def test_rejects_alternatives_that_are_none(problem, bound):
    flipped = replace(bound.alternatives, shifts=-bound.alternatives.shifts)
    with pytest.raises(ValueError, match="it is not an alternative"):
        verify(problem, replace(bound, alternatives=flipped))


@pytest.mark.parametrize("wrong", [-1, 1000])
def test_rejects_alternatives_for_pairs_that_do_not_exist(problem, bound, wrong):
    for name in ("contexts", "arms"):
        other = replace(bound.alternatives, **{name: np.full_like(bound.alternatives.arms, wrong)})
        with pytest.raises(ValueError, match="it is not an alternative"):
            verify(problem, replace(bound, alternatives=other))


def test_rejects_alternatives_that_optimal_arms_would_reveal(problem, bound):
    best = problem.features[0, problem.optimal_arms[0]]
    shifts = bound.alternatives.shifts + 0.1 * best * np.linalg.norm(bound.alternatives.shifts)
    with pytest.raises(ValueError, match=r"changes the mean of an optimal arm|not an alternative"):
        verify(problem, replace(bound, alternatives=replace(bound.alternatives, shifts=shifts)))


def test_rejects_alternatives_over_the_norm():
    free = random(2, 4, 4, seed=2)
    bounded = Problem(free.features, free.theta, theta_bound=1.05 * np.linalg.norm(free.theta))
    answer = lower_bound(free)
    with pytest.raises(ValueError, match="theta_bound"):
        verify(bounded, replace(answer, upper=2 * answer.upper))


def test_rejects_a_false_exploration_free(problem, bound):
    none = np.zeros(0, dtype=np.int64)
    nothing = Alternatives(np.zeros((0, problem.dim)), none, none, np.zeros(0))
    claim = replace(
        bound, value=0.0, lower=0.0, upper=0.0, allocation=0 * bound.allocation, exploration_free=True,
        alternatives=nothing,
    )  # fmt: skip
    with pytest.raises(ValueError, match="exploration_free"):
        verify(problem, claim)


def test_rejects_policies_that_are_none_or_too_slow():
    answer = lower_bound_at(toy(), 200.0)
    with pytest.raises(ValueError, match="sum to 1"):
        verify(toy(), replace(answer, policy=0.9 * answer.policy))
    with pytest.raises(ValueError, match="information"):
        verify(toy(), replace(answer, z=150.0))
    pure = pure_exploration(toy())
    with pytest.raises(ValueError, match="upper"):
        verify(toy(), replace(pure, z_min=0.9 * pure.z_min, lower=0.8 * pure.lower, upper=0.95 * pure.upper))


def test_information_of_the_certificate_is_the_limit_of_many_optimal_pulls(problem, bound):
    # Independent of the projection: with a large number of pulls of every optimal arm, the closed form of the paper
    # (no reduction) tends to what the certificate computes after it.
    pulls = np.array(bound.allocation)
    pulls[np.arange(problem.n_contexts), problem.optimal_arms] = 1e9
    table = problem.features.reshape(-1, problem.dim)
    inverse = np.linalg.inv(table.T @ (table * pulls.reshape(-1, 1)))
    best = problem.features[np.arange(problem.n_contexts), problem.optimal_arms][:, None, :]
    other = problem.gaps > 0
    normals = (best - problem.features)[other]
    norms = np.einsum("ij,jk,ik->i", normals, inverse, normals)
    information = (problem.gaps[other] ** 2 / norms / (2 * problem.noise_std**2)).min()
    assert information == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allocation": np.ma.zeros((2, 3))}, "answer.allocation must be an array of numbers"),
        ({"allocation": np.zeros((2, 3), dtype=complex)}, "answer.allocation must be an array of numbers"),
        ({"allocation": np.zeros((3, 3))}, r"answer.allocation must have shape \(2, 3\), got \(3, 3\)"),
        ({"lower": "0"}, "answer.lower must be a number"),
        ({"upper": np.nan}, "answer.upper must be finite"),
        ({"exploration_free": 1}, "answer.exploration_free must be True or False"),
        ({"alternatives": None}, "answer.alternatives must be Alternatives"),
    ],
)
def test_answers_made_by_hand_are_checked_before_they_are_proved(changes, message):
    problem = toy()
    with pytest.raises(ValueError, match=message):
        verify(problem, replace(lower_bound(problem), **changes))


@pytest.mark.parametrize("field", ["contexts", "arms"])
def test_alternatives_are_of_whole_pairs(field):
    problem = toy()
    bound = lower_bound(problem)
    spoilt = np.full(len(bound.alternatives.weights), 0.5)
    with pytest.raises(ValueError, match=f"answer.alternatives.{field} must be integers"):
        verify(problem, replace(bound, alternatives=replace(bound.alternatives, **{field: spoilt})))


@pytest.mark.parametrize("wrong", [None, 3, "toy", [[1.0]], np.zeros((2, 3, 3))])
def test_what_is_no_problem_or_no_answer_is_refused(wrong):
    for program in (lower_bound, pure_exploration, lambda problem: lower_bound_at(problem, 10.0)):
        with pytest.raises(ValueError, match="problem must be a Problem, got"):
            program(wrong)
    with pytest.raises(ValueError, match="answer must be a LowerBound"):
        verify(toy(), wrong)
    if wrong is not None:
        with pytest.raises(ValueError, match="warm_start must be a LowerBound, got"):
            lower_bound(toy(), warm_start=wrong)
