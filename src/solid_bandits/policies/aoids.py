"""AO-IDS: asymptotically optimal information-directed sampling (Kirschner et al. 2021)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Floats, Ints, Words
from solid_bandits.estimation.arms import ArmsWork, make_arms_work, whiten
from solid_bandits.estimation.estimator import Estimator, make_estimator, observe, write_theta
from solid_bandits.linalg.vectors import best_arm, inner_products
from solid_bandits.policies.contract import TablePolicy, register
from solid_bandits.policies.identification import PastNorms, best_of_rows, is_identified, make_past_norms
from solid_bandits.policies.thresholds import confidence_width, exploitation_threshold
from solid_bandits.setting import Setting, Table
from solid_bandits.stream import uniform


class AOIDSParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    learning_rate: float


class AOIDSState(NamedTuple):
    """All that AO-IDS carries."""

    estimator: Estimator
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: exploring rounds, shape ()."""
    stream: Words


class AOIDSWork(NamedTuple):
    """Scratch; nothing that a decision depends on is carried in it."""

    arms: ArmsWork
    past: PastNorms
    theta: Floats
    """θ-hat, shape (dim,)."""
    means: Floats
    """φᵀθ-hat, shape (contexts, arms)."""
    sq_norms: Floats
    """‖φ‖²_{V^-1}, shape (contexts, arms)."""
    whitened: Floats
    """Features whose inner products are those of V^-1, then differences φ* - φ of such, shape (dim, pairs)."""
    offered: Floats
    """Such features of the arms of the context at hand, shape (arms, dim)."""
    shifts: Floats
    """Δ / ‖d‖²_{V^-1} of each alternative, shape (pairs,); 0 where a pair gives none."""
    weights: Floats
    """q(x', b), shape (pairs,)."""
    products: Floats
    """Shape (pairs,)."""
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
def measure_pairs(agent: AOIDSAgent, context: int) -> None:
    """Write mean, norm and whitened features of every pair, those of the arms of `context` apart too."""
    work, features = agent.work, agent.table.features
    rows = features.reshape((-1, features.shape[2]))
    means, sq_norms = work.means.reshape(-1), work.sq_norms.reshape(-1)
    whiten(agent.state.estimator, rows, means, sq_norms, work.whitened, work.arms)
    n_arms, dim = work.offered.shape
    for arm in range(n_arms):
        for i in range(dim):
            work.offered[arm, i] = work.whitened[i, context * n_arms + arm]


@jit
def take_from_best(columns: Floats, best: int, first: int, sq_norms: Floats) -> None:
    """Replace the columns φ of one context, from `first` on, by φ* - φ, and write their squared lengths."""
    sq_norms[:] = 0.0
    for i in range(columns.shape[0]):
        row = columns[i, first : first + sq_norms.shape[0]]
        optimal = row[best]
        for arm in range(sq_norms.shape[0]):
            row[arm] = optimal - row[arm]
            sq_norms[arm] += row[arm] * row[arm]


@jit
def weigh_alternatives(agent: AOIDSAgent) -> None:
    """Write Δ / ‖d‖² and q(x', b) ∝ exp(-η Δ² / (2σ² ‖d‖²_{V^-1})) of the closest alternative of every pair."""
    work, means = agent.work, agent.work.means
    n_contexts, n_arms = means.shape
    rate = agent.params.learning_rate / (2.0 * agent.setting.noise_std**2)
    nearest = np.inf
    for context in range(n_contexts):
        best, first = best_arm(means[context]), context * n_arms
        norms = work.products[first : first + n_arms]
        take_from_best(work.whitened, best, first, norms)
        for arm in range(n_arms):
            pair, norm = first + arm, norms[arm]
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
    work = agent.work
    means, sq_norms = work.means, work.sq_norms
    n_arms = means.shape[1]
    root = math.sqrt(width)
    top = -np.inf
    for arm in range(n_arms):
        spread = root * math.sqrt(sq_norms[context, arm])
        top = max(top, means[context, arm] + spread)
        inner_products(work.whitened, work.offered[arm], work.products)
        total = 0.0
        for pair in range(work.products.shape[0]):
            seen = abs(work.shifts[pair] * work.products[pair]) + spread
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
    """Whether the best arm of the context is not identified yet. Leaves θ-hat in `work.theta`."""
    state, work = agent.state, agent.work
    write_theta(state.estimator, work.theta)
    arms, threshold = agent.table.features[context], exploitation_threshold(agent.setting, step)
    return not is_identified(state.estimator, arms, work.theta, work.arms, work.past, context, threshold)


@jit
def choose_mixture(agent: AOIDSAgent, context: int, step: int, explored: int) -> tuple[int, int, float]:
    """The two arms to mix, and the probability of the second."""
    measure_pairs(agent, context)
    weigh_alternatives(agent)
    measure_arms(agent, context, confidence_width(agent.setting, step, explored))
    return best_mixture(agent.work.regrets, agent.work.information)


@jit
def act(agent: AOIDSAgent, context: int) -> tuple[int, bool]:
    """The best arm where it is identified; else a draw from the best mixture of two arms."""
    state = agent.state
    state.step[()] += 1
    step = state.step.item()
    if not must_explore(agent, context, step):
        return best_of_rows(agent.table.features[context], agent.work.theta), False
    state.explored[()] += 1
    first, second, chance = choose_mixture(agent, context, step, state.explored.item())
    return (second if uniform(state.stream) < chance else first), True


@jit
def update(agent: AOIDSAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    features, work = agent.table.features[context, arm], agent.work.arms
    observe(agent.state.estimator, features, reward, work.vector, work.gains)


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
        out[best_of_rows(agent.table.features[context], agent.work.theta)] = 1.0
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

    With P pairs and A arms a step takes O(A d²) when it exploits and O(P d (A + d)) when it explores.

    Args:
        learning_rate: η of the weights q; 0 weighs all alternatives alike, a large one only the closest counts.
        ridge: ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.toy()
        >>> agent = sb.Agent(sb.AOIDS(), contexts=problem.features, noise_std=problem.noise_std, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        0

    Reference: Kirschner, Lattimore, Vernade and Szepesvári (2021), "Asymptotically optimal information-directed
    sampling", Algorithm 1.
    """

    learning_rate: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.not_negative("learning_rate", self.learning_rate)
        _check.positive("ridge", self.ridge)

    def start(self, setting: Setting, table: Table, stream: Words) -> AOIDSAgent:
        """A new agent that draws from `stream`."""
        n_contexts, n_arms, dim = table.features.shape
        state = AOIDSState(make_estimator(dim, self.ridge), np.array(0), np.array(0), stream)
        pairs = n_contexts * n_arms
        work = AOIDSWork(
            arms=make_arms_work(dim),
            past=make_past_norms(n_contexts, n_arms),
            theta=np.zeros(dim),
            means=np.zeros((n_contexts, n_arms)),
            sq_norms=np.zeros((n_contexts, n_arms)),
            whitened=np.zeros((dim, pairs)),
            offered=np.zeros((n_arms, dim)),
            shifts=np.zeros(pairs),
            weights=np.zeros(pairs),
            products=np.zeros(pairs),
            regrets=np.zeros(n_arms),
            information=np.zeros(n_arms),
        )
        return AOIDSAgent(AOIDSParams(float(self.learning_rate)), setting, table, state, work)
