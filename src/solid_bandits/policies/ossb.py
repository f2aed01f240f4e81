"""OSSB: optimal sampling for structured bandits (Combes et al. 2017), linear structure, one context."""

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
from solid_bandits.estimation.tables import (
    Tables,
    TablesWork,
    make_table_estimates,
    observe_pair,
    write_means,
)
from solid_bandits.linalg.vectors import best_arm
from solid_bandits.policies.contract import TablePolicy, register, require_one_context
from solid_bandits.setting import Setting, Table


class OSSBParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    epsilon: float
    gamma: float
    resolve_every: int


class OSSBState(NamedTuple):
    """All that OSSB carries."""

    estimator: Estimator
    tables: Tables
    allocation: Allocation
    """c(θ-hat)."""
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: rounds that did not exploit, shape ()."""
    pulls: Ints
    """N, shape (arms,)."""


class OSSBWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    tables: TablesWork
    allocation: AllocationWork


class OSSBAgent(NamedTuple):
    """OSSB at work."""

    params: OSSBParams
    setting: Setting
    table: Table
    state: OSSBState
    work: OSSBWork


@jit
def act(agent: OSSBAgent, context: int) -> tuple[int, bool]:
    """The greedy arm if every arm has its (1 + γ) c log t pulls; else the rarest arm, or the one that lags most."""
    params, state = agent.params, agent.state
    state.step[()] += 1
    step = state.step.item()
    write_means(state.estimator, state.tables, agent.table, agent.work.tables)
    means, pulls, wanted = state.tables.means[0], state.pulls, state.allocation.pulls[0]
    if step % params.resolve_every == 0 or state.allocation.bracket[1] == 0.0:
        solve_allocation(
            agent.table.features,
            agent.setting.noise_std,
            state.tables.means,
            state.allocation,
            agent.work.allocation,
        )
    best = best_arm(means)
    rarest = 0
    lagging = -1
    least = np.inf
    tied = True
    for arm in range(pulls.shape[0]):
        tied = tied and means[arm] == means[best]
        if pulls[arm] < pulls[rarest]:
            rarest = arm
        if wanted[arm] > 0.0 and pulls[arm] / wanted[arm] < (1.0 - TIE) * least:
            lagging, least = arm, pulls[arm] / wanted[arm]
    explores = True
    if not tied and least >= (1.0 + params.gamma) * math.log(step):
        arm, explores = best, False
    else:
        state.explored[()] += 1
        forced = pulls[rarest] <= params.epsilon * state.explored.item()
        # Arms that all tie have no allocation; telling them apart starts with the rarest.
        arm = rarest if forced or lagging < 0 else lagging
    pulls[arm] += 1
    return arm, explores


@jit
def update(agent: OSSBAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    state = agent.state
    observe_pair(state.estimator, state.tables, agent.work.tables, agent.table.features[context, arm], reward)


register(OSSBAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class OSSB(TablePolicy):
    """OSSB: exploit when every arm has been pulled as often as the lower bound says; otherwise make up for it.

    With c(θ-hat) the solution of (P) at the estimates (pulls per unit of log t): exploit if N(a) >= (1 + γ) c(a) log t
    for every suboptimal arm. Otherwise s += 1; if the rarest arm has at most ε s pulls it is pulled ("estimation"),
    else the arm with the least N(a) / c(a) ("exploration"). The test counts pulls and knows no confidence set,
    so wrong estimates are put right by ε alone: with ε = 0 the policy may stay wrong.

    c is needed in every round, for the test: a step takes O(K d) for K arms and a solve, a few Newton steps
    of O(K³). One context.

    Args:
        epsilon: ε >= 0, the share of the exploring rounds that every arm gets at least.
        gamma: γ >= 0, the margin of the test. The theorem needs ε, γ > 0, and the constant 1 + γ is lost.
        resolve_every: rounds between solutions of (P).
        ridge: ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.end_of_optimism()
        >>> agent = sb.Agent(sb.OSSB(), contexts=problem.features, noise_std=problem.noise_std, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        1

    Reference: Combes, Magureanu and Proutiere (2017), "Minimal exploration in structured stochastic bandits",
    Algorithm 1.
    """

    epsilon: float = 0.01
    gamma: float = 0.01
    resolve_every: int = 1
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.not_negative("epsilon", self.epsilon)
        _check.not_negative("gamma", self.gamma)
        _check.integer("resolve_every", self.resolve_every, least=1)
        _check.positive("ridge", self.ridge)

    def start(self, setting: Setting, table: Table, stream: Words) -> OSSBAgent:
        """A new agent; OSSB draws nothing, so the stream is not kept."""
        require_one_context("OSSB", table)
        estimator, tables, tables_work = make_table_estimates(table, self.ridge)
        allocation, allocation_work = make_allocation(*table.features.shape)
        params = OSSBParams(float(self.epsilon), float(self.gamma), int(self.resolve_every))
        state = OSSBState(
            estimator=estimator,
            tables=tables,
            allocation=allocation,
            step=np.array(0),
            explored=np.array(0),
            pulls=np.zeros(table.features.shape[1], dtype=np.int64),
        )
        return OSSBAgent(params, setting, table, state, OSSBWork(tables_work, allocation_work))
