"""Algorithm 1 with the context at hand in the place of all contexts: one decision, one step of the solution."""

import math

import numpy as np

from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats
from solid_bandits.estimation.arms import estimate_arms
from solid_bandits.estimation.estimator import observe
from solid_bandits.estimation.noise import noise_variance
from solid_bandits.linalg.gram import GRAM_RIDGE
from solid_bandits.linalg.triangular import cholesky, solve_lower, solve_transposed
from solid_bandits.linalg.vectors import dot
from solid_bandits.policies.streaming.stakes import may_explore, squared_width, survey
from solid_bandits.policies.streaming.state import StreamingAgent
from solid_bandits.policies.streaming.sums import add_step, normalise, omega
from solid_bandits.stream import uniform


@jit
def draw(
    agent: StreamingAgent, arms: Floats, available: Bools, best: int, largest: float, total: float
) -> int:
    """An arm drawn from ω; takes ω into V_ω, and what it is expected to cost into `spent`."""
    state, work, fading = agent.state, agent.work, agent.params.fading
    gram, dim = state.gram, arms.shape[1]
    state.mass[()] = (1.0 - fading) * state.mass.item() + fading
    for i in range(dim):
        for j in range(dim):
            gram[i, j] *= 1.0 - fading
    top = dot(arms[best], work.theta)
    point, cumulated, drawn, last = uniform(state.stream), 0.0, -1, best
    for arm in range(arms.shape[0]):
        if not available[arm]:
            continue
        chance = omega(agent, arms[arm], largest, total)
        if chance > 0.0:
            last = arm
            cumulated += chance
            if drawn < 0 and point < cumulated:
                drawn = arm
            state.spent[()] += chance * max(top - dot(arms[arm], work.theta), 0.0)
            for i in range(dim):
                scaled = fading * chance * arms[arm, i]
                for j in range(dim):
                    gram[i, j] += scaled * arms[arm, j]
    # The probabilities may sum to a little less than 1 by rounding.
    return drawn if drawn >= 0 else last


@jit
def find_alternative(agent: StreamingAgent, arms: Floats, available: Bools, best: int) -> None:
    """Write θ-hat - θ' into `work.delta`, θ' the model closest under V_ω in which another arm on offer is best."""
    state, work = agent.state, agent.work
    dim, vector = arms.shape[1], work.arms.vector
    trace = 0.0
    for i in range(dim):
        for j in range(dim):
            work.gram[i, j] = state.gram[i, j] / state.mass.item()
        trace += work.gram[i, i]
        work.delta[i] = 0.0
    for i in range(dim):
        work.gram[i, i] += GRAM_RIDGE * trace / dim
    cholesky(work.gram, work.factor)
    least = np.inf
    for arm in range(arms.shape[0]):
        if not available[arm]:
            continue
        for i in range(dim):
            vector[i] = arms[best, i] - arms[arm, i]
        gap = dot(vector, work.theta)
        solve_lower(work.factor, vector)
        sq_norm = dot(vector, vector)
        if sq_norm > 0.0 and gap * gap / sq_norm < least:
            least = gap * gap / sq_norm
            for i in range(dim):
                work.delta[i] = gap / sq_norm * vector[i]
    solve_transposed(work.factor, work.delta)


@jit
def gradient_and_constraint(
    agent: StreamingAgent, arms: Floats, available: Bools, width: float, largest: float, total: float
) -> tuple[float, float]:
    """‖q_t(X_t, ·)‖ and Σ ω (d + bonus) = g_t + 1/z in the context at hand (Eqs. ft, gt), `local` reading."""
    state, work = agent.state, agent.work
    half_precision, multiplier = (
        0.5 / noise_variance(agent.setting.noise_std, state.estimator),
        state.multiplier.item(),
    )
    square, optimistic, first = 0.0, 0.0, 0
    while first < arms.shape[0]:
        count = estimate_arms(state.estimator, arms, first, work.arms)
        for k in range(count):
            features = arms[first + k]
            if available[first + k]:
                bonus = math.sqrt(width * max(work.arms.sq_norms[k], 0.0))
                reach = abs(dot(features, work.delta)) + bonus
                divergence = half_precision * reach * reach
                gradient = work.arms.means[k] + bonus + multiplier * divergence
                square += gradient * gradient
                optimistic += omega(agent, features, largest, total) * divergence
        first += count
    return math.sqrt(square), optimistic


@jit
def primal_dual_step(
    agent: StreamingAgent, arms: Floats, available: Bools, best: int, largest: float, total: float
) -> None:
    """One step on the optimistic Lagrangian in the context at hand, then the phase stopping test (Algorithm 1)."""
    params, state = agent.params, agent.state
    phases, phase = params.phases, state.phase.item()
    width = squared_width(agent, state.explored.item())
    find_alternative(agent, arms, available, best)
    norm, optimistic = gradient_and_constraint(agent, arms, available, width, largest, total)
    if norm > 0.0:
        add_step(agent, width, norm)
    multiplier = state.multiplier.item() - params.multiplier_step * (
        optimistic - 1.0 / phases.normalisation[phase]
    )
    state.multiplier[()] = min(max(multiplier, 0.0), params.max_multiplier)
    if state.explored.item() - state.phase_start.item() >= phases.length[phase]:
        state.phase[()] = min(phase + 1, phases.length.shape[0] - 1)
        state.phase_start[()] = state.explored.item()


@jit
def act(agent: StreamingAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """The best arm where it is identified or the budget is spent; else a draw from ω, and a step of the solution."""
    state = agent.state
    best, is_open, stake = survey(agent, arms, available)
    explores = is_open and may_explore(agent, stake)
    state.stake[()] += stake
    arm = best
    if explores:
        state.explored[()] += 1
        largest, total = normalise(agent, arms, available)
        arm = draw(agent, arms, available, best, largest, total)
        primal_dual_step(agent, arms, available, best, largest, total)
    state.step[()] += 1
    return arm, explores


@jit
def update(agent: StreamingAgent, features: Floats, reward: float) -> None:
    """Take in a reward."""
    work = agent.work.arms
    observe(agent.state.estimator, features, reward, work.vector, work.gains)


@jit
def probabilities(agent: StreamingAgent, arms: Floats, available: Bools, out: Floats) -> bool:
    """ω(X_t, ·) if the round is to explore, else 1 on the best arm."""
    best, is_open, stake = survey(agent, arms, available)
    for arm in range(out.shape[0]):
        out[arm] = 0.0
    if is_open and may_explore(agent, stake):
        largest, total = normalise(agent, arms, available)
        for arm in range(out.shape[0]):
            if available[arm]:
                out[arm] = omega(agent, arms[arm], largest, total)
    else:
        out[best] = 1.0
    return True
