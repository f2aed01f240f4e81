"""RandUCB behind SOLID's exploitation test: the control of docs/randucb.md."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import solid_bandits as sb
from solid_bandits._compile import jit
from solid_bandits.estimation.arms import ArmsWork, best_available
from solid_bandits.estimation.estimator import write_theta
from solid_bandits.estimation.ridges import meet, take_in
from solid_bandits.policies.contract import register
from solid_bandits.policies.identification import alternative_distance
from solid_bandits.policies.linucb import upper_arm
from solid_bandits.policies.randucb import RandUCBParams, RandUCBState
from solid_bandits.setting import Setting
from solid_bandits.stream import uniform


class TestedAgent(NamedTuple):
    """RandUCB behind the test."""

    params: RandUCBParams
    setting: Setting
    state: RandUCBState
    work: ArmsWork


@jit
def act(agent, arms, available):
    """The greedy arm where no model with another best arm is within σ² E, else RandUCB's arm with the same draw E."""
    params, state, noise_std = agent.params, agent.state, agent.setting.noise_std
    meet(params.ridge, state.estimator, state.evidence, arms, available, agent.work.vector)
    state.step[()] += 1
    drawn = -2.0 * params.temperature * math.log(1.0 - uniform(state.stream))
    theta = agent.work.vector
    write_theta(state.estimator, theta)
    limit = noise_std**2 * drawn
    if alternative_distance(state.estimator, arms, theta, agent.work, limit) > limit:
        return best_available(arms, available, theta), False
    width = noise_std * math.sqrt(params.growth * math.log(state.step.item()) + drawn)
    return upper_arm(state.estimator, arms, available, width, agent.work)


@jit
def update(agent, features, reward):
    """Take in a reward."""
    state, work, noise_std = agent.state, agent.work, agent.setting.noise_std
    take_in(
        agent.params.ridge,
        state.estimator,
        state.evidence,
        noise_std,
        features,
        reward,
        work.vector,
        work.gains,
    )


register(TestedAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class Tested(sb.RandUCB):
    """RandUCB with SOLID's exploitation test in front of it, the draw of the width being its threshold."""

    temperature: float = 0.5
    growth: float = 0.2
    ridge: float = 0.2

    def start(self, setting, stream):
        """A new agent."""
        return TestedAgent(*super().start(setting, stream))
