"""The optimal allocation strategy of "The end of optimism?" (Lattimore and Szepesvári 2017), one context."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.linalg.vectors import best_arm
from solid_bandits.estimation.regression import observe_reward
from solid_bandits.estimation.tables import (
    TableRegression,
    bring_up_to_date,
    make_table_regression,
    write_means,
)
from solid_bandits.planning.allocation import TIE, Allocation, make_allocation, solve_allocation
from solid_bandits.planning.interior import AllocationWork
from solid_bandits.policies.contract import TablePolicy, register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.rivals.ucb1 import Tally, make_tally, upper_arm
from solid_bandits.policies.thresholds import log_horizon

WARM_UP, SUCCESS, RECOVERY = 0, 1, 2


class EndOfOptimismParams(NamedTuple):
    """The chosen parameters in compiled form."""

    tolerance: float
    spanner: Ints
    """Arms pulled in turn during the warm-up."""


class EndOfOptimismState(NamedTuple):
    """State of EndOfOptimism."""

    regression: TableRegression
    allocation: Allocation
    """The allocation, solved once at the end of the warm-up."""
    phase: Ints
    """WARM_UP, SUCCESS or RECOVERY, shape ()."""
    step: Ints
    """t: decisions made, shape ()."""
    pulls: Ints
    """N, shape (arms,)."""
    first_means: Floats
    """φ(a)ᵀθ-hat at the end of the warm-up, shape (arms,)."""
    leeway: Floats
    """Largest allowed change of the estimates since then, shape ()."""
    recovery: Tally
    """Rewards since the recovery began, which starts from nothing."""


class EndOfOptimismAgent(NamedTuple):
    """Compiled form of EndOfOptimism."""

    params: EndOfOptimismParams
    setting: Setting
    table: Table
    state: EndOfOptimismState
    work: AllocationWork


def barycentric_spanner(features: Floats) -> Ints:
    """Return arms of which all others are linear combinations with coefficients in [-1, 1] (Awerbuch and Kleinberg
    2004).

    They are found by exchanging arms as long as that increases the volume; `features` has shape (arms, dim).
    """
    _, singular, right = np.linalg.svd(features, full_matrices=False)
    rank = int((singular > 1e-9 * max(singular[0], 1e-300)).sum())
    if rank == 0:
        return np.zeros(1, dtype=np.int64)
    # Whitening does not change the coefficients, but reduces their rounding errors.
    points = features @ (right[:rank].T / singular[:rank])
    chosen: list[int] = []
    rest = points.copy()
    for _ in range(rank):
        chosen.append(int((rest**2).sum(axis=1).argmax()))
        direction = rest[chosen[-1]] / np.linalg.norm(rest[chosen[-1]])
        rest = rest - np.outer(rest @ direction, direction)
    while True:
        coefficients = np.abs(np.linalg.solve(points[chosen].T, points.T))
        place, arm = np.unravel_index(int(coefficients.argmax()), coefficients.shape)
        # Each exchange multiplies the volume by the coefficient, so this ends.
        if coefficients[place, arm] <= 1 + 1e-6:
            return np.array(chosen, dtype=np.int64)
        chosen[int(place)] = int(arm)


@jit
def commit(agent: EndOfOptimismAgent, log_n: float) -> None:
    """End the warm-up: solve the allocation, and record the estimates for which it is valid."""
    setting, state = agent.setting, agent.state
    bring_up_to_date(state.regression, agent.table)
    means, sq_norms = state.regression.tables.means, state.regression.tables.sq_norms
    solve_allocation(agent.table.features, setting.noise_std, means, state.allocation, agent.work)
    for arm in range(means.shape[1]):
        state.first_means[arm] = means[0, arm]
    largest = 0.0
    for arm in range(means.shape[1]):
        largest = max(largest, sq_norms[0, arm])
    # g_n: the threshold of confidence 1 / log n instead of 1 / n.
    width = setting.noise_std**2 * (1.0 + setting.dim) * math.log(log_n)
    state.leeway[()] = agent.params.tolerance * math.sqrt(width * largest)
    # Estimates that all tie give no allocation to follow.
    spread = 0.0
    for arm in range(means.shape[1]):
        spread = max(spread, abs(means[0, arm] - means[0, 0]))
    state.phase[()] = SUCCESS if spread > 0.0 or means.shape[1] == 1 else RECOVERY


@jit
def follow(agent: EndOfOptimismAgent, log_n: float) -> int:
    """Return the arm furthest behind its allocation; the best arm of the warm-up when none is."""
    state = agent.state
    # The allocation for information β_n / (2σ²), β_n = σ² (log n + d log log n).
    scale = 0.5 * (log_n + agent.setting.dim * math.log(log_n))
    arm = best_arm(state.first_means)
    least = 1.0
    for k in range(state.pulls.shape[0]):
        wanted = scale * state.allocation.pulls[0, k]
        if wanted > 0.0 and state.pulls[k] / wanted < (1.0 - TIE) * least:
            arm, least = k, state.pulls[k] / wanted
    return arm


@jit
def act(agent: EndOfOptimismAgent, context: int, out: Floats | None) -> tuple[int, bool]:
    """Warm up, then follow the allocation while the estimates hold, then UCB."""
    params, setting, state = agent.params, agent.setting, agent.state
    state.step[()] += 1
    write_means(state.regression, agent.table)
    means = state.regression.tables.means[0]
    step = state.step.item()
    log_n = log_horizon(setting, step)
    size = params.spanner.shape[0]
    arm = 0
    if state.phase.item() == WARM_UP:
        if step <= size * math.ceil(math.sqrt(log_n)):
            arm = params.spanner[(step - 1) % size]
            state.pulls[arm] += 1
            return arm, True
        commit(agent, log_n)
    if state.phase.item() == SUCCESS:
        for k in range(state.pulls.shape[0]):
            if abs(means[k] - state.first_means[k]) > state.leeway.item():
                state.phase[()] = RECOVERY
    explores = True
    if state.phase.item() == SUCCESS:
        arm = follow(agent, log_n)
        explores = arm != best_arm(state.first_means)
    else:
        width = setting.noise_std * math.sqrt(2.0 * math.log(step))
        arm = upper_arm(state.recovery, width)
        explores = arm != best_arm(means)
        state.recovery.pulls[arm] += 1
    state.pulls[arm] += 1
    return arm, explores


@jit
def update(agent: EndOfOptimismAgent, context: int, arm: int, reward: float) -> None:
    """Learn from a reward."""
    state = agent.state
    observe_reward(state.regression, agent.table.features[context, arm], reward, 0)
    if state.phase.item() == RECOVERY:
        state.recovery.rewards[arm] += 1
        state.recovery.sums[arm] += reward


register(EndOfOptimismAgent, act, update, certain=True)


@dataclass(frozen=True)
class EndOfOptimism(TablePolicy):
    """The first asymptotically optimal strategy for linear bandits: warm up, solve (P) once, follow it; else UCB.

    1. Warm-up: each arm of a barycentric spanner ⌈√log n⌉ times.
    2. Success: solve (P) at the estimates; pull every arm as often as the solution says, for information
       (log n + d log log n) / 2, then the arm that looked best, as long as every mean stays within `tolerance` ε_n of
       its value after the warm-up, where ε_n = √g_n max_a ‖φ(a)‖_{V^-1} and g_n = σ² (log log n + d log log n).
    3. Recovery, once an estimate has moved farther: discard the data and play UCB to the end.

    As elsewhere in this project f_n and g_n are without numerical constants. The strategy was written to prove a point:
    its warm-up is so short that the single allocation is often far from the right one. A step takes O(K d) for K arms,
    plus one solve. One context. Where the horizon is unknown, the current step takes its place.

    Args:
        tolerance: how many ε_n an estimate may move; 2 in the original.
        ridge: ν > 0, the regulariser of the estimate; small, because the warm-up's few pulls must not be shrunk.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.end_of_optimism()
        >>> agent = sb.Agent(sb.rivals.EndOfOptimism(), contexts=problem.features, noise_std=problem.noise_std, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        2

    Reference: Lattimore and Szepesvári (2017), "The end of optimism? An asymptotic analysis of finite-armed linear
    bandits", Algorithm 1.
    """

    facts = Facts(
        name="end-of-optimism",
        label="End of optimism",
        line="warms up, solves the lower bound's allocation once and follows it; UCB if the estimates move",
        setting="linear, one context",
        optimality="constant",
        exploration="warm-up on a spanner",
        test="estimates hold",
        reference="Lattimore and Szepesvári 2017",
        cost=(0.3, 0.001, 0.0001),
        one_context=True,
    )

    tolerance: float = parameter(2.0, least=0)
    ridge: float = parameter(1e-3, above=0)

    def check_state(self, agent: EndOfOptimismAgent) -> None:
        """Raise a ValueError for a phase that does not exist."""
        if agent.state.phase.item() > RECOVERY:
            raise ValueError(f"state.phase must be at most {RECOVERY}")

    def start(self, setting: Setting, table: Table, rng: Words) -> EndOfOptimismAgent:
        """Return a new agent; the strategy draws nothing, so `rng` is not kept."""
        n_arms = table.features.shape[1]
        allocation, allocation_work = make_allocation(*table.features.shape)
        state = EndOfOptimismState(
            regression=make_table_regression(table, setting.noise_std, self.ridge),
            allocation=allocation,
            phase=np.array(WARM_UP),
            step=np.array(0),
            pulls=np.zeros(n_arms, dtype=np.int64),
            first_means=np.zeros(n_arms),
            leeway=np.array(0.0),
            recovery=make_tally(n_arms),
        )
        params = EndOfOptimismParams(float(self.tolerance), barycentric_spanner(table.features[0]))
        return EndOfOptimismAgent(params, setting, table, state, allocation_work)
