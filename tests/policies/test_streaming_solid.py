"""Streaming SOLID: where it is finite SOLID, how far its sums are above the steps, its stakes and its budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import drive
import solid_bandits as sb
from page_code import read_page
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting
from solid_bandits.policies import contract
from solid_bandits.policies.rivals.streaming.algorithm import expected_excess
from solid_bandits.policies.rivals.streaming.sums import log_weight


def streaming(dim=3, seed=0, **parameters):
    setting = make_setting(dim, 0.5, None, 1000)
    return contract.start(sb.rivals.StreamingSolid(**parameters), setting, None, make_rng(seed, 0, POLICY))


def steps_of(agent, arms_of, count, everything):
    """Play, and give w, θ, γ V^-1 and λ δδ' / 2σ² of each exploring round, by what it added to the sums."""
    rng = np.random.default_rng(3)
    theta = rng.normal(size=agent.setting.dim)
    for _ in range(count):
        arms = arms_of(rng)
        before = [part.copy() for part in agent.state.sums]
        arm, explored = contract.act(agent, 0, arms, everything, None)
        if explored:
            after = agent.state.sums
            weight = after.weight.item() - before[4].item()
            information = (after.information - before[2]) / weight
            yield (
                weight,
                (after.along - before[0]) / weight,
                (after.width - before[1]) / weight,
                information,
            )
        contract.update(agent, 0, arm, arms[arm], arms[arm] @ theta + 0.5 * rng.normal(), 0)


def optimistic_steps(rounds, multipliers, phi):
    """Σ w [φ'θ + b + λ (|i| + b)² / 2σ²], each round by itself; `information` is λ δδ' / 2σ² of it."""
    total = 0.0
    for (weight, theta, width, information), multiplier in zip(rounds, multipliers, strict=True):
        bonus = np.sqrt(phi @ width @ phi)
        known = np.sqrt(max(phi @ information @ phi, 0))
        total += weight * (phi @ theta + bonus + (known + np.sqrt(multiplier / 2 / 0.25) * bonus) ** 2)
    return total


@pytest.mark.parametrize("same", [True, False])
def test_the_sums_are_at_least_the_steps_and_equal_after_one(same):
    """Cauchy and Schwarz; with one exploring round there is nothing to bound."""
    agent = streaming(budget=None, initial_multiplier=5.0, threshold_scale=30.0)
    fixed = np.random.default_rng(1).normal(size=(4, 3))
    everything = np.ones(4, dtype=np.bool_)
    rounds, multipliers, phi = [], [], np.array([0.3, -1.0, 0.7])
    multiplier = agent.state.multiplier.item()
    for step in steps_of(agent, lambda rng: fixed if same else rng.normal(size=(4, 3)), 60, everything):
        rounds.append(step)
        multipliers.append(multiplier)
        multiplier = agent.state.multiplier.item()
        read, exact = log_weight(agent.state.sums, phi), optimistic_steps(rounds, multipliers, phi)
        if len(rounds) == 1:
            assert read == pytest.approx(exact, rel=1e-9)
        assert read >= exact - 1e-9 * abs(exact)
    assert len(rounds) > 5
    assert read > exact * (1 + 1e-6)  # a bound, and no identity, from the second round on


def test_in_one_context_the_first_steps_are_those_of_solid():
    """One context, V_ω of the round at hand, no budget: λ and ω move as finite SOLID's do, up to Cauchy and Schwarz.

    Finite SOLID has no ρ-hat in its very first round and takes no step there, so it is asked once more.
    """
    problem = sb.Problem([[[1.0, 0.2], [0.1, 1.0], [0.6, 0.6]]], theta=[1.0, 0.3], noise_std=0.5)
    finite = drive.begin(sb.Solid(initial_multiplier=2.0), problem, 1000)
    ours = drive.begin(
        sb.rivals.StreamingSolid(initial_multiplier=2.0, budget=None, fading=1.0), problem, 1000
    )
    drive.act(finite, problem, 0)
    finite.state.multiplier[()] = 2.0
    finite.state.phase[()] = finite.state.phase_start[()] = finite.state.explored[()] = 0
    for agent in (finite, ours):
        assert drive.act(agent, problem, 0)[1]
    assert ours.state.multiplier.item() == pytest.approx(finite.state.multiplier.item(), rel=1e-9)
    np.testing.assert_allclose(drive.probabilities(ours, problem, 0), finite.state.omega[0], rtol=1e-9)


