"""Whoever names no policy gets the default one, the same everywhere."""

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.cli.options import DATA_POLICIES, DEFAULT_POLICIES
from solid_bandits.policies.catalogue import CATALOGUE
from solid_bandits.policies.default import DEFAULT, default_policy

ARMS = np.array([[1.0, 0.2], [0.3, -1.0], [-0.5, 0.9]])


def test_the_name_and_the_policy_are_one():
    assert CATALOGUE[DEFAULT].make("toy", 3) == default_policy()
    assert DEFAULT in DEFAULT_POLICIES
    assert DEFAULT in DATA_POLICIES
    assert {*DEFAULT_POLICIES, *DATA_POLICIES} <= set(CATALOGUE)


def rewarded(agent, steps=30):
    """Arms of an agent that learns a reward of its arm's first feature."""
    chosen = []
    for _ in range(steps):
        decision = agent.decide(ARMS)
        agent.learn(decision, decision.features[0])
        chosen.append(decision.arm)
    return chosen


def test_an_agent_without_a_policy_has_the_default_one():
    agent = sb.Agent(dim=2, seed=3)
    assert agent.policy == default_policy()
    assert rewarded(agent) == rewarded(sb.Agent(default_policy(), dim=2, seed=3))


def test_an_agent_without_a_policy_takes_the_other_arguments():
    assert min(sb.Agent(dim=2, floor=0.3).decide(ARMS).probabilities) > 0.09
    assert sb.Agent(contexts=[ARMS]).decide(context=0).context == 0
    assert sb.Agent(dim=2, half_life=10).policy == sb.RandUCB(half_life=10)


def test_an_agent_without_a_policy_is_saved_and_loaded(tmp_path):
    agent = sb.Agent(dim=2, seed=3)
    rewarded(agent)
    agent.save(tmp_path / "agent.json")
    assert rewarded(sb.Agent.load(tmp_path / "agent.json")) == rewarded(agent)


def test_a_bandit_without_a_policy_has_the_default_one():
    bandit = sb.Bandit(dim=2, seed=3)
    assert bandit.agent.policy == default_policy()
    bandit.decide(ARMS, event_id="a")
    bandit.learn("a", 1.0)
    other = sb.Bandit.from_log(bandit.log())
    assert other.agent.policy == default_policy()
    np.testing.assert_array_equal(other.agent.theta, bandit.agent.theta)


@pytest.mark.parametrize("make", [lambda: sb.Agent(2), lambda: sb.Bandit("lints", dim=2)])
def test_what_is_no_policy_is_refused(make):
    with pytest.raises(ValueError, match=r"^policy must be"):
        make()
