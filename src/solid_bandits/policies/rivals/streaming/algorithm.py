"""Streaming SOLID: the decision to explore, and Algorithm 1 with the current context in place of all contexts.

A round explores while the best arm is not identified and exploring costs less than what is at stake; it then takes one
step of the solution, whose ω is represented in `sums`.
"""

import math

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Bools, Floats
from solid_bandits.core.randomness import uniform
from solid_bandits.estimation.linalg.gram import GRAM_RIDGE
from solid_bandits.estimation.linalg.triangular import cholesky, solve_lower, solve_transposed
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.regression import (
    best_estimated,
    estimate_arms,
    estimate_differences,
    noise_deviation,
    observe_offer,
)
from solid_bandits.policies.contract import register, write_certain
from solid_bandits.policies.rivals.streaming.state import NO_LIMIT, StreamingAgent
from solid_bandits.policies.rivals.streaming.sums import add_step, normalise, omega
from solid_bandits.policies.thresholds import squared_width


@jit
def expected_excess(gap: float, spread: float) -> float:
    """Return E[(N(-gap, spread²))_+]: the expected excess of an arm that looks worse by `gap`, over the cases it is
    better.
    """
    u = gap / spread
    density = math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    return max(spread * (density - 0.5 * u * math.erfc(u / math.sqrt(2.0))), 0.0)


@jit
def survey(agent: StreamingAgent, arms: Floats, available: Bools) -> tuple[int, bool, float]:
    """Return the arm that looks best, whether the test leaves that open, and what is at stake in this round.

    The test is Algorithm 1's in the current context: open if Δ(a)² <= β ‖φ* - φ(a)‖²_{V^-1} for some arm. The stake
    bounds the arm's expected regret under the posterior: Σ_a E[(φ(a) - φ*)ᵀθ]_+. Leaves θ-hat in
    `regression.work.theta`.
    """
    regression = agent.state.regression
    work = regression.work.arms
    best = best_estimated(regression, arms, available)
    deviation = noise_deviation(regression)
    step = regression.step.item()
    limit = agent.params.threshold_scale * squared_width(agent.setting, deviation, step, step - 1)
    is_open, stake, first = False, 0.0, 0
    while first < arms.shape[0]:
        count = estimate_differences(regression, arms, best, first)
        for k in range(count):
            gap, sq_norm = work.means[k], work.sq_norms[k]
            # A copy of the best arm (norm 0) is best in every model in which the best arm is.
            if available[first + k] and sq_norm > 0.0:
                is_open = is_open or not gap * gap > limit * sq_norm
                stake += expected_excess(gap, deviation * math.sqrt(sq_norm))
        first += count
    return best, is_open, stake


@jit
def may_explore(agent: StreamingAgent, stake: float) -> bool:
    """Return whether the cost of exploring is within `budget` times what was at stake, including this round."""
    budget, state = agent.params.budget, agent.state
    return budget == NO_LIMIT or not state.spent.item() > budget * (state.stake.item() + stake)


@jit
def draw(
    agent: StreamingAgent,
    arms: Floats,
    available: Bools,
    best: int,
    largest: float,
    total: float,
    out: Floats | None,
) -> int:
    """Return an arm drawn from ω; add ω to V_ω, and its expected cost to `spent`."""
    state, theta, fading = agent.state, agent.state.regression.work.theta, agent.params.fading
    gram, dim = state.gram, arms.shape[1]
    state.mass[()] = (1.0 - fading) * state.mass.item() + fading
    for i in range(dim):
        for j in range(dim):
            gram[i, j] *= 1.0 - fading
    top = dot(arms[best], theta)
    point, cumulated, drawn, last = uniform(state.rng), 0.0, -1, best
    for arm in range(arms.shape[0]):
        if not available[arm]:
            continue
        chance = omega(agent, arms[arm], largest, total)
        if out is not None:
            out[arm] = chance
        if chance > 0.0:
            last = arm
            cumulated += chance
            if drawn < 0 and point < cumulated:
                drawn = arm
            state.spent[()] += chance * max(top - dot(arms[arm], theta), 0.0)
            for i in range(dim):
                scaled = fading * chance * arms[arm, i]
                for j in range(dim):
                    gram[i, j] += scaled * arms[arm, j]
    # By rounding, the probabilities may sum to slightly less than 1.
    return drawn if drawn >= 0 else last


@jit
def find_alternative(agent: StreamingAgent, arms: Floats, available: Bools, best: int) -> None:
    """Write θ-hat - θ' into `work.delta`, θ' being the closest model under V_ω with another best arm on offer."""
    state, work = agent.state, agent.work
    dim, vector, theta = arms.shape[1], state.regression.work.vector, state.regression.work.theta
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
        gap = dot(vector, theta)
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
    """Return ‖q_t(X_t, ·)‖ and Σ ω (d + bonus) = g_t + 1/z in the current context (Eqs. ft, gt), `local` reading."""
    regression, delta, multiplier = agent.state.regression, agent.work.delta, agent.state.multiplier.item()
    work, half_precision = regression.work.arms, 0.5 / noise_deviation(regression) ** 2
    square, optimistic, first = 0.0, 0.0, 0
    while first < arms.shape[0]:
        count = estimate_arms(regression, arms, first)
        for k in range(count):
            features = arms[first + k]
            if available[first + k]:
                bonus = math.sqrt(width * max(work.sq_norms[k], 0.0))
                reach = abs(dot(features, delta)) + bonus
                divergence = half_precision * reach * reach
                gradient = work.means[k] + bonus + multiplier * divergence
                square += gradient * gradient
                optimistic += omega(agent, features, largest, total) * divergence
        first += count
    return math.sqrt(square), optimistic


@jit
def primal_dual_step(
    agent: StreamingAgent, arms: Floats, available: Bools, best: int, largest: float, total: float
) -> None:
    """Take one step on the optimistic Lagrangian in the current context, then do the phase stopping test (Algorithm
    1).
    """
    params, state = agent.params, agent.state
    phases, phase = params.phases, state.phase.item()
    step, deviation = state.regression.step.item(), noise_deviation(state.regression)
    width = squared_width(agent.setting, deviation, step, state.explored.item())
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
def act(agent: StreamingAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Return the best arm if it is identified or the budget is spent; else draw from ω, and step the solution."""
    state = agent.state
    observe_offer(state.regression, arms, available)
    best, is_open, stake = survey(agent, arms, available)
    write_certain(out, best)
    explores = is_open and may_explore(agent, stake)
    state.stake[()] += stake
    arm = best
    if explores:
        state.explored[()] += 1
        largest, total = normalise(agent, arms, available)
        arm = draw(agent, arms, available, best, largest, total, out)
        primal_dual_step(agent, arms, available, best, largest, total)
    return arm, explores


register(StreamingAgent, act)
