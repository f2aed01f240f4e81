"""A half-life, against dense algebra; and the floor, against its definition."""

import numpy as np
import pytest

import solid_bandits as sb
from agents import DECISION, same
from solid_bandits.policies.state import state_to_plain

FIXED = {name: one for name, one in DECISION.items() if one.ridge not in ("evidence", None)}


def ridge_of(agent, first):
    regression = agent._compiled.state.regression
    if regression.params.search.rounds > 0:
        return regression.evidence.ridge.item()
    return 0.2 * (first**2).sum(axis=1).max() if isinstance(agent.policy, sb.RandUCB) else 1.0


@pytest.mark.parametrize("name", DECISION)
@pytest.mark.parametrize(("half_life", "noise_std"), [(1.0, 0.5), (15.0, None), (1e12, 0.5)])
def test_the_estimate_is_that_of_weighted_rows_with_the_whole_ridge(name, half_life, noise_std):
    """V = νI + Σ 2^-((t - s) / h) φφᵀ, θ-hat, the residual, det V, the sums of rewards and σ-hat; rewards come late."""
    rng = np.random.default_rng(0)
    policy, dim = DECISION[name], 3
    agent = sb.Agent(policy, dim=dim, noise_std=noise_std, half_life=half_life, seed=1)
    first, rows, waiting = None, [], []
    for step in range(1, 121):
        features = rng.normal(size=(4, dim))
        features[:, 2] = 0.0 if step < 10 else features[:, 2]  # a direction that is unseen for a while
        first = features if first is None else first
        waiting.append(agent.decide(features))
        assert waiting[-1].number == step
        if rng.random() < 0.8:
            decision, reward = waiting.pop(rng.integers(len(waiting))), rng.normal()
            agent.learn(decision, reward)
            rows.append((decision, reward))
    regression = agent._compiled.state.regression
    assert regression.step.item() == 120
    ridge = ridge_of(agent, first)
    weights = np.array([2.0 ** (-(120 - decision.number) / half_life) for decision, _ in rows])
    design = np.array([decision.features for decision, _ in rows])
    rewards = np.array([reward for _, reward in rows])
    gram = ridge * np.eye(dim) + (design.T * weights) @ design
    theta = np.linalg.solve(gram, (design.T * weights) @ rewards)
    estimator = regression.estimator
    kept = estimator.triangle.T @ np.diag(estimator.weights) @ estimator.triangle
    assert np.allclose(kept, gram, rtol=1e-11, atol=1e-11)
    assert np.allclose(agent.theta, theta, rtol=1e-10, atol=1e-11)
    residual = (weights * (rewards - design @ theta) ** 2).sum() + ridge * theta @ theta
    assert estimator.residual.item() == pytest.approx(residual, rel=1e-9)
    ratio = np.linalg.slogdet(gram)[1] - dim * np.log(ridge)
    assert estimator.log_det_ratio.item() == pytest.approx(ratio, rel=1e-10)
    mass, total = weights.sum(), (weights * rewards).sum()
    scatter = (weights * (rewards - total / mass) ** 2).sum()
    assert estimator.mass.item() == pytest.approx(mass, rel=1e-12)
    assert estimator.reward_sum.item() == pytest.approx(total, rel=1e-10, abs=1e-12)
    assert estimator.reward_scatter.item() == pytest.approx(scatter, rel=1e-9)
    assert estimator.rewards == len(rows)
    sigma = 0.5 if noise_std else np.sqrt((residual + scatter / mass) / (mass + 1))
    norms = np.sqrt(np.linalg.inv(gram).diagonal())
    assert np.allclose(agent.predict(np.eye(dim))[1], sigma * norms, rtol=1e-8)


def test_directions_that_come_late_are_learnt_whole():
    """Sparse features of a problem whose arms open one direction after the other: θ-hat is that of dense algebra."""
    problem = sb.problems.random(4, 6, 5, seed=3)
    agent = sb.Agent(sb.LinUCB(ridge=3.0), dim=5, noise_std=problem.noise_std, half_life=30.0)
    rng, gram, moment = np.random.default_rng(11), np.zeros((5, 5)), np.zeros(5)
    for _ in range(200):
        decision = agent.decide(problem.features[rng.integers(4)])
        gram, moment = 2 ** (-1 / 30) * gram, 2 ** (-1 / 30) * moment
        assert np.allclose(agent.theta, np.linalg.solve(3 * np.eye(5) + gram, moment), rtol=0, atol=1e-12)
        agent.learn(decision, reward := rng.normal())
        gram += np.outer(decision.features, decision.features)
        moment += reward * decision.features


