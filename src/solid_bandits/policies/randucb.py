"""RandUCB: the arm with the largest upper confidence bound of a width that is drawn anew for each decision."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit, jit_allocating, jit_apart
from solid_bandits._types import Bools, Floats, Ints, Words
from solid_bandits.estimation.arms import ArmsWork, estimate_arms, make_arms_work
from solid_bandits.estimation.estimator import Estimator, make_estimator, observe, set_ridge
from solid_bandits.linalg.vectors import dot
from solid_bandits.policies.contract import DecisionPolicy, register
from solid_bandits.policies.linucb import TIE, upper_arm
from solid_bandits.setting import Setting
from solid_bandits.stream import uniform

LEAST_SCALE = 1e-60
"""Of L²: below it a ridge in proportion would let later features overflow."""


class RandUCBParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    temperature: float
    growth: float
    ridge: float


class RandUCBState(NamedTuple):
    """All that RandUCB carries."""

    estimator: Estimator
    step: Ints
    """t: decisions made, shape ()."""
    stream: Words


class RandUCBAgent(NamedTuple):
    """RandUCB at work."""

    params: RandUCBParams
    setting: Setting
    state: RandUCBState
    work: ArmsWork


@jit
def set_scale(agent: RandUCBAgent, largest: float) -> None:
    """ν = ridge L², L² = `largest`, of at least `LEAST_SCALE`; any ridge does where it is 0."""
    scale = max(largest, LEAST_SCALE) if largest > 0.0 else 1.0
    set_ridge(agent.state.estimator, agent.params.ridge * scale)


@jit
def set_scale_by(agent: RandUCBAgent, arms: Floats, available: Bools) -> None:
    """Set the scale, where it is not set yet, by the largest norm among the arms that may be pulled."""
    if agent.state.estimator.weights[0] == 0.0:
        largest = 0.0
        for arm in range(arms.shape[0]):
            if available[arm]:
                largest = max(largest, dot(arms[arm], arms[arm]))
        set_scale(agent, largest)


@jit
def draw_width(params: RandUCBParams, noise_std: float, step: int, stream: Words) -> float:
    """σ √(κ log t + E), E exponential with mean 2τ."""
    drawn = -2.0 * params.temperature * math.log(1.0 - uniform(stream))
    return noise_std * math.sqrt(params.growth * math.log(step) + drawn)


@jit
def act(agent: RandUCBAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """argmax_a φᵀθ-hat + width ‖φ‖_{V^-1}; an exploring round is one in which this is not the greedy arm."""
    state = agent.state
    set_scale_by(agent, arms, available)
    state.step[()] += 1
    width = draw_width(agent.params, agent.setting.noise_std, state.step.item(), state.stream)
    return upper_arm(state.estimator, arms, available, width, agent.work)


@jit
def update(agent: RandUCBAgent, features: Floats, reward: float) -> None:
    """Take in a reward."""
    if agent.state.estimator.weights[0] == 0.0:
        set_scale(agent, dot(features, features))
    observe(agent.state.estimator, features, reward, agent.work.vector, agent.work.gains)


@jit
def exceeds(params: RandUCBParams, noise_std: float, step: int, width: float) -> float:
    """P(width of step t > `width`), for a temperature > 0."""
    beyond = (width / noise_std) ** 2 - params.growth * math.log(step)
    return math.exp(-beyond / (2.0 * params.temperature)) if beyond > 0.0 else 1.0


@jit
def is_steeper(norm: float, other: float) -> bool:
    """Whether a line is steeper by more than rounding; if not, copies of an arm are one line, the first one's."""
    return norm > (1.0 + TIE) * other


@jit
def is_crossed_first(
    mean: float, norm: float, here: float, other_mean: float, other_norm: float, crossing: float
) -> bool:
    """Whether a line is crossed before another one found earlier, `crossing`, infinite where there is none."""
    if crossing < np.inf and not is_steeper(norm, other_norm) and not is_steeper(other_norm, norm):
        return mean > other_mean + TIE * abs(mean)  # parallel: the higher one, and of copies the earlier one
    return here < crossing or (here == crossing and is_steeper(norm, other_norm))


