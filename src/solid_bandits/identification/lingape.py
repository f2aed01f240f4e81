"""LinGapE (Xu, Honda and Sugiyama 2018): pull what tells the best arm from the one it is most easily taken for."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit_part
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.estimator import squared_norm
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.identification.contract import Rule, register
from solid_bandits.identification.knowledge import (
    Knowledge,
    copy_into,
    norm_of_difference,
    threshold,
)


class LinGapERule(NamedTuple):
    """LinGapE at work."""

    direction: Floats
    """U^-T (φ* - φ), shape (dim,): scratch."""


@jit_part
def choose(rule: LinGapERule, known: Knowledge, context: int) -> int:
    """The arm of the context whose pull shrinks ‖φ* - φ‖_{V^-1} of the most ambiguous pair the most."""
    radius = known.told.noise_std * math.sqrt(2.0 * threshold(known))
    most = -np.inf
    for other in range(known.features.shape[0]):
        best = known.best[other]
        top = dot(known.features[other, best], known.theta)
        for arm in range(known.features.shape[1]):
            norm = norm_of_difference(known, known.every, other, best, arm)
            if norm > 0.0:
                index = dot(known.features[other, arm], known.theta) - top + radius * math.sqrt(norm)
                if index > most:
                    most = index
                    copy_into(known.vector, rule.direction)
    chosen, largest = 0, -1.0
    for arm in range(known.features.shape[1]):
        copy_into(known.features[context, arm], known.vector)
        norm = squared_norm(known.every, known.vector)
        along = 0.0
        for i in range(known.vector.shape[0]):
            along += known.vector[i] * rule.direction[i] / known.every.weights[i]
        gain = along * along / (1.0 + norm)
        if gain > largest:
            chosen, largest = arm, gain
    return chosen


register(LinGapERule, choose)


@dataclass(frozen=True)
class LinGapE(Rule):
    """Pull the arm that most reduces the uncertainty about the most ambiguous pair.

    With i the best arm by the estimate, the pair is (i, j) with j = argmax φ(j)ᵀθ-hat - φ(i)ᵀθ-hat +
    σ √(2 β_n) ‖φ(i) - φ(j)‖_{V^-1}, β_n being the threshold of the test, and the arm is the greedy one of the paper:
    argmin_a ‖φ(i) - φ(j)‖ in the inverse of V + φ(a)φ(a)ᵀ. With several contexts the pair is the most ambiguous one of
    all of them, and the arm is one of the context that has come; the paper has one context.

    Example:
        >>> import solid_bandits as sb
        >>> from solid_bandits import identification
        >>> found = identification.identify(sb.problems.end_of_optimism(0.3), identification.LinGapE(), delta=0.1)
        >>> found.arms
        [2]

    Reference: Xu, Honda and Sugiyama (2018), "A fully adaptive algorithm for pure exploration in linear bandits".
    """

    def start(self, known: Knowledge) -> LinGapERule:
        """The rule at work."""
        return LinGapERule(np.zeros(known.features.shape[2]))
