"""The simulation's loop: the same functions as one decision at a time, and an environment that no policy can move."""

import numpy as np
import pytest

import drive
import naive
import solid_bandits as sb
from solid_bandits.core.loop import checkpoints, play, play_recorded
from variants import CANONICAL, fitting

every_policy = pytest.mark.parametrize("policy", CANONICAL.values(), ids=list(CANONICAL))


@every_policy
def test_one_decision_at_a_time_is_the_loop(policy):
    """Driven by the reference's contexts and rewards, single decisions give the loop's regret, step by step."""
    problem, horizon = fitting(policy, 2), 300
    trace = play(problem, policy, horizon, seed=3, run=4, steps=np.arange(1, horizon + 1))
    agent = drive.begin(policy, problem, horizon, seed=3, run=4)
    regret = explored = 0
    for step, (context, noise) in zip(range(horizon), naive.environment(problem, 3, 4), strict=False):
        arm, explores = drive.act(agent, problem, context)
        drive.update(agent, problem, context, arm, problem.means[context, arm] + noise)
        regret += problem.gaps[context, arm]
        explored += explores
        assert trace.regret[step] == pytest.approx(regret)
        assert trace.explored[step] == explored


@every_policy
def test_being_watched_changes_nothing(policy):
    """Stopped at every checkpoint to show itself, a policy plays what it plays undisturbed."""
    problem, horizon = fitting(policy, 5), 300
    steps = checkpoints(horizon, 40)
    alone = play(problem, policy, horizon, seed=1, run=2, steps=steps)
    watched, rows = play_recorded(problem, policy, horizon, seed=1, run=2, steps=steps)
    assert (watched.regret == alone.regret).all()
    assert (watched.explored == alone.explored).all()
    if isinstance(policy, sb.Solid):
        assert [row["step"] for row in rows] == steps.tolist()
        assert [row["explored"] for row in rows] == alone.explored.tolist()
        assert {row["run"] for row in rows} == {2}
    else:
        assert rows == []


@pytest.mark.parametrize("policy", [sb.Solid(), sb.LinUCB(), sb.rivals.OAM()], ids=repr)
def test_pulls_are_counted_and_change_nothing(policy):
    problem, horizon = sb.problems.random(seed=5), 400
    steps = checkpoints(horizon, 40)
    alone = play(problem, policy, horizon, seed=1, run=2, steps=steps)
    counted, rows = play_recorded(
        problem, policy, horizon, seed=1, run=2, steps=steps, diagnostics=False, pulls=True
    )
    assert (counted.regret == alone.regret).all()
    assert alone.pulls.size == 0
    assert [row["step"] for row in rows] == steps.tolist()
    pulls = np.array([row["pulls"] for row in rows])
    assert (pulls.sum(axis=(1, 2)) == steps).all()
    # Regret is what the pulls cost, and contexts come as they come.
    assert (pulls * problem.gaps).sum(axis=(1, 2)) == pytest.approx(alone.regret)
    contexts = [context for context, _ in zip_steps(problem, horizon)]
    assert (pulls[-1].sum(axis=1) == np.bincount(contexts, minlength=problem.n_contexts)).all()


def zip_steps(problem, horizon):
    for _, step in zip(range(horizon), naive.environment(problem, 1, 2), strict=False):
        yield step


def test_what_solid_shows_is_what_it_is():
    """The statistic over all contexts by hand, and ω a distribution per context."""
    problem, horizon = sb.problems.random(seed=5), 200
    _, rows = play_recorded(problem, sb.Solid(bonus="none"), horizon, 0, 0, np.array([20, horizon]))
    agents = [step[-1] for step in naive.steps(problem, sb.Solid(bonus="none"), horizon, 0, 0)]
    reference = agents[-1]
    last = rows[-1]
    every = list(range(problem.n_contexts))
    assert last["statistic"] == pytest.approx(reference.closest(reference.estimator.V, every)[0], rel=1e-6)
    assert last["threshold"] == pytest.approx(reference.beta(horizon + 1))
    assert last["multiplier"] == pytest.approx(reference.multiplier, rel=1e-6)
    assert last["normalisation"] == pytest.approx(reference.schedule()[0])
    assert (last["phase"], last["explored"]) == (reference.phase, reference.S)
    assert last["omega"] == pytest.approx(reference.omega.ravel(), abs=1e-7)


def test_contexts_and_noise_depend_on_seed_and_run_alone():
    """A policy with one arm to choose from earns what the environment gives, whatever it draws itself."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3, 2, 2))
    problem = sb.Problem(features, [1.0, -1.0], [0.2, 0.3, 0.5])
    regrets = {}
    for run in (0, 1):
        contexts = [c for _, (c, _) in zip(range(400), naive.environment(problem, 9, run), strict=False)]
        counts = np.bincount(contexts, minlength=3)
        trace = play(problem, sb.EpsilonGreedy(1.0), 400, 9, run, np.arange(1, 401))
        regrets[run] = trace.regret[-1]
        # Every second pull, in the mean, is the worse arm of its context: 4.5 standard errors.
        gaps = problem.gaps.max(axis=1)
        expected, variance = (counts * gaps).sum() / 2, (counts * gaps**2).sum() / 4
        assert abs(trace.regret[-1] - expected) < 4.5 * np.sqrt(variance)
    assert regrets[0] != regrets[1]


@pytest.mark.parametrize("horizon", [1, 2, 10, 1000, 10**6])
def test_checkpoints_rise_from_the_first_step_to_the_last(horizon):
    for count in (4, 5, 40, 200):
        steps = checkpoints(horizon, count)
        assert (steps[0], steps[-1]) == (1, horizon)
        assert (np.diff(steps) > 0).all()
        assert len(steps) <= count


def test_rare_contexts_and_rounding_of_their_probabilities_stay_in_range():
    """ρ sums to a little less than 1: a point beyond the last edge is the last context."""
    probs = np.full(7, 1 / 7)
    problem = sb.Problem(np.random.default_rng(0).normal(size=(7, 2, 3)), [1, 1, 1], probs)
    trace = play(problem, sb.Greedy(), 20_000, 0, 0, np.array([20_000]))
    contexts = [c for _, (c, _) in zip(range(20_000), naive.environment(problem, 0, 0), strict=False)]
    assert set(contexts) == set(range(7))
    assert np.isfinite(trace.regret).all()