@jit_apart
def share_envelope(
    params: RandUCBParams,
    noise_std: float,
    step: int,
    means: Floats,
    norms: Floats,
    available: Bools,
    out: Floats,
) -> None:
    """Write the probability of each arm: its part of the upper envelope of the lines mean + w · norm, w the width.

    Along w the envelope's lines are ever steeper; each is left at its first crossing with a steeper one.
    """
    width = noise_std * math.sqrt(params.growth * math.log(step))
    top = -1
    for arm in range(out.shape[0]):
        out[arm] = 0.0
        if available[arm]:
            bound, largest = means[arm] + width * norms[arm], means[top] + width * norms[top]
            tie = TIE * (abs(means[arm]) + width * norms[arm])
            ahead = top < 0 or bound > largest + tie
            level = bound >= largest - tie and params.temperature > 0.0
            if ahead or (level and is_steeper(norms[arm], norms[top])):
                top = arm
    mass = 1.0
    while params.temperature > 0.0:
        steeper = -1
        crossing = np.inf
        for arm in range(out.shape[0]):
            if available[arm] and is_steeper(norms[arm], norms[top]):
                here = (means[top] - means[arm]) / (norms[arm] - norms[top])
                if is_crossed_first(means[arm], norms[arm], here, means[steeper], norms[steeper], crossing):
                    steeper, crossing = arm, here
        if steeper < 0:
            break
        left = min(exceeds(params, noise_std, step, crossing), mass)
        out[top] += mass - left
        top, mass = steeper, left
    out[top] += mass


@jit_allocating
def write_probabilities(
    params: RandUCBParams,
    noise_std: float,
    step: int,
    estimator: Estimator,
    arms: Floats,
    available: Bools,
    work: ArmsWork,
    out: Floats,
) -> None:
    """Write the probability of each arm at step t, from its mean and its norm."""
    means = np.empty(out.shape[0])
    norms = np.empty(out.shape[0])
    first = 0
    while first < arms.shape[0]:
        count = estimate_arms(estimator, arms, first, work)
        for k in range(count):
            means[first + k], norms[first + k] = work.means[k], math.sqrt(work.sq_norms[k])
        first += count
    share_envelope(params, noise_std, step, means, norms, available, out)


@jit
def probabilities(agent: RandUCBAgent, arms: Floats, available: Bools, out: Floats) -> bool:
    """The distribution of the arm, exact: of the only random number, the width, it needs the distribution alone."""
    set_scale_by(agent, arms, available)
    state = agent.state
    write_probabilities(
        agent.params,
        agent.setting.noise_std,
        state.step.item() + 1,
        state.estimator,
        arms,
        available,
        agent.work,
        out,
    )
    return True


register(RandUCBAgent, act, update, probabilities)


@dataclass(frozen=True)
class RandUCB(DecisionPolicy):
    """Pull argmax_a φ(a)ᵀθ-hat + W_t ‖φ(a)‖_{V^-1}, the width W_t = σ √(κ log t + E_t) drawn anew for each decision.

    E_t is exponential with mean 2τ, so that at τ = 1 a model at squared distance D from the estimate is considered with
    probability exp(-D / 2σ²), as Thompson sampling does; but one number is drawn for all directions, so
    the policy explores far less. Nothing is proved of these parameters; docs/randucb.md has what was measured.
    The arm's probability is known exactly. A decision takes O(K d²) for K arms, a reward O(d²).

    Args:
        temperature: τ >= 0, half the mean of the drawn part of W² / σ²; 0 is LinUCB of width σ √(κ log t).
        growth: κ >= 0, the part of W² / σ² that grows with log t.
        ridge: ν over L², L the largest norm among the arms of the first decision: choices do not change when
            features are scaled. To be made smaller where rewards are many σ.

    Reference: Vaswani, Mehrabian, Durand and Kveton (2020), "Old dog learns new tricks: randomized UCB for bandit
    problems"; there the width is drawn from a discretised Gaussian.
    """

    temperature: float = 0.5
    growth: float = 0.2
    ridge: float = 0.2

    def __post_init__(self) -> None:
        _check.not_negative("temperature", self.temperature)
        _check.not_negative("growth", self.growth)
        _check.positive("ridge", self.ridge)

    def start(self, setting: Setting, stream: Words) -> RandUCBAgent:
        """A new agent that draws its widths from `stream`."""
        params = RandUCBParams(float(self.temperature), float(self.growth), float(self.ridge))
        state = RandUCBState(make_estimator(setting.dim, 0.0), np.array(0), stream)
        return RandUCBAgent(params, setting, state, make_arms_work(setting.dim))
