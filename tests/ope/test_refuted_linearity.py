"""Rewards within a range that cannot be linear in the features: the linear test gives no answer, and says why."""

import math

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.ope.bounded_test import Coins
from solid_bandits.ope.linear_test import leaves_range, set_aside


def played(seed, *, constant, theta=(0.1, 0.0, 0.0), normal=False, visits=600):
    """A bandit that has chosen uniformly among four arms; chances are 1/2 + fᵀθ, clipped."""
    rng = np.random.default_rng(seed)
    bandit = sb.Bandit(sb.EpsilonGreedy(epsilon=1.0), dim=3 + constant, floor=0.25, seed=seed)
    for _ in range(visits):
        own = rng.normal(size=(4, 3)) if normal else rng.uniform(-1, 1, size=(4, 3))
        choice = bandit.decide(np.column_stack([np.ones(4), own]) if constant else own)
        bandit.learn(choice.event_id, float(rng.random() < np.clip(0.5 + own[choice.arm] @ theta, 0, 1)))
    return bandit


@pytest.mark.parametrize(
    "settings",
    [{"constant": False}, {"constant": False, "theta": (0.3, -0.2, 0.1), "normal": True}],
    ids=["no constant", "no constant and clipped"],
)
@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_rewards_that_cannot_be_linear_have_no_linear_answer(settings, tolerance):
    found = sb.ope.verdict(played(0, **settings), tolerance=tolerance)
    row = found.table.row(0, named=True)
    assert row["why not linear"].startswith("rewards in [0, 1] cannot be linear in these features")
    assert all(row[name] is None for name in ("if linear", "best if linear", "statistic", "threshold"))
    assert "if linear" not in found.assumptions
    assert row["verdict"] == "go on"


def test_clipped_chances_are_refuted_although_there_is_a_constant():
    bandit = played(0, constant=True, theta=(0.6, -0.4, 0.2), normal=True, visits=1500)
    assert "cannot be linear" in sb.ope.verdict(bandit).table["why not linear"][0]


def test_with_a_constant_the_best_is_named_and_the_threshold_is_that_of_a_likelihood_ratio():
    """A test that has an answer has a threshold > 0; and it is about the largest θᵀx over the offers."""
    bandit = played(1, constant=True, theta=(0.4, 0.0, 0.0), visits=1500)
    row = sb.ope.verdict(bandit).table.row(0, named=True)
    assert row["why not linear"] is None
    assert row["threshold"] > 0
    offers = np.array(bandit.log()["features"].to_list())
    assert row["best if linear"] == str(offers.mean(axis=0)[:, 1].argmax())


def test_seldom_refuted_where_rewards_are_linear():
    """300 logs with δ = 0.2 each: more than 60 + 5 standard errors (35) have a probability of 3e-7 if it is 20%. Both
    ways to refute are looked at.
    """
    coins = least = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        features = np.column_stack([rng.random(400), np.ones(400)])
        reward = (rng.random(400) < features @ [0.9, 0.05]).astype(float)
        first = set_aside(features)
        found = Coins(features, reward, first)
        coins += found.ends and found.most - found.predicted <= math.log(0.2)
        least += leaves_range(features, reward, first, 0.2)
    assert coins <= 95
    assert least <= 95


@pytest.mark.parametrize("slope", [0.4, 0.6, 0.7, 0.8, 1.0])
def test_the_range_is_left_where_every_likely_parameter_leaves_it(slope):
    """In one dimension, by M_n(θ) < 1/δ on a grid, from its definition."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0.2, 2, size=200)
    reward = np.clip(slope * x + 0.05 * rng.normal(size=200), 0, 1)
    first = set_aside(x[:, None])
    v_k, v_n = (x[:first] ** 2).sum(), (x**2).sum()
    at_k, at_n = (x[:first] @ reward[:first]) / v_k, (x @ reward) / v_n
    grid = np.linspace(-1, 2, 300_001)
    exponent = (v_n * (grid - at_n) ** 2 - v_k * (grid - at_k) ** 2) / (2 * 0.5**2)
    likely = grid[0.5 * math.log(v_k / v_n) + exponent < -math.log(0.05)]
    outside = any((likely * one > 1).all() or (likely * one < 0).all() for one in x)
    assert leaves_range(x[:, None], reward, first, 0.05) == outside


def test_a_log_of_named_values_says_how_to_test_it():
    rng = np.random.default_rng(0)
    bandit = sb.Bandit(arms=["tea", "milk"], context={"age": "number"}, floor=0.5, seed=0)
    for _ in range(400):
        choice = bandit.decide({"age": rng.normal()})
        bandit.learn(choice.event_id, float(rng.random() < (0.2 if choice.arm == "tea" else 0.7)))
    assert "sb.logs.with_features(log)" in sb.ope.verdict(bandit).table["why not linear"][0]
    found = sb.ope.verdict(sb.logs.with_features(bandit.log())).table.row(0, named=True)
    assert found["why not linear"] is None
    assert found["best if linear"] == "milk"
    plain = {"arm": ["a", "b"] * 50, "reward": [1.0, 0.0] * 50, "probability": [0.5] * 100}
    assert sb.ope.verdict(plain).table["why not linear"][0] == "the log has no features"
