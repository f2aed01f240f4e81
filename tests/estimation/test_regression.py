"""A regression with another likelihood is one file: here Poisson's, played by policies that know nothing of it."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import solid_bandits as sb
from agents import same
from solid_bandits._internal.compiling import jit
from solid_bandits.estimation.estimator import Estimator, observe, write_theta
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.regression import (
    is_regression,
    observe_offer,
    observe_reward,
    register_regression,
)
from solid_bandits.estimation.ridge import (
    OF_A_TRIANGLE,
    Regression,
    RegressionParams,
    RegressionWork,
    make_regression,
)


class Poisson(NamedTuple):
    params: RegressionParams
    estimator: Estimator
    step: Any
    work: RegressionWork


@jit
def reweigh(regression, features, reward, age):
    """One step of iterated least squares: weight e^u, working response u + (y - e^u) / e^u, u = φᵀθ-hat."""
    estimator, work = regression.estimator, regression.work
    write_theta(estimator, work.theta)
    u = min(max(dot(features, work.theta), -20.0), 20.0)
    root = math.exp(0.5 * u)
    for i in range(features.shape[0]):
        work.theta[i] = root * features[i]
    observe(estimator, work.theta, root * u + (reward - root * root) / root, work.vector, work.gains)


@jit
def rate(regression, vector):
    write_theta(regression.estimator, regression.work.theta)
    return math.exp(dot(vector, regression.work.theta))


register_regression(Poisson, **(OF_A_TRIANGLE | {"observe_reward": reweigh, "predict_reward": rate}))


@dataclass(frozen=True)
class PoissonRandUCB(sb.RandUCB):
    def make_regression(self, setting, norms=False, relative=False):
        params, estimator, _, step, work = make_regression(setting.dim, 1.0, 1.0, None, norms)
        return Poisson(params, estimator, step, work)


def test_another_likelihood_is_learnt_saved_and_goes_on(tmp_path):
    """The rates are e^(φᵀθ): θ-hat within 5 posterior deviations of θ after 2,000 rewards; a file carries it all."""
    rng, theta = np.random.default_rng(0), np.array([0.8, -0.5, 0.3])
    agent = sb.Agent(PoissonRandUCB(), dim=3, seed=1)
    for _ in range(2000):
        decision = agent.decide(rng.normal(size=(4, 3)))
        agent.learn(decision, float(rng.poisson(math.exp(decision.features @ theta))))
    assert (np.abs(agent.theta - theta) < 5 * agent.predict(np.eye(3))[1] + 0.05).all()
    assert np.abs(agent.theta - theta).max() < 0.1
    features = rng.normal(size=(5, 3))
    assert agent.predict(features)[0] == pytest.approx(np.exp(features @ agent.theta), rel=1e-12)
    agent.save(tmp_path / "agent.json")
    again = sb.Agent.load(tmp_path / "agent.json", policy=PoissonRandUCB())
    for _ in range(20):
        offer, reward = rng.normal(size=(4, 3)), float(rng.poisson(1.0))
        one, other = agent.decide(offer), again.decide(offer)
        assert same(one, other)
        agent.learn(one, reward)
        again.learn(other, reward)


def test_kernels_have_the_names_of_the_interface():
    assert is_regression(make_regression(2, 1.0, 1.0))
    assert not is_regression((1.0,))
    with pytest.raises(KeyError, match="observe_ofer"):
        register_regression(Regression, observe_ofer=rate)


def test_a_ridge_in_units_of_the_arms_is_set_once():
    """By the arms that may be pulled at the first decision, or by the arm of a reward that comes before it."""
    arms, available = np.array([[3.0, 4.0], [0.0, 1.0], [1e9, 0.0]]), np.array([True, True, False])
    for half_life in (None, 10.0):
        regression = make_regression(2, 1.0, 0.1, half_life, relative=True)
        observe_offer(regression, arms, available)
        observe_offer(regression, 100 * arms, available)
        assert regression.estimator.weights == pytest.approx([2.5, 2.5])
        regression = make_regression(2, 1.0, 0.1, half_life, relative=True)
        observe_reward(regression, np.array([0.0, 2.0]), 1.0, 0)
        assert regression.estimator.weights == pytest.approx([0.4, 4.4])


def test_a_late_reward_weighs_what_its_decision_weighs():
    """The same rewards with their ages, in order or all at the end."""
    rng, ordered = np.random.default_rng(3), make_regression(3, 0.5, 1.0, half_life=7.0)
    late, offers = make_regression(3, 0.5, 1.0, half_life=7.0), rng.normal(size=(30, 4, 3))
    everything = np.ones(4, dtype=np.bool_)
    for offer in offers:
        observe_offer(ordered, offer, everything)
        observe_reward(ordered, offer[0], float(offer[1, 1]), 0)
        observe_offer(late, offer, everything)
    for place in rng.permutation(30):
        observe_reward(late, offers[place, 0], float(offers[place, 1, 1]), 29 - place)
    for name in ("weights", "targets", "mass", "reward_sum", "reward_scatter", "residual", "log_det_ratio"):
        one, other = getattr(ordered.estimator, name), getattr(late.estimator, name)
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12), name
