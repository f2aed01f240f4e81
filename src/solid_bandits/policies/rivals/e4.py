"""E4, explore, estimate, eliminate and exploit: a few batches for one context (Ren, Jin and Xu 2024)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_allocating
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.linalg.vectors import best_arm
from solid_bandits.estimation.regression import observe_reward, squared_norm
from solid_bandits.estimation.tables import (
    TableRegression,
    bring_up_to_date,
    make_table_regression,
)
from solid_bandits.planning.allocation import Allocation, make_allocation, solve_allocation
from solid_bandits.planning.interior import AllocationWork
from solid_bandits.policies.contract import TablePolicy, register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.rivals.design import approximate_design
from solid_bandits.policies.thresholds import log_horizon

MOST_PULLS = 1e12
"""Of an arm in a batch: no run is longer."""
ROUNDING = 1e-9
"""Part by which a number may exceed a whole one and still be that."""


class E4Params(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    root: bool
    """Whether the first batch has √n pulls and not √log n."""
    gamma: float


class E4State(NamedTuple):
    """State of E4."""

    regression: TableRegression
    allocation: Allocation
    """Solved once, at the end of the first batch."""
    step: Ints
    """t: decisions made, shape ()."""
    batch: Ints
    """Batches begun, shape ()."""
    size: Floats
    """T_l, the pulls that the design of the present batch was made for, shape ()."""
    active: Ints
    """1 for arms that may be the best one, else 0, shape (arms,)."""
    quota: Ints
    """Pulls of each arm that are left in the present batch, shape (arms,)."""


class E4Agent(NamedTuple):
    """Compiled form of E4."""

    params: E4Params
    setting: Setting
    table: Table
    state: E4State
    work: AllocationWork


@jit
def whole(pulls: float) -> int:
    """The next whole number of pulls."""
    return math.ceil(min(pulls, MOST_PULLS) * (1.0 - ROUNDING))


@jit_allocating
def plan_design(agent: E4Agent, size: float) -> None:
    """Pull each active arm ⌈2 π(a) g(π) T_l / d⌉ times, g(π) the largest squared norm under the design π."""
    state, features = agent.state, agent.table.features[0]
    rows, counts = np.zeros(features.shape), np.zeros(features.shape[0])
    for arm in range(features.shape[0]):
        if state.active[arm] > 0:
            rows[arm] = features[arm]
    approximate_design(rows, counts)  # of N pulls: π = counts / N, and g(π) is at most N
    state.size[()] = size
    for arm in range(features.shape[0]):
        state.quota[arm] = whole(2.0 * counts[arm] * size / features.shape[1])


@jit
def plan_allocation(agent: E4Agent, log_n: float) -> None:
    """Pull each arm as often as (P) asks for at the estimates, α log n in the place of log n, up to a cap."""
    setting, state = agent.setting, agent.state
    means = state.regression.tables.means
    solve_allocation(agent.table.features, setting.noise_std, means, state.allocation, agent.work)
    log_log_n = math.log(log_n)
    alpha = (1.0 + 1.0 / log_log_n) * (1.0 + setting.dim * log_log_n / log_n)
    n_arms = means.shape[1]
    cap = min(log_n ** (1.0 + agent.params.gamma), math.exp(log_n) / (2.0 * n_arms))
    best = best_arm(means[0])
    for arm in range(n_arms):
        wanted = cap if arm == best else state.allocation.pulls[0, arm] * alpha * log_n
        state.quota[arm] = whole(min(wanted, cap))


@jit
def stops(agent: E4Agent, log_n: float) -> bool:
    """Chernoff's rule: min_a Δ-hat(a)² / 2σ²‖φ* - φ(a)‖²_{V^-1} > ½ (d/2 log t + log n), for all arms that differ."""
    setting, regression = agent.setting, agent.state.regression
    features, means, vector = agent.table.features[0], regression.tables.means[0], regression.work.vector
    best = best_arm(means)
    # t: the pulls of the two batches, without the decision to come.
    pulled = max(agent.state.step.item() - 1, 1)
    beta = 0.5 * (0.5 * setting.dim * math.log(pulled) + log_n)
    for arm in range(features.shape[0]):
        for i in range(vector.shape[0]):
            vector[i] = features[best, i] - features[arm, i]
        norm = squared_norm(regression, vector)
        gap = means[best] - means[arm]
        if norm > 0.0 and gap * gap <= 2.0 * beta * setting.noise_std**2 * norm:
            return False
    return True


@jit
def eliminate(agent: E4Agent, log_n: float) -> None:
    """Keep arms whose mean is within 2ε_l of the best active one's, ε_l = σ √(d log(K n²) / T_l)."""
    setting, state = agent.setting, agent.state
    means, active = state.regression.tables.means[0], state.active
    largest = -np.inf
    for arm in range(active.shape[0]):
        if active[arm] > 0:
            largest = max(largest, means[arm])
    spread = math.sqrt(setting.dim * (math.log(active.shape[0]) + 2.0 * log_n) / state.size.item())
    for arm in range(active.shape[0]):
        if active[arm] > 0 and means[arm] < largest - 2.0 * setting.noise_std * spread:
            active[arm] = 0


@jit
def commit(agent: E4Agent) -> None:
    """Leave the arm that looks best among the active ones."""
    active, means = agent.state.active, agent.state.regression.tables.means[0]
    best = -1
    for arm in range(active.shape[0]):
        if active[arm] > 0 and (best < 0 or means[arm] > means[best]):
            best = arm
    for arm in range(active.shape[0]):
        active[arm] = 1 if arm == best else 0


@jit
def count_active(state: E4State) -> int:
    """How many arms may be the best one."""
    count = 0
    for arm in range(state.active.shape[0]):
        if state.active[arm] > 0:
            count += 1
    return count


