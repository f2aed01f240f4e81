"""The linear tests that are not told σ: against their definitions, and how often they are wrong."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize

import solid_bandits as sb
from solid_bandits.ope.bounded_test import LEAST, Coins, extended_log
from solid_bandits.ope.linear_test import likelihood_ratio

MEANS = {
    "one": np.array([1.0, 0.0, 0.3]),
    "other": np.array([0.0, 1.0, 0.3]),
    "third": np.array([0.5, 0.5, 0.3]),
}


def rows(count, seed=0, rate=0.5):
    """Features with a constant, and rewards 0 or 1 with linear means."""
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.random((count, 2)), np.ones(count)])
    return features, (rng.random(count) < features @ [0.3 * rate, -0.2 * rate, rate]).astype(float)


def likelihood(theta, features, reward):
    mean = features @ theta
    return (reward * extended_log(mean)[0] + (1 - reward) * extended_log(1 - mean)[0]).sum()


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
@pytest.mark.parametrize("rate", [0.5, 0.05])
def test_the_largest_likelihood_of_the_alternatives_is_scipys(rate, tolerance):
    features, reward = rows(900, rate=rate)
    best, statistic, cost = Coins(features, reward, 24).test(MEANS, tolerance)
    features, reward = features[24:], reward[24:]
    found = {}
    for label, mean in MEANS.items():
        if label == best:
            continue
        apart = MEANS[best] - mean
        found[label] = optimize.minimize(
            lambda theta: -likelihood(theta, features, reward),
            np.array([0.0, 0.0, rate]) - tolerance * apart / (apart @ apart),
            constraints={"type": "ineq", "fun": lambda theta, apart=apart: -tolerance - apart @ theta},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-13},
        ).fun
    most = -optimize.minimize(
        lambda theta: -likelihood(theta, features, reward),
        [0.0, 0.0, rate],
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-10, "maxiter": 5000},
    ).fun
    assert best == max(MEANS, key=lambda label: MEANS[label] @ np.linalg.lstsq(features, reward)[0])
    assert statistic == pytest.approx(most + min(found.values()), abs=1e-5)
    assert cost > 0


def test_predictions_are_those_of_least_squares_from_the_rows_before():
    features, reward = rows(60)
    coins = Coins(features, reward, 24)
    total = 0.0
    for t in range(24, 60):
        theta = np.linalg.lstsq(features[:t], reward[:t])[0]
        mean = np.clip(features[t] @ theta, 0.5 / (t + 1), 1 - 0.5 / (t + 1))
        total += reward[t] * math.log(mean) + (1 - reward[t]) * math.log(1 - mean)
    assert coins.predicted == pytest.approx(total, rel=1e-6)


def test_the_parabola_lies_on_the_logarithm_and_nowhere_below():
    p = np.concatenate([np.geomspace(1e-12, LEAST, 50), [LEAST, 0.3, 1.0]])
    value, first, _ = extended_log(p)
    assert (value >= np.log(p) - 1e-12).all()
    np.testing.assert_allclose(value[-3:], np.log(p[-3:]))
    step = 1e-9
    np.testing.assert_allclose((extended_log(p + step)[0] - value) / step, first, rtol=1e-3)


def test_the_gaussian_prediction_is_an_integral_over_theta_and_sigma():
    """In one dimension: the likelihood of the later rows, over the posterior of the first with the prior 1 / σ²."""
    rng = np.random.default_rng(1)
    x = np.ones(30)[:, None] + 0.3 * rng.random((30, 1))
    y = (0.5 * x[:, 0]) + 0.7 * rng.normal(size=30)
    found = likelihood_ratio(x, y, {"one": np.array([1.0]), "none": np.array([0.0])}, None, 0.05, 0.0)
    k = 8

    def joint(theta, log_sigma, count):
        squares = ((y[:count] - theta * x[:count, 0]) ** 2).sum()
        return math.exp(-count * log_sigma - squares / (2 * math.exp(2 * log_sigma)))

    def total(count):
        return integrate.dblquad(
            lambda theta, s: joint(theta, s, count), -4, 3, -6, 7, epsabs=0, epsrel=1e-8
        )[0]

    predicted = math.log(total(30) / total(k))
    late = y[k:] - x[k:, 0] * np.linalg.lstsq(x[k:], y[k:])[0][0]
    fitted = -11 * (math.log((late**2).mean()) + 1)
    assert found.threshold == pytest.approx(math.log(20) + fitted - predicted, rel=1e-5)
    alternative = -11 * (math.log((y[k:] ** 2).mean()) + 1)  # of θ = 0
    assert found.statistic == pytest.approx(fitted - alternative, rel=1e-9)


@pytest.mark.parametrize("bell", [False, True])
def test_they_are_seldom_wrong_where_there_is_no_difference(bell):
    """100 logs, six looks each, delta 0.1: more than 22 have a probability of 1e-4 if it is 10%."""
    wrong = 0
    means = {"one": np.array([1.0, 0.0]), "other": np.array([0.0, 1.0])}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        features = np.eye(2)[rng.integers(2, size=400)]
        reward = 0.3 * rng.normal(size=400) if bell else (rng.random(400) < 0.3).astype(float)
        for look in np.geomspace(40, 400, 6).astype(int):
            if bell:
                found = likelihood_ratio(features[:look], reward[:look], means, None, 0.1, 0.0)
                stop = found is not None and found.stop
            else:
                tested = Coins(features[:look], reward[:look], 16).test(means, 0.0)
                stop = tested is not None and tested[1] > tested[2] + math.log(10)
            if stop:
                wrong += 1
                break
    assert wrong <= 22


def test_no_sigma_stops_sooner_than_half_the_range_where_clicks_are_rare():
    rng = np.random.default_rng(2)
    features = np.eye(2)[rng.integers(2, size=8000)]
    reward = (rng.random(8000) < features @ [0.01, 0.03]).astype(float)
    means = {"one": np.array([1.0, 0.0]), "other": np.array([0.0, 1.0])}
    _, statistic, cost = Coins(features, reward, 16).test(means, 0.0)
    told = likelihood_ratio(features, reward, means, 0.5, 0.05, 0.0)
    assert statistic > cost + math.log(20)
    assert not told.stop


def test_a_verdict_of_clicks_says_that_no_sigma_is_needed():
    rng = np.random.default_rng(0)
    bandit = sb.Bandit(sb.EpsilonGreedy(epsilon=0.5), dim=2, floor=0.5, seed=0)
    for _ in range(600):
        choice = bandit.decide(np.eye(2))
        bandit.learn(choice.event_id, float(rng.random() < (0.2, 0.6)[choice.arm]))
    found = sb.ope.verdict(bandit)
    assert "no σ is needed" in found.assumptions["if linear"]
    assert found.table["if linear"][0] == "stop"
    assert "σ = 0.5, as given" in sb.ope.verdict(bandit, noise_std=0.5).assumptions["if linear"]
