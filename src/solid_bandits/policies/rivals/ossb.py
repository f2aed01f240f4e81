"""OSSB: optimal sampling for structured bandits (Combes et al. 2017), linear structure, one context."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.linalg.vectors import best_arm
from solid_bandits.estimation.tables import TableRegression, make_table_regression, write_means
from solid_bandits.planning.allocation import TIE, Allocation, make_allocation, solve_allocation
from solid_bandits.planning.interior import AllocationWork
from solid_bandits.policies.contract import TablePolicy, register
from solid_bandits.policies.facts import Facts


class OSSBParams(NamedTuple):
    """The chosen parameters in compiled form."""

    epsilon: float
    gamma: float
    resolve_every: int


class OSSBState(NamedTuple):
    """State of OSSB."""

    regression: TableRegression
    allocation: Allocation
    """c(θ-hat)."""
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: number of rounds that did not exploit, shape ()."""
    pulls: Ints
    """N, shape (arms,)."""


class OSSBAgent(NamedTuple):
    """Compiled form of OSSB."""

    params: OSSBParams
    setting: Setting
    table: Table
    state: OSSBState
    work: AllocationWork


@jit
def act(agent: OSSBAgent, context: int, out: Floats | None) -> tuple[int, bool]:
    """Return the greedy arm if every arm has its (1 + γ) c log t pulls; else the rarest arm, or the one furthest
    behind.
    """
    params, state, estimated = agent.params, agent.state, agent.state.regression.tables.means
    state.step[()] += 1
    step = state.step.item()
    write_means(state.regression, agent.table)
    means, pulls, wanted = estimated[0], state.pulls, state.allocation.pulls[0]
    if step % params.resolve_every == 0 or state.allocation.bracket[1] == 0.0:
        solve_allocation(
            agent.table.features, agent.setting.noise_std, estimated, state.allocation, agent.work
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


register(OSSBAgent, act, certain=True)


@dataclass(frozen=True)
class OSSB(TablePolicy):
    """OSSB: exploit when every arm has been pulled as often as the lower bound says; otherwise catch up.

    With c(θ-hat) the solution of (P) at the estimates (pulls per unit of log t): exploit if N(a) >= (1 + γ) c(a) log t
    for every suboptimal arm. Otherwise s += 1; if the rarest arm has at most ε s pulls it is pulled ("estimation"),
    else the arm with the least N(a) / c(a) ("exploration"). The test counts pulls and uses no confidence set, so only ε
    corrects wrong estimates: with ε = 0 the policy may stay wrong.

    c is needed in every round, for the test: a step takes O(K d) for K arms and a solve, a few Newton steps
    of O(K³). One context.

    Args:
        epsilon: ε >= 0, the least share of the exploring rounds that every arm gets.
        gamma: γ >= 0, the margin of the test. The theorem needs ε, γ > 0, and the constant 1 + γ is lost.
        resolve_every: number of rounds between solutions of (P).
        ridge: ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.end_of_optimism()
        >>> agent = sb.Agent(sb.rivals.OSSB(), contexts=problem.features, noise_std=problem.noise_std, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        1

    Reference: Combes, Magureanu and Proutiere (2017), "Minimal exploration in structured stochastic bandits",
    Algorithm 1.
    """

    facts = Facts(
        name="ossb",
        label="OSSB",
        line="pulls every arm as often as the lower bound says at the estimates; forced exploration",
        setting="structured, one context; linear here",
        optimality="order (constant as gamma, epsilon fall); finite-time bound",
        exploration="forcing",
        test="pulls tracked",
        reference="Combes, Magureanu and Proutiere 2017",
        cost=(2.0, 0.1, 0.06),
        one_context=True,
    )

    epsilon: float = parameter(0.01, least=0)
    gamma: float = parameter(0.01, least=0)
    resolve_every: int = parameter(1, least=1)
    ridge: float = parameter(1.0, above=0)

    def start(self, setting: Setting, table: Table, rng: Words) -> OSSBAgent:
        """Return a new agent; OSSB draws nothing, so `rng` is not kept."""
        allocation, allocation_work = make_allocation(*table.features.shape)
        params = OSSBParams(float(self.epsilon), float(self.gamma), int(self.resolve_every))
        state = OSSBState(
            regression=make_table_regression(table, setting.noise_std, self.ridge),
            allocation=allocation,
            step=np.array(0),
            explored=np.array(0),
            pulls=np.zeros(table.features.shape[1], dtype=np.int64),
        )
        return OSSBAgent(params, setting, table, state, allocation_work)
