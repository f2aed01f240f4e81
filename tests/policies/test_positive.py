"""Policies with theorems and closed forms: the design of LinMED, inverse gaps, epochs, feel-good posteriors."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import drive
import solid_bandits as sb
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting
from solid_bandits.policies import contract
from solid_bandits.policies.growth import with_block
from solid_bandits.policies.rivals.design import approximate_design


def learnt(policy, dim, rewards=40, seed=0, noise_std=0.5):
    """An agent that has learnt from random arms."""
    rng = np.random.default_rng(seed)
    agent = contract.start(policy, make_setting(dim, noise_std, 2.0), None, make_rng(seed, 0, POLICY))
    theta = rng.normal(size=dim)
    for _ in range(rewards):
        arms = rng.normal(size=(4, dim))
        arm, _ = contract.act(agent, 0, arms, np.ones(4, dtype=bool), None)
        contract.update(agent, 0, arm, arms[arm], arms[arm] @ theta + 0.5 * rng.normal(), 0)
    return agent, rng


@pytest.mark.parametrize(
    ("n_arms", "dim", "rank"), [(3, 5, 3), (30, 4, 4), (200, 8, 8), (40, 6, 2), (1, 3, 1)]
)
def test_no_arm_is_left_uncertain_by_a_design(n_arms, dim, rank):
    """φᵀ(Σ n φφᵀ)⁻φ <= 1 for every arm, where it is the rank on the average of the design's own pulls."""
    rng = np.random.default_rng(n_arms)
    for scale in (1.0, 1e-8, 1e8):
        arms = rng.normal(size=(n_arms, rank)) @ rng.normal(size=(rank, dim))
        arms[:, 0] *= scale  # a column in other units
        counts = np.zeros(n_arms)
        total = approximate_design(arms.copy(), counts)
        assert total == counts.sum() >= rank
        scaled = arms / abs(arms).max(axis=0)
        inverse = np.linalg.pinv((scaled.T * counts) @ scaled, rcond=1e-10)
        norms = ((scaled @ inverse) * scaled).sum(axis=1)
        assert norms.max() <= 1 + 1e-6
        assert counts @ norms == pytest.approx(rank)
        assert total <= 3 * rank  # measured on spheres: 1.5 d to 1.9 d


def test_a_design_of_nothing():
    counts = np.zeros(3)
    assert approximate_design(np.zeros((3, 2)), counts) == 0
    assert not counts.any()
    agent = sb.Agent(sb.rivals.LinMED(), dim=2, noise_std=1.0)
    assert agent.probabilities(np.zeros((4, 2))) == pytest.approx([0.625, 0.125, 0.125, 0.125])


def test_copies_of_the_best_arm_are_as_likely_best():
    """f is 1 for them: all differ in the share of the greedy arm and the design's alone."""
    agent, rng = learnt(sb.rivals.LinMED(empirical=0.0, design=0.0), 3)
    arms = np.repeat(rng.normal(size=(1, 3)), 4, axis=0)
    assert drive.chances(agent, 0, arms, np.ones(4, dtype=bool)) == pytest.approx([0.25] * 4)


def test_parts_of_linmed_sum_to_less_than_1():
    with pytest.raises(ValueError, match="design and empirical must sum to less than 1, got 1"):
        sb.rivals.LinMED(empirical=0.5, design=0.5)
    with pytest.raises(ValueError, match="ridge must be a number > 0 with radius='theorem', got 'evidence'"):
        sb.rivals.LinMED(radius="theorem", ridge="evidence")
    with pytest.raises(ValueError, match="theta_bound must be a number > 0 for LinIMED"):
        sb.Agent(sb.rivals.LinIMED(radius="theorem"), dim=2, noise_std=1.0)


@pytest.mark.parametrize("kind", [sb.rivals.SquareCB, sb.rivals.FALCON])
def test_inverse_gaps_cost_what_the_lemma_says(kind):
    """p(a) Δ(a) <= 1/γ, so that the expected estimated regret is at most (K - 1) / γ (Foster and Rakhlin, Lemma 3)."""
    for scale in (0.5, 3.0, 30.0):
        agent, rng = learnt(kind(scale=scale), 4)
        for n_arms in (2, 5, 30):
            arms = rng.normal(size=(n_arms, 4))
            p = drive.chances(agent, 0, arms, np.ones(n_arms, dtype=bool))
            regression = agent.state.regression
            theta, count = regression.work.theta, regression.step.item() + 1
            if kind is sb.rivals.FALCON:
                theta = agent.state.theta
                gamma = agent.state.rate.item() * math.sqrt(n_arms)
            else:
                contract.act(agent, 0, arms, np.ones(n_arms, dtype=bool), None)  # writes θ-hat
                squares = 0.25 * (regression.estimator.log_det_ratio.item() + math.log(1 + count))
                gamma = scale * math.sqrt(n_arms * count / squares)
            gaps = (arms @ theta).max() - arms @ theta
            expected = 1 / (n_arms + gamma * gaps)
            expected[gaps.argmin()] += 1 - expected.sum()
            assert p == pytest.approx(expected, abs=1e-12)
            assert p @ gaps <= (n_arms - 1) / gamma
            assert p[gaps.argmin()] >= 1 / n_arms


def test_an_epoch_has_one_distribution_for_one_offer():
    """It changes after decisions 2, 4, 8, ... alone, whatever rewards come between."""
    rng = np.random.default_rng(3)
    agent = sb.Agent(sb.rivals.FALCON(), dim=3, noise_std=0.5, seed=2)
    asked, last, changes = rng.normal(size=(5, 3)), None, []
    for step in range(1, 130):
        p = agent.probabilities(asked)
        if last is not None and not np.array_equal(p, last):
            changes.append(step)
        last = p
        agent.learn(agent.decide(rng.normal(size=(4, 3))), rng.normal())
    assert changes == [3, 5, 9, 17, 33, 65, 129]


