"""RandUCB behind SOLID's exploitation test: the control of docs/randucb.md."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import solid_bandits as sb
from solid_bandits._compile import jit
from solid_bandits.estimation.arms import ArmsWork, best_available
from solid_bandits.estimation.estimator import observe, write_theta
from solid_bandits.linalg.vectors import dot
from solid_bandits.policies.contract import register
from solid_bandits.policies.identification import alternative_distance
from solid_bandits.policies.linucb import upper_arm
from solid_bandits.policies.randucb import RandUCBParams, RandUCBState, set_scale, set_scale_by
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
    set_scale_by(agent, arms, available)
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
    if agent.state.estimator.weights[0] == 0.0:
        set_scale(agent, dot(features, features))
    observe(agent.state.estimator, features, reward, agent.work.vector, agent.work.gains)


register(TestedAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class Tested(sb.RandUCB):
    """RandUCB with SOLID's exploitation test in front of it, the draw of the width being its threshold."""

    def start(self, setting, stream):
        """A new agent."""
        return TestedAgent(*super().start(setting, stream))
