"""Algorithm 1, line by line: the comments `# Alg. 1:` quote it.

`act` and `update` together are one pass through its loop. The form of the experiments (appendix "Implementation
Details") has no projection of the estimate (θ-tilde is θ-hat), alternatives in all of R^d (so the closest one has a
closed form), and the exploitation test in the last observed context.
"""

import math

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.regression import observe_reward, write_theta
from solid_bandits.estimation.tables import bring_up_to_date
from solid_bandits.policies.contract import register, write_certain
from solid_bandits.policies.solid.confidence import threshold, width
from solid_bandits.policies.solid.constraint import optimistic_gradient
from solid_bandits.policies.solid.drawing import draw, draw_probabilities
from solid_bandits.policies.solid.exploitation import statistic
from solid_bandits.policies.solid.projection import best_estimated_arm, project
from solid_bandits.policies.solid.state import SolidAgent

LEAST_EXPONENT = -745.2
"""Exponent at and below which exp rounds to 0."""


@jit
def must_explore(agent: SolidAgent, context: int, step: int) -> bool:
    """Return whether some model within β_{t-1} has another optimal arm. Leaves θ-hat in `regression.work.theta`."""
    params, regression = agent.params, agent.state.regression
    write_theta(regression, regression.work.theta)
    # Alg. 1: if inf_{θ'} ‖θ-tilde_{t-1} - θ'‖²_{V_{t-1}} > β_{t-1}
    limit = params.threshold_scale * threshold(params.confidence, agent.setting, step)
    return not statistic(params.test, agent, context, limit) > limit


@jit
def act(agent: SolidAgent, context: int, out: Floats | None) -> tuple[int, bool]:
    """Choose an arm in context X_t, and step the solution if the round explores.

    The arm's distribution is ω_t(X_t, ·) if the round explores, else 1 on the best arm.
    """
    state = agent.state
    # Alg. 1: Receive context X_t ~ ρ
    step = state.step.item() + 1
    explores = must_explore(agent, context, step)
    if not explores:
        # Alg. 1: Exploitation Step: A_t ← argmax_a μ_{θ-tilde_{t-1}}(X_t, a)
        arm = best_estimated_arm(state.projected, agent, context)
        write_certain(out, arm)
    else:
        # Alg. 1: Set S_t ← S_{t-1} + 1
        state.explored[()] += 1
        if out is not None:
            draw_probabilities(agent.params.drawing, state, context, out)
        # Alg. 1: Exploration Step: Sample arm: A_t ~ ω_t(X_t, ·)
        arm = draw(agent.params.drawing, state, context)
        # Alg. 1: Update Solution
        update_solution(agent, step)
    # Alg. 1: Update ρ-hat_t using X_t; done here and not in `update`, because a context is known before its reward.
    state.context_counts[context] += 1
    state.step[()] += 1
    return arm, explores


@jit
def update_solution(agent: SolidAgent, step: int) -> None:
    """Take a primal-dual step with the current confidence, normalisation and step sizes; then do the phase stopping
    test.
    """
    params, state = agent.params, agent.state
    phases, phase = params.phases, state.phase.item()
    bring_up_to_date(state.regression, agent.table)
    primal_dual_step(
        agent,
        width(params.confidence, agent.setting, step, state.explored.item()),
        phases.normalisation[phase],
        phases.step_scale[phase],
    )
    # Alg. 1: if S_t - S_{T_{K_t}-1} = p_k (p_k is not whole in general, so: once it is reached)
    if state.explored.item() - state.phase_start.item() >= phases.length[phase]:
        # Alg. 1: Change phase: K_{t+1} ← K_t + 1
        state.phase[()] = min(phase + 1, phases.length.shape[0] - 1)
        state.phase_start[()] = state.explored.item()
        if params.reset_at_phase:
            # Alg. 1: Reset solution: ω_{t+1} ← ω_1, λ_{t+1} ← λ_1
            state.logits[:] = 0.0
            state.omega[:] = 1.0 / state.omega.shape[1]
            state.multiplier[()] = params.initial_multiplier


@jit
def primal_dual_step(agent: SolidAgent, squared_width: float, normaliser: float, scale: float) -> None:
    """Take one step on the optimistic Lagrangian h_t(·, ·, z): ascent in ω, descent in λ."""
    params, state = agent.params, agent.state
    # Alg. 1: Compute q_t ∈ ∂h_t(ω_t, λ_t, z_{K_t})
    constraint = optimistic_gradient(state.projected, agent, squared_width, normaliser)
    # Alg. 1: Update policy
    update_omega(agent, scale * params.policy_step)
    # Alg. 1: Update multiplier: λ_{t+1} ← min{[λ_t - α^λ g_t(ω_t, z_{K_t})]_+, λ_max}
    multiplier = state.multiplier.item() - scale * params.multiplier_step * constraint
    state.multiplier[()] = min(max(multiplier, 0.0), params.max_multiplier)


@jit
def gradient_rate(agent: SolidAgent, gradient: Floats, policy_step: float, context: int) -> float:
    """Return the factor on q_t(x, ·) / ρ-hat(x): α^ω ρ-hat(x), or α^ω over its norm, where ρ-hat(x) cancels."""
    if not agent.params.normalise_gradient:
        return policy_step * agent.state.context_counts[context] / max(agent.state.step.item(), 1)
    norm = math.sqrt(dot(gradient, gradient))
    return policy_step / norm if norm > 0.0 else 0.0


@jit
def update_omega(agent: SolidAgent, policy_step: float) -> None:
    """Set ω_{t+1}(x,a) ∝ ω_t(x,a) exp(α^ω q_t(x,a)) in every context seen so far; others have no gradient yet."""
    state = agent.state
    n_contexts, n_arms = state.omega.shape
    for context in range(n_contexts):
        if state.context_counts[context] == 0:
            continue
        gradient = agent.work.gradient[context * n_arms : (context + 1) * n_arms]
        rate = gradient_rate(agent, gradient, policy_step, context)
        logits, omega = state.logits[context], state.omega[context]
        largest = -np.inf
        for arm in range(n_arms):
            logits[arm] += rate * gradient[arm]
            largest = max(largest, logits[arm])
        total = 0.0
        for arm in range(n_arms):
            logits[arm] -= largest
            # Exact, and avoids the slow path by which exp finds that its value is 0. A mere branch would not: the
            # compiler computes both sides and selects.
            vanishes = logits[arm] < LEAST_EXPONENT
            omega[arm] = math.exp(0.0 if vanishes else logits[arm])
            if vanishes:
                omega[arm] = 0.0
            total += omega[arm]
        for arm in range(n_arms):
            omega[arm] /= total


@jit
def update(agent: SolidAgent, context: int, arm: int, reward: float) -> None:
    """Learn from the outcome Y_t."""
    state = agent.state
    # Alg. 1: Update V_t, U_t, θ-hat_t using X_t, A_t, Y_t
    observe_reward(state.regression, agent.table.features[context, arm], reward, 0)
    # Alg. 1: Set θ-tilde_t := argmin_{θ ∈ Θ ∩ C_t} ‖θ - θ-hat_t‖_{V_t}
    project(state.projected, agent)


register(SolidAgent, act, update)
