"""AO-IDS: asymptotically optimal information-directed sampling (Kirschner et al. 2021)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Floats, Ints, Words
from solid_bandits.alternatives.closest import difference_norm
from solid_bandits.linalg.vectors import best_arm, dot, inner_products, symmetric_product
from solid_bandits.policies.contract import Policy, register
from solid_bandits.policies.identification import confidence_width, exploitation_threshold, is_identified
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork, make_regression, observe
from solid_bandits.stream import uniform


class IDSParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    learning_rate: float


class IDSState(NamedTuple):
    """All that AO-IDS carries."""

    regression: Regression
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: exploring rounds, shape ()."""
    stream: Words


class IDSWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    regression: RegressionWork
    shifts: Floats
    """Δ / ‖d‖²_{V^-1} of each alternative, shape (pairs,); 0 where a pair gives none."""
    weights: Floats
    """q(x', b), shape (pairs,)."""
    products: Floats
    regrets: Floats
    information: Floats


class IDSAgent(NamedTuple):
    """AO-IDS at work."""

    params: IDSParams
    known: View
    state: IDSState
    work: IDSWork


@jit
def weigh_alternatives(agent: IDSAgent) -> None:
    """Write Δ / ‖d‖² and q(x', b) ∝ exp(-η Δ² / (2σ² ‖d‖²_{V^-1})) of the closest alternative of every pair."""
    view, work, regression = agent.known, agent.work, agent.state.regression
    means, sq_norms = regression.means, regression.sq_norms
    n_contexts, n_arms = means.shape
    rate = agent.params.learning_rate / (2.0 * view.noise_std**2)
    nearest = np.inf
    for context in range(n_contexts):
        features = view.features[context]
        best = best_arm(means[context])
        symmetric_product(regression.inverse, features[best], work.regression.direction)
        for arm in range(n_arms):
            pair = context * n_arms + arm
            parts = sq_norms[context, arm] + sq_norms[context, best]
            cross = dot(features[arm], work.regression.direction)
            norm = difference_norm(regression.inverse, features[best], features[arm], parts, cross)
            work.shifts[pair], work.weights[pair] = 0.0, np.inf
            if arm != best and norm > 0.0:
                gap = means[context, best] - means[context, arm]
                work.shifts[pair], work.weights[pair] = gap / norm, gap * gap / norm
                nearest = min(nearest, work.weights[pair])
    total = 0.0
    for pair in range(work.weights.shape[0]):
        if work.weights[pair] < np.inf:
            work.weights[pair] = math.exp(-rate * (work.weights[pair] - nearest))
            total += work.weights[pair]
        else:
            work.weights[pair] = 0.0
    for pair in range(work.weights.shape[0]):
        work.weights[pair] /= max(total, 1e-300)


@jit
def measure_arms(agent: IDSAgent, context: int, width: float) -> None:
    """Write the regret and the information of every arm of this context, both seen with optimism.

    regret(a) = max_b (φ_bᵀθ-hat + √γ ‖φ_b‖_{V^-1}) - φ_aᵀθ-hat,
    information(a) = Σ q(x', b) (|φ_aᵀ(θ-hat - ν(x', b))| + √γ ‖φ_a‖_{V^-1})² / 2.
    """
    view, work, regression = agent.known, agent.work, agent.state.regression
    means, sq_norms = regression.means, regression.sq_norms
    n_contexts, n_arms = means.shape
    root = math.sqrt(width)
    top = -np.inf
    for arm in range(n_arms):
        spread = root * math.sqrt(max(sq_norms[context, arm], 0.0))
        top = max(top, means[context, arm] + spread)
        symmetric_product(regression.inverse, view.features[context, arm], work.regression.direction)
        inner_products(view.features_by_dim, work.regression.direction, work.products)
        total = 0.0
        for other in range(n_contexts):
            best = other * n_arms + best_arm(means[other])
            for pair in range(other * n_arms, (other + 1) * n_arms):
                seen = abs(work.shifts[pair] * (work.products[best] - work.products[pair])) + spread
                total += work.weights[pair] * seen * seen
        work.information[arm] = 0.5 * total
    for arm in range(n_arms):
        work.regrets[arm] = top - means[context, arm]


