"""RandUCB: the arm with the largest upper confidence bound of a width that is drawn anew for each decision."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit, jit_allocating, jit_apart
from solid_bandits._types import Bools, Floats, Ints, Words
from solid_bandits.estimation.arms import ArmsWork, estimate_arms, make_arms_work
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.estimation.evidence import Evidence
from solid_bandits.estimation.noise import degrees_of_freedom, noise_deviation
from solid_bandits.estimation.ridges import EVIDENCE, check_ridge, make_ridge, meet, take_in
from solid_bandits.policies.contract import DecisionPolicy, register
from solid_bandits.policies.linucb import TIE, upper_arm
from solid_bandits.setting import Setting
from solid_bandits.stream import uniform

MOST_GROWTH = 200.0
"""Of the logarithm of a Lomax draw over its degrees of freedom: temperatures of many thousands would overflow."""


class RandUCBParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    temperature: float
    growth: float
    ridge: Any
    """Of `ridges`."""


class RandUCBState(NamedTuple):
    """All that RandUCB carries."""

    estimator: Estimator
    evidence: Evidence | None
    step: Ints
    """t: decisions made, shape ()."""
    stream: Words


class RandUCBAgent(NamedTuple):
    """RandUCB at work."""

    params: RandUCBParams
    setting: Setting
    state: RandUCBState
    work: ArmsWork


class Width(NamedTuple):
    """The distribution of the width of one decision."""

    deviation: float
    """σ, or its estimate."""
    degrees: float
    """Of freedom, where σ is estimated; 0 where it is told."""
    least: float
    """κ log t, of W² / σ²."""
    temperature: float


@jit
def relative_growth(x: float) -> float:
    """(e^x - 1) / x."""
    if x < 1e-3:  # all digits from four terms, where a call would take as long as the rest of the draw
        return 1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0))
    return math.expm1(x) / x


@jit
def draw_width(width: Width, stream: Words) -> float:
    """σ √(κ log t + E), E exponential with mean 2τ; where σ is estimated, Lomax: k (u^(-2τ/k) - 1)."""
    drawn = -2.0 * width.temperature * math.log(1.0 - uniform(stream))
    if width.degrees > 0.0:
        x = min(drawn / width.degrees, MOST_GROWTH)
        drawn = width.degrees * x * relative_growth(x)
    return width.deviation * math.sqrt(width.least + drawn)


@jit
def exceeds(width: Width, limit: float) -> float:
    """P(width > `limit`), for a temperature > 0."""
    beyond = (limit / width.deviation) ** 2 - width.least
    if beyond <= 0.0:
        return 1.0
    if width.degrees > 0.0:
        growth = math.log1p(beyond / width.degrees)
        if growth > MOST_GROWTH:
            return 0.0
        beyond = width.degrees * growth
    return math.exp(-beyond / (2.0 * width.temperature))


@jit
def act(agent: RandUCBAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """argmax_a φᵀθ-hat + width ‖φ‖_{V^-1}; an exploring round is one in which this is not the greedy arm."""
    params, state = agent.params, agent.state
    meet(params.ridge, state.estimator, state.evidence, arms, available, agent.work.vector)
    state.step[()] += 1
    noise_std, estimator = agent.setting.noise_std, state.estimator
    width = Width(
        noise_deviation(noise_std, estimator),
        degrees_of_freedom(noise_std, estimator),
        params.growth * math.log(state.step.item()),
        params.temperature,
    )
    return upper_arm(state.estimator, arms, available, draw_width(width, state.stream), agent.work)


@jit
def update(agent: RandUCBAgent, features: Floats, reward: float) -> None:
    """Take in a reward."""
    state, work = agent.state, agent.work
    take_in(
        agent.params.ridge,
        state.estimator,
        state.evidence,
        agent.setting.noise_std,
        features,
        reward,
        work.vector,
        work.gains,
    )


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


@jit
def takes_over_at(means: Floats, norms: Floats, top: int, arm: int) -> float:
    """The width from which on the steeper line of `arm` leads that of `top`; where they tie, the first arm does.

    Ties are those of `upper_arm`: an arm that may be pulled has a probability, however large means are beside σ.
    """
    gap = means[top] - means[arm]
    if arm > top:
        return (gap + TIE * abs(means[arm])) / (norms[arm] * (1.0 - TIE) - norms[top])
    return (gap - TIE * abs(means[top])) / (norms[arm] - norms[top] * (1.0 - TIE))


@jit_apart
def share_envelope(width: Width, means: Floats, norms: Floats, available: Bools, out: Floats) -> None:
    """Write the probability of each arm: its part of the upper envelope of the lines mean + w · norm, w the width.

    Along w the envelope's lines are ever steeper; each is left at its first crossing with a steeper one.
    """
    least = width.deviation * math.sqrt(width.least)
    top = -1
    for arm in range(out.shape[0]):
        out[arm] = 0.0
        if available[arm]:
            bound, largest = means[arm] + least * norms[arm], means[top] + least * norms[top]
            tie = TIE * (abs(means[arm]) + least * norms[arm])
            if top < 0 or bound > largest + tie:
                top = arm
    mass = 1.0
    while width.temperature > 0.0:
        steeper = -1
        crossing = np.inf
        for arm in range(out.shape[0]):
            if available[arm] and is_steeper(norms[arm], norms[top]):
                here = takes_over_at(means, norms, top, arm)
                if is_crossed_first(means[arm], norms[arm], here, means[steeper], norms[steeper], crossing):
                    steeper, crossing = arm, here
        if steeper < 0:
            break
        left = min(exceeds(width, crossing), mass)
        out[top] += mass - left
        top, mass = steeper, left
    out[top] += mass


@jit_allocating
def write_probabilities(
    width: Width, estimator: Estimator, arms: Floats, available: Bools, work: ArmsWork, out: Floats
) -> None:
    """Write the probability of each arm, from its mean and its norm."""
    means = np.empty(out.shape[0])
    norms = np.empty(out.shape[0])
    first = 0
    while first < arms.shape[0]:
        count = estimate_arms(estimator, arms, first, work)
        for k in range(count):
            means[first + k], norms[first + k] = work.means[k], math.sqrt(work.sq_norms[k])
        first += count
    share_envelope(width, means, norms, available, out)


@jit
def probabilities(agent: RandUCBAgent, arms: Floats, available: Bools, out: Floats) -> bool:
    """The distribution of the arm, exact: of the only random number, the width, it needs the distribution alone."""
    params, state = agent.params, agent.state
    meet(params.ridge, state.estimator, state.evidence, arms, available, agent.work.vector)
    noise_std, estimator = agent.setting.noise_std, state.estimator
    width = Width(
        noise_deviation(noise_std, estimator),
        degrees_of_freedom(noise_std, estimator),
        params.growth * math.log(state.step.item() + 1),
        params.temperature,
    )
    write_probabilities(width, state.estimator, arms, available, agent.work, out)
    return True


register(RandUCBAgent, act, update, probabilities)


@dataclass(frozen=True)
class RandUCB(DecisionPolicy):
    """Pull argmax_a φ(a)ᵀθ-hat + W_t ‖φ(a)‖_{V^-1}, the width W_t = σ √(κ log t + E_t) drawn anew for each decision.

    E_t is exponential with mean 2τ, so that at τ = 1 a model at squared distance D from the estimate is considered with
    probability exp(-D / 2σ²), as Thompson sampling does; but one number is drawn for all directions, so
    the policy explores far less. If σ is unknown, it is estimated, and E_t is Lomax, k (u^(-2τ/k) - 1), with one
    degree of freedom more than there are rewards. Nothing is proved about these parameters; docs/untold.md has the
    measurements. The arm's probability is known exactly. A decision takes O(K d²) for K arms, a reward O(d²).

    Args:
        temperature: τ >= 0, half the mean of the drawn part of W² / σ²; 0 is LinUCB of width σ √(κ log t).
        growth: κ >= 0, the part of W² / σ² that grows with log t.
        ridge: `evidence`, ν from the rewards (`estimation.evidence`); or a number, ν over L², L the largest norm among
            the arms of the first decision. With either, choices do not change when features are scaled.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.RandUCB(), dim=2, seed=0)  # neither noise nor ridge is needed
        >>> decision = agent.decide([[1.0, 0.0], [0.0, 1.0]])
        >>> agent.learn(decision, reward=1.0)
        >>> agent.probabilities([[1.0, 0.0], [0.0, 1.0]]).round(2)
        array([0.85, 0.15])

    Reference: Vaswani, Mehrabian, Durand and Kveton (2020), "Old dog learns new tricks: randomized UCB for bandit
    problems"; there the width is drawn from a discretised Gaussian.
    """

    temperature: float = 0.35
    growth: float = 0.4
    ridge: float | str = EVIDENCE

    def __post_init__(self) -> None:
        _check.not_negative("temperature", self.temperature)
        _check.not_negative("growth", self.growth)
        check_ridge(self.ridge)

    def start(self, setting: Setting, stream: Words) -> RandUCBAgent:
        """A new agent that draws its widths from `stream`."""
        ridge, estimator, evidence = make_ridge(self.ridge, setting.dim, relative=True)
        params = RandUCBParams(float(self.temperature), float(self.growth), ridge)
        state = RandUCBState(estimator, evidence, np.array(0), stream)
        return RandUCBAgent(params, setting, state, make_arms_work(setting.dim))
