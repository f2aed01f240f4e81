"""RandUCB behind SOLID's exploitation test: the control of docs/randucb.md."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import solid_bandits as sb
from solid_bandits._internal.compiling import jit
from solid_bandits.core.randomness import uniform
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.regression import best_estimated, observe_offer
from solid_bandits.policies.contract import register
from solid_bandits.policies.identification import alternative_distance
from solid_bandits.policies.linucb import upper_arm
from solid_bandits.policies.randucb import RandUCBParams
from solid_bandits.policies.regression_policy import DrawingState


class TestedAgent(NamedTuple):
    """RandUCB behind the test."""

    params: RandUCBParams
    setting: Setting
    state: DrawingState


@jit
def act(agent, arms, available, out):
    """The greedy arm where no model with another best arm is within σ² E, else RandUCB's arm with the same draw E."""
    params, regression, noise_std = agent.params, agent.state.regression, agent.setting.noise_std
    observe_offer(regression, arms, available)
    drawn = -2.0 * params.temperature * math.log(1.0 - uniform(agent.state.rng))
    best = best_estimated(regression, arms, available)
    limit = noise_std**2 * drawn
    if alternative_distance(regression, arms, limit) > limit:
        return best, False
    width = noise_std * math.sqrt(params.growth * math.log(regression.step.item()) + drawn)
    return upper_arm(regression, arms, available, width, None)


register(TestedAgent, act)


@dataclass(frozen=True)
class Tested(sb.RandUCB):
    """RandUCB with SOLID's exploitation test in front of it, the draw of the width being its threshold."""

    temperature: float = 0.5
    growth: float = 0.2
    ridge: float = 0.2

    def start(self, setting, rng):
        """A new agent."""
        return TestedAgent(*super().start(setting, rng))