@jit
def best_mixture(regrets: Floats, information: Floats) -> tuple[int, int, float]:
    """The two arms, and the probability p of the second, that minimise regret² / information.

    ((1-p) R + p R')² / ((1-p) I + p I') is convex in p, with its minimum at R/D - 2 I/E, D = R' - R, E = I' - I.
    """
    first, second, chance = 0, 0, 0.0
    least = np.inf
    for a in range(regrets.shape[0]):
        for b in range(a, regrets.shape[0]):
            rise, more = regrets[b] - regrets[a], information[b] - information[a]
            p = 0.0
            if rise * more != 0.0:
                p = min(max(regrets[a] / rise - 2.0 * information[a] / more, 0.0), 1.0)
            ratio = (regrets[a] + p * rise) ** 2 / max(information[a] + p * more, 1e-300)
            if ratio < least:
                first, second, chance, least = a, b, p, ratio
    return first, second, chance


@jit
def act(agent: IDSAgent, context: int) -> tuple[int, bool]:
    """The best arm where it is identified; else a draw from the best mixture of two arms."""
    view, state, work = agent.known, agent.state, agent.work
    state.step[()] += 1
    step = state.step.item()
    threshold = exploitation_threshold(view, step)
    if is_identified(state.regression, work.regression, view, context, threshold):
        return best_arm(state.regression.means[context]), False
    state.explored[()] += 1
    weigh_alternatives(agent)
    measure_arms(agent, context, confidence_width(view, step, state.explored.item()))
    first, second, chance = best_mixture(work.regrets, work.information)
    return (second if uniform(state.stream) < chance else first), True


@jit
def update(agent: IDSAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    observe(agent.state.regression, agent.work.regression, agent.known, context, arm, reward)


register(IDSAgent, act, update)


@dataclass(frozen=True)
class IDS(Policy):
    """AO-IDS: mix two arms so that regret² / information is least, information measured against near alternatives.

    While the best arm of the context is not identified (SOLID's test), each arm a has an optimistic regret
    R(a) = max_b (φ_bᵀθ-hat + √γ ‖φ_b‖_{V^-1}) - φ_aᵀθ-hat and an information
    I(a) = ½ Σ_z q(z) (abs φ_aᵀ(θ-hat - ν_z) + √γ ‖φ_a‖_{V^-1})², where ν_z is the model closest to θ-hat in ‖·‖_V that
    prefers z to the best arm, and q(z) ∝ exp(-η ‖θ-hat - ν_z‖²_V / (2σ²)). The distribution that minimises
    R(μ)² / I(μ) has two arms; it is found exactly among all pairs of arms.

    One context is as published, but for three conventions of this project: the thresholds β_t, γ_s are SOLID's, without
    numerical constants; rewards of exploiting rounds are used too (the paper's analysis throws them away); η is fixed.

    Several contexts (this project's variant, no theorem): the rule is applied in the context that came, R over its own
    arms, while z runs over the suboptimal pairs of *all* contexts, so that an arm is worth pulling for what it
    tells about another context. The test is in the context that came, as SOLID's.

    With P pairs and A arms a step takes O(P d) when it exploits and O(A (P d + d² + A)) when it explores.

    Args:
        learning_rate: η of the weights q; 0 weighs all alternatives alike, a large one only the closest counts.
        ridge: ν > 0, the regulariser of the estimate.

    Reference: Kirschner, Lattimore, Vernade and Szepesvári (2021), "Asymptotically optimal information-directed
    sampling", Algorithm 1.
    """

    learning_rate: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.number("learning_rate", self.learning_rate, least=0)
        _check.number("ridge", self.ridge, above=0)

    def start(self, view: View, stream: Words) -> IDSAgent:
        """A new agent that draws from `stream`."""
        n_contexts, n_arms, _ = view.features.shape
        regression, regression_work = make_regression(view, self.ridge)
        state = IDSState(regression, np.array(0), np.array(0), stream)
        pairs = n_contexts * n_arms
        work = IDSWork(
            regression=regression_work,
            shifts=np.zeros(pairs),
            weights=np.zeros(pairs),
            products=np.zeros(pairs),
            regrets=np.zeros(n_arms),
            information=np.zeros(n_arms),
        )
        return IDSAgent(IDSParams(float(self.learning_rate)), view, state, work)
