"""One block per arm: everything that the joint estimate on e_a ⊗ x says, step by step."""

import numpy as np
import pytest

import solid_bandits as sb
from agents import same
from solid_bandits import extend
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting
from solid_bandits.estimation.regression import compare_arms, estimate_differences
from solid_bandits.policies import contract

POLICIES = {
    "greedy": sb.Greedy(),
    "greedy evidence": sb.Greedy(ridge="evidence"),
    "epsilon-greedy": sb.EpsilonGreedy(epsilon=0.2, ridge="evidence"),
    "linucb": sb.LinUCB(ridge="evidence"),
    "linucb theorem": sb.LinUCB(radius="theorem", ridge=2.5),
    "lints": sb.LinTS(ridge="evidence"),
    "lints votes": sb.LinTS(votes=8),
    "randucb": sb.RandUCB(),
    "randucb fixed": sb.RandUCB(ridge=0.2),
    "linmed": sb.rivals.LinMED(),
    "linimed": sb.rivals.LinIMED(),
    "squarecb": sb.rivals.SquareCB(),
    "falcon": sb.rivals.FALCON(ridge=0.3),
    "vids": sb.VIDS(samples=16, memory=17),
    "randucb half-life": sb.RandUCB(half_life=30),
    "lints half-life": sb.LinTS(ridge=0.5, half_life=20),
}


def widened(rows, blocks):
    """e_a ⊗ x of rows [a, x]."""
    rows = np.atleast_2d(rows)
    wide = np.zeros((len(rows), blocks, rows.shape[1] - 1))
    wide[np.arange(len(rows)), rows[:, 0].astype(int)] = rows[:, 1:]
    return wide.reshape(len(rows), -1)


def both(policy, blocks, width, noise_std, seed=3):
    """The same policy in blocks and joint."""
    known = {"noise_std": noise_std, "theta_bound": 3.0}
    apart = make_setting(dim=width + 1, blocks=blocks, **known)
    joint = make_setting(dim=blocks * width, **known)
    return [contract.start(policy, one, None, make_rng(seed, 0, POLICY)) for one in (apart, joint)]


@pytest.mark.parametrize("noise_std", [0.5, None])
@pytest.mark.parametrize("name", POLICIES)
def test_blocks_decide_as_the_joint_estimate(name, noise_std):
    """The same arms, probabilities and ridge, step by step: rewards that never come, arms that are away, two rows of
    one block in an offer, probabilities asked for or not.
    """
    policy = POLICIES[name]
    if noise_std is None and "theorem" in name:
        return
    blocks, width, rng = 4, 3, np.random.default_rng(1)
    apart, joint = both(policy, blocks, width, noise_std)
    theta = rng.normal(size=(blocks, width))
    for step in range(150):
        x = np.concatenate([[1.0], rng.normal(size=width - 1)])
        numbers = np.arange(blocks) if step % 3 else rng.integers(blocks, size=2 + step % 4)
        rows = np.column_stack(
            [
                numbers,
                np.tile(x, (len(numbers), 1)) + (step % 3 == 0) * rng.normal(size=(len(numbers), width)),
            ]
        )
        wide = widened(rows, blocks)
        available = rng.random(len(rows)) < 0.8
        available[rng.integers(len(rows))] = True
        outs = [np.full(len(rows), np.nan) if step % 2 else None for _ in range(2)]
        one = contract.act(apart, 0, rows, available, outs[0])
        other = contract.act(joint, 0, wide, available, outs[1])
        assert one == other, f"step {step}"
        if outs[0] is not None:
            assert outs[0] == pytest.approx(outs[1], rel=1e-6, abs=1e-9, nan_ok=True)
        arm = one[0]
        if rng.random() < 0.9:
            reward = float(rows[arm, 1:] @ theta[int(rows[arm, 0])] + 0.5 * rng.normal())
            age = int(rng.integers(3)) if policy.half_life else 0
            contract.update(apart, 0, arm, rows[arm], reward, age)
            contract.update(joint, 0, arm, wide[arm], reward, age)
    mine, theirs = apart.state.regression, joint.state.regression
    for name in ("log_det_ratio", "residual", "mass", "reward_sum", "reward_scatter"):
        assert getattr(mine.estimator, name) == pytest.approx(getattr(theirs.estimator, name), rel=1e-8), name
    if theirs.evidence is not None:
        assert mine.evidence.ridge == pytest.approx(theirs.evidence.ridge, rel=1e-8)
        assert mine.evidence.start == pytest.approx(theirs.evidence.start, rel=1e-12)


LARGE = {
    "greedy": sb.Greedy(ridge="evidence"),
    "epsilon-greedy": sb.EpsilonGreedy(epsilon=0.2),
    "linucb": sb.LinUCB(),
    "lints": sb.LinTS(ridge="evidence"),
    "randucb": sb.RandUCB(),
    "vids": sb.VIDS(samples=4),
}


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "width", "steps", "shown"), [(26, 17, 70, 26), (100, 50, 20, 6)])
@pytest.mark.parametrize("name", LARGE)
def test_many_blocks_decide_as_the_joint_estimate(name, blocks, width, steps, shown):
    """At 26 arms of 17 features all on offer, and 6 of 100 arms of 50 features, where the joint estimate has 5,000."""
    rng = np.random.default_rng(2)
    apart, joint = both(LARGE[name], blocks, width, None)
    theta = rng.normal(size=(blocks, width))
    for step in range(steps):
        numbers = rng.permutation(blocks)[:shown]
        x = np.concatenate([[1.0], rng.normal(size=width - 1)])
        rows = np.column_stack([numbers, np.tile(x, (shown, 1))])
        wide, everything = widened(rows, blocks), np.ones(shown, dtype=np.bool_)
        arm, explored = contract.act(apart, 0, rows, everything, None)
        assert (arm, explored) == contract.act(joint, 0, wide, everything, None), f"step {step}"
        reward = float(x @ theta[numbers[arm]] + 0.5 * rng.normal())
        contract.update(apart, 0, arm, rows[arm], reward, 0)
        contract.update(joint, 0, arm, wide[arm], reward, 0)


