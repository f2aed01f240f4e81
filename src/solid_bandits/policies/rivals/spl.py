"""SPL: saddle-point learning of the exploration rates (Degenne et al. 2020), linear structure, one context."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.linalg.gram import weighted_gram
from solid_bandits.estimation.linalg.vectors import best_arm, inner_products
from solid_bandits.estimation.ridge import Regression, make_regression
from solid_bandits.planning.closest import closest_alternative
from solid_bandits.policies.contract import TablePolicy, register, require_bound
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.identification import PastNorms, best_of_rows, is_identified, make_past_norms
from solid_bandits.policies.thresholds import exploitation_threshold

LEAST_MIXABILITY = 1e-290
"""Smallest mixability: below this AdaHedge's rate log K / mixability would overflow, and counts as infinite."""


class SPLParams(NamedTuple):
    """The chosen parameters in compiled form."""

    gap_clip: float
    """Smallest gap; 0 stands for the schedule B L / log t."""


class Learners(NamedTuple):
    """One AdaHedge learner per arm that may look optimal."""

    gains: Floats
    """Cumulative gains minus their largest, shape (arms, arms): row i is the learner used while arm i looks best."""
    mixability: Floats
    """Cumulative mixability gap of each learner, shape (arms,): its rate is log K divided by this."""


class SPLState(NamedTuple):
    """State of SPL."""

    regression: Regression
    learners: Learners
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: exploring rounds, shape ()."""
    pulls: Ints
    """N: pulls of each arm, shape (arms,)."""
    exploring_pulls: Ints
    """Pulls in exploring rounds, shape (arms,)."""
    tracked: Floats
    """Σ w over the exploring rounds, which `exploring_pulls` follows, shape (arms,)."""


class SPLWork(NamedTuple):
    """Scratch; nothing that a decision depends on is carried over in it."""

    past: PastNorms
    means: Floats
    """φᵀθ-hat, shape (1, arms)."""
    rates: Floats
    weights: Floats
    columns: Floats
    gram: Floats
    factor: Floats
    norms: Floats
    delta: Floats
    gain: Floats


class SPLAgent(NamedTuple):
    """Compiled form of SPL."""

    params: SPLParams
    setting: Setting
    table: Table
    state: SPLState
    work: SPLWork


@jit
def hedge(gains: Floats, mixability: float, rates: Floats) -> None:
    """AdaHedge's distribution: rates ∝ exp(η gains), η = log K / mixability; the leaders alone while η is infinite."""
    count = gains.shape[0]
    total = 0.0
    for k in range(count):
        if mixability > LEAST_MIXABILITY:
            rates[k] = math.exp(math.log(count) / mixability * gains[k])
        else:
            rates[k] = 1.0 if gains[k] == 0.0 else 0.0
        total += rates[k]
    for k in range(count):
        rates[k] /= total


@jit
def learn(gains: Floats, mixability: float, rates: Floats, gain: Floats) -> float:
    """Add `gain` to the learner's gains; return its new mixability gap, δ = mix gain - hedge gain added."""
    count = gains.shape[0]
    largest = -np.inf
    expected = 0.0
    for k in range(count):
        expected += rates[k] * gain[k]
        if rates[k] > 0.0:
            largest = max(largest, gain[k])
    mix = largest
    if mixability > LEAST_MIXABILITY:
        eta = math.log(count) / mixability
        total = 0.0
        for k in range(count):
            total += rates[k] * math.exp(eta * (gain[k] - largest)) if rates[k] > 0.0 else 0.0
        mix = largest + math.log(total) / eta
    top = -np.inf
    for k in range(count):
        gains[k] += gain[k]
        top = max(top, gains[k])
    for k in range(count):
        gains[k] -= top
    return mixability + max(mix - expected, 0.0)


@jit
def best_response(agent: SPLAgent, clip: float) -> None:
    """Write the weights w ∝ rates / clipped gap and the optimistic gains against the best response to them.

    The response is the closest alternative θ' under Σ_k w_k φ_k φ_kᵀ; gain_k = (|φ_kᵀ(θ-hat - θ')| + c_k)² / (2σ² Δ_k),
    c_k = σ √(2 log s / N_k): what the arm would reveal at the end of its own confidence interval farthest from θ'.
    """
    columns, state, work = agent.table.columns, agent.state, agent.work
    means = work.means
    best = best_arm(means[0])
    n_arms = means.shape[1]
    for k in range(n_arms):
        work.weights[k] = work.rates[k] / max(means[0, best] - means[0, k], clip)
    total = 0.0  # in its own loop, so that the order of the sum does not depend on where arrays are in memory
    for k in range(n_arms):
        total += work.weights[k]
    for k in range(n_arms):
        work.weights[k] /= total
    weighted_gram(columns, work.weights, work.columns, work.gram)
    closest_alternative(
        columns,
        means,
        work.gram,
        work.factor,
        work.columns,
        work.norms,
        work.delta,
    )
    inner_products(columns, work.delta, work.gain)
    noise = agent.setting.noise_std
    for k in range(n_arms):
        interval = noise * math.sqrt(2.0 * math.log(state.explored.item()) / state.pulls[k])
        information = (abs(work.gain[k]) + interval) ** 2 / (2.0 * noise * noise)
        work.gain[k] = information / max(means[0, best] - means[0, k], clip)


