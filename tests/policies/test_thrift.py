"""RandUCB with thrift: what is bought is worth its price, probabilities are those of the purchase, where it pays."""

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.core.loop import play
from solid_bandits.problems.end_of_optimism import end_of_optimism


def taught(policy, arms, means, rounds, seed):
    """An agent after so many rounds, told σ = 1."""
    agent = sb.Agent(policy, dim=arms.shape[1], noise_std=1.0, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = agent.decide(arms)
        agent.learn(decision, means[decision.place] + rng.standard_normal())
    return agent


def estimate(agent):
    """V^-1 and θ-hat, from the triangle."""
    estimator = agent._compiled.state.regression.estimator
    V = estimator.triangle.T @ np.diag(estimator.weights) @ estimator.triangle
    return np.linalg.inv(V), np.linalg.solve(estimator.triangle, estimator.targets)


@pytest.mark.parametrize("thrift", [1.0, 0.4])
@pytest.mark.parametrize(
    ("temperature", "rounds", "seed"),
    [(0.35, 1000, 0), (0.35, 1000, 2), (0.35, 1000, 4), (1.0, 3000, 0), (1.0, 3000, 1), (1.0, 3000, 4)],
)
def test_probabilities_are_those_of_plain_randucb_after_the_purchase(temperature, rounds, seed, thrift):
    """The share of each arm that leads goes to what is bought for it, and the rest to the greedy arm."""
    rng = np.random.default_rng(seed)
    near = [[0, 1], [0.97, 0.06], [0.98, -0.05], [1, 0]]  # the first tells the others apart
    arms = np.concatenate([near, rng.standard_normal((3, 2)) / 3])
    thrifty = sb.RandUCB(temperature=temperature, thrift=thrift)
    agent = taught(thrifty, arms, arms @ [1.0, 0.0], rounds, seed)
    plain = sb.Agent(sb.RandUCB(temperature=temperature), dim=2, noise_std=1.0)
    mine, other = plain._compiled.state.regression, agent._compiled.state.regression
    for part in ("estimator", "evidence"):
        for ours, theirs in zip(getattr(mine, part), getattr(other, part), strict=True):
            ours[...] = theirs
    mine.step[...] = other.step
    leads, found = plain.probabilities(arms), agent.probabilities(arms)

    inverse, theta = estimate(agent)
    means = arms @ theta
    b = int(means.argmax())
    expected, bought = np.zeros(7), 0
    for c in np.flatnonzero(leads):
        worth = (arms @ inverse @ (arms[b] - arms[c])) ** 2 / (
            1 + np.einsum("ai,ij,aj->a", arms, inverse, arms)
        )
        prices = np.full(7, np.inf)
        if c != b:
            usable = (worth >= worth[c]) & (np.arange(7) != b) & (np.arange(7) != c)
            prices[usable] = (means[b] - means[usable]) / worth[usable]
        a = int(prices.argmin())
        if c != b and prices[a] < thrift * (means[b] - means[c]) / worth[c]:
            share = worth[c] / worth[a]
            # As much is learnt of b and c as by pulling c, and it costs less.
            assert share * worth[a] == pytest.approx(worth[c])
            assert share * (means[b] - means[a]) < means[b] - means[c]
            expected[a] += share * leads[c]
            expected[b] += (1 - share) * leads[c]
            bought += 1
        else:
            expected[c] += leads[c]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert found.sum() == pytest.approx(1.0)
    assert bought > 0 or thrift < 1


def test_arms_that_tell_nothing_are_not_bought():
    """Where arms share no coefficient, no arm tells two others apart: thrift changes no decision."""
    arms = np.eye(5)
    for seed in range(3):
        agents = [
            taught(sb.RandUCB(thrift=thrift), arms, np.linspace(0, 1, 5), 200, seed) for thrift in (0.0, 1.0)
        ]
        pulls = [agent._compiled.state.regression.estimator.weights for agent in agents]
        np.testing.assert_array_equal(*pulls)


def test_it_pays_where_information_has_to_be_bought():
    """ξ = 0.03, 200/ξ² steps, 40 runs that share noise: less regret, by more than 4 standard errors.

    A false alarm, were they equal, has a chance of about 10⁻⁴ (Student, 39 degrees of freedom).
    """
    problem, steps = end_of_optimism(0.03), np.array([222_222])
    plain, thrifty = (
        np.array(
            [
                play(problem, sb.RandUCB(thrift=thrift), steps[-1], 3, run, steps).regret[-1]
                for run in range(40)
            ]
        )
        for thrift in (0.0, 1.0)
    )
    difference = plain - thrifty
    assert difference.mean() > 4 * difference.std(ddof=1) / np.sqrt(len(difference))


@pytest.mark.parametrize("thrift", [-0.1, 1.1, float("nan")])
def test_thrift_is_a_share(thrift):
    with pytest.raises(ValueError, match="thrift must be"):
        sb.RandUCB(thrift=thrift)
