"""RandUCB: the arm with the largest upper confidence bound, with a width drawn anew for each decision."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_allocating, jit_apart
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.randomness import uniform
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.regression import EVIDENCE, degrees_of_freedom, noise_deviation, observe_offer
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.linucb import TIE, upper_arm
from solid_bandits.policies.regression_policy import DrawingState, RegressionPolicy
from solid_bandits.policies.thrift import Thrift, cheapest, share_out

MOST_GROWTH = 200.0
"""Largest logarithm of a Lomax draw over its degrees of freedom: temperatures of many thousands would overflow."""


class RandUCBParams(NamedTuple):
    """The chosen parameters in compiled form."""

    temperature: float
    growth: float
    thrift: Thrift | None
    """Parameters of cheaper exploration; None if exploring rounds pull the leading arm."""


class RandUCBAgent(NamedTuple):
    """Compiled form of RandUCB."""

    params: RandUCBParams
    setting: Setting
    state: DrawingState


class Width(NamedTuple):
    """Distribution of the width of one decision."""

    deviation: float
    """σ, or its estimate."""
    degrees: float
    """Degrees of freedom if σ is estimated; 0 if it is told."""
    least: float
    """κ log t, the part of W² / σ² that is not drawn."""
    temperature: float


@jit
def relative_growth(x: float) -> float:
    """Return (e^x - 1) / x."""
    if x < 1e-3:  # four terms give all digits, and a call would take as long as the rest of the draw
        return 1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0))
    return math.expm1(x) / x


@jit
def draw_width(width: Width, rng: Words) -> float:
    """Return σ √(κ log t + E), E exponential with mean 2τ; if σ is estimated, E is Lomax: k (u^(-2τ/k) - 1)."""
    drawn = -2.0 * width.temperature * math.log(1.0 - uniform(rng))
    if width.degrees > 0.0:
        x = min(drawn / width.degrees, MOST_GROWTH)
        drawn = width.degrees * x * relative_growth(x)
    return width.deviation * math.sqrt(width.least + drawn)


@jit
def exceeds(width: Width, limit: float) -> float:
    """Return P(width > `limit`), for a temperature > 0."""
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
def is_steeper(norm: float, other: float) -> bool:
    """Return whether a line is steeper by more than rounding; copies of an arm count as one line, the first one's."""
    return norm > (1.0 + TIE) * other


@jit
def is_crossed_first(
    mean: float, norm: float, here: float, other_mean: float, other_norm: float, crossing: float
) -> bool:
    """Return whether a line is crossed before the earlier found `crossing`, which is infinite if there is none."""
    if crossing < np.inf and not is_steeper(norm, other_norm) and not is_steeper(other_norm, norm):
        return mean > other_mean + TIE * abs(mean)  # of parallel lines the higher, of copies the first
    return here < crossing or (here == crossing and is_steeper(norm, other_norm))


@jit
def takes_over_at(means: Floats, norms: Floats, top: int, arm: int) -> float:
    """Return the width from which the steeper line of `arm` leads that of `top`; in a tie the first arm leads.

    Ties are those of `upper_arm`, so an arm that may be pulled has a probability, however large means are.
    """
    gap = means[top] - means[arm]
    if arm > top:
        return (gap + TIE * abs(means[arm])) / (norms[arm] * (1.0 - TIE) - norms[top])
    return (gap - TIE * abs(means[top])) / (norms[arm] - norms[top] * (1.0 - TIE))


