"""LinGame (Degenne, Ménard, Shang and Valko 2020): sampling as a game between a learner and the closest alternative."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit_part
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.identification.contract import Rule, least_tracked, register
from solid_bandits.identification.knowledge import Knowledge, norm_of
from solid_bandits.identification.response import Response, make_response, respond


class LinGameRule(NamedTuple):
    """LinGame at work."""

    gains: Floats
    """Sums of the gains of the learner of (context, answer), shape (contexts, arms, arms)."""
    mixability: Floats
    """Its mixability gap, shape (contexts, arms)."""
    allocation: Floats
    """ω, shape (contexts, arms)."""
    gain: Floats
    """Of one step, shape (arms,)."""
    response: Response


@jit_part
def write_hedge(gains: Floats, mixability: float, allocation: Floats) -> None:
    """AdaHedge: ω ∝ exp(η Σ gains) with η = log K / mixability gap; even over the leaders while that is 0."""
    arms = gains.shape[0]
    top = gains[0]
    for arm in range(1, arms):
        top = max(top, gains[arm])
    rate = math.log(arms) / mixability if mixability > 0.0 else np.inf
    total = 0.0
    for arm in range(arms):
        behind = top - gains[arm]
        allocation[arm] = 1.0 if behind == 0.0 else math.exp(-rate * behind)
        total += allocation[arm]
    for arm in range(arms):
        allocation[arm] /= total


@jit_part
def hedge_learns(gains: Floats, mixability: float, allocation: Floats, gain: Floats) -> float:
    """Add the gains of a step; return what the mixability gap grows by (de Rooij et al. 2014)."""
    arms = gains.shape[0]
    before, after, mean = -np.inf, -np.inf, 0.0
    for arm in range(arms):
        before = max(before, gains[arm])
        after = max(after, gains[arm] + gain[arm])
        mean += allocation[arm] * gain[arm]
    mixed = after - before
    if mixability > 0.0:
        rate, top, total = math.log(arms) / mixability, -np.inf, 0.0
        for arm in range(arms):
            top = max(top, gain[arm])
        for arm in range(arms):
            total += allocation[arm] * math.exp(rate * (gain[arm] - top))
        mixed = top + math.log(total) / rate
    for arm in range(arms):
        gains[arm] += gain[arm]
    return max(mixed - mean, 0.0)


@jit_part
def choose(rule: LinGameRule, known: Knowledge, context: int) -> int:
    """One round of the game, and the arm of the context that is furthest behind its learner's allocations."""
    features, spread = known.features, known.told.noise_std
    for other in range(features.shape[0]):
        best = known.best[other]
        write_hedge(rule.gains[other, best], rule.mixability[other, best], rule.allocation[other])
    respond(rule.response, known, rule.allocation)
    wide = 2.0 * spread * spread * math.log(max(known.every.rewards.item(), 2))
    for other in range(features.shape[0]):
        best = known.best[other]
        for arm in range(features.shape[1]):
            apart = abs(dot(features[other, arm], rule.response.delta))
            optimistic = apart + math.sqrt(wide * norm_of(known, features[other, arm]))
            rule.gain[arm] = optimistic * optimistic / (2.0 * spread * spread)
        rule.mixability[other, best] += hedge_learns(
            rule.gains[other, best], rule.mixability[other, best], rule.allocation[other], rule.gain
        )
    for arm in range(features.shape[1]):
        known.tracked[context, arm] += rule.allocation[context, arm]
    return least_tracked(known, context)


register(LinGameRule, choose)


@dataclass(frozen=True)
class LinGame(Rule):
    """Play the game whose value the lower bound is: AdaHedge over arms against the closest alternative.

    In each round the learner of the answer that is best by the estimate gives ω, the closest alternative θ' to θ-hat
    under ω responds, the learner gains `(|φᵀ(θ-hat - θ')| + √c_n(φ))² / 2σ²` for each arm, optimistic by
    c_n(φ) = 2σ² log(n) ‖φ‖²_{V^-1}, and the arm is pulled that is furthest behind the sum of all ω. The paper's proof
    has a larger c_n with a bound on ‖θ‖; the log is the usual choice in experiments. With several contexts there is a
    learner for each context and best arm in it, and the response is to the allocations of all contexts, weighed by how
    often they came; the paper has one context.

    Example:
        >>> import solid_bandits as sb
        >>> from solid_bandits import identification
        >>> found = identification.identify(sb.problems.end_of_optimism(0.3), identification.LinGame(), delta=0.1)
        >>> found.arms
        [2]

    Reference: Degenne, Ménard, Shang and Valko (2020), "Gamification of pure exploration for linear bandits".
    """

    def start(self, known: Knowledge) -> LinGameRule:
        """The rule at work."""
        contexts, arms, _ = known.features.shape
        return LinGameRule(
            np.zeros((contexts, arms, arms)),
            np.zeros((contexts, arms)),
            np.zeros((contexts, arms)),
            np.zeros(arms),
            make_response(known),
        )
