"""AO-IDS: asymptotically optimal information-directed sampling (Kirschner et al. 2021)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Floats, Ints, Words
from solid_bandits.estimation.estimator import Estimator, solve_gram, squared_norm, write_theta
from solid_bandits.estimation.tables import (
    Tables,
    TablesWork,
    bring_up_to_date,
    make_table_estimates,
    observe_pair,
)
from solid_bandits.linalg.vectors import best_arm, dot, inner_products
from solid_bandits.policies.contract import TablePolicy, register
from solid_bandits.policies.identification import best_of_rows, is_identified
from solid_bandits.policies.thresholds import confidence_width, exploitation_threshold
from solid_bandits.setting import Setting, Table
from solid_bandits.stream import uniform

CANCELLATION = 1e-6
"""A squared norm of a difference below this fraction of its parts has lost digits and is computed again, directly."""


class AOIDSParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    learning_rate: float


class AOIDSState(NamedTuple):
    """All that AO-IDS carries."""

    estimator: Estimator
    tables: Tables
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: exploring rounds, shape ()."""
    stream: Words


class AOIDSWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    tables: TablesWork
    direction: Floats
    """Shape (dim,)."""
    shifts: Floats
    """Δ / ‖d‖²_{V^-1} of each alternative, shape (pairs,); 0 where a pair gives none."""
    weights: Floats
    """q(x', b), shape (pairs,)."""
    products: Floats
    regrets: Floats
    information: Floats


class AOIDSAgent(NamedTuple):
    """AO-IDS at work."""

    params: AOIDSParams
    setting: Setting
    table: Table
    state: AOIDSState
    work: AOIDSWork


@jit
def write_direction(agent: AOIDSAgent, features: Floats) -> None:
    """Write V^-1 φ into `work.direction`."""
    direction = agent.work.direction
    for i in range(direction.shape[0]):
        direction[i] = features[i]
    solve_gram(agent.state.estimator, direction)


@jit
def difference_norm(agent: AOIDSAgent, first: Floats, second: Floats, parts: float) -> float:
    """‖φ - φ'‖²_{V^-1} from ‖φ‖² + ‖φ'‖² (`parts`) and V^-1 φ in `work.direction`; directly where that loses digits."""
    norm = parts - 2.0 * dot(second, agent.work.direction)
    if norm > CANCELLATION * parts:
        return norm
    scratch = agent.work.tables.arms.vector
    for i in range(scratch.shape[0]):
        scratch[i] = first[i] - second[i]
    return squared_norm(agent.state.estimator, scratch)


@jit
def weigh_alternatives(agent: AOIDSAgent) -> None:
    """Write Δ / ‖d‖² and q(x', b) ∝ exp(-η Δ² / (2σ² ‖d‖²_{V^-1})) of the closest alternative of every pair."""
    work, tables = agent.work, agent.state.tables
    means, sq_norms = tables.means, tables.sq_norms
    n_contexts, n_arms = means.shape
    rate = agent.params.learning_rate / (2.0 * agent.setting.noise_std**2)
    nearest = np.inf
    for context in range(n_contexts):
        features = agent.table.features[context]
        best = best_arm(means[context])
        write_direction(agent, features[best])
        for arm in range(n_arms):
            pair = context * n_arms + arm
            parts = sq_norms[context, arm] + sq_norms[context, best]
            norm = difference_norm(agent, features[best], features[arm], parts)
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
def measure_arms(agent: AOIDSAgent, context: int, width: float) -> None:
    """Write the regret and the information of every arm of this context, both seen with optimism.

    regret(a) = max_b (φ_bᵀθ-hat + √γ ‖φ_b‖_{V^-1}) - φ_aᵀθ-hat,
    information(a) = Σ q(x', b) (|φ_aᵀ(θ-hat - ν(x', b))| + √γ ‖φ_a‖_{V^-1})² / 2.
    """
    table, work, tables = agent.table, agent.work, agent.state.tables
    means, sq_norms = tables.means, tables.sq_norms
    n_contexts, n_arms = means.shape
    root = math.sqrt(width)
    top = -np.inf
    for arm in range(n_arms):
        spread = root * math.sqrt(max(sq_norms[context, arm], 0.0))
        top = max(top, means[context, arm] + spread)
        write_direction(agent, table.features[context, arm])
        inner_products(table.columns, work.direction, work.products)
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
def must_explore(agent: AOIDSAgent, context: int, step: int) -> bool:
    """Whether the best arm of the context is not identified yet. Leaves θ-hat in `work.tables.theta`."""
    state, work = agent.state, agent.work.tables
    write_theta(state.estimator, work.theta)
    arms, threshold = agent.table.features[context], exploitation_threshold(agent.setting, step)
    return not is_identified(state.estimator, arms, work.theta, work.arms, threshold)


@jit
def choose_mixture(agent: AOIDSAgent, context: int, step: int, explored: int) -> tuple[int, int, float]:
    """The two arms to mix, and the probability of the second."""
    state, work = agent.state, agent.work
    bring_up_to_date(state.estimator, state.tables, agent.table, work.tables)
    weigh_alternatives(agent)
    measure_arms(agent, context, confidence_width(agent.setting, step, explored))
    return best_mixture(work.regrets, work.information)


@jit
def act(agent: AOIDSAgent, context: int) -> tuple[int, bool]:
    """The best arm where it is identified; else a draw from the best mixture of two arms."""
    state = agent.state
    state.step[()] += 1
    step = state.step.item()
    if not must_explore(agent, context, step):
        return best_of_rows(agent.table.features[context], agent.work.tables.theta), False
    state.explored[()] += 1
    first, second, chance = choose_mixture(agent, context, step, state.explored.item())
    return (second if uniform(state.stream) < chance else first), True


@jit
def update(agent: AOIDSAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    state = agent.state
    observe_pair(state.estimator, state.tables, agent.work.tables, agent.table.features[context, arm], reward)


@jit
def probabilities(agent: AOIDSAgent, context: int, out: Floats) -> bool:
    """1 on the best arm where it is identified; else the mixture of two arms."""
    state = agent.state
    for arm in range(out.shape[0]):
        out[arm] = 0.0
    step = state.step.item() + 1
    if must_explore(agent, context, step):
        first, second, chance = choose_mixture(agent, context, step, state.explored.item() + 1)
        out[first] += 1.0 - chance
        out[second] += chance
    else:
        out[best_of_rows(agent.table.features[context], agent.work.tables.theta)] = 1.0
    return True


register(AOIDSAgent, act, update, probabilities)


@dataclass(frozen=True)
class AOIDS(TablePolicy):
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

    def start(self, setting: Setting, table: Table, stream: Words) -> AOIDSAgent:
        """A new agent that draws from `stream`."""
        n_contexts, n_arms, dim = table.features.shape
        estimator, tables, tables_work = make_table_estimates(table, self.ridge)
        state = AOIDSState(estimator, tables, np.array(0), np.array(0), stream)
        pairs = n_contexts * n_arms
        work = AOIDSWork(
            tables=tables_work,
            direction=np.zeros(dim),
            shifts=np.zeros(pairs),
            weights=np.zeros(pairs),
            products=np.zeros(pairs),
            regrets=np.zeros(n_arms),
            information=np.zeros(n_arms),
        )
        return AOIDSAgent(AOIDSParams(float(self.learning_rate)), setting, table, state, work)