def test_each_kernel_says_what_linear_algebra_says():
    """Means, norms, differences and draws of rows, against dense V and θ-hat of e_a ⊗ x."""
    blocks, width, rng = 3, 4, np.random.default_rng(7)
    setting = make_setting(width + 1, 0.5, blocks=blocks)
    regression = extend.make_regression(setting, ridge=0.7, norms=True)
    design, rewards = [], []
    for _ in range(40):
        row = np.concatenate([[rng.integers(blocks)], rng.normal(size=width)])
        extend.observe_reward(regression, row, reward := rng.normal())
        design.append(widened(row, blocks)[0])
        rewards.append(reward)
    V = 0.7 * np.eye(blocks * width) + np.transpose(design) @ design
    theta, inverse = np.linalg.solve(V, np.transpose(design) @ rewards), np.linalg.inv(V)
    rows = np.column_stack([[0, 1, 2, 1], rng.normal(size=(4, width))])
    wide, found = widened(rows, blocks), np.zeros(blocks * width)
    extend.write_theta(regression, found)
    assert found == pytest.approx(theta)
    assert extend.estimate_arms(regression, rows, 0) == 4
    assert regression.work.arms.means[:4] == pytest.approx(wide @ theta)
    assert regression.work.arms.sq_norms[:4] == pytest.approx(((wide @ inverse) * wide).sum(axis=1))
    assert estimate_differences(regression, rows, 1, 0) == 4
    apart = wide[1] - wide
    assert regression.work.arms.means[:4] == pytest.approx(apart @ theta)
    assert regression.work.arms.sq_norms[:4] == pytest.approx(((apart @ inverse) * apart).sum(axis=1))
    for one, other in ((0, 1), (1, 3)):
        difference = wide[one] - wide[other]
        expected = difference @ theta, difference @ inverse @ difference
        assert compare_arms(regression, rows[one], rows[other]) == pytest.approx(expected)
    assert extend.predict_reward(regression, rows[2]) == pytest.approx(wide[2] @ theta)
    assert extend.squared_norm(regression, rows[2].copy()) == pytest.approx(wide[2] @ inverse @ wide[2])
    model = rng.normal(size=blocks * width)
    assert extend.value(regression, rows[3], model) == pytest.approx(wide[3] @ model)
    source, draws = make_rng(0, 0, POLICY), np.empty((20_000, blocks * width))
    for draw in draws:
        extend.draw_model(regression, 0.5, draw, source)
    # Each entry of mean and covariance within 5 standard errors: false alarm below 1e-4 in all.
    covariance, centred = 0.25 * inverse, draws - theta
    scale = np.diag(covariance)
    assert (np.abs(centred.mean(axis=0)) < 5 * np.sqrt(scale / len(draws))).all()
    error = np.abs(centred.T @ centred / len(draws) - covariance)
    assert (error < 5 * np.sqrt((np.outer(scale, scale) + covariance**2) / len(draws))).all()


@pytest.mark.parametrize(
    "policy", [sb.RandUCB(), sb.LinTS(votes=4, half_life=20), sb.VIDS(samples=4, memory=6)]
)
def test_an_agent_of_blocks_is_saved_and_goes_on(policy, tmp_path):
    rng = np.random.default_rng(3)
    agent = sb.Agent(policy, dim=4, blocks=3, floor=0.1, seed=2)
    for _ in range(30):
        agent.learn(agent.decide(offer(rng)), rng.normal())
    assert agent.theta.shape == (3, 3)
    means, deviations = agent.predict(rows := offer(rng))
    assert means == pytest.approx((agent.theta * rows[:, 1:]).sum(axis=1))
    assert (deviations > 0).all()
    agent.save(tmp_path / "agent.json")
    again = sb.Agent.load(tmp_path / "agent.json")
    for _ in range(10):
        rows, reward = offer(rng), rng.normal()
        one, other = agent.decide(rows), again.decide(rows)
        assert same(one, other)
        agent.learn(one, reward)
        again.learn(other, reward)
    text = (tmp_path / "agent.json").read_text()
    for found, put in (('"blocks":3', '"blocks":2'), ('"grows":false', '"grows":true')):
        (tmp_path / "other.json").write_text(text.replace(found, put))
        with pytest.raises(ValueError, match="its state belongs to another policy, setting or table"):
            sb.Agent.load(tmp_path / "other.json")


def offer(rng):
    """Three arms, one of each block."""
    return np.column_stack([np.arange(3), np.tile([1.0, *rng.normal(size=2)], (3, 1))])


def test_what_blocks_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"blocks must be 0 for StreamingSolid.*, got 3"):
        sb.Agent(sb.rivals.StreamingSolid(), dim=4, blocks=3)
    with pytest.raises(ValueError, match="dim must be an integer >= 2, got 1"):
        sb.Agent(dim=1, blocks=3)
    with pytest.raises(ValueError, match="blocks must be an integer from 0 to 10000, got 10001"):
        make_setting(101, None, blocks=10_001)
    for wrong in (3.0, -1.0, 0.5):
        with pytest.raises(ValueError, match="features must begin with a block number from 0 to 2, got"):
            sb.Agent(dim=3, blocks=3).decide([[wrong, 1.0, 2.0]])
