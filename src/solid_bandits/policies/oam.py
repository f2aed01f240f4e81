"""OAM: optimal allocation matching (Hao, Lattimore and Szepesvári 2020), for several contexts."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Ints, Words
from solid_bandits.allocation.allocation import TIE, Allocation, make_allocation, solve_allocation
from solid_bandits.allocation.interior import AllocationWork
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.estimation.ridges import FixedRidge
from solid_bandits.estimation.tables import (
    Tables,
    TablesWork,
    bring_up_to_date,
    make_table_estimates,
    observe_pair,
)
from solid_bandits.linalg.vectors import best_arm
from solid_bandits.policies.contract import TablePolicy, register
from solid_bandits.policies.identification import least_positive_gap, matched_distance
from solid_bandits.policies.linucb import LinUCBParams, radius
from solid_bandits.policies.thresholds import exploitation_threshold
from solid_bandits.setting import Setting, Table


class OAMParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    epsilon: float
    resolve_every: int
    optimism: LinUCBParams


class OAMState(NamedTuple):
    """All that OAM carries."""

    estimator: Estimator
    tables: Tables
    allocation: Allocation
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: exploring rounds, shape ()."""
    pulls: Ints
    """N(x,a), shape (contexts, arms)."""


class OAMWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    tables: TablesWork
    allocation: AllocationWork


class OAMAgent(NamedTuple):
    """OAM at work."""

    params: OAMParams
    setting: Setting
    table: Table
    state: OAMState
    work: OAMWork


@jit
def optimistic_arm(agent: OAMAgent, context: int, step: int) -> int:
    """LinUCB's arm."""
    state = agent.state
    means, sq_norms = state.tables.means[context], state.tables.sq_norms[context]
    width = radius(agent.params.optimism, agent.setting, state.estimator, step)
    best = 0
    largest = -np.inf
    for arm in range(means.shape[0]):
        bound = means[arm] + width * math.sqrt(max(sq_norms[arm], 0.0))
        if bound > largest:
            best, largest = arm, bound
    return best


@jit
def explore(agent: OAMAgent, context: int, step: int, least_gap: float, threshold: float) -> int:
    """Match the allocation; LinUCB where this context has had its share, the rarest arm where it is too rare."""
    params, setting, state = agent.params, agent.setting, agent.state
    state.explored[()] += 1
    pulls, means = state.pulls[context], state.tables.means[context]
    # Every `resolve_every` exploring rounds, and as long as there is no solution to follow.
    if (
        state.explored.item() % params.resolve_every == 0
        or state.explored.item() == 1
        or state.allocation.bracket[1] == 0.0
    ):
        solve_allocation(
            agent.table.features,
            setting.noise_std,
            state.tables.means,
            state.allocation,
            agent.work.allocation,
        )
    best = best_arm(means)
    rarest = 0
    matched = -1
    least = np.inf
    for arm in range(pulls.shape[0]):
        if pulls[arm] < pulls[rarest]:
            rarest = arm
        # T is the allocation for information β / (2σ²) instead of 1, infinite at the best arm; β / Δ_min² bounds it.
        wanted = threshold / (2.0 * setting.noise_std**2) * state.allocation.pulls[context, arm]
        if least_gap > 0.0:
            most = threshold / (least_gap * least_gap)
            wanted = most if arm == best else min(wanted, most)
        # T often equals its bound but for rounding, which is not to decide between arms.
        if wanted > 0.0 and pulls[arm] / wanted < (1.0 - TIE) * least:
            matched, least = arm, pulls[arm] / wanted
    if least_gap == 0.0:
        # All estimates tie: (P) has no solution, and the last one is of other estimates.
        return rarest
    if least >= 1.0:
        return optimistic_arm(agent, context, step)
    if pulls[rarest] <= params.epsilon * state.explored.item() or matched < 0:
        return rarest
    return matched


@jit
def act(agent: OAMAgent, context: int) -> tuple[int, bool]:
    """The greedy arm if its context passes the test, else an exploring arm."""
    state, tables = agent.state, agent.state.tables
    state.step[()] += 1
    step = state.step.item()
    bring_up_to_date(state.estimator, tables, agent.table, agent.work.tables)
    threshold = exploitation_threshold(agent.setting, step)
    least_gap = least_positive_gap(tables.means)
    means, sq_norms = tables.means[context], tables.sq_norms[context]
    explores = matched_distance(means, sq_norms, least_gap, threshold) < threshold
    arm = explore(agent, context, step, least_gap, threshold) if explores else best_arm(means)
    state.pulls[context, arm] += 1
    return arm, explores


@jit
def update(agent: OAMAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    state = agent.state
    observe_pair(state.estimator, state.tables, agent.work.tables, agent.table.features[context, arm], reward)


register(OAMAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class OAM(TablePolicy):
    """Optimal allocation matching: pull each arm as often as (P), solved at the estimates, says.

    Exploit where ‖φ(x,a)‖²_{V^-1} <= max(Δ_min, Δ(x,a))² / β_t for every arm of the context. Otherwise s += 1; with T
    the allocation that (P) asks for at θ-hat, infinite at the best arm, and N the pulls, over the arms of the context
    b1 = argmin_a N / min(T, β_t / Δ_min²) and b2 = argmin_a N:

    - if the least ratio is >= 1, exploring would be wasted on matching: LinUCB's arm;
    - else if N(b2) <= ε s, forced exploration: b2;
    - else b1.

    As in the paper under study β_t = σ² (log t + d log log n) stands in the place of Hao et al.'s f_n, in the test and
    in T. With ε = 0 forced exploration pulls every arm of a context once. Where all estimates tie, (P) has no
    solution, and the rarest arm is pulled.

    A step takes O(P d) for P pairs when it exploits; a solve takes a few Newton steps of O(P³), and memory is O(P²).

    Args:
        epsilon: ε >= 0 of forced exploration; the theory needs ε > 0, the paper's toy runs best with 0.
        resolve_every: exploring rounds between solutions of (P); the paper takes 100 on its random problems.
        ridge: ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.toy()
        >>> agent = sb.Agent(sb.OAM(), contexts=problem.features, noise_std=problem.noise_std, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        1

    Reference: Hao, Lattimore and Szepesvári (2020), "Adaptive exploration in linear contextual bandit", Algorithm 1.
    """

    epsilon: float = 0.01
    resolve_every: int = 1
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.not_negative("epsilon", self.epsilon)
        _check.integer("resolve_every", self.resolve_every, least=1)
        _check.positive("ridge", self.ridge)

    def start(self, setting: Setting, table: Table, stream: Words) -> OAMAgent:
        """A new agent; OAM draws nothing, so the stream is not kept."""
        n_contexts, n_arms, _ = table.features.shape
        estimator, tables, tables_work = make_table_estimates(table, self.ridge)
        allocation, allocation_work = make_allocation(*table.features.shape)
        params = OAMParams(
            epsilon=float(self.epsilon),
            resolve_every=int(self.resolve_every),
            optimism=LinUCBParams(1.0, FixedRidge(float(self.ridge)), False, 0.0, 0.0),
        )
        state = OAMState(
            estimator=estimator,
            tables=tables,
            allocation=allocation,
            step=np.array(0),
            explored=np.array(0),
            pulls=np.zeros((n_contexts, n_arms), dtype=np.int64),
        )
        return OAMAgent(params, setting, table, state, OAMWork(tables_work, allocation_work))
