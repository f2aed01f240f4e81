"""No bracket is refuted by exact arithmetic, and what floating point cannot decide is refused at every scale."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from solid_bandits.bounds import lower_bound, lower_bound_at, pure_exploration, verify
from solid_bandits.bounds._exact import rank_at_most
from solid_bandits.core.problem import Problem
from solid_bandits.problems import random

FILE = Path(__file__).parents[2] / "attacks" / "brackets.py"
sys.path.append(str(FILE.parent))

import brackets  # noqa: E402

NEARLY_COLLINEAR = (
    [
        [
            [0.061291029616177765, -0.03317426454577225],
            [0.9274006521824287, -0.5019630313874047],
            [1.5405455022275971, -0.8338325835563171],
            [-1.1570948044565954, 0.626286822453244],
        ]
    ],
    [-0.7837295247853296, -0.4771035550575811],
)


def everything(problem):
    pure = pure_exploration(problem)
    answers = [lower_bound(problem), pure]
    answers += [lower_bound_at(problem, factor * pure.upper) for factor in (1.0001, 2.0, 100.0)]
    return answers


def test_an_attack_refutes_nothing():
    tally, reasons, found, _ = brackets.attack(66, seed=1)
    assert not found
    kinds = {kind for kind, _, _ in tally}
    assert kinds == set(brackets.KINDS)
    assert reasons


def test_the_attack_exits_with_what_it_found():
    run = subprocess.run(
        [sys.executable, FILE, "--count", "11", "--seed", "3"], capture_output=True, text=True, check=True
    )
    assert "refuted" in run.stdout


def test_a_near_collinear_example_holds():
    problem = Problem(*NEARLY_COLLINEAR)
    referee = brackets.Referee(problem)
    for answer in everything(problem):
        assert referee.flaws(answer) == []
        assert answer.upper - answer.lower < 1e-5 * answer.upper
    bound = lower_bound(problem)
    assert bound.lower <= 2.03187568 + 1e-8  # an upper bound in exact fractions


def test_the_referee_sees_what_is_wrong_by_one_unit():
    problem = random(2, 4, 4, seed=3)
    referee = brackets.Referee(problem)
    bound, pure = lower_bound(problem), pure_exploration(problem)
    at = lower_bound_at(problem, 2 * pure.upper)
    assert referee.flaws(replace(bound, allocation=bound.allocation * (1 - 1e-10)))
    assert referee.flaws(replace(bound, upper=bound.upper * (1 - 1e-10)))
    assert referee.flaws(replace(bound, lower=bound.lower * (1 + 1e-10)))
    assert referee.flaws(replace(pure, lower=pure.lower * (1 + 1e-10)))
    assert referee.flaws(replace(pure, upper=pure.upper * (1 - 1e-10)))
    assert referee.flaws(replace(at, z=at.z * (1 - 1e-5)))
    assert referee.flaws(replace(at, lower=at.lower * (1 + 1e-10)))


@pytest.mark.parametrize("scale", [2.0**-166, 1.0, 2.0**90])
@pytest.mark.parametrize("power", range(-18, -7))
def test_near_dependence_is_refused_or_right_at_every_scale(power, scale):
    rng = np.random.default_rng(-power)
    beside = 10.0**power * rng.normal(size=3)
    best, other = rng.normal(size=(2, 3))
    theta = best + 0.3 * other
    # An arm that almost is half the optimal one: in the span or not, the value is another.
    features = np.array([[best, 0.5 * best + beside, 0.4 * other]])
    problem = Problem(features * scale, theta)
    outcomes = []
    for one in (problem, Problem(features, theta)):
        try:
            answer = lower_bound(one)
        except ValueError as error:
            assert "round the features" in str(error)  # noqa: PT017 — either outcome is right
            outcomes.append("refused")
            continue
        assert brackets.Referee(one).flaws(answer) == []
        outcomes.append(answer.value * float(np.abs(one.features).max()))
    if "refused" in outcomes:
        assert outcomes[0] == outcomes[1]
    else:
        assert outcomes[0] == pytest.approx(outcomes[1], rel=1e-9)


@pytest.mark.parametrize("scale", [1e-50, 1.0, 1e27])
def test_features_that_are_dependent_only_to_rounding_are_refused(scale):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2, 5, 2)) @ rng.normal(size=(2, 4)) * scale
    problem = Problem(features, rng.normal(size=4))
    for program in (lower_bound, pure_exploration, lambda problem: lower_bound_at(problem, 1e3)):
        with pytest.raises(ValueError, match="round the features"):
            program(problem)


def test_features_that_are_dependent_exactly_are_not():
    rng = np.random.default_rng(1)
    features = rng.integers(-3, 4, size=(2, 5, 2)) @ rng.integers(-3, 4, size=(2, 4))
    problem = Problem(features / 8, rng.normal(size=4))
    referee = brackets.Referee(problem)
    for answer in everything(problem):
        assert answer.converged
        assert referee.flaws(answer) == []


@pytest.mark.parametrize("factor", [2.0**-166, 2.0**90])
def test_units_of_features_only_change_units(factor):
    problem = random(2, 4, 4, seed=5)
    scaled = Problem(problem.features * factor, problem.theta)
    np.testing.assert_allclose(lower_bound(scaled).lower * factor, lower_bound(problem).lower, rtol=1e-12)
    np.testing.assert_allclose(
        pure_exploration(scaled).upper * factor**2, pure_exploration(problem).upper, rtol=1e-12
    )


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("size", [(2, 4, 4), (3, 6, 5), (4, 8, 8)])
def test_policies_are_feasible_in_exact_arithmetic(size, bounded):
    free = random(*size, seed=11)
    norm = float(np.linalg.norm(free.theta))
    problem = Problem(free.features, free.theta, theta_bound=1.1 * norm if bounded else None)
    referee = brackets.Referee(problem)
    for answer in everything(problem):
        assert referee.flaws(answer) == []
        verify(problem, answer)


def test_ranks_are_exact():
    rng = np.random.default_rng(0)
    rows = (rng.integers(-5, 6, size=(9, 3)) @ rng.integers(-5, 6, size=(3, 6))).astype(float)
    for table in (rows, rows * 2.0**-300, rows * 2.0 ** np.arange(-200, 400, 100), rows / 8):
        assert [rank_at_most(table, rank) for rank in range(5)] == [False, False, False, True, True]
    assert not rank_at_most(rows * 0.1, 3)  # rounded
    touched = rows * 2.0**40
    touched[4, 2] += 2.0**-8
    assert not rank_at_most(touched, 3)
    assert rank_at_most(np.zeros((3, 4)), 0)
    assert rank_at_most(np.array([[1e-320, 0.0], [3e300, 0.0], [-1.0, 0.0]]), 1)
    assert not rank_at_most(np.array([[1.0, 1e-320], [1.0, 0.0]]), 1)
    big = rng.normal(size=(6, 4))
    assert rank_at_most(np.vstack([big, 2 * big[:2], -big[1:]]), 4)
    assert not rank_at_most(big, 3)
