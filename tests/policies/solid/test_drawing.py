"""Arms from ω_t: by draws, or by tracking."""

import numpy as np
import pytest

import drive
import solid_bandits as sb
from solid_bandits.policies.solid.drawing import draw, draw_probabilities


@pytest.mark.parametrize("drawing", ["direct", "cumulative"])
def test_tracking_keeps_pulls_within_reach_of_their_targets(drawing):
    """With ω fixed, pulls are at most K - 1 behind n ω and one ahead of it, at every n."""
    problem = sb.problems.random(seed=0)
    agent = drive.begin(sb.Solid(drawing=drawing), problem)
    state, rng = agent.state, np.random.default_rng(0)
    state.omega[1] = np.sort(rng.dirichlet(np.ones(8)))
    for n in range(1, 500):
        chances = np.full(8, np.nan)
        draw_probabilities(agent.params.drawing, state, 1, chances)
        arm = draw(agent.params.drawing, state, 1)
        if n == 1:  # this round's ω counts
            assert arm == state.omega[1].argmax() > 0
        assert chances[arm] == chances.sum() == 1
        behind = n * state.omega[1] - state.pulls[1]
        assert behind.min() >= -1 - 1e-9
        assert behind.max() <= 7 + 1e-9
    assert state.pulls[1].sum() == 499
    assert state.pulls[[0, 2, 3]].sum() == 0


def test_cumulative_tracking_follows_the_sum_and_direct_tracking_the_last():
    """ω changes sides after 100 rounds: the one splits its pulls, the other makes up for all of them."""
    problem = sb.problems.toy()
    shares = {}
    for drawing in ("direct", "cumulative"):
        agent = drive.begin(sb.Solid(drawing=drawing), problem)
        for k in range(200):
            agent.state.omega[0] = [0.9, 0.05, 0.05] if k < 100 else [0.05, 0.9, 0.05]
            draw(agent.params.drawing, agent.state, 0)
        shares[drawing] = agent.state.pulls[0] / 200
    assert shares["cumulative"] == pytest.approx([0.475, 0.475, 0.05], abs=0.02)
    assert shares["direct"][1] > shares["cumulative"][1]


def test_draws_have_the_frequencies_of_omega():
    """20,000 draws, within 4.5 standard errors; false alarms below 1e-4 in all, were the seed not fixed."""
    agent = drive.begin(sb.Solid(), sb.problems.toy())
    omega = np.array([0.2, 0.7, 0.1])
    agent.state.omega[1] = omega
    chances = np.zeros(3)
    draw_probabilities(agent.params.drawing, agent.state, 1, chances)
    assert (chances == omega).all()
    counts = np.bincount([draw(agent.params.drawing, agent.state, 1) for _ in range(20_000)], minlength=3)
    assert (np.abs(counts / 20_000 - omega) < 4.5 * np.sqrt(omega * (1 - omega) / 20_000)).all()
