"""The stopping rule: its formula, its promise, how near the samples come to the bound, and what is refused."""

import math

import numpy as np
import pytest

import naive_identification as slow
import solid_bandits as sb
from solid_bandits import identification
from solid_bandits.identification.explorer import RULES

CLEVER = [name for name in RULES if name != "even"]


def kl(delta):
    return (1 - 2 * delta) * math.log((1 - delta) / delta)


def test_the_statistic_is_the_least_exponent_over_all_alternatives():
    """No alternative of many has a smaller one, and the closest one has it."""
    problem = sb.problems.end_of_optimism(0.4)
    rng = np.random.default_rng(0)
    naive = slow.Naive(problem.features, 0.1, problem.noise_std)
    for round_ in range(60):
        arm = naive.preparing(0) if not naive.aside else round_ % 3
        naive.learn(0, arm, problem.means[0, arm] + rng.normal())
    least = naive.statistic()
    theta = naive.fit(naive.aside)
    best = int(naive.best(theta)[0])
    inverse = np.linalg.inv(naive.gram(naive.aside))
    closest = np.inf
    for arm in {0, 1, 2} - {best}:
        apart = problem.features[0, best] - problem.features[0, arm]
        for along in rng.normal(size=(500, 2)):
            other = theta + along
            if apart @ other <= 0:
                assert 0.5 * naive.exponent(other) >= least - 1e-9
        step = inverse @ apart * (apart @ theta) / (apart @ inverse @ apart)
        closest = min(closest, 0.5 * naive.exponent(theta - step))
    assert closest == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_wrong_answers_are_as_rare_as_promised(rule):
    """δ = 0.2 in a problem with a small gap, given up at 1,000 samples, which is not wrong.

    More than 23 of 60 have a probability of 1e-3 if it is 20%.
    """
    problem = sb.Problem([[[1, 0], [0, 1]]], theta=[0.05, 0.0])
    found = [identification.identify(problem, rule, delta=0.2, seed=seed, most=1000) for seed in range(60)]
    assert sum(one.stopped and not one.right for one in found) <= 23


@pytest.mark.parametrize("rule", CLEVER)
def test_samples_approach_the_bound_as_delta_falls(rule):
    """At δ = 1e-40 within half of z_min log(1/δ) above it, and never below by more than chance; even needs far more."""
    problem = sb.problems.end_of_optimism(0.2)
    least = sb.bounds.pure_exploration(problem).z_min * kl(1e-40)
    samples = np.mean(
        [identification.identify(problem, rule, delta=1e-40, seed=seed).samples for seed in range(8)]
    )
    even = np.mean(
        [identification.identify(problem, "even", delta=1e-40, seed=seed).samples for seed in range(8)]
    )
    assert 0.9 * least < samples < 1.5 * least
    assert even > 1.4 * samples


def test_copies_of_the_best_arm_are_one_answer():
    problem = sb.Problem([[[1, 0], [1, 0], [0, 1]]], theta=[1, 0])
    found = identification.identify(problem, "lingape", delta=0.1)
    assert found.stopped
    assert found.right


def test_a_search_that_cannot_end_is_given_up():
    problem = sb.Problem([[[1, 0], [0, 1]]], theta=[1, 1])
    found = identification.identify(problem, "lazy-track-and-stop", delta=1e-6, most=500)
    assert (found.samples, found.stopped) == (500, False)
    assert found.counts.sum() == 500


def test_what_is_no_search_is_refused():
    with pytest.raises(ValueError, match="features must span all 2 dimensions"):
        identification.Explorer([[1.0, 0.0], [2.0, 0.0]], noise_std=1)
    with pytest.raises(ValueError, match="rule must be one of"):
        identification.Explorer(np.eye(2), "ucb", noise_std=1)
    with pytest.raises(ValueError, match="delta must be"):
        identification.Explorer(np.eye(2), delta=1.0, noise_std=1)
    with pytest.raises(ValueError, match=r"growth must be >= 1, got 0\.5"):
        identification.LazyTrackAndStop(growth=0.5)
    search = identification.Explorer(np.eye(2), "even", noise_std=1)
    with pytest.raises(ValueError, match="learn must follow next"):
        search.learn(1.0)
    with pytest.raises(ValueError, match="context"):
        search.next(1)
    with pytest.raises(ValueError, match="problem must be a Problem, got str"):
        identification.identify("toy")
