"""What the rules of SOLID's rivals say, each on its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import drive
import solid_bandits as sb
from solid_bandits.core.loop import play
from solid_bandits.policies.rivals import end_of_optimism, spl
from solid_bandits.policies.rivals.end_of_optimism import barycentric_spanner


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 10**6))
def test_the_spanner_writes_every_arm_with_coefficients_up_to_one(n_arms, dim, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_arms, dim))
    if seed % 3 == 0:
        features[:, 0] = features[:, -1]
    chosen = barycentric_spanner(features)
    coefficients = np.linalg.lstsq(features[chosen].T, features.T, rcond=None)[0]
    assert len(chosen) == np.linalg.matrix_rank(features)
    assert features[chosen].T @ coefficients == pytest.approx(features.T)
    assert np.abs(coefficients).max() <= 1 + 1e-5


def test_adahedge_s_regret_is_within_its_bound():
    """de Rooij et al. (2014), Theorem 8: regret <= 2 √(V ln K) + gap (16/3 ln K + 2), gains here in [0, 1]."""
    rng = np.random.default_rng(0)
    K, rounds = 5, 2000
    gains, rates, mixability, earned = np.zeros(K), np.zeros(K), 0.0, 0.0
    total = np.zeros(K)
    for _ in range(rounds):
        spl.hedge(gains, mixability, rates)
        assert rates.sum() == pytest.approx(1)
        gain = (rng.random(K) < np.linspace(0.3, 0.5, K)).astype(float)
        earned += rates @ gain
        total += gain
        mixability = spl.learn(gains, mixability, rates.copy(), gain)
    variance = rounds / 4
    assert total.max() - earned <= 2 * np.sqrt(variance * np.log(K)) + 16 / 3 * np.log(K) + 2
    assert gains == pytest.approx(total - total.max())


def test_oam_without_forcing_matches_and_with_forcing_pulls_every_arm():
    problem = sb.problems.toy()
    for epsilon in (0.0, 0.05):
        agent = drive.begin(sb.rivals.OAM(epsilon=epsilon), problem, 5000)
        for _ in drive.decisions(agent, problem, 5000):
            pass
        rarest = agent.state.pulls.min()
        explored = agent.state.explored.item()
        # The rule compares with the exploring rounds of all contexts; a context sees half of them.
        assert rarest >= 0.3 * epsilon * explored
        if epsilon == 0:
            assert rarest < 0.02 * explored


def test_end_of_optimism_recovers_when_the_estimates_move():
    """Rewards that change sides after the warm-up: the strategy must fall back on UCB."""
    problem = sb.problems.end_of_optimism(0.3)
    agent = drive.begin(sb.rivals.EndOfOptimism(), problem, 2000)
    for step in range(2000):
        arm, _ = drive.act(agent, problem, 0)
        drive.update(agent, problem, 0, arm, 3.0 * (arm == (2 if step < 20 else 0)))
    assert agent.state.phase.item() == end_of_optimism.RECOVERY
    assert agent.state.recovery.pulls.argmax() == 0


def test_e4_exploits_from_the_third_batch_where_the_arms_are_told_apart():
    """Gap 0.3 at σ = 0.01: Chernoff's rule needs few pulls, and two batches have more."""
    problem = sb.problems.end_of_optimism(0.3, noise_std=0.01)
    for seed in range(5):
        agent = drive.begin(sb.rivals.E4(), problem, 2_000, seed)
        explored = 0
        for _ in range(2_000):
            arm, explores = drive.act(agent, problem, 0)
            drive.update(agent, problem, 0, arm, problem.means[0, arm])
            explored += explores
        log_n = np.log(2_000)
        design = 2 * np.ceil(np.sqrt(log_n))  # d = 2: each arm of a basis √log n times
        cap = min(log_n**2, 2_000 / 6)
        assert agent.state.batch.item() == 3
        assert agent.state.active.tolist() == (problem.means[0] == problem.means[0].max()).tolist()
        assert design + np.ceil(cap) <= explored <= design + 2 * np.ceil(cap) + 1


def test_e4_eliminates_where_chernoffs_rule_fails():
    """Rewards that say nothing in the first two batches: all arms stay, and batches of n^(1/2), n^(3/4), ... tell."""
    horizon = 20_000
    features = np.eye(3)[None]
    problem = sb.Problem(features, theta=[1.0, 0.0, 0.5], noise_std=0.5)
    agent = drive.begin(sb.rivals.E4(), problem, horizon)
    sizes = []
    for _ in range(horizon):
        arm, _ = drive.act(agent, problem, 0)
        batch = agent.state.batch.item()
        drive.update(agent, problem, 0, arm, problem.means[0, arm] if batch > 2 else 0.0)
        if len(sizes) < batch:
            sizes.append(agent.state.size.item())
    log_n = np.log(horizon)
    assert len(sizes) > 4
    assert sizes[0] == pytest.approx(np.sqrt(log_n))
    assert sizes[2] == pytest.approx(log_n**2)
    assert sizes[3:-1] == pytest.approx([horizon ** (1 - 0.5**k) for k in range(1, len(sizes) - 3)])
    assert sizes[-1] == sizes[-2]  # the last batch has one arm, and no design
    assert agent.state.active.tolist() == [1, 0, 0]


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_epsilon_greedy_explores_as_often_as_it_says(decay):
    """Exploring rounds are independent with probability ε t^-decay: their sum within 4.5 standard errors (1e-5)."""
    steps = 20_000
    trace = play(sb.problems.toy(), sb.EpsilonGreedy(0.3, decay), steps, 0, 0, np.array([steps]))
    chances = 0.3 * np.arange(1, steps + 1) ** -decay
    deviation = np.sqrt((chances * (1 - chances)).sum())
    assert abs(trace.explored[-1] - chances.sum()) < 4.5 * deviation


@pytest.mark.parametrize(
    "policy",
    [sb.rivals.OAM(), sb.rivals.AOIDS(), sb.rivals.SPL(), sb.rivals.OSSB()],
    ids=lambda policy: type(policy).__name__,
)
def test_asymptotically_optimal_rivals_learn_the_end_of_optimism_instance(policy):
    """Mean regret of the last half far below that of LinUCB, by more than 4 standard errors.

    False alarms: below 1e-4 if the policies were equal (one-sided, 40 runs; the seed is fixed).
    """
    problem, horizon, runs = sb.problems.end_of_optimism(0.1), 20_000, 40
    steps = np.array([horizon // 2, horizon])

    def growth(kind):
        traces = [play(problem, kind, horizon, seed=0, run=run, steps=steps) for run in range(runs)]
        return np.array([trace.regret[1] - trace.regret[0] for trace in traces])

    rival, optimist = growth(policy), growth(sb.LinUCB(radius="paper"))
    error = np.sqrt(rival.var(ddof=1) / runs + optimist.var(ddof=1) / runs)
    assert optimist.mean() - rival.mean() > 4 * error
