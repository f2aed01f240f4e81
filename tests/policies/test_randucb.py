"""RandUCB: the distribution of its width, of its arms, and its indifference to units."""

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
from solid_bandits.policies.randucb import Width, draw_width, exceeds, relative_growth, share_envelope


@pytest.mark.parametrize(
    ("temperature", "growth", "noise_std"), [(0.5, 0.2, 1.0), (2.0, 0.0, 0.3), (1.0, 3.0, 5.0)]
)
@pytest.mark.parametrize("step", [1, 1000])
def test_the_squared_width_is_exponential_above_its_growth(temperature, growth, noise_std, step):
    """W²/σ² - κ log t ~ Exp(2τ). Kolmogorov-Smirnov on 20,000 draws at level 1e-4, the mean within 4.5 standard errors.

    False alarms: below 1e-3 over the six cases, were the seed not fixed.
    """
    width = Width(noise_std, 0.0, growth * math.log(step), temperature)
    source = make_rng(0, step, POLICY)
    widths = np.array([draw_width(width, source) for _ in range(20_000)])
    drawn = (widths / noise_std) ** 2 - growth * math.log(step)
    assert drawn.min() > -1e-9
    assert stats.kstest(drawn, stats.expon(scale=2 * temperature).cdf).pvalue > 1e-4
    assert abs(drawn.mean() - 2 * temperature) < 4.5 * 2 * temperature / math.sqrt(20_000)
    # The tail that is said is the tail that is drawn.
    for limit in np.quantile(widths, [0.1, 0.5, 0.9]):
        chance = exceeds(width, limit)
        assert abs((widths > limit).mean() - chance) < 4.5 * math.sqrt(chance * (1 - chance) / 20_000)
    assert exceeds(width, 0.0) == 1


@pytest.mark.parametrize("degrees", [1, 2, 7, 100, 5000])
def test_where_sigma_is_estimated_the_squared_width_is_lomax(degrees):
    """P(E > x) = (1 + x/k)^(-k/2τ). Kolmogorov-Smirnov on 20,000 draws at level 1e-4, five cases."""
    width, source = Width(0.3, float(degrees), 0.4, 0.7), make_rng(1, degrees, POLICY)
    drawn = (np.array([draw_width(width, source) for _ in range(20_000)]) / 0.3) ** 2 - 0.4
    lomax = stats.lomax(degrees / 1.4, scale=degrees)
    assert stats.kstest(drawn, lomax.cdf).pvalue > 1e-4
    for x in (0.01, 1.0, 30.0):
        assert exceeds(width, 0.3 * math.sqrt(0.4 + x)) == pytest.approx(lomax.sf(x), rel=1e-9)


@given(st.floats(1e-12, 1e-2))
def test_the_growth_over_its_rate_has_all_its_digits(x):
    assert relative_growth(x) == pytest.approx(math.expm1(x) / x, rel=4e-16)


def test_at_temperature_one_a_model_is_considered_as_often_as_by_thompson_sampling():
    """P(W² > D) = exp(-D / 2σ²), without growth."""
    width = Width(0.5, 0.0, 0.0, 1.0)
    for distance in (0.1, 1.0, 7.0):
        assert exceeds(width, math.sqrt(distance)) == pytest.approx(math.exp(-distance / 0.5))


@given(st.integers(1, 8), st.integers(1, 1000), st.integers(0, 10**6))
def test_the_envelope_is_the_integral_over_the_widths(n_arms, step, seed):
    """Probabilities against the arms at 4,000 evenly spread quantiles of the width: exact but for the grid."""
    rng = np.random.default_rng(seed)
    least = rng.uniform(0, 1) * math.log(step)
    width = Width(rng.uniform(0.1, 2), float(rng.integers(0, 5)), least, rng.uniform(0.1, 2))
    means, norms = rng.normal(size=n_arms), rng.exponential(size=n_arms)
    if seed % 3 == 0:
        norms = np.ceil(norms)  # parallel lines
    available = rng.random(n_arms) < 0.8
    available[rng.integers(n_arms)] = True
    out = np.full(n_arms, np.nan)
    share_envelope(width, means, norms, available, out)
    levels = (np.arange(4000) + 0.5) / 4000
    k = width.degrees
    exponential = -2 * width.temperature * np.log(1 - levels)
    widths = width.deviation * np.sqrt(least + (k * np.expm1(exponential / k) if k else exponential))
    bounds = np.where(available, means + widths[:, None] * norms, -np.inf)
    shares = np.bincount(bounds.argmax(axis=1), minlength=n_arms) / 4000
    assert out == pytest.approx(shares, abs=1.01 * n_arms / 4000)
    assert out.sum() == pytest.approx(1)
    assert (out[~available] == 0).all()


