"""The theorems' form of SOLID: its convex programs and its guarantees."""

import math

import numpy as np
import pytest

import drive
import naive
import solid_bandits as sb
from solid_bandits.core.loop import checkpoints, play
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting, make_table
from solid_bandits.estimation.estimator import write_gram, write_theta
from solid_bandits.policies.contract import start
from solid_bandits.policies.solid.policy import theory_multiplier
from solid_bandits.policies.solid.projection import project


def test_an_empty_intersection_keeps_the_previous_projection():
    agent = start(
        sb.Solid.theory(max_multiplier=10.0),
        make_setting(2, 1.0, theta_bound=1.0),
        make_table(np.eye(2)[None]),
        make_rng(0, 0, POLICY),
    )
    state = agent.state
    state.step[()] = 5
    state.regression.estimator.targets[:] = [2.0, 0.0]
    project(state.projected, agent)
    assert state.projected.theta == pytest.approx([1.0, 0.0])
    assert state.projected.means == pytest.approx(np.array([[1.0, 0.0]]))
    state.regression.estimator.targets[:] = [
        0.0,
        1e6,
    ]  # farther from the ball than any confidence ellipsoid reaches
    project(state.projected, agent)
    assert state.projected.theta == pytest.approx([1.0, 0.0])
    assert state.projected.means == pytest.approx(np.array([[1.0, 0.0]]))