def test_an_epoch_that_grows_predicts_by_all_rewards():
    """Of K blocks and one more: the distribution is then that of θ-hat of now, and the new block's arm has mean 0."""
    policy, rng = sb.rivals.FALCON(ridge=0.5), np.random.default_rng(6)
    setting = make_setting(3, 0.5, 2.0, blocks=3, grows=True)
    agent = contract.start(policy, setting, None, make_rng(0, 0, POLICY))
    for _ in range(13):
        rows = np.column_stack([np.arange(3), rng.normal(size=(3, 2))])
        arm, _ = contract.act(agent, 0, rows, np.ones(3, dtype=bool), None)
        contract.update(agent, 0, arm, rows[arm], rng.normal(), 0)
    before = agent.state.theta.copy()
    _, grown = with_block(policy, setting, agent)
    assert len(grown.state.theta) == 8
    assert not np.allclose(grown.state.theta[:6], before)
    estimator = agent.state.regression.estimator
    estimates = [np.linalg.solve(*one) for one in zip(estimator.triangle, estimator.targets, strict=True)]
    assert grown.state.theta[:6] == pytest.approx(np.ravel(estimates))
    assert not grown.state.theta[6:].any()
    assert grown.state.rate == agent.state.rate
    assert grown.state.until == agent.state.until
    rows = np.column_stack([np.arange(4), rng.normal(size=(4, 2))])
    assert (drive.chances(grown, 0, rows, np.ones(4, dtype=bool)) > 0).all()


def test_a_rate_below_0_is_refused():
    agent = sb.Agent(sb.rivals.FALCON(), dim=2, noise_std=1.0)
    agent._compiled.state.rate[()] = -1.0
    with pytest.raises(ValueError, match=r"state\.rate must be >= 0"):
        agent.policy.check_state(agent._compiled)


def weigh(smoothed, arms, mean, deviation, tilt):
    """P(the first of two arms is best) under the density N(θ; mean, deviation²) times the feel-good factor, d = 1."""

    def density(theta):
        values = tilt * arms[:, 0] * theta
        factor = np.exp(values).sum() if smoothed else np.exp(values.max())
        return norm.pdf(theta, mean, deviation) * factor

    reach = mean + tilt * deviation**2 * arms[:, 0]
    low, high = reach.min() - 12 * deviation, reach.max() + 12 * deviation
    first = quad(density, max(low, 0.0), high, epsabs=0, epsrel=1e-10, limit=200)[0] if high > 0 else 0.0
    whole = quad(density, low, high, points=[0.0], epsabs=0, epsrel=1e-10, limit=200)[0]
    return first / whole


@pytest.mark.parametrize("smoothed", [True, False])
@pytest.mark.parametrize("feel_good", [0.0, 0.7, 2.0])
def test_feel_good_posteriors_against_their_densities(smoothed, feel_good):
    """d = 1, where the density can be integrated: exact where smoothed; else 20,000 draws within 4 standard errors.

    Six comparisons of draws in all (false alarm 4e-4).
    """
    draws = 20_000
    policy = sb.rivals.FeelGoodTS(feel_good=feel_good, smoothed=smoothed, ridge=1.0)
    agent, _ = learnt(policy, 1, rewards=12, seed=5)
    estimator, step = agent.state.regression.estimator, agent.state.regression.step
    arms, both = np.array([[0.3], [-0.25]]), np.ones(2, dtype=bool)
    estimator.targets[0] = 0.03  # d = 1: this is θ-hat, here near the border between the arms
    deviation = 0.5 / math.sqrt(estimator.weights[0])
    tilt = feel_good * 12 / (0.5 * math.sqrt(13))
    expected = weigh(smoothed, arms, 0.03, deviation, tilt)
    assert 0.05 < expected < 0.95
    if smoothed:
        assert drive.chances(agent, 0, arms, both)[0] == pytest.approx(expected, abs=1e-8)
    count = 0
    for _ in range(draws):
        step[()] = 12
        count += contract.act(agent, 0, arms, both, None)[0] == 0
    assert abs(count - draws * expected) < 4 * math.sqrt(draws * expected * (1 - expected))


def test_feel_good_is_for_models_with_a_good_best_arm():
    """The more it weighs, the more likely is the arm with a mean below that is known less."""
    arms, both = np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2, dtype=bool)
    chances = []
    for feel_good in (0.0, 0.5, 1.0, 2.0):
        agent, _ = learnt(sb.rivals.FeelGoodTS(feel_good=feel_good, ridge=1.0), 2, rewards=30)
        estimator = agent.state.regression.estimator
        estimator.triangle[...] = np.eye(2)
        estimator.weights[:] = [100.0, 5.0]
        estimator.targets[:] = [0.5, 0.3]
        chances.append(drive.chances(agent, 0, arms, both)[1])
    assert chances == sorted(chances)
    assert chances[-1] > 2 * chances[0]


def test_votes_make_probabilities_of_feel_good():
    asked = sb.Agent(sb.rivals.FeelGoodTS(), dim=3, noise_std=1.0, probabilities=True, seed=1)
    decision = asked.decide(np.eye(3))
    assert decision.probabilities.sum() == pytest.approx(1)
    assert decision.probability > 0
    unknown = sb.Agent(sb.rivals.FeelGoodTS(), dim=3, noise_std=1.0).decide(np.eye(3))
    assert unknown.probability is None
