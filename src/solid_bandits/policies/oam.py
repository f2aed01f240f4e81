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
from solid_bandits.linalg.vectors import best_arm
from solid_bandits.policies.contract import Policy, register
from solid_bandits.policies.identification import exploitation_threshold, least_positive_gap
from solid_bandits.policies.linucb import LinUCBAgent, LinUCBParams, LinUCBState, radius
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork, make_regression, observe


class OAMParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    epsilon: float
    resolve_every: int
    optimism: LinUCBParams


class OAMState(NamedTuple):
    """All that OAM carries."""

    regression: Regression
    allocation: Allocation
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """s: exploring rounds, shape ()."""
    pulls: Ints
    """N(x,a), shape (contexts, arms)."""


class OAMWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    regression: RegressionWork
    allocation: AllocationWork


class OAMAgent(NamedTuple):
    """OAM at work."""

    params: OAMParams
    known: View
    state: OAMState
    work: OAMWork


@jit
def is_matched(regression: Regression, context: int, least_gap: float, threshold: float) -> bool:
    """The exploitation test: whether ‖φ‖²_{V^-1} <= max(Δ_min, Δ)² / β for every arm of the context."""
    means, sq_norms = regression.means[context], regression.sq_norms[context]
    top = means[best_arm(means)]
    for arm in range(means.shape[0]):
        gap = max(top - means[arm], least_gap)
        if sq_norms[arm] * threshold > gap * gap:
            return False
    return True


@jit
def optimistic_arm(agent: OAMAgent, context: int, step: int) -> int:
    """LinUCB's arm."""
    state = agent.state
    regression = state.regression
    rival = LinUCBAgent(
        agent.params.optimism, agent.known, LinUCBState(regression, state.step), agent.work.regression
    )
    width = radius(rival, step)
    best = 0
    largest = -np.inf
    for arm in range(regression.means.shape[1]):
        bound = regression.means[context, arm] + width * math.sqrt(
            max(regression.sq_norms[context, arm], 0.0)
        )
        if bound > largest:
            best, largest = arm, bound
    return best


@jit
def explore(agent: OAMAgent, context: int, step: int, least_gap: float, threshold: float) -> int:
    """Match the allocation; LinUCB where this context has had its share, the rarest arm where it is too rare."""
    params, view, state = agent.params, agent.known, agent.state
    state.explored[()] += 1
    pulls, means = state.pulls[context], state.regression.means[context]
    # Every `resolve_every` exploring rounds, and as long as there is no solution to follow.
    if (
        state.explored.item() % params.resolve_every == 0
        or state.explored.item() == 1
        or state.allocation.bracket[1] == 0.0
    ):
        solve_allocation(
            view.features, view.noise_std, state.regression.means, state.allocation, agent.work.allocation
        )
    best = best_arm(means)
    rarest = 0
    matched = -1
    least = np.inf
    for arm in range(pulls.shape[0]):
        if pulls[arm] < pulls[rarest]:
            rarest = arm
        # T is the allocation for information β / (2σ²) instead of 1, infinite at the best arm; β / Δ_min² bounds it.
        wanted = threshold / (2.0 * view.noise_std**2) * state.allocation.pulls[context, arm]
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
    view, state = agent.known, agent.state
    state.step[()] += 1
    step = state.step.item()
    threshold = exploitation_threshold(view, step)
    least_gap = least_positive_gap(state.regression.means)
    explores = not is_matched(state.regression, context, least_gap, threshold)
    arm = best_arm(state.regression.means[context])
    if explores:
        arm = explore(agent, context, step, least_gap, threshold)
    state.pulls[context, arm] += 1
    return arm, explores


@jit
def update(agent: OAMAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    observe(agent.state.regression, agent.work.regression, agent.known, context, arm, reward)


register(OAMAgent, act, update)


@dataclass(frozen=True)
class OAM(Policy):
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

    Reference: Hao, Lattimore and Szepesvári (2020), "Adaptive exploration in linear contextual bandit", Algorithm 1.
    """

    epsilon: float = 0.01
    resolve_every: int = 1
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.number("epsilon", self.epsilon, least=0)
        _check.integer("resolve_every", self.resolve_every, least=1)
        _check.number("ridge", self.ridge, above=0)

    def start(self, view: View, stream: Words) -> OAMAgent:
        """A new agent; OAM draws nothing, so the stream is not kept."""
        n_contexts, n_arms, _ = view.features.shape
        regression, regression_work = make_regression(view, self.ridge)
        allocation, allocation_work = make_allocation(*view.features.shape)
        params = OAMParams(
            epsilon=float(self.epsilon),
            resolve_every=int(self.resolve_every),
            optimism=LinUCBParams(1.0, float(self.ridge), False, 0.0),
        )
        state = OAMState(
            regression=regression,
            allocation=allocation,
            step=np.array(0),
            explored=np.array(0),
            pulls=np.zeros((n_contexts, n_arms), dtype=np.int64),
        )
        return OAMAgent(params, view, state, OAMWork(regression_work, allocation_work))