@jit
def explore(agent: SPLAgent, step: int) -> int:
    """Play one round of the game between rates and alternatives; return the arm furthest behind Σ w.

    θ-hat is in `regression.work.theta`.
    """
    state, work = agent.state, agent.work
    n_arms = state.pulls.shape[0]
    state.explored[()] += 1
    clip = agent.params.gap_clip
    if clip == 0.0:
        # A bound of zero (all features zero) leaves nothing to clip, and nothing to explore.
        clip = max(agent.setting.theta_bound * agent.table.feature_bound, 1e-300) / math.log(max(step, 3))
    inner_products(agent.table.columns, state.regression.work.theta, work.means[0])
    best = best_arm(work.means[0])
    gains, mixability = state.learners.gains[best], state.learners.mixability[best]
    hedge(gains, mixability, work.rates)
    best_response(agent, clip)
    state.learners.mixability[best] = learn(gains, mixability, work.rates, work.gain)
    chosen = 0
    largest = -np.inf
    for k in range(n_arms):
        state.tracked[k] += work.weights[k]
        lag = state.tracked[k] - state.exploring_pulls[k]
        if lag > largest:
            chosen, largest = k, lag
    state.exploring_pulls[chosen] += 1
    return chosen


@jit
def act(agent: SPLAgent, context: int, out: Floats | None) -> tuple[int, bool]:
    """Pull every arm once; then the best arm if it is identified, else the arm that the tracked rates call for."""
    state, work = agent.state, agent.work
    state.step[()] += 1
    step = state.step.item()
    for k in range(state.pulls.shape[0]):
        if state.pulls[k] == 0:
            state.pulls[k] += 1
            return k, True
    arms, threshold = agent.table.features[0], exploitation_threshold(agent.setting, step)
    explores = not is_identified(state.regression, arms, work.past, 0, threshold)
    arm = explore(agent, step) if explores else best_of_rows(arms, state.regression.work.theta)
    state.pulls[arm] += 1
    return arm, explores


register(SPLAgent, act, certain=True)


@dataclass(frozen=True)
class SPL(TablePolicy):
    """SPL: 1/v* of (P) is the value of a game, max_w min_θ' Σ_k w_k d_k(θ, θ') / Δ_k, and two players learn it.

    w, a distribution, says which share of the regret each arm may cause. Each arm is pulled once; then, if the
    likelihood ratio against every alternative passes β_t (SOLID's test), the best arm is pulled. If not: w comes from
    AdaHedge (one learner per arm that may look best); θ' is the best response to it, in closed form; the learner gains
    d_k(θ-hat, θ') / Δ_k, made optimistic by the confidence interval of arm k on its own; and the arm farthest
    behind the sum of the pulling rates ∝ w_k / Δ_k is pulled (cumulative tracking, exploring rounds only).

    A step takes O(K d²) for K arms when it exploits and O(K d² + d³) when it explores. One context.

    Args:
        gap_clip: gaps below this are raised to it; None is B L / log t.
        ridge: ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.end_of_optimism()
        >>> agent = sb.Agent(sb.rivals.SPL(gap_clip=0.1), contexts=problem.features, noise_std=1.0, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        1

    Reference: Degenne, Shao and Koolen (2020), "Structure adaptive algorithms for stochastic bandits", Algorithm 1;
    AdaHedge: de Rooij, van Erven, Grünwald and Koolen (2014), "Follow the leader if you can, hedge if you must".
    """

    facts = Facts(
        name="spl",
        label="SPL",
        line="AdaHedge plays the lower bound's game against the closest alternative; tracks its rates",
        setting="structured, one context; linear here",
        optimality="constant; finite-time bound",
        exploration="optimism arm by arm",
        test="likelihood ratio",
        reference="Degenne, Shao and Koolen 2020",
        cost=(0.3, 0.01, 0.001),
        one_context=True,
    )

    gap_clip: float | None = parameter(None, above=0, none=True)
    ridge: float = parameter(1.0, above=0)

    def check_state(self, agent: SPLAgent) -> None:
        """Raise a ValueError for gains not relative to their largest, or for more exploring pulls than rounds."""
        state = agent.state
        if (state.learners.gains.max(axis=1) != 0).any():
            raise ValueError("state.learners.gains must be <= 0, 0 for the leader of each row")
        if state.exploring_pulls.sum() > state.explored.item():
            raise ValueError("state.exploring_pulls must sum to state.explored at most")

    def start(self, setting: Setting, table: Table, rng: Words) -> SPLAgent:
        """Return a new agent; SPL draws nothing, so `rng` is not kept."""
        if self.gap_clip is None:
            require_bound("SPL without a gap_clip", setting)
        _, n_arms, dim = table.features.shape
        state = SPLState(
            regression=make_regression(dim, setting.noise_std, self.ridge, norms=True),
            learners=Learners(np.zeros((n_arms, n_arms)), np.zeros(n_arms)),
            step=np.array(0),
            explored=np.array(0),
            pulls=np.zeros(n_arms, dtype=np.int64),
            exploring_pulls=np.zeros(n_arms, dtype=np.int64),
            tracked=np.zeros(n_arms),
        )
        work = SPLWork(
            past=make_past_norms(1, n_arms),
            means=np.zeros((1, n_arms)),
            rates=np.zeros(n_arms),
            weights=np.zeros(n_arms),
            columns=np.zeros((dim, n_arms)),
            gram=np.zeros((dim, dim)),
            factor=np.zeros((dim, dim)),
            norms=np.zeros(n_arms),
            delta=np.zeros(dim),
            gain=np.zeros(n_arms),
        )
        params = SPLParams(0.0 if self.gap_clip is None else float(self.gap_clip))
        return SPLAgent(params, setting, table, state, work)
