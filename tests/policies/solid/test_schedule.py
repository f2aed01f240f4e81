import math

import numpy as np
import pytest

import drive
import solid_bandits as sb
from solid_bandits.policies.solid.schedule import ROUNDS, SCHEDULES, make_phases

LENGTHS = {
    "exp-exp": lambda z0, k: z0 * math.exp(k) * math.exp(2 * k),
    "lin-exp": lambda z0, k: z0 * (1 + k) * math.exp(k),
    "lin-pol": lambda z0, k: z0 * (1 + k) * (1 + k) ** 2,
    "lin-lin": lambda z0, k: z0 * (1 + k) * (1 + k),
}


@pytest.mark.parametrize("schedule", LENGTHS)
def test_phases_last_as_many_exploring_rounds_as_the_schedule_says(schedule):
    """T_k: phase k ends after ceil(p_0) + ... + ceil(p_k) exploring rounds, p_k the paper's four schedules."""
    problem = sb.problems.random(seed=1)
    agent = drive.begin(sb.Solid(z0=2.5, schedule=schedule), problem, 3000)
    rng = np.random.default_rng(0)
    ends, phase = [], 0
    while len(ends) < 3:
        context = int(rng.integers(problem.n_contexts))
        arm, _ = drive.act(agent, problem, context)
        drive.update(agent, problem, context, arm, rng.normal())
        if agent.state.phase.item() > phase:
            phase = agent.state.phase.item()
            ends.append(agent.state.explored.item())
    lengths = [math.ceil(LENGTHS[schedule](2.5, k)) for k in range(3)]
    assert ends == np.cumsum(lengths).tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("horizon", [0, 1, 1000])
def test_there_are_phases_enough_for_a_horizon_of_exploring_rounds(schedule, horizon):
    phases = make_phases(schedule, 0.3, False, horizon)
    assert np.ceil(phases.length).sum() >= (horizon or ROUNDS)
    assert phases.length == pytest.approx([LENGTHS[schedule](0.3, k) for k in range(len(phases.length))])
    assert (phases.step_scale == 1).all()
    growth = np.exp if schedule == "exp-exp" else lambda k: 1 + k
    assert phases.normalisation == pytest.approx(0.3 * growth(np.arange(len(phases.length))))


def test_steps_of_the_theorems_fall_with_the_root_of_the_length():
    phases = make_phases("exp-exp", 2.0, True, 10_000)
    assert phases.step_scale == pytest.approx(1 / np.sqrt(phases.length))
    # Phases shorter than one round are one round long.
    assert (make_phases("lin-lin", 1e-3, True, 10).step_scale[:5] == 1).all()


def test_the_last_phase_goes_on_for_ever():
    """More exploring rounds than the horizon that was given: the run goes on in the last phase."""
    problem = sb.problems.random(seed=1)
    agent = drive.begin(sb.Solid(schedule="lin-lin", threshold_scale=1e6), problem, horizon=5)
    last = len(agent.params.phases.length) - 1
    for _ in drive.decisions(agent, problem, 200):
        pass
    assert agent.state.explored.item() == 200
    assert agent.state.phase.item() == last