@jit
def next_in_batch(state: E4State) -> int:
    """The first arm with pulls left; -1 if the batch is over."""
    for arm in range(state.quota.shape[0]):
        if state.quota[arm] > 0:
            return arm
    return -1


@jit_allocating
def begin_batch(agent: E4Agent) -> None:
    """Estimate from all rewards that have come, and plan the next batch, or leave one arm."""
    params, state = agent.params, agent.state
    log_n = log_horizon(agent.setting, state.step.item())
    bring_up_to_date(state.regression, agent.table)
    ended = state.batch.item()
    state.batch[()] += 1
    if ended == 0:
        plan_design(agent, math.exp(0.5 * log_n) if params.root else math.sqrt(log_n))
    elif ended == 1:
        plan_allocation(agent, log_n)
    elif ended == 2:
        if stops(agent, log_n):
            commit(agent)
        else:
            plan_design(agent, log_n ** (1.0 + params.gamma))
    else:
        eliminate(agent, log_n)
        if count_active(state) > 1:
            plan_design(agent, math.exp(log_n * (1.0 - 0.5 ** (ended - 2))))


@jit
def act(agent: E4Agent, context: int, out: Floats | None) -> tuple[int, bool]:
    """The next pull of the batch; once one arm is left, that one for ever."""
    state = agent.state
    state.step[()] += 1
    arm = next_in_batch(state)
    if arm < 0 and count_active(state) > 1:
        begin_batch(agent)
        arm = next_in_batch(state)
        if arm < 0:
            commit(agent)  # also where no arm has features
    if arm >= 0:
        state.quota[arm] -= 1
        return arm, True
    for a in range(state.active.shape[0]):
        if state.active[a] > 0:
            arm = a
    return arm, False


@jit
def update(agent: E4Agent, context: int, arm: int, reward: float) -> None:
    """Take in a reward; it is not looked at before the batch is over."""
    observe_reward(agent.state.regression, agent.table.features[context, arm], reward, 0)


register(E4Agent, act, update, certain=True)


@dataclass(frozen=True)
class E4(TablePolicy):
    """Asymptotically optimal in three batches: explore, estimate, eliminate and exploit.

    With one fixed set of K arms and n decisions, estimates being read at the end of a batch alone:

    1. a design over all arms, of T_1 pulls;
    2. the allocation of (P) at the estimates, scaled by α log n, α = (1 + 1/log log n)(1 + d log log n / log n), no arm
       more often than min((log n)^(1+γ), n/2K), and the best arm, whose pulls are free in (P), as often as that;
    3. if Chernoff's rule holds, min_a Δ(a)² / ‖φ* - φ(a)‖²_{V^-1} > σ² (d/2 log t + log n), the arm that looks best to
       the end. If not, a design of (log n)^(1+γ) pulls over all arms;
    4. arms leave whose mean is more than 2σ √(d log(K n²) / T_l) below the best one's; while several are left, a
       design over them of T_l = n^(1/2), n^(3/4), n^(7/8), ... pulls.

    A design of T pulls takes arm a ⌈2 π(a) g(π) T / d⌉ times, π that of LinMED. One context. Where the horizon is
    unknown, the current step takes its place when a batch is planned. A step takes O(K); planning a batch one solve of
    (P) at most.

    Args:
        first: T_1: `log`, √log n, or `root`, √n, as in the authors' published code; the latter costs a regret in
            proportion to √n, and is not asymptotically optimal.
        gamma: γ > 0. The theorem's is any; the authors' published code has 10.
        ridge: ν > 0, the regulariser of the estimate; small, because the first batch's few pulls must not be shrunk.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.end_of_optimism()
        >>> results = sb.simulate(problem, {"E4": sb.rivals.E4()}, horizon=10_000, runs=2, seed=0)
        >>> results.table.height > 0
        True

    Reference: Ren, Jin and Xu (2024), "Optimal batched linear bandits", ICML (arXiv 2406.04137).
    """

    facts = Facts(
        name="e4",
        label="E4",
        line="a design, the lower bound's allocation, then one arm: three batches; more if the arm is in doubt",
        setting="linear, one context",
        optimality="constant, in three batches",
        exploration="designs and one allocation, in batches",
        test="likelihood ratio, once; then elimination",
        reference="Ren, Jin and Xu 2024",
        cost=(0.1, 0.001, 0.0001),
        one_context=True,
    )

    first: str = parameter("log", choices=("log", "root"))
    gamma: float = parameter(1.0, above=0)
    ridge: float = parameter(1e-3, above=0)

    def check_state(self, agent: E4Agent) -> None:
        """Refuse a batch that cannot be: no arm left, a size without a batch."""
        state = agent.state
        if not state.active.any() or state.active.max() > 1:
            raise ValueError("state.active must be 1 for an arm at least, and 0 for others")
        if state.batch.item() > 2 and not state.size.item() > 0:
            raise ValueError("state.size must be > 0 after the second batch")
        if state.batch.item() > state.step.item():
            raise ValueError("state.batch must be at most state.step")

    def start(self, setting: Setting, table: Table, rng: Words) -> E4Agent:
        """A new agent; the strategy draws nothing, so `rng` is not kept."""
        n_arms = table.features.shape[1]
        allocation, allocation_work = make_allocation(*table.features.shape)
        state = E4State(
            regression=make_table_regression(table, setting.noise_std, self.ridge),
            allocation=allocation,
            step=np.array(0),
            batch=np.array(0),
            size=np.array(0.0),
            active=np.ones(n_arms, dtype=np.int64),
            quota=np.zeros(n_arms, dtype=np.int64),
        )
        return E4Agent(
            E4Params(self.first == "root", float(self.gamma)), setting, table, state, allocation_work
        )
