"""Policies that are told nothing: the same choices in other units, no harm from offsets, no stuck runs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import drive
import solid_bandits as sb
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting
from solid_bandits.policies import contract

UNTOLD = {
    "RandUCB": sb.RandUCB(),
    "LinTS": sb.LinTS(ridge="evidence"),
    "LinTS with votes": sb.LinTS(ridge="evidence", votes=4),
    "LinUCB": sb.LinUCB(),
    "VIDS": sb.VIDS(samples=12, memory=10),
    "LinMED": sb.rivals.LinMED(),
    "LinIMED": sb.rivals.LinIMED(),
    "SquareCB": sb.rivals.SquareCB(),
    "FALCON": sb.rivals.FALCON(),
    "FeelGoodTS": sb.rivals.FeelGoodTS(),
    "EpsilonGreedy": sb.EpsilonGreedy(ridge="evidence"),
    "Greedy": sb.Greedy(ridge="evidence"),
}
untold = pytest.mark.parametrize("policy", UNTOLD.values(), ids=list(UNTOLD))


def start(policy, dim, seed=0):
    return contract.start(policy, make_setting(dim, None), None, make_rng(seed, 0, POLICY))


def arms_of(policy, features, rewards_by, features_by, offset, seed):
    """Arms pulled over the decisions `features`, shape (steps, arms, dim), with a column of offsets."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=features.shape[2])
    agent, pulled = start(policy, features.shape[2], seed), []
    everything = np.ones(features.shape[1], dtype=np.bool_)
    for arms in features:
        arm, _ = contract.act(agent, 0, features_by * arms, everything, None)
        reward = arms[arm] @ theta + offset + 0.5 * rng.normal()
        contract.update(agent, 0, arm, features_by * arms[arm], rewards_by * reward, 0)
        pulled.append(arm)
    return pulled


