"""OAM: optimal allocation matching (Hao, Lattimore and Szepesvári 2020), for several contexts."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.linalg.vectors import best_arm
from solid_bandits.estimation.tables import TableRegression, bring_up_to_date, make_table_regression
from solid_bandits.planning.allocation import TIE, Allocation, make_allocation, solve_allocation
from solid_bandits.planning.interior import AllocationWork
from solid_bandits.policies.contract import TablePolicy, register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.identification import least_positive_gap, matched_distance
from solid_bandits.policies.linucb import LinUCBParams, radius
from solid_bandits.policies.thresholds import exploitation_threshold


class OAMParams(NamedTuple):
    """The chosen parameters in compiled form."""

    epsilon: float
    resolve_every: int
    optimism: LinUCBParams


class OAMState(NamedTuple):
    """State of OAM."""

    regression: TableRegression
    allocation: Allocation
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: exploring rounds, shape ()."""
    pulls: Ints
    """N(x,a), shape (contexts, arms)."""


class OAMAgent(NamedTuple):
    """Compiled form of OAM."""

    params: OAMParams
    setting: Setting
    table: Table
    state: OAMState
    work: AllocationWork


@jit
def optimistic_arm(agent: OAMAgent, context: int, step: int) -> int:
    """Return LinUCB's arm."""
    regression = agent.state.regression
    means, sq_norms = regression.tables.means[context], regression.tables.sq_norms[context]
    width = radius(agent.params.optimism, agent.setting, regression, step)
    best = 0
    largest = -np.inf
    for arm in range(means.shape[0]):
        bound = means[arm] + width * math.sqrt(max(sq_norms[arm], 0.0))
        if bound > largest:
            best, largest = arm, bound
    return best


@jit
def explore(agent: OAMAgent, context: int, step: int, least_gap: float, threshold: float) -> int:
    """Match the allocation; LinUCB if this context has had its share, the rarest arm if it is too rare."""
    params, setting, state = agent.params, agent.setting, agent.state
    state.explored[()] += 1
    estimated = state.regression.tables.means
    pulls, means = state.pulls[context], estimated[context]
    # Solve (P) every `resolve_every` exploring rounds, and in each round as long as there is no solution to follow.
    if (
        state.explored.item() % params.resolve_every == 0
        or state.explored.item() == 1
        or state.allocation.bracket[1] == 0.0
    ):
        solve_allocation(agent.table.features, setting.noise_std, estimated, state.allocation, agent.work)
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
        # T often equals its bound up to rounding, which must not decide between arms.
        if wanted > 0.0 and pulls[arm] / wanted < (1.0 - TIE) * least:
            matched, least = arm, pulls[arm] / wanted
    if least_gap == 0.0:
        # All estimates tie: (P) has no solution, and the last one belongs to other estimates.
        return rarest
    if least >= 1.0:
        return optimistic_arm(agent, context, step)
    if pulls[rarest] <= params.epsilon * state.explored.item() or matched < 0:
        return rarest
    return matched


@jit
def act(agent: OAMAgent, context: int, out: Floats | None) -> tuple[int, bool]:
    """Return the greedy arm if its context passes the test, else an exploring arm."""
    state, tables = agent.state, agent.state.regression.tables
    state.step[()] += 1
    step = state.step.item()
    bring_up_to_date(state.regression, agent.table)
    threshold = exploitation_threshold(agent.setting, step)
    least_gap = least_positive_gap(tables.means)
    means, sq_norms = tables.means[context], tables.sq_norms[context]
    explores = matched_distance(means, sq_norms, least_gap, threshold) < threshold
    arm = explore(agent, context, step, least_gap, threshold) if explores else best_arm(means)
    state.pulls[context, arm] += 1
    return arm, explores


register(OAMAgent, act, certain=True)


@dataclass(frozen=True)
class OAM(TablePolicy):
    """Optimal allocation matching: pull each arm as often as (P), solved at the estimates, says.

    Exploit where ‖φ(x,a)‖²_{V^-1} <= max(Δ_min, Δ(x,a))² / β_t for every arm of the context. Otherwise s += 1; with T
    the allocation that (P) asks for at θ-hat, infinite at the best arm, and N the pulls, over the arms of the context
    b1 = argmin_a N / min(T, β_t / Δ_min²) and b2 = argmin_a N:

    - if the least ratio is >= 1, exploring would be wasted on matching: LinUCB's arm;
    - else if N(b2) <= ε s, forced exploration: b2;
    - else b1.

    As in the paper under study β_t = σ² (log t + d log log n) replaces Hao et al.'s f_n, in the test and in T. With ε =
    0 forced exploration pulls every arm of a context once. Where all estimates tie, (P) has no solution, and the rarest
    arm is pulled.

    A step takes O(P d) for P pairs when it exploits; a solve takes a few Newton steps of O(P³), and memory is O(P²).

    Args:
        epsilon: ε >= 0 of forced exploration; the theory needs ε > 0, the paper's toy runs best with 0.
        resolve_every: number of exploring rounds between solutions of (P); the paper uses 100 on its random problems.
        ridge: ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.toy()
        >>> agent = sb.Agent(sb.rivals.OAM(), contexts=problem.features, noise_std=problem.noise_std, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        1

    Reference: Hao, Lattimore and Szepesvári (2020), "Adaptive exploration in linear contextual bandit", Algorithm 1.
    """

    # The paper re-solves every 100 rounds on all problems but the toy; compiled, re-solving in every round is
    # affordable.
    facts = Facts(
        name="oam",
        label="OAM",
        line="matches pulls to the lower bound's allocation at the estimates; forced exploration",
        optimality="constant",
        exploration="forcing; LinUCB where matching would be wasted",
        test="likelihood ratio, arm by arm",
        reference="Hao, Lattimore and Szepesvári 2020",
        cost=(0.3, 0.0, 0.08),
    )

    epsilon: float = parameter(0.01, least=0)
    resolve_every: int = parameter(1, least=1)
    ridge: float = parameter(1.0, above=0)

    def microseconds(self, pairs: int, dim: int) -> float:
        """Estimate the time of a step, of which the allocation is most; it need not be solved in every round."""
        return super().microseconds(pairs, dim) / min(self.resolve_every, 10)

    def start(self, setting: Setting, table: Table, rng: Words) -> OAMAgent:
        """Return a new agent; OAM draws nothing, so `rng` is not kept."""
        n_contexts, n_arms, _ = table.features.shape
        allocation, allocation_work = make_allocation(*table.features.shape)
        params = OAMParams(
            epsilon=float(self.epsilon),
            resolve_every=int(self.resolve_every),
            optimism=LinUCBParams(scale=1.0, full_radius=False, delta=0.0, root_ridge=0.0),
        )
        state = OAMState(
            regression=make_table_regression(table, setting.noise_std, self.ridge),
            allocation=allocation,
            step=np.array(0),
            explored=np.array(0),
            pulls=np.zeros((n_contexts, n_arms), dtype=np.int64),
        )
        return OAMAgent(params, setting, table, state, allocation_work)
