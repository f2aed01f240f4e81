"""Frank-Wolfe sampling (Wang, Tzeng and Proutiere 2021): steps towards the allocation that the lower bound asks for."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit_part
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.estimation.linalg.triangular import solve_transposed
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.identification.contract import Rule, register
from solid_bandits.identification.game import solve_game
from solid_bandits.identification.knowledge import Knowledge
from solid_bandits.identification.response import Response, make_response, respond, share_of

MOST = 24
"""Alternatives that a step considers at most: the first ones in the order of pairs."""


class FrankWolfeRule(NamedTuple):
    """FrankWolfe at work."""

    average: Floats
    """x, the mean of the steps, shape (contexts, arms)."""
    target: Floats
    """z of one step, shape (contexts * arms,)."""
    payoffs: Floats
    """The gradients of the alternatives that count, shape (MOST, pairs)."""
    offsets: Floats
    """What they give at x, shape (MOST,)."""
    table: Floats
    basis: Ints
    response: Response


@jit_part
def write_gradients(rule: FrankWolfeRule, known: Knowledge, least: float, radius: float) -> int:
    """Write the gradients of all f_j(x) < F(x) + r; return how many there are.

    f_j = Δ² / (2σ²‖φ* - φ(j)‖²_{W^-1}) has the gradient ρ(x) (φ(x, a)ᵀ(θ-hat - θ'_j))² / 2σ², and Σ x ∇f_j = f_j.
    """
    response, features = rule.response, known.features
    contexts, arms, dim = features.shape
    half = 0.5 / known.told.noise_std**2
    count = 0
    for context in range(contexts):
        top = response.means[context, known.best[context]]
        for arm in range(arms):
            pair = context * arms + arm
            norm = response.norms[pair]
            gap = top - response.means[context, arm]
            if norm <= 0.0 or half * gap * gap / norm >= least + radius or count == MOST:
                continue
            for i in range(dim):
                response.delta[i] = gap / norm * response.differences[i, pair]
            solve_transposed(response.factor, response.delta)
            for other in range(contexts):
                share = share_of(known, other)
                for a in range(arms):
                    along = dot(features[other, a], response.delta)
                    rule.payoffs[count, other * arms + a] = share * half * along * along
            rule.offsets[count] = half * gap * gap / norm
            count += 1
    return count


@jit_part
def choose(rule: FrankWolfeRule, known: Knowledge, context: int) -> int:
    """One Frank-Wolfe step of x, and the arm of the context with the largest x(x, a) / share of its pulls."""
    contexts, arms, _ = known.features.shape
    step = known.every.rewards.item() + 1
    if rule.average[0, 0] < 0.0:  # x begins as the shares of the first pulls
        for other in range(contexts):
            for arm in range(arms):
                drawn = known.drawn[other]
                rule.average[other, arm] = known.counts[other, arm] / drawn if drawn > 0.0 else 1.0 / arms
    root = math.sqrt(step // arms)
    if root == math.floor(root):
        for pair in range(contexts * arms):
            rule.target[pair] = 1.0 / arms
    else:
        least = 0.5 * respond(rule.response, known, rule.average) / known.told.noise_std**2
        count = write_gradients(rule, known, least, step**-0.9 / arms)
        if count > 0:
            solve_game(rule.payoffs, rule.offsets, count, contexts, rule.table, rule.basis, rule.target)
    best, largest = 0, -1.0
    for other in range(contexts):
        for arm in range(arms):
            rule.average[other, arm] += (rule.target[other * arms + arm] - rule.average[other, arm]) / step
    for arm in range(arms):
        pulled = known.counts[context, arm]
        wanted = rule.average[context, arm]
        ratio = wanted / pulled if pulled > 0.0 else (np.inf if wanted > 0.0 else 0.0)
        if ratio > largest:
            best, largest = arm, ratio
    return best


register(FrankWolfeRule, choose)


@dataclass(frozen=True)
class FrankWolfe(Rule):
    """Frank-Wolfe sampling (FWS): x moves by 1/n towards what does best against the closest alternatives.

    F(x) = min_j f_j(x), f_j being the information about alternative j in a step, is not smooth, so the direction is
    argmax_z min_h ⟨z - x, h⟩ over the gradients h of all f_j(x) < F(x) + r_n, r_n = n^-0.9 / K: a linear program with a
    row each. In the rounds n where √⌊n / K⌋ is whole, z is even. The arm is argmax_a x(a) / N(a). With several contexts
    z has a distribution for each, gradients are weighed by how often contexts came, and the arm is one of the context
    that has come; the paper has one context.

    Example:
        >>> import solid_bandits as sb
        >>> from solid_bandits import identification
        >>> rule = identification.FrankWolfe()
        >>> found = identification.identify(sb.problems.end_of_optimism(0.3), rule, delta=0.1)
        >>> found.arms
        [2]

    Reference: Wang, Tzeng and Proutiere (2021), "Fast pure exploration via Frank-Wolfe".
    """

    def start(self, known: Knowledge) -> FrankWolfeRule:
        """The rule at work."""
        contexts, arms, _ = known.features.shape
        pairs = contexts * arms
        return FrankWolfeRule(
            np.full((contexts, arms), -1.0),
            np.full(pairs, 1.0 / arms),
            np.zeros((MOST, pairs)),
            np.zeros(MOST),
            np.zeros((contexts + MOST + 1, pairs + MOST + 2)),
            np.zeros(contexts + MOST, dtype=np.int64),
            make_response(known),
        )