@untold
@given(rewards_by=st.integers(-40, 40), features_by=st.integers(-40, 40), seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_other_units_make_the_same_choices(policy, rewards_by, features_by, seed):
    """Powers of two, so that scaled numbers have the same digits and equality is exact, not up to rounding."""
    features = np.random.default_rng(seed).normal(size=(120, 5, 3))
    plain = arms_of(policy, features, 1.0, 1.0, 0.0, seed)
    assert arms_of(policy, features, 2.0**rewards_by, 2.0**features_by, 0.0, seed) == plain


@untold
def test_rewards_of_zero_lead_to_no_arm_for_ever(policy):
    """0/1 rewards that begin with a row of zeros: no scale is known yet, and every direction is tried."""
    if isinstance(policy, sb.Greedy | sb.EpsilonGreedy):
        pytest.skip("they do not look for what they do not know")
    agent, everything = start(policy, 4), np.ones(4, dtype=np.bool_)
    pulled = set()
    for _ in range(40):
        arm, _ = contract.act(agent, 0, np.eye(4), everything, None)
        contract.update(agent, 0, arm, np.eye(4)[arm], 0.0, 0)
        pulled.add(arm)
    assert pulled == {0, 1, 2, 3}


def offset_problem(run, offset):
    rng = np.random.default_rng([5, run])
    features, theta = rng.normal(size=(400, 6, 6)), rng.normal(size=6)
    features[:, :, 0] += offset
    return sb.Problem(features, theta / np.linalg.norm(theta), noise_std=0.5)


@pytest.mark.parametrize("offset", [100, 2026])
@pytest.mark.parametrize("tell_noise", [True, False])
def test_an_offset_of_a_column_does_no_harm(offset, tell_noise):
    """Mean regret of 40 runs at most 1.3 times that without it, plus three standard errors of the difference."""
    policies, regrets = {"RandUCB": sb.RandUCB()}, []
    for shift in (0, offset):
        results = sb.simulate(
            lambda run, shift=shift: offset_problem(run, shift),
            policies,
            1000,
            40,
            1,
            1,
            tell_noise=tell_noise,
        )
        regrets.append(results.table.filter(step=1000).sort("run")["regret"].to_numpy())
    difference = regrets[1] - 1.3 * regrets[0]
    assert difference.mean() < 3 * difference.std(ddof=1) / math.sqrt(40)
    # Not so with a ridge in proportion to the largest norm: this offset does harm where nothing is done about it.
    fixed = sb.simulate(
        lambda run: offset_problem(run, offset), {"RandUCB": sb.RandUCB(ridge=0.2)}, 1000, 5, 1, 1
    )
    assert fixed.final()["mean"].item() > 3 * regrets[1].mean()


def test_no_run_is_stuck_where_there_is_little_noise():
    """Low noise, σ = 0.02: 100 runs, none with more regret than half of that of random play."""
    problems = [sb.problems.random(n_arms=6, dim=5, noise_std=0.02, seed=seed) for seed in range(100)]
    results = sb.simulate(
        problems.__getitem__, {"RandUCB": sb.RandUCB()}, 1000, 100, 3, jobs=1, tell_noise=False
    )
    regret = results.table.filter(step=1000).sort("run")["regret"].to_numpy()
    at_random = np.array([1000 * problem.gaps.mean() for problem in problems])
    assert (regret < 0.5 * at_random).all()
    assert np.median(regret) < 0.05 * np.median(at_random)


def test_probabilities_of_two_arms_are_students():
    """LinTS told nothing: P(gap + scale T >= 0) with n + 1 degrees of freedom, against SciPy."""
    rng = np.random.default_rng(0)
    agent = sb.Agent(sb.LinTS(ridge=2.0), dim=3)
    rows, rewards = [], []
    for count in range(60):
        arms = rng.normal(size=(2, 3))
        decision = agent.decide(arms)
        V = 2.0 * np.eye(3) + (np.array(rows).T @ np.array(rows) if rows else 0.0)
        theta = np.linalg.solve(V, np.array(rows).T @ rewards) if rows else np.zeros(3)
        loss = sum((y - phi @ theta) ** 2 for phi, y in zip(rows, rewards, strict=True)) + 2 * theta @ theta
        variance = (loss + np.var(rewards)) / (count + 1) if rows else 1.0
        d = arms[0] - arms[1]
        point = d @ theta / math.sqrt(variance * (d @ np.linalg.solve(V, d)))
        assert decision.probabilities[0] == pytest.approx(stats.t.cdf(point, count + 1), rel=1e-8)
        agent.learn(decision, reward := rng.normal() + 3.0)
        rows.append(decision.features)
        rewards.append(reward)
    _, deviations = agent.predict(np.eye(3))
    V = 2.0 * np.eye(3) + np.array(rows).T @ np.array(rows)
    theta = np.linalg.solve(V, np.array(rows).T @ rewards)
    loss = ((np.array(rewards) - np.array(rows) @ theta) ** 2).sum() + 2 * theta @ theta
    sigma = math.sqrt((loss + np.var(rewards)) / 61)
    assert deviations == pytest.approx(sigma * np.sqrt(np.diag(np.linalg.inv(V))))


@untold
def test_an_agent_needs_to_be_told_nothing(policy, tmp_path):
    """Made from `dim` alone, saved and loaded: the same decisions follow, and σ is near what it is."""
    rng = np.random.default_rng(3)
    agent = sb.Agent(policy, dim=3, probabilities=True)
    for arms, available in drive.offers(rng, 150, 5, 3):
        decision = agent.decide(arms, available=available)
        assert decision.probability > 0
        agent.learn(decision, float(decision.features @ [1.0, -1.0, 0.3]) + 0.2 * rng.normal())
    agent.save(tmp_path / "agent.json")
    other = sb.Agent.load(tmp_path / "agent.json")
    for arms, available in drive.offers(rng, 30, 5, 3):
        one, same = agent.decide(arms, available=available), other.decide(arms, available=available)
        assert (one.arm, one.probability) == (same.arm, same.probability)
        for each, decision in ((agent, one), (other, same)):
            each.learn(decision, 0.5)
    means, deviations = other.predict(np.eye(3))
    assert means == pytest.approx([1.0, -1.0, 0.3], abs=0.2)
    assert (deviations < 0.2).all()


def test_simulations_that_tell_no_noise_say_so():
    problem, policies = sb.problems.toy(), {"RandUCB": sb.RandUCB()}
    told, untold = (
        sb.simulate(problem, policies, 300, runs=3, jobs=1, tell_noise=tell) for tell in (True, False)
    )
    assert untold.manifest["configuration"]["tell_noise"] is False
    assert "tell_noise" not in told.manifest["configuration"]
    assert not told.table.equals(untold.table)
    with pytest.raises(ValueError, match=r"^noise_std must be a number > 0 for Solid, got None"):
        sb.simulate(problem, {"SOLID": sb.Solid()}, 300, runs=3, jobs=1, tell_noise=False)
    with pytest.raises(ValueError, match=r"^tell_noise must be True or False"):
        sb.simulate(problem, policies, 300, runs=3, jobs=1, tell_noise="no")
