"""Lazy Track-and-Stop (Jedra and Proutiere 2020): track the optimal allocation at an estimate renewed rarely."""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit_part
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats
from solid_bandits.bounds.programs import pure_exploration
from solid_bandits.core.problem import Problem
from solid_bandits.estimation.estimator import squared_norm
from solid_bandits.identification.contract import Rule, least_tracked, register
from solid_bandits.identification.knowledge import Knowledge, most_uncertain

WIDTH = 1e-3
"""Relative width of the bracket of the planned allocation."""


class LazyRule(NamedTuple):
    """LazyTrackAndStop at work."""

    allocation: Floats
    """ω, shape (contexts, arms)."""
    least: Floats
    """c of the forced exploration, and a bound below λ_min(V) as it was once, shape (2,)."""


@jit_part
def least_eigenvalue(known: Knowledge) -> float:
    """1 / tr V⁻¹: at most λ_min(V), and at least λ_min(V) / d."""
    dim, total = known.vector.shape[0], 0.0
    for i in range(dim):
        for j in range(dim):
            known.vector[j] = 1.0 if i == j else 0.0
        total += squared_norm(known.every, known.vector)
    return 1.0 / total


@jit_part
def choose(rule: LazyRule, known: Knowledge, context: int) -> int:
    """The arm furthest behind the allocations; the most uncertain one where a direction has been seen too little."""
    for arm in range(known.counts.shape[1]):
        known.tracked[context, arm] += rule.allocation[context, arm]
    enough = rule.least[0] * math.sqrt(known.every.rewards.item())
    if rule.least[1] < enough:  # V only grows, so that what was enough once need not be found out again
        rule.least[1] = least_eigenvalue(known)
        if rule.least[1] < enough:
            return most_uncertain(known, context)
    return least_tracked(known, context)


register(LazyRule, choose)


@dataclass(frozen=True)
class LazyTrackAndStop(Rule):
    """Track ω*(θ-hat), the allocation of `bounds.pure_exploration` at the estimate, planned anew as n grows.

    Where 1 / tr V⁻¹ (a bound below λ_min(V)) is below c √n, with c = λ_min(Σ φφᵀ) / √d over a set of d arms that span,
    the arm with the largest ‖φ‖_{V^-1} is pulled; the paper goes round the d arms. With several contexts the allocation
    is that of the contextual program, with ρ as contexts have come; the paper has one context.

    Args:
        growth: >= 1; the allocation is planned anew when rewards have grown by this factor; at 1 each time.

    Example:
        >>> import solid_bandits as sb
        >>> from solid_bandits import identification
        >>> rule = identification.LazyTrackAndStop()
        >>> found = identification.identify(sb.problems.end_of_optimism(0.3), rule, delta=0.1)
        >>> found.arms
        [2]

    Reference: Jedra and Proutiere (2020), "Optimal best-arm identification in linear bandits".
    """

    growth: float = parameter(1.2, least=1)

    def start(self, known: Knowledge) -> LazyRule:
        """The rule at work."""
        contexts, arms, dim = known.features.shape
        rest = known.features.reshape(-1, dim).copy()
        chosen = []
        for _ in range(dim):
            chosen.append(int((rest**2).sum(axis=1).argmax()))
            unit = rest[chosen[-1]] / np.linalg.norm(rest[chosen[-1]])
            rest -= np.outer(rest @ unit, unit)
        spanning = known.features.reshape(-1, dim)[chosen]
        least = float(np.linalg.eigvalsh(spanning.T @ spanning)[0]) / math.sqrt(dim)
        return LazyRule(np.full((contexts, arms), 1.0 / arms), np.array([least, 0.0]))

    def plan(self, rule: LazyRule, known: Knowledge) -> float:
        """Plan the allocation at the estimate; it stays as it was where the estimate has several best arms."""
        count = known.every.rewards.item()
        shares = (known.drawn + 1.0) / (count + len(known.drawn))
        estimated = Problem(known.features, known.theta, shares / shares.sum(), known.told.noise_std)
        with suppress(ValueError):
            rule.allocation[:] = pure_exploration(estimated, WIDTH).policy
        return math.floor(max(count + 1.0, self.growth * count))