@given(st.floats(0, 8), st.floats(1e-3, 1e3))
@settings(max_examples=100, deadline=None)
def test_the_stake_is_the_mean_of_what_an_arm_is_better_by(u, spread):
    gap = u * spread
    density = stats.norm(-gap, spread).pdf
    expected = integrate.quad(lambda x: x * density(x), 0, 12 * spread, epsabs=0, epsrel=1e-9)[0]
    assert expected_excess(gap, spread) == pytest.approx(expected, rel=1e-5, abs=1e-14 * spread)


def test_exploring_costs_at_most_the_budget_and_one_round():
    """Once `spent` is over the limit the best arm is pulled; what was at stake in such rounds is below spent / c."""
    agent, everything = streaming(budget=0.2), np.ones(6, dtype=np.bool_)
    rng = np.random.default_rng(2)
    theta, held, at_stake = rng.normal(size=3), 0, 0.0
    for _ in range(2000):
        arms = rng.normal(size=(6, 3))
        spent, stake = agent.state.spent.item(), agent.state.stake.item()
        arm, explored = contract.act(agent, 0, arms, everything, None)
        over = spent > 0.2 * agent.state.stake.item()
        assert not (explored and over)
        held += over
        if over:
            at_stake += agent.state.stake.item() - stake
            assert at_stake < spent / 0.2
        if not explored:
            assert agent.state.spent.item() == spent
            assert arm == (arms @ agent.state.regression.work.theta).argmax()
        contract.update(agent, 0, arm, arms[arm], arms[arm] @ theta + 0.5 * rng.normal(), 0)
    assert held > 50
    assert agent.state.explored.item() > 5


def test_a_budget_of_nothing_is_greedy_after_the_first_cost():
    problem = sb.problems.random(3, 5, 4, seed=1)
    agent = drive.begin(sb.rivals.StreamingSolid(budget=0.0), problem, 500)
    explored = [explores for _, _, explores, _ in drive.decisions(agent, problem, 500)]
    last = max(step for step, explores in enumerate(explored) if explores)
    # Costs are by the estimates, which are 0 until the first reward.
    assert last <= 5


def test_the_multiplier_is_awake():
    """In the reading of `Solid()`: λ moves, and the steps carry information."""
    problem = sb.problems.end_of_optimism(0.1)
    agent = drive.begin(sb.rivals.StreamingSolid(), problem, 3000)
    seen = []
    for _, _, explored, _ in drive.decisions(agent, problem, 3000):
        if explored:
            seen.append(agent.state.multiplier.item())
    assert np.mean(np.array(seen) > 0) > 0.5
    assert np.trace(agent.state.sums.information) > 0


def test_one_arm_and_copies_of_an_arm_are_no_reason_to_explore():
    agent = streaming()
    for arms in (np.ones((1, 3)), np.ones((4, 3)), np.zeros((3, 3))):
        assert contract.act(agent, 0, arms, np.ones(len(arms), dtype=np.bool_), None) == (0, False)
    mask = np.array([False, True, False])
    assert contract.act(agent, 0, np.eye(3), mask, None) == (1, False)
    assert agent.state.stake.item() == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("multiplier", 2000.0),
        ("spent", -1.0),
        ("mass", 0.0),
        ("mass", 2.0),
        ("phase", 99),
        ("phase_start", 10**6),
    ],
)
def test_a_state_that_no_run_reaches_is_refused(name, value):
    policy = sb.rivals.StreamingSolid()
    problem = sb.problems.random(3, 5, 4, seed=1)
    agent = drive.begin(policy, problem, 200)
    list(drive.decisions(agent, problem, 100))
    policy.check_state(agent)
    getattr(agent.state, name)[()] = value
    with pytest.raises(ValueError, match=f"^state.*{name}.* must be"):
        policy.check_state(agent)


def test_sums_that_are_no_sums_are_refused():
    policy = sb.rivals.StreamingSolid()
    for matrix in ("width", "information", "optimism"):
        agent = streaming()
        getattr(agent.state.sums, matrix)[0, 1] = 3.0
        with pytest.raises(ValueError, match=rf"^state\.{matrix} must be symmetric"):
            policy.check_state(agent)


def test_the_code_of_the_page_runs():
    names = {}
    script = read_page("streaming-solid.md").script.replace("runs=4)", "runs=4, jobs=1)")
    exec(compile(script, "streaming-solid.md", "exec"), names)
    assert names["decision"].probabilities.sum() == pytest.approx(1)