@given(exponent=st.integers(-30, 30), seed=st.integers(0, 10_000))
@settings(max_examples=15)
def test_other_units_of_rewards_or_features_make_the_same_choices(exponent, seed):
    """Powers of two, so that scaled numbers have the same digits and equality is exact, not up to rounding."""
    problem = sb.problems.random(n_contexts=3, n_arms=5, dim=4, noise_std=0.5, seed=seed)
    scale = 2.0**exponent
    rewards = sb.Problem(problem.features, scale * problem.theta, noise_std=scale * problem.noise_std)
    features = sb.Problem(scale * problem.features, problem.theta / scale, noise_std=problem.noise_std)
    arms = drive.arms_of(sb.RandUCB(), problem, 300, seed)
    assert drive.arms_of(sb.RandUCB(), rewards, 300, seed) == arms
    assert drive.arms_of(sb.RandUCB(), features, 300, seed) == arms


def test_the_scale_is_that_of_the_first_arms_seen():
    """ν = ridge L², L over the arms that may be pulled, whatever the others are; rewards that come first count too."""
    source = make_rng(0, 0, POLICY)
    arms, available = np.array([[3.0, 4.0], [0.0, 1.0], [1e9, 0.0]]), np.array([True, True, False])
    agent = contract.start(sb.RandUCB(ridge=0.1), make_setting(2, 1.0), None, source)
    contract.act(agent, 0, arms, available, None)
    assert agent.state.regression.estimator.weights == pytest.approx([2.5, 2.5])
    contract.act(agent, 0, 100 * arms, available, None)
    assert agent.state.regression.estimator.weights == pytest.approx([2.5, 2.5])
    agent = contract.start(sb.RandUCB(ridge=0.1), make_setting(2, 1.0), None, source)
    contract.update(agent, 0, 0, np.array([0.0, 2.0]), 1.0, 0)
    assert agent.state.regression.estimator.weights == pytest.approx([0.4, 4.4])
    # Zeros have no scale; any will do, and decisions go on.
    agent = contract.start(sb.RandUCB(ridge=0.1), make_setting(2, 1.0), None, source)
    contract.act(agent, 0, np.zeros((3, 2)), available, None)
    assert (agent.state.regression.estimator.weights > 0).all()


def test_without_draws_it_is_linucb_of_its_width():
    """τ = 0: the arm of the largest mean + σ √(κ log t) ‖φ‖, and its probability is 1."""
    rng = np.random.default_rng(0)
    agent = contract.start(
        sb.RandUCB(temperature=0, growth=2), make_setting(3, 0.5), None, make_rng(0, 0, POLICY)
    )
    out = np.zeros(6)
    # The first width is 0 and all arms tie; from the second decision on none do.
    contract.act(agent, 0, np.eye(3), np.ones(3, dtype=np.bool_), None)
    for arms, available in drive.offers(rng, 200, 6, 3):
        arm, _ = contract.act(agent, 0, arms, available, out)
        assert out[arm] == out.sum() == 1
        contract.update(agent, 0, arm, arms[arm], rng.normal(), 0)


def test_it_beats_posterior_sampling_on_random_problems():
    """Paired differences over 60 runs, 4 standard errors below zero: a false alarm of 3e-5, were seeds not fixed."""
    problems = [sb.problems.random(n_arms=16, seed=seed) for seed in range(60)]
    policies = {"RandUCB": sb.RandUCB(), "LinTS": sb.LinTS()}
    results = sb.simulate(problems.__getitem__, policies, horizon=5000, runs=60, seed=1, jobs=1)
    last = results.table.filter(step=5000).sort("run")
    ours, lints = (last.filter(policy=name)["regret"].to_numpy() for name in policies)
    differences = ours - lints
    assert differences.mean() < -4 * differences.std(ddof=1) / math.sqrt(60)


def test_no_arm_is_pulled_that_has_probability_zero():
    """All bounds are equal but for rounding, as the large column is known exactly: the envelope has the same ties."""
    rng = np.random.default_rng(3)
    for seed in range(40):
        agent = sb.Agent(sb.RandUCB(), dim=2, noise_std=1e-12, seed=seed)
        agent.decide([[0.0, 1e9]])  # sets the ridge
        agent.learn(agent.decide([[0.0, 1e30]]), 1e30)
        decision = agent.decide(np.column_stack([1e-10 * rng.normal(size=4), np.full(4, 1e9)]))
        assert decision.probability > 0