def test_the_ridge_by_evidence_is_that_of_what_is_left():
    """After θ has grown a hundredfold, the ridge falls as MacKay's fixed point of the faded evidence says."""
    rng, ridges = np.random.default_rng(4), []
    agent = sb.Agent(sb.LinTS(ridge="evidence"), dim=3, noise_std=1.0, half_life=20.0)
    for step in range(600):
        decision = agent.decide(rng.normal(size=(4, 3)))
        theta = np.ones(3) * (1 if step < 300 else 100)
        agent.learn(decision, float(decision.features @ theta + rng.normal()))
        ridges.append(agent._compiled.state.regression.evidence.ridge.item())
    assert ridges[-1] < 1e-2 * ridges[290]


@pytest.mark.parametrize("name", FIXED)
def test_a_long_half_life_decides_as_none(name):
    rng = np.random.default_rng(2)
    plain, fading = (
        sb.Agent(FIXED[name], dim=3, noise_std=0.5, seed=4, half_life=half_life) for half_life in (None, 1e12)
    )
    for _ in range(80):
        features, reward = rng.normal(size=(5, 3)), rng.normal()
        one, other = plain.decide(features), fading.decide(features)
        assert one.arm == other.arm
        assert one.explored == other.explored
        plain.learn(one, reward)
        fading.learn(other, reward)
    assert np.allclose(plain.theta, fading.theta, rtol=1e-9)


def test_large_offsets_do_not_ruin_it():
    """Columns shifted by 1e5, where V has a condition of 1e11: the mean of an arm is that of exact least squares."""
    rng = np.random.default_rng(3)
    agent = sb.Agent(sb.Greedy(ridge=1e-6), dim=3, noise_std=0.5, half_life=200.0)
    truth, rows = np.array([0.3, -0.2, 0.1]), []
    for _ in range(400):
        features = rng.normal(size=(2, 3)) + 1e5
        decision = agent.decide(features)
        reward = float(decision.features @ truth + 0.1 * rng.normal())
        agent.learn(decision, reward)
        rows.append((decision.features, reward))
    weights = np.sqrt(2.0 ** (-np.arange(399, -1, -1) / 200))
    design, rewards = np.array([row for row, _ in rows]), np.array([reward for _, reward in rows])
    stacked = np.concatenate([design * weights[:, None], 1e-3 * np.eye(3)])
    theta = np.linalg.lstsq(stacked, np.concatenate([rewards * weights, np.zeros(3)]), rcond=None)[0]
    probe = rng.normal(size=(20, 3)) + 1e5
    assert np.allclose(
        agent.predict(probe)[0], probe @ theta, rtol=0, atol=1e-5 * np.abs(probe @ theta).max()
    )


def test_fading_follows_a_change():
    """Rewards change sign halfway: the fading estimate follows, the other does not."""
    rng = np.random.default_rng(5)
    agents = {
        h: sb.Agent(sb.EpsilonGreedy(epsilon=1.0), dim=2, noise_std=0.1, half_life=h) for h in (None, 50.0)
    }
    for step in range(1000):
        features, noise = rng.normal(size=(3, 2)), 0.1 * rng.normal()
        for agent in agents.values():
            decision = agent.decide(features)
            agent.learn(decision, float(decision.features[0]) * (1 if step < 500 else -1) + noise)
    assert abs(agents[50.0].theta[0] + 1) < 0.05
    assert abs(agents[None].theta[0]) < 0.2


@pytest.mark.parametrize("name", FIXED)
def test_it_is_saved_and_goes_on_exactly(name, tmp_path):
    rng = np.random.default_rng(6)
    agent = sb.Agent(FIXED[name], dim=3, noise_std=0.5, half_life=20.0, floor=0.2, seed=3)
    decisions = [agent.decide(rng.normal(size=(4, 3))) for _ in range(30)]
    agent.learn_many(decisions[::2], rng.normal(size=15))
    agent.probabilities(rng.normal(size=(4, 3)))  # asking changes nothing
    agent.save(tmp_path / "agent.json")
    again = sb.Agent.load(tmp_path / "agent.json")
    assert state_to_plain(again._compiled.state) == state_to_plain(agent._compiled.state)
    for step in range(30):
        features = rng.normal(size=(4, 3))
        one, other = agent.decide(features), again.decide(features)
        assert same(one, other)
        assert one.number == other.number == 31 + step
        agent.learn(decisions[1], reward := rng.normal())
        again.learn(decisions[1], reward)


