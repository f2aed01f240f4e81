"""The study of clicks: one Newton step a reward, worlds of their rates, calibration that is what it says."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import solid_bandits as sb

FOLDER = Path(__file__).parent.parent / "studies" / "clicks"
NAMES = ("logistic", "study")


@pytest.fixture
def clicks():
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            patch.delitem(sys.modules, name, raising=False)
        patch.syspath_prepend(FOLDER)
        yield {name: importlib.import_module(name) for name in NAMES}
        for name in NAMES:
            del sys.modules[name]


def test_each_reward_is_one_newton_step(clicks):
    rng = np.random.default_rng(0)
    agent = sb.Agent(clicks["logistic"].LogisticRandUCB(), dim=3, seed=0)
    gram, target, theta = None, np.zeros(3), np.zeros(3)
    for _ in range(200):
        arms = rng.normal(size=(4, 3))
        decision = agent.decide(arms)
        if gram is None:
            gram = np.eye(3) * (arms**2).sum(axis=1).max()  # ridge 1 in units of the first arms
        x, reward = arms[decision.arm], float(rng.random() < 0.3)
        agent.learn(decision, reward)
        u = x @ theta
        p = 1 / (1 + np.exp(-u))
        gram += p * (1 - p) * np.outer(x, x)
        target += x * (p * (1 - p) * u + reward - p)
        theta = np.linalg.solve(gram, target)
        np.testing.assert_allclose(agent.theta, theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(agent.predict(arms)[0], 1 / (1 + np.exp(-arms @ theta)))


def test_worlds_have_their_rates(clicks):
    study = clicks["study"]
    for number, (name, world) in enumerate(study.WORLDS.items()):
        rng = np.random.default_rng([5, number])
        truth = study.Truth(world, rng)
        features, slopes = truth.offers(20_000, rng)
        chances = truth.probabilities(slopes)
        assert chances.min() > 0, name
        assert chances.max() < 1, name
        # Means of 20,000 offers or more, twice; 5 standard errors each: below 1e-5 for all worlds.
        error = chances.mean(axis=1).std() / np.sqrt(len(chances))
        assert abs(chances.mean() - world.rate) < 5 * np.sqrt(2) * error, name
        assert (features[:, :, 0] == 1).all() or world.own


def test_calibration_error(clicks):
    error = clicks["study"].calibration_error
    true = np.random.default_rng(0).uniform(0.1, 0.3, size=1000)
    assert error(true, true) == 0
    assert error(true + 0.05, true) == pytest.approx(0.05 / true.mean())
    assert error(np.full(1000, true.mean()), np.full(1000, true.mean())) == pytest.approx(0)
