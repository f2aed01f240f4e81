"""Agents that grow: equal to one that had the block, the column or the coordinates from the start."""

import numpy as np
import pytest
from numba import typeof

import solid_bandits as sb
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting
from solid_bandits.policies import contract
from solid_bandits.policies.growth import explain, with_basis, with_block, with_column
from solid_bandits.policies.state import arrays_of, check_counts, check_evidence, fill_state, state_to_plain

POLICIES = {
    "greedy": sb.Greedy(ridge=0.7),
    "lints": sb.LinTS(ridge="evidence"),
    "linucb fading": sb.LinUCB(half_life=25, ridge="evidence"),
    "randucb": sb.RandUCB(),
    "randucb relative": sb.RandUCB(ridge=0.2),
    "vids": sb.VIDS(samples=8, memory=9),
}
FORMS = ["blocks", "joint"]


def begin(policy, form, width, blocks=3, noise_std=None):
    """A policy at work on blocks, or on one estimate that may grow."""
    setting = make_setting(
        width + (form == "blocks"), noise_std, 2.0, blocks=blocks * (form == "blocks"), grows=True
    )
    return policy, setting, contract.start(policy, setting, None, make_rng(5, 0, POLICY))


def offers(rng, form, steps, width, blocks=3):
    """Arms and a reward of each step; the first column is an intercept."""
    for _ in range(steps):
        x = rng.normal(size=(blocks, width))
        x[:, 0] = 1.0
        yield x, rng.normal() + x[:, -1].sum()


def as_rows(form, x):
    """What an agent sees of features (arms, width)."""
    return np.column_stack([np.arange(len(x)), x]) if form == "blocks" else x


def play(agent, form, rounds, change=lambda x: x, arms=None):
    """Decide and learn; with `arms`, learn of these and not of the ones chosen. Returns the arms chosen."""
    chosen = []
    for step, (x, reward) in enumerate(rounds):
        rows = as_rows(form, change(x))
        arm, _ = contract.act(agent, 0, rows, np.ones(len(rows), dtype=np.bool_), None)
        chosen.append(arm)
        told = arm if arms is None else arms[step]
        if step % 5:
            contract.update(agent, 0, told, rows[told], reward, 0)
    return chosen


def gram(regression):
    """V and θ-hat, of all blocks."""
    triangle, weights = regression.estimator.triangle, regression.estimator.weights
    gram = np.swapaxes(triangle, -1, -2) @ (weights[..., None] * triangle)
    return gram, np.linalg.solve(triangle, regression.estimator.targets[..., None])[..., 0]


def assert_same(one, other, rel=1e-9, absolute=1e-9):
    """Everything that a regression says, up to rounding."""
    for mine, theirs in zip(gram(one), gram(other), strict=True):
        assert np.allclose(mine, theirs, rtol=rel, atol=absolute * np.abs(theirs).max())
    for name in ("log_det_ratio", "residual", "rewards", "mass", "reward_sum", "reward_scatter"):
        mine, theirs = getattr(one.estimator, name), getattr(other.estimator, name)
        assert mine == pytest.approx(theirs, rel=rel, abs=1e-12), name
    for name in ("ridge", "start", "residual"):
        mine, theirs = getattr(one.evidence, name), getattr(other.evidence, name)
        assert mine == pytest.approx(theirs, rel=rel, abs=absolute), name
    assert one.step == other.step


