"""The theorems' form of SOLID: its constants, its convex programs, its guarantees."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import solid_bandits as sb
from solid_bandits.confidence import squared_radius
from solid_bandits.loop import checkpoints, play
from solid_bandits.policies import solid_theory
from solid_bandits.policies.contract import act as _act
from solid_bandits.policies.contract import update as _update
from solid_bandits.policies.solid import primal_dual_step
from solid_bandits.stream import POLICY, make_stream

sizes = st.floats(0.1, 10)


@given(st.floats(3, 1e12), st.floats(1e-12, 1), st.integers(1, 60), sizes, st.floats(0, 10), sizes, sizes)
def test_the_radius_is_the_theorems(n, delta, dim, noise_std, theta_bound, feature_bound, ridge):
    ours = sb.confidence_radius(n, delta, dim, noise_std, theta_bound, feature_bound, ridge)
    assert ours == pytest.approx(
        naive.confidence_radius(n, delta, dim, noise_std, theta_bound, feature_bound, ridge)
    )


@pytest.mark.parametrize("noise_std", [0.5, 1.0, 2.0])
def test_the_radius_tends_to_twice_the_variance_times_log_n(noise_std):
    """c_{n,1/n} / (2 σ² log n) -> 1, so slowly (d log log n) that n = e^(10^k) is needed to see it."""
    ratios = [
        squared_radius(10.0**k, 10.0**k, 3, noise_std, 1.0, 1.0, 1.0) / (2 * noise_std**2 * 10.0**k)
        for k in range(1, 14)
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert 1 < ratios[-1] < 1 + 1e-4


def test_bad_radius_arguments_are_named():
    for bad in (
        {"n": 2},
        {"delta": 0},
        {"delta": 1.5},
        {"dim": 0},
        {"noise_std": 0},
        {"ridge": 0},
        {"feature_bound": 0},
    ):
        with pytest.raises(ValueError, match=f"^{next(iter(bad))} (must be|is)"):
            sb.confidence_radius(**{"n": 100, "delta": 0.1, "dim": 2, **bad})


def test_an_empty_intersection_keeps_the_previous_projection():
    view = sb.make_view(np.eye(2)[None], theta_bound=1.0)
    agent = sb.Solid.theory(max_multiplier=10.0).start(view, make_stream(0, 0, POLICY))
    theory, regression, params = agent.state.theory, agent.state.regression, agent.params
    regression.theta[:] = [2.0, 0.0]
    solid_theory.project(theory, regression, view, params, 5)
    assert theory.theta == pytest.approx([1.0, 0.0])
    assert theory.means == pytest.approx(np.array([[1.0, 0.0]]))
    regression.theta[:] = [0.0, 1e6]  # farther from the ball than any confidence ellipsoid reaches
    solid_theory.project(theory, regression, view, params, 5)
    assert theory.theta == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("name", ["toy", *range(5)])
def test_the_theorems_form_plays_what_its_reference_plays(name):
    problem = sb.problems.toy() if name == "toy" else sb.problems.random(n_arms=5, dim=5, seed=name)
    # Scaled-down confidence, so that both exploring and exploiting, projections and their absence are seen.
    for policy in (
        sb.Solid.theory(least_gap=0.1, least_context_prob=0.1),
        replace(
            sb.Solid.paper_toy(),
            bounded=True, confidence="theorem", threshold_scale=0.02, optimism_scale=0.01, constraint_bonus=0.01,
            decay_steps=True, reset_at_phase=True, ridge=0.5, test_contexts="last", initial_multiplier=10,
        ),
    ):  # fmt: skip
        view, steps = problem.view(250), 250
        agent = policy.start(view, make_stream(1, 0, POLICY))
        reference = naive.start(policy, view, seed=1, run=0)
        rng = np.random.default_rng(0)
        projected = False
        for step in range(steps):
            context = int(rng.integers(problem.n_contexts))
            arm, explored = reference.act(context)
            assert _act(agent, context) == (arm, explored), f"step {step}"
            reward = problem.means[context, arm] + 2 * problem.noise_std * rng.normal()
            reference.update(context, arm, reward)
            _update(agent, context, arm, reward)
            assert agent.state.theory.theta == pytest.approx(reference.theta, abs=1e-7)
            projected |= np.linalg.norm(agent.state.regression.theta) > view.theta_bound
        assert np.linalg.norm(agent.state.theory.theta) <= view.theta_bound * (1 + 1e-9)
    assert projected


@pytest.mark.parametrize("name", ["toy", *range(5)])
def test_the_theorems_form_is_finite_to_the_end(name):
    problem = sb.problems.toy() if name == "toy" else sb.problems.random(seed=name)
    trace = play(
        problem,
        sb.Solid.theory(least_gap=0.05, least_context_prob=0.1),
        3000,
        seed=0,
        run=0,
        steps=checkpoints(3000),
    )
    assert np.isfinite(trace.regret).all()


def test_the_ellipsoid_holds_theta_as_often_as_it_says():
    """1,000 runs of 100 steps of the theorems' form: θ* leaves {‖θ-hat_t - θ‖²_V < c_{n,δ}} in at most a fraction δ.

    With δ = 0.1 the binomial standard error is at most 0.0095; 4 of them are allowed (false alarm below 1e-4). The
    theorem is loose, so the same events at 0.5 % of the radius are counted too: those must fail, or this tests nothing.
    """
    problem, n, delta, runs = sb.problems.toy(), 100, 0.1, 1000
    radius = sb.confidence_radius(n, delta, problem.dim, problem.noise_std, problem.B, problem.L, ridge=1.0)
    policy = sb.Solid.theory(least_gap=0.1, least_context_prob=0.5)
    left = left_small = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        agent = policy.start(problem.view(n), make_stream(1, run, POLICY))
        regression = agent.state.regression
        farthest = 0.0
        for _ in range(n):
            context = int(rng.integers(2))
            arm, _ = _act(agent, context)
            _update(agent, context, arm, problem.means[context, arm] + problem.noise_std * rng.normal())
            error = regression.theta - problem.theta
            farthest = max(farthest, error @ regression.gram @ error)
        left += farthest >= radius
        left_small += farthest >= 0.005 * radius
    assert left / runs <= delta + 4 * math.sqrt(delta * (1 - delta) / runs)
    assert left_small / runs > delta


@pytest.mark.parametrize("first_context_prob", [0.5, 0.99, 1 - 1e-6])
def test_the_computed_multiplier_bound_is_one(first_context_prob):
    """λ_max >= 2 B L z_min, the assumption of the regret theorem, however rare a context is."""
    problem = sb.problems.toy(first_context_prob=first_context_prob)
    least = min(first_context_prob, 1 - first_context_prob)
    params = sb.Solid.theory(least_gap=0.1, least_context_prob=least).compiled_params(problem.view())
    assert params.max_multiplier >= 2 * problem.B * problem.L * sb.pure_exploration(problem).z_min
    with pytest.raises(ValueError, match="least_context_prob is None"):
        sb.Solid.theory(least_gap=0.1).start(problem.view(), make_stream(0, 0, POLICY))


def primal_dual(problem, z, steps, size):
    """SOLID's own updates on known data: θ*, ρ, no bonus, steps c/√T. Averages of ω and λ over the T iterates.

    The compiled step reads means, counts and norms from the state, so the truth is written there. Steps in units of the
    problem: a gradient of ω is of the size of a mean times a context's probability, one of λ of the size 1/z, and λ
    itself of the size `size`.
    """
    scale = 1 / math.sqrt(steps)
    policy_step = 4.0 * problem.n_contexts / np.abs(problem.means).max()
    policy = replace(
        sb.Solid.paper_toy(),
        gradient_scale="none",
        max_multiplier=1e6,
        policy_step=policy_step,
        multiplier_step=size * z,
    )
    agent = policy.start(problem.view(steps), make_stream(0, 0, POLICY))
    agent.state.regression.means[:] = problem.means
    agent.state.regression.sq_norms[:] = 0  # no bonus
    agent.state.context_counts[:] = np.round(problem.context_probs * 1_000_000)
    agent.state.step[()] = 1_000_000
    omega, multiplier = np.zeros_like(agent.state.omega), 0.0
    for _ in range(steps):
        omega += agent.state.omega / steps
        multiplier += agent.state.multiplier.item() / steps
        primal_dual_step(agent, 0.0, z, scale)
    return omega, multiplier


def saddle_gap(problem, z, omega, multiplier, best, at):
    """max_ω h(ω, λ-bar) - min_λ h(ω-bar, λ) at the solution's λ* and ω*: 0 at the saddle point only.

    h(ω, λ) = Σ ρ ω μ + λ (inf Σ ρ ω d - 1/z): evaluated as h(ω*, λ-bar) - h(ω-bar, λ*).
    """

    def h(policy, weight):
        f = (problem.context_probs[:, None] * policy * problem.means).sum()
        W = np.einsum("x,xa,xai,xaj->ij", problem.context_probs, policy, problem.features, problem.features)
        gaps = problem.gaps
        optimal = problem.features[np.arange(problem.n_contexts), problem.optimal_arms]
        d = optimal[:, None, :] - problem.features
        norms = np.einsum("xai,ij,xaj->xa", d, np.linalg.pinv(W, hermitian=True), d)
        sub = gaps > 0
        return f + weight * ((gaps[sub] ** 2 / norms[sub]).min() / (2 * problem.noise_std**2) - 1 / z)

    return h(best, multiplier) - h(omega, at)


@pytest.mark.parametrize("name", ["toy", 2, 3])
def test_with_fixed_data_the_iterates_converge_to_the_lower_bounds_solution(name):
    problem = sb.problems.toy(noise_std=1) if name == "toy" else sb.problems.random(3, 4, 5, seed=name)
    pure = sb.pure_exploration(problem)
    z = 4 * pure.z_min
    target = sb.lower_bound_at(problem, z, tol=1e-7)
    lengths = [10**3, 10**4, 10**5]
    gaps, distances, multipliers = [], [], []
    for steps in lengths:
        omega, multiplier = primal_dual(problem, z, steps, target.multiplier)
        gaps.append(saddle_gap(problem, z, omega, multiplier, target.policy, target.multiplier))
        tv = 0.5 * np.abs(omega - target.policy).sum(axis=1)
        distances.append(float(problem.context_probs @ tv))
        multipliers.append(abs(multiplier - target.multiplier) / target.multiplier)
    # The corollary of the appendix: the gap is at most a constant over √T. Tenfold T twice: a factor of 10 in all.
    rates = [gap * math.sqrt(steps) for gap, steps in zip(gaps, lengths, strict=True)]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert max(rates) < 2 * min(rates)
    assert distances[2] < distances[0] / 5
    assert distances[2] < 0.02
    assert multipliers[2] < min(0.2, multipliers[0])