@jit_apart
def share_envelope(width: Width, means: Floats, norms: Floats, available: Bools, out: Floats) -> None:
    """Write each arm's probability: its part of the upper envelope of the lines mean + w · norm, w being the width.

    The envelope's lines get steeper along w; each is left at its first crossing with a steeper one.
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


# `thrift` is an argument of its own, so that numba compiles only the branch that is used.
@jit
def choose(
    thrift: Thrift | None,
    regression: Any,
    arms: Floats,
    available: Bools,
    drawn: float,
    rng: Words,
) -> tuple[int, bool]:
    """Return the arm of the drawn width or, if the round explores, a cheaper one that serves its purpose."""
    arm, explored = upper_arm(regression, arms, available, drawn, None)
    if thrift is None or not explored:
        return arm, explored
    best, _ = upper_arm(regression, arms, available, 0.0, None)
    return buy(thrift.margin, regression, arms, available, best, arm, rng)


@jit
def buy(
    margin: float, regression: Any, arms: Floats, available: Bools, best: int, arm: int, rng: Words
) -> tuple[int, bool]:
    """Return the cheapest arm with its probability, and the greedy arm otherwise."""
    bought, share = cheapest(margin, regression, arms, available, best, arm)
    if bought != arm and uniform(rng) >= share:
        return best, False
    return bought, True


@jit_allocating
def choose_and_share(
    thrift: Thrift | None,
    regression: Any,
    arms: Floats,
    available: Bools,
    width: Width,
    drawn: float,
    rng: Words,
    out: Floats,
) -> tuple[int, bool]:
    """Return the arm of the drawn width, and the probability of each, which needs only the width's distribution.

    Rounding may hide which of several arms leads, differently in the choice and in the shares: a chosen arm without a
    share is replaced by the one with the largest, so that no arm of probability 0 is pulled.
    """
    kept = np.empty((2, out.shape[0]))
    arm, explored = upper_arm(regression, arms, available, drawn, kept)
    share_envelope(width, kept[0], kept[1], available, out)
    if out[arm] == 0.0:
        for other in range(out.shape[0]):
            if out[other] > out[arm]:
                arm = other
    if thrift is not None:
        best, _ = upper_arm(regression, arms, available, 0.0, None)
        share_out(thrift.margin, regression, arms, available, best, kept[0], out)
        if arm != best:
            return buy(thrift.margin, regression, arms, available, best, arm, rng)
    return arm, explored


@jit
def act(agent: RandUCBAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Return argmax_a φᵀθ-hat + width ‖φ‖_{V^-1}; the round explores if this is not the greedy arm."""
    params, regression = agent.params, agent.state.regression
    observe_offer(regression, arms, available)
    width = Width(
        noise_deviation(regression),
        degrees_of_freedom(regression),
        params.growth * math.log(regression.step.item()),
        params.temperature,
    )
    rng = agent.state.rng
    drawn = draw_width(width, rng)
    if out is None:
        return choose(params.thrift, regression, arms, available, drawn, rng)
    return choose_and_share(params.thrift, regression, arms, available, width, drawn, rng, out)


register(RandUCBAgent, act)


@dataclass(frozen=True)
class RandUCB(RegressionPolicy):
    """Pull argmax_a φ(a)ᵀθ-hat + W_t ‖φ(a)‖_{V^-1}, with the width W_t = σ √(κ log t + E_t) drawn for each decision.

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
        thrift: from 0 to 1. Instead of the arm c that leads the greedy arm b, an exploring round pulls the arm that
            tells
            the two apart at the least estimated cost, if that is below `thrift` times the cost of c, and only so often
            that as much is learnt (docs/bought.md). 0 never does.

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

    facts = Facts(
        name="randucb",
        label="RandUCB",
        line="the largest upper confidence bound, its width drawn anew for each decision; scale-free",
        optimality="none proved with these parameters",
        exploration="optimism of random width",
        reference="Vaswani et al. 2020; parameters of this project",
        cost=(0.15, 0.001, 0.0001),
    )

    temperature: float = parameter(0.35, least=0)
    growth: float = parameter(0.4, least=0)
    ridge: float | str = parameter(EVIDENCE, above=0, word=EVIDENCE)
    thrift: float = parameter(0.0, least=0, most=1)

    def start(self, setting: Setting, rng: Words) -> RandUCBAgent:
        """Return a new agent that draws its widths from `rng`."""
        thrift = Thrift(float(self.thrift)) if self.thrift > 0 else None
        params = RandUCBParams(float(self.temperature), float(self.growth), thrift)
        regression = self.make_regression(setting, norms=True, relative=True)
        return RandUCBAgent(params, setting, DrawingState(regression, rng))