def assert_saved(policy, setting, agent):
    """A grown state is a state like any other: written as plain numbers and read into a new agent."""
    other = contract.start(policy, setting, None, make_rng(0, 0, POLICY))
    fill_state(other.state, state_to_plain(agent.state))
    check_counts(other.state)
    check_evidence(other)
    for mine, theirs in zip(arrays_of(agent.state), arrays_of(other.state), strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("steps", [0, 1, 37])
def test_a_column_is_as_if_it_had_been_there(form, name, steps):
    """At the end and in the middle; what follows, with numbers in the new columns, is the same to rounding."""
    policy, width, rng = POLICIES[name], 3, np.random.default_rng(2)
    rounds, later = (
        list(offers(rng, form, count, size)) for count, size in ((steps, width), (40, width + 3))
    )
    _, setting, agent = begin(policy, form, width)
    arms = play(agent, form, rounds)
    before = [array.copy() for array in arrays_of(agent.state)]
    grown, more = with_column(policy, setting, agent, count=2)
    grown, more = with_column(policy, grown, more, place=1)
    assert grown.width == setting.width + 3
    assert typeof(more) == typeof(agent)
    for array, values in zip(arrays_of(agent.state), before, strict=True):
        assert np.array_equal(array, values)
    assert_saved(policy, grown, more)
    _, _, other = begin(policy, form, width + 3)

    def widened(x):
        return np.insert(np.hstack([x, np.zeros((len(x), 2))]), 1, 0.0, axis=1)

    play(other, form, rounds, widened, arms)
    assert_same(more.state.regression, other.state.regression)
    draws = name in ("lints", "vids")  # these have drawn coefficients of more columns by now
    expected = play(other, form, later)
    found = play(more, form, later, arms=expected)
    assert found == expected or draws
    assert_same(more.state.regression, other.state.regression, rel=1e-8)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("steps", [0, 1, 37])
def test_a_block_is_as_if_it_had_been_there(name, steps):
    policy, width, rng = POLICIES[name], 3, np.random.default_rng(3)
    rounds, later = (list(offers(rng, "blocks", count, width, size)) for count, size in ((steps, 3), (40, 4)))
    _, setting, agent = begin(policy, "blocks", width)
    arms = play(agent, "blocks", rounds)
    grown, more = with_block(policy, setting, agent)
    assert grown == setting._replace(blocks=4)
    assert typeof(more) == typeof(agent)
    _, _, other = begin(policy, "blocks", width, blocks=4)
    play(other, "blocks", rounds, arms=arms)
    assert_same(more.state.regression, other.state.regression, rel=0, absolute=0)
    expected = play(other, "blocks", later)
    assert play(more, "blocks", later, arms=expected) == expected or name in ("lints", "vids")
    assert_same(more.state.regression, other.state.regression)


@pytest.mark.parametrize("noise_std", [0.5, None])
@pytest.mark.parametrize("name", POLICIES)
def test_a_copy_of_a_block_knows_what_it_knows_and_counts_once(name, noise_std):
    """Against the joint estimate that is told rows of the copy's evidence, with a σ of the rewards alone."""
    policy, width, rng = POLICIES[name], 3, np.random.default_rng(4)
    _, setting, agent = begin(policy, "blocks", width, noise_std=noise_std)
    play(agent, "blocks", offers(rng, "blocks", 50, width))
    before = [array.copy() for array in arrays_of(agent.state)]
    grown, more = with_block(policy, setting, agent, like=1)
    assert_saved(policy, grown, more)
    old, new = agent.state.regression, more.state.regression
    for one, other in zip(gram(old), gram(new), strict=True):
        assert np.array_equal(one, other[:3])
        assert np.allclose(one[1], other[3], rtol=1e-10)
    for field in ("rewards", "mass", "reward_sum", "reward_scatter"):
        assert getattr(new.estimator, field) == getattr(old.estimator, field)
    V, theta = gram(new)
    ridge, evidence = old.evidence.ridge.item(), gram_of(old.evidence)[1]
    difference = theta[3] - np.linalg.solve(evidence, target_of(old.evidence)[1])
    added = difference @ evidence @ difference + ridge * theta[3] @ theta[3]
    assert new.estimator.residual - old.estimator.residual == pytest.approx(added, rel=1e-8)
    ratio = np.linalg.slogdet(V / ridge)[1].sum()
    assert new.estimator.log_det_ratio == pytest.approx(ratio, rel=1e-9)
    play(more, "blocks", offers(rng, "blocks", 20, width, 4))
    for array, values in zip(arrays_of(agent.state), before, strict=True):
        assert np.array_equal(array, values)


def gram_of(evidence):
    """Σ φφᵀ of each block."""
    return np.swapaxes(evidence.triangle, -1, -2) @ (evidence.weights[..., None] * evidence.triangle)


def target_of(evidence):
    """Σ φ Y of each block."""
    weighted = (evidence.weights * evidence.targets)[..., None]
    return (np.swapaxes(evidence.triangle, -1, -2) @ weighted)[..., 0]


OFFSETS, SCALES = np.array([0.0, 1000.0, 2026.0]), np.array([1.0, 1e3, 1e-3])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noise_std", [0.5, None])
@pytest.mark.parametrize("name", POLICIES)
def test_coordinates_leave_no_trace(name, noise_std, form):
    """Rewards learnt with raw columns, in other units and with offsets, and moved to φ_new: equal to an agent that had
    φ_new from the start and whose coordinates were renewed to what they were.
    """
    policy, width, rng = POLICIES[name], 3, np.random.default_rng(6)
    rounds, later = (list(offers(rng, form, count, width)) for count in (60, 60))
    basis = np.diag(1 / SCALES)
    basis[:, 0] -= OFFSETS / SCALES  # (raw - m) / s, the first column being 1
    basis[0, 0] = 1.0

    def raw(x):
        return x * SCALES + OFFSETS

    _, setting, agent = begin(policy, form, width, noise_std=noise_std)
    _, _, other = begin(policy, form, width, noise_std=noise_std)
    arms = play(other, form, rounds)
    play(agent, form, rounds, raw, arms)
    _, moved = with_basis(policy, setting, agent, basis)
    assert_saved(policy, setting, moved)
    _, still = with_basis(policy, setting, other, np.eye(width))
    assert typeof(moved) == typeof(agent)
    assert_same(moved.state.regression, still.state.regression, rel=1e-6, absolute=1e-6)
    bare = still.state.regression.evidence
    assert np.allclose(gram_of(bare), gram_of(other.state.regression.evidence), rtol=1e-10, atol=1e-10)
    if "randucb" not in name and policy.ridge != "evidence":  # a ridge that nothing has set
        assert_same(moved.state.regression, other.state.regression, rel=1e-6, absolute=1e-6)
    if name != "vids":  # its draws are compared below
        expected = play(still, form, later)
        assert play(moved, form, later, arms=expected) == expected
    assert_same(moved.state.regression, still.state.regression, rel=1e-6, absolute=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_parts_sum_to_the_estimate_and_to_the_squared_width(form):
    policy, width, rng = sb.RandUCB(), 4, np.random.default_rng(8)
    _, _, agent = begin(policy, form, width)
    play(agent, form, offers(rng, form, 40, width))
    rows = as_rows(form, rng.normal(size=(3, width)))
    found = explain(agent, rows, 2, 0)
    V, theta = gram(agent.state.regression)
    for row, parts in ((2, found.chosen), (0, found.runner_up)):
        mine, own = (V[row], theta[row]) if form == "blocks" else (V, theta)
        x = rows[row, -width:]
        assert parts.estimate == pytest.approx(x * own, rel=1e-9)
        assert parts.squared_width == pytest.approx(x * np.linalg.solve(mine, x), rel=1e-9)
    assert explain(agent, rows, 1, None).runner_up is None
    new = explain(begin(policy, form, width)[2], rows, 1, None).chosen  # before any ridge
    assert not new.estimate.any()
    assert np.isposinf(new.squared_width).all()


def test_nothing_learnt_has_no_coordinates():
    """Before the first reward the ridge that the arms set is set again, by the next ones."""
    policy, setting, agent = begin(sb.RandUCB(ridge=0.2), "blocks", 2)
    contract.act(agent, 0, as_rows("blocks", np.full((3, 2), 1e6)), np.ones(3, dtype=np.bool_), None)
    _, moved = with_basis(policy, setting, agent, np.diag([1e-6, 1e-6]))
    contract.act(moved, 0, as_rows("blocks", np.ones((3, 2))), np.ones(3, dtype=np.bool_), None)
    assert moved.state.regression.estimator.weights == pytest.approx(np.full((3, 2), 0.4))
    assert moved.state.regression.step == 2


def test_a_copy_before_the_first_reward_is_the_prior():
    policy, setting, agent = begin(sb.RandUCB(), "blocks", 2)
    assert not with_block(policy, setting, agent, like=2)[1].state.regression.estimator.weights.any()


def test_what_cannot_grow_is_refused():
    fixed = make_setting(3, 0.5)
    agent = contract.start(sb.LinTS(), fixed, None, make_rng(0, 0, POLICY))
    apart = r"agent must keep its evidence apart from its ridge to grow: give it blocks, or grows=True"
    for refused in (
        lambda: with_block(sb.LinTS(), fixed, agent),
        lambda: with_column(sb.LinTS(), fixed, agent),
        lambda: with_basis(sb.LinTS(), fixed, agent, np.eye(3)),
    ):
        with pytest.raises(ValueError, match=apart):
            refused()
    policy, setting, agent = begin(sb.LinTS(), "blocks", 3)
    with pytest.raises(ValueError, match="like must be an integer from 0 to 2, got 3"):
        with_block(policy, setting, agent, like=3)
    with pytest.raises(ValueError, match="place must be an integer from 0 to 3, got 4"):
        with_column(policy, setting, agent, place=4)
    with pytest.raises(ValueError, match="count must be an integer >= 1, got 0"):
        with_column(policy, setting, agent, count=0)
    with pytest.raises(ValueError, match=r"basis must have shape \(3, 3\), got \(2, 2\)"):
        with_basis(policy, setting, agent, np.eye(2))
    with pytest.raises(ValueError, match="basis must"):
        with_basis(policy, setting, agent, np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="features must begin with a block number from 0 to 2, got 3"):
        explain(agent, np.array([[3.0, 1.0, 1.0, 1.0]]), 0, None)
    policy, setting, agent = begin(sb.LinTS(), "joint", 3)
    with pytest.raises(ValueError, match="agent must have blocks to take one more"):
        with_block(policy, setting, agent)
    streaming = sb.rivals.StreamingSolid()
    agent = contract.start(streaming, setting, None, make_rng(0, 0, POLICY))
    for refused in (
        lambda: with_column(streaming, setting, agent),
        lambda: with_basis(streaming, setting, agent, np.eye(3)),
    ):
        with pytest.raises(ValueError, match="got StreamingSolid without a method `carry`"):
            refused()
