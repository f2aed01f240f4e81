"""AO-IDS: asymptotically optimal information-directed sampling (Kirschner et al. 2021)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.randomness import uniform
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.arms import whiten
from solid_bandits.estimation.linalg.vectors import best_arm, inner_products
from solid_bandits.estimation.ridge import Regression, make_regression
from solid_bandits.policies.contract import TablePolicy, register, write_certain
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.identification import PastNorms, best_of_rows, is_identified, make_past_norms
from solid_bandits.policies.mixture import Hull, best_mixture, insert_arm, make_hull, write_mixture
from solid_bandits.policies.thresholds import confidence_width, exploitation_threshold


class AOIDSParams(NamedTuple):
    """The chosen parameters in compiled form."""

    learning_rate: float


class AOIDSState(NamedTuple):
    """State of AO-IDS."""

    regression: Regression
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: exploring rounds, shape ()."""
    rng: Words


class AOIDSWork(NamedTuple):
    """Scratch; nothing that a decision depends on is carried over in it."""

    past: PastNorms
    means: Floats
    """φᵀθ-hat, shape (contexts, arms)."""
    sq_norms: Floats
    """‖φ‖²_{V^-1}, shape (contexts, arms)."""
    whitened: Floats
    """Features whose inner products are those of V^-1, later their differences φ* - φ, shape (dim, pairs)."""
    offered: Floats
    """Whitened features of the arms of the current context, shape (arms, dim)."""
    shifts: Floats
    """Δ / ‖d‖²_{V^-1} of each alternative, shape (pairs,); 0 if a pair gives none."""
    weights: Floats
    """q(x', b), shape (pairs,)."""
    products: Floats
    """Scratch, shape (pairs,)."""
    information: Floats
    hull: Hull


class AOIDSAgent(NamedTuple):
    """Compiled form of AOIDS."""

    params: AOIDSParams
    setting: Setting
    table: Table
    state: AOIDSState
    work: AOIDSWork


@jit
def measure_pairs(agent: AOIDSAgent, context: int) -> None:
    """Write mean, norm and whitened features of every pair, and separately those of the arms of `context`."""
    work, features = agent.work, agent.table.features
    rows = features.reshape((-1, features.shape[2]))
    means, sq_norms = work.means.reshape(-1), work.sq_norms.reshape(-1)
    regression: Any = agent.state.regression
    whiten(regression.estimator, rows, means, sq_norms, work.whitened, regression.work.arms)
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
def find_mixture(agent: AOIDSAgent, context: int, width: float) -> tuple[int, int, float]:
    """Return the two arms that minimise optimistic regret² / information, and the second's probability.

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
    corners = 0
    for arm in range(n_arms):
        corners = insert_arm(work.hull, corners, arm, top - means[context, arm], work.information[arm])
    first, second, chance = best_mixture(work.hull, corners)
    return (first, second, chance) if first <= second else (second, first, 1.0 - chance)


@jit
def act(agent: AOIDSAgent, context: int, out: Floats | None) -> tuple[int, bool]:
    """Return the best arm if it is identified, else a draw from the best mixture of two arms."""
    state, regression, arms = agent.state, agent.state.regression, agent.table.features[context]
    state.step[()] += 1
    step = state.step.item()
    threshold = exploitation_threshold(agent.setting, step)
    if is_identified(regression, arms, agent.work.past, context, threshold):
        arm = best_of_rows(arms, regression.work.theta)
        write_certain(out, arm)
        return arm, False
    state.explored[()] += 1
    measure_pairs(agent, context)
    weigh_alternatives(agent)
    width = confidence_width(agent.setting, step, state.explored.item())
    first, second, chance = find_mixture(agent, context, width)
    write_mixture(out, first, second, chance)
    return (second if uniform(state.rng) < chance else first), True


register(AOIDSAgent, act)


@dataclass(frozen=True)
class AOIDS(TablePolicy):
    """AO-IDS: mix two arms so that regret² / information is least, with information about near alternatives.

    While the best arm of the context is not identified (SOLID's test), each arm a has an optimistic regret
    R(a) = max_b (φ_bᵀθ-hat + √γ ‖φ_b‖_{V^-1}) - φ_aᵀθ-hat and an information
    I(a) = ½ Σ_z q(z) (abs φ_aᵀ(θ-hat - ν_z) + √γ ‖φ_a‖_{V^-1})², where ν_z is the model closest to θ-hat in ‖·‖_V that
    prefers z to the best arm, and q(z) ∝ exp(-η ‖θ-hat - ν_z‖²_V / (2σ²)). The distribution that minimises
    R(μ)² / I(μ) has two arms; it is found exactly among all pairs of arms.

    One context is as published, except for three conventions of this project: the thresholds β_t, γ_s are SOLID's,
    without numerical constants; rewards of exploiting rounds are used too (the paper's analysis discards them); η is
    fixed.

    Several contexts (this project's variant, no theorem): the rule is applied in the current context, R over its own
    arms, while z runs over the suboptimal pairs of *all* contexts, so that an arm is worth pulling for what it
    reveals about another context. The test is in the current context, as SOLID's.

    With P pairs and A arms a step takes O(A d²) when it exploits and O(P d (A + d)) when it explores.

    Args:
        learning_rate: η of the weights q; 0 weighs all alternatives equally, a large η only the closest.
        ridge: ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.toy()
        >>> agent = sb.Agent(sb.rivals.AOIDS(), contexts=problem.features, noise_std=problem.noise_std, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        0

    Reference: Kirschner, Lattimore, Vernade and Szepesvári (2021), "Asymptotically optimal information-directed
    sampling", Algorithm 1.
    """

    facts = Facts(
        name="ao-ids",
        label="AO-IDS",
        line="mixes two arms so that regret² per information about the nearest alternatives is least",
        setting="linear; the contextual variant is this project's",
        optimality="constant (one context); finite-time bound",
        exploration="optimism",
        test="likelihood ratio",
        reference="Kirschner et al. 2021",
        cost=(0.3, 0.01, 0.001),
    )

    learning_rate: float = parameter(1.0, least=0)
    ridge: float = parameter(1.0, above=0)

    def start(self, setting: Setting, table: Table, rng: Words) -> AOIDSAgent:
        """Return a new agent that draws from `rng`."""
        n_contexts, n_arms, dim = table.features.shape
        regression = make_regression(dim, setting.noise_std, self.ridge, norms=True)
        state = AOIDSState(regression, np.array(0), np.array(0), rng)
        pairs = n_contexts * n_arms
        work = AOIDSWork(
            past=make_past_norms(n_contexts, n_arms),
            means=np.zeros((n_contexts, n_arms)),
            sq_norms=np.zeros((n_contexts, n_arms)),
            whitened=np.zeros((dim, pairs)),
            offered=np.zeros((n_arms, dim)),
            shifts=np.zeros(pairs),
            weights=np.zeros(pairs),
            products=np.zeros(pairs),
            information=np.zeros(n_arms),
            hull=make_hull(),
        )
        return AOIDSAgent(AOIDSParams(float(self.learning_rate)), setting, table, state, work)