# Scaled-down confidence, so that both exploring and exploiting, projections and their absence are seen.
FORMS = {
    "theorem": sb.Solid.theory(max_multiplier=5000),
    "exploiting": sb.Solid(
        form="theorem", threshold_scale=0.005, bonus="plain", reset_at_phase=True, ridge=0.5, initial_multiplier=10
    ),
    "informed": sb.Solid(
        form="theorem", threshold_scale=0.02, bonus="none", ridge=0.5, z0=0.5, test_contexts="all",
        initial_multiplier=30, drawing="cumulative", schedule="lin-pol",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["toy", *range(5)])
def test_the_theorems_form_plays_what_its_reference_plays(form, name):
    problem = sb.problems.toy() if name == "toy" else sb.problems.random(n_arms=5, dim=5, seed=name)
    policy, steps = FORMS[form], 250
    agent = drive.begin(policy, problem, steps, seed=1)
    reference = naive.start(policy, problem.setting(steps), problem.table, seed=1, run=0)
    rng, state = np.random.default_rng(0), agent.state
    projected = inside = False
    for step in range(steps):
        context = int(rng.integers(problem.n_contexts))
        arm, explored = reference.act(context)
        assert drive.act(agent, problem, context) == (arm, explored), f"step {step}"
        reward = problem.means[context, arm] + 2 * problem.noise_std * rng.normal()
        reference.update(context, arm, None, reward)
        drive.update(agent, problem, context, arm, reward)
        assert state.projected.theta == pytest.approx(reference.theta, abs=1e-7)
        outside = np.linalg.norm(theta_of(state.regression.estimator)) > problem.B
        projected, inside = projected or outside, inside or not outside
    assert np.linalg.norm(state.projected.theta) <= problem.B * (1 + 1e-9)
    assert projected
    assert inside
    assert 0 < state.explored.item() == reference.S
    if form == "exploiting":
        assert state.explored.item() < steps


def theta_of(estimator):
    theta = np.zeros(len(estimator.weights))
    write_theta(estimator, theta)
    return theta


@pytest.mark.parametrize("name", ["toy", *range(5)])
def test_the_theorems_form_is_finite_to_the_end(name):
    problem = sb.problems.toy() if name == "toy" else sb.problems.random(seed=name)
    policy = sb.Solid.theory(max_multiplier=5000)
    trace = play(problem, policy, 3000, seed=0, run=0, steps=checkpoints(3000))
    assert np.isfinite(trace.regret).all()
    assert trace.regret[-1] > 0


@pytest.mark.long
def test_the_ellipsoid_holds_theta_as_often_as_it_says():
    """1,000 runs of 100 steps of the theorems' form: θ* leaves {‖θ-hat_t - θ‖²_V < c_{n,δ}} in at most a fraction δ.

    With δ = 0.1 the binomial standard error is at most 0.0095; 4 of them are allowed (false alarm below 1e-4). The
    theorem is loose, so the same events at 0.5 % of the radius are counted too: those must fail, or this tests nothing.
    """
    problem, n, delta, runs = sb.problems.toy(), 100, 0.1, 1000
    radius = sb.bounds.confidence_radius(
        n, delta, problem.dim, problem.noise_std, problem.B, problem.L, ridge=1.0
    )
    policy = sb.Solid.theory(max_multiplier=5000)
    left = left_small = 0
    gram = np.zeros((3, 3))
    for run in range(runs):
        rng = np.random.default_rng(run)
        agent = drive.begin(policy, problem, n, seed=1, run=run)
        farthest = 0.0
        for _ in range(n):
            context = int(rng.integers(2))
            arm, _ = drive.act(agent, problem, context)
            noise = problem.noise_std * rng.normal()
            drive.update(agent, problem, context, arm, problem.means[context, arm] + noise)
            write_gram(agent.state.regression.estimator, gram)
            error = theta_of(agent.state.regression.estimator) - problem.theta
            farthest = max(farthest, error @ gram @ error)
        left += farthest >= radius
        left_small += farthest >= 0.005 * radius
    assert left / runs <= delta + 4 * math.sqrt(delta * (1 - delta) / runs)
    assert left_small / runs > delta


@pytest.mark.parametrize("first_context_prob", [0.5, 0.99, 1 - 1e-6])
def test_the_computed_multiplier_bound_is_one(first_context_prob):
    """λ_max >= 2 B L z_min, the assumption of the regret theorem, however rare a context is."""
    problem = sb.problems.toy(first_context_prob=first_context_prob)
    least = min(first_context_prob, 1 - first_context_prob)
    gap = problem.gaps[problem.gaps > 0].min()
    bound = theory_multiplier(problem.setting(), problem.table, gap, least)
    assert bound >= 2 * problem.B * problem.L * sb.bounds.pure_exploration(problem).z_min


def test_the_multiplier_bound_names_what_it_needs():
    problem = sb.problems.toy()
    setting, table = problem.setting(), problem.table
    with pytest.raises(
        ValueError, match=r"^least_context_prob must be a lower bound .* 2 contexts, got None"
    ):
        theory_multiplier(setting, table, 0.1)
    with pytest.raises(ValueError, match=r"^least_gap must be > 0"):
        theory_multiplier(setting, table, 0, 0.5)
    with pytest.raises(ValueError, match=r"^least_context_prob must be .*<= 1"):
        theory_multiplier(setting, table, 0.1, 1.5)
    with pytest.raises(ValueError, match=r"^theta_bound must be"):
        theory_multiplier(make_setting(3, 1.0), table, 0.1, 0.5)
    one = sb.problems.end_of_optimism()
    assert theory_multiplier(one.setting(), one.table, 0.1) == theory_multiplier(
        one.setting(), one.table, 0.1, 1.0
    )


def test_the_form_of_the_theorems_is_a_bundle():
    """Projection, bounded alternatives, all constants, raw gradients, decaying steps: all together or not at all."""
    problem = sb.problems.toy()
    for form in ("experiments", "theorem"):
        agent = drive.begin(sb.Solid(form=form, ridge=None), problem, 1000)
        theorem = form == "theorem"
        assert (agent.state.projected is not None) == theorem
        assert agent.params.normalise_gradient == (not theorem)
        assert (type(agent.params.test).__name__ == "BoundedRatio") == theorem
        assert (type(agent.params.confidence).__name__ == "OfTheorem") == theorem
        assert (agent.params.phases.step_scale[1] < 1) == theorem
        assert (agent.state.regression.estimator.weights == max(problem.L**2, 1)).all()