def test_what_does_not_fade_is_refused():
    with pytest.raises(ValueError, match=r"half_life needs a policy that decides from features.*, got Solid"):
        sb.Agent(sb.Solid(), contexts=np.ones((1, 2, 2)), noise_std=1.0, theta_bound=1.0, half_life=10)

    class Own:
        def act(self, arms, available):
            return 0

        def update(self, features, reward):
            pass

    with pytest.raises(ValueError, match=r"half_life needs a policy that decides from features.*, got Own"):
        sb.Agent(Own(), dim=2, noise_std=1.0, half_life=10)
    with pytest.raises(ValueError, match="half_life must be"):
        sb.Agent(sb.LinTS(), dim=2, half_life=0.5)
    agent = sb.Agent(sb.Greedy(), dim=2, noise_std=1.0, half_life=10)
    decision = agent.decide(np.eye(2))
    decision.number = 2
    with pytest.raises(ValueError, match=r"decision.number must be an integer from 1 to 1, got 2"):
        agent.learn(decision, 1.0)


def test_fading_plays_in_a_simulation():
    problem = sb.problems.toy()
    policies = {"plain": sb.LinTS(), "fading": sb.LinTS(half_life=1e9)}
    results = sb.simulate(problem, policies, horizon=300, runs=2, jobs=1)
    plain, fading = (results.table.filter(policy=label)["regret"].to_numpy() for label in policies)
    assert np.allclose(plain, fading)


FLOOR = 0.3


@pytest.mark.parametrize("name", FIXED)
def test_probabilities_with_a_floor_are_the_mixture(name):
    """(1 - ε) p + ε / K for the available arms, exactly; and the policy's own numbers are drawn as without."""
    rng = np.random.default_rng(7)
    plain = sb.Agent(FIXED[name], dim=3, noise_std=0.5, seed=2, probabilities=True)
    mixed = sb.Agent(FIXED[name], dim=3, noise_std=0.5, seed=2, floor=FLOOR)
    uniform = 0
    for _ in range(60):
        features, mask = rng.normal(size=(4, 3)), rng.random(4) < 0.7
        mask[rng.integers(4)] = True
        one, other = plain.decide(features, mask), mixed.decide(features, mask)
        expected = (1 - FLOOR) * one.probabilities + FLOOR * mask / mask.sum()
        assert np.allclose(other.probabilities, expected, rtol=1e-14)
        assert mask[other.arm]
        assert other.probability == other.probabilities[other.arm]
        uniform += one.arm != other.arm
        reward = rng.normal()
        plain.learn(one, reward)
        mixed.learn(one, reward)  # the same evidence, so that both stay in step
    assert 0 < uniform < 40


@pytest.mark.parametrize("name", ["RandUCB, fixed ridge", "LinUCB", "LinTS with votes"])
def test_arms_come_as_often_as_their_probabilities_say(name):
    """Of one offer, 20,000 decisions: arms drawn minus their probabilities, summed, within 5 standard errors (1e-6)."""
    agent = sb.Agent(FIXED[name], dim=3, noise_std=0.5, seed=8, floor=FLOOR)
    features = np.random.default_rng(8).normal(size=(4, 3))
    draws = [agent.decide(features) for _ in range(20_000)]
    drawn = np.eye(4)[[one.arm for one in draws]]
    probabilities = np.array([one.probabilities for one in draws])
    error = np.sqrt((probabilities * (1 - probabilities)).sum(axis=0))
    assert (np.abs((drawn - probabilities).sum(axis=0)) <= 5 * error).all()
    assert probabilities.min() >= FLOOR / 4 - 1e-15


def test_asking_for_probabilities_changes_nothing_and_many_are_as_one():
    rng = np.random.default_rng(9)
    for name, policy in FIXED.items():
        agent = sb.Agent(policy, dim=3, noise_std=0.5, seed=1, floor=0.05)
        for _ in range(10):
            agent.learn(agent.decide(rng.normal(size=(4, 3))), rng.normal())
        before = state_to_plain(agent._compiled.state), agent._floor_rng.tolist()
        features, counts = rng.normal(size=(6, 5, 3)), np.array([5, 4, 3, 2, 1, 5])
        mask = np.arange(5) < counts[:, None]
        mask[0, 2] = False
        many = agent.probabilities_many(features, counts, mask)
        for row, count in enumerate(counts):
            one = agent.probabilities(features[row, :count].copy(), mask[row, :count])
            assert np.allclose(many[row, :count], one, rtol=1e-12), name
            assert not many[row, count:].any()
        assert (state_to_plain(agent._compiled.state), agent._floor_rng.tolist()) == before
        features = features[5].copy()
        assert np.allclose(agent.probabilities(features), agent.decide(features).probabilities, rtol=1e-14)


def test_a_floor_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="floor needs a policy that decides from features"):
        sb.Agent(sb.Solid(), contexts=np.ones((1, 2, 2)), noise_std=1.0, theta_bound=1.0, floor=0.1)
    for wrong in (-0.1, 1.1, np.nan, "some"):
        with pytest.raises(ValueError, match="floor must be"):
            sb.Agent(sb.Greedy(), dim=2, noise_std=1.0, floor=wrong)
