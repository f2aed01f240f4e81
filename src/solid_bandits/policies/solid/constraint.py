"""The optimistic Lagrangian h_t = f_t + λ g_t of Eqs. (ft), (gt), (ht) and its gradient.

f_t(ω) = Σ ρ-hat ω (μ + b), b = √γ ‖φ‖_{V^-1}; g_t(ω, z) = inf_θ' Σ ρ-hat ω d(θ-tilde, θ') + Σ ρ-hat ω bonus - 1/z.
The paper leaves open how the bonus in g_t is to be read:

- `theorem`: (2BL/σ²) b, Eq. (gt) as printed. 2BL bounds |φᵀ(θ* + θ-tilde - 2θ')| over all θ' with ‖θ'‖ <= B;
- `plain`: b, without numerical constants, as the appendix says of all confidences;
- `local`: ((|i| + b)² - i²) / 2σ² with i = φᵀ(θ-tilde - θ') at the closest θ': by how much d(θ*, θ') can exceed
  d(θ-tilde, θ') when |φᵀ(θ* - θ-tilde)| <= b;
- `none`: 0.
"""

import math

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.linalg.vectors import dot, inner_products
from solid_bandits.policies.solid.search import find_closest
from solid_bandits.policies.solid.state import Bonus, Projected, SolidAgent

BONUSES = ("theorem", "plain", "local", "none")


def make_bonus(reading: str, setting: Setting, feature_bound: float) -> Bonus:
    """Return the bonus in g_t in one of its readings."""
    if reading == "theorem":
        return Bonus(2.0 * setting.theta_bound * feature_bound / setting.noise_std**2, 0.0, 0.0)
    if reading == "local":
        return Bonus(0.0, 1.0 / setting.noise_std**2, 0.5 / setting.noise_std**2)
    return Bonus(1.0 if reading == "plain" else 0.0, 0.0, 0.0)


@jit
def least_bonus(bonus: Bonus, weights: Floats, bonuses: Floats) -> float:
    """Return the least possible value of Σ ρ-hat ω bonus, whatever the information is."""
    total = bonus.constant * dot(weights, bonuses)
    if bonus.square > 0.0:
        squares = 0.0
        for pair in range(bonuses.shape[0]):
            squares += weights[pair] * bonuses[pair] * bonuses[pair]
        total += bonus.square * squares
    return total


@jit
def write_weights(agent: SolidAgent) -> None:
    """Write ρ-hat(x) ω_t(x,a), the weights of V_ω, into `work.weights`."""
    state, work = agent.state, agent.work
    n_contexts, n_arms = state.omega.shape
    contexts_seen = max(state.step.item(), 1)
    for context in range(n_contexts):
        frequency = state.context_counts[context] / contexts_seen
        for arm in range(n_arms):
            work.weights[context * n_arms + arm] = frequency * state.omega[context, arm]


@jit
def write_bonuses(agent: SolidAgent, width: float) -> None:
    """Write √γ ‖φ(x,a)‖_{V^-1}, the optimism in f_t and in g_t, into `work.bonuses`."""
    bonuses = agent.work.bonuses
    sq_norms = agent.state.regression.tables.sq_norms.reshape(-1)
    root_width = math.sqrt(width)
    for pair in range(bonuses.shape[0]):
        bonuses[pair] = root_width * math.sqrt(max(sq_norms[pair], 0.0))


@jit
def write_information(agent: SolidAgent, means: Floats) -> None:
    """Write φ(x,a)ᵀ(θ-tilde - θ') into `work.information`, θ' being the closest alternative under V_ω (inf in g_t)."""
    find_closest(agent.params.search, agent, means)
    inner_products(agent.table.columns, agent.work.delta, agent.work.information)


@jit
def optimistic_gradient(
    projected: Projected | None, agent: SolidAgent, width: float, normaliser: float
) -> float:
    """Write q_t / ρ-hat, q_t in ∂h_t(ω_t, λ_t, z), into `work.gradient`; return g_t(ω_t, z) (Eqs. ft, gt, ht).

    By the envelope theorem the derivative of the infimum in g_t is the information at the closest alternative θ':
    q_t(x,a) = ρ-hat(x) [ μ(x,a) + √γ ‖φ‖_{V^-1} + λ ( d_{x,a}(θ-tilde, θ') + bonus ) ].

    At λ_t = 0 the information has no part in q_t; in g_t it is a term >= 0. So if the bonuses alone make g_t positive,
    λ_{t+1} = 0 whatever θ' is: the costly search for it is skipped, and the bonuses' part of g_t returned. The `local`
    bonus is evaluated at the closest θ', as the information is.
    """
    params, setting, state, work = agent.params, agent.setting, agent.state, agent.work
    weights, bonuses, information, gradient = work.weights, work.bonuses, work.information, work.gradient
    table = state.regression.tables.means if projected is None else projected.means
    means = table.reshape(-1)
    multiplier = state.multiplier.item()
    constant, local, square = params.bonus
    write_weights(agent)
    write_bonuses(agent, width)
    constraint = least_bonus(params.bonus, weights, bonuses) - 1.0 / normaliser
    if multiplier == 0.0 and constraint >= 0.0:
        for pair in range(gradient.shape[0]):
            gradient[pair] = means[pair] + bonuses[pair]
        return constraint

    write_information(agent, table)
    half_precision = 0.5 / setting.noise_std**2
    for pair in range(gradient.shape[0]):
        divergence = half_precision * information[pair] * information[pair]
        extra = bonuses[pair] * (constant + local * abs(information[pair]) + square * bonuses[pair])
        optimistic_mean = means[pair] + bonuses[pair]
        gradient[pair] = optimistic_mean + multiplier * (divergence + extra)
    # In its own loop: if a loop both stores and sums, the compiler chooses the order of the sum by where the arrays are
    # in memory, and equal runs would differ in their last bits.
    for pair in range(gradient.shape[0]):
        constraint += half_precision * weights[pair] * information[pair] * information[pair]
    if local > 0.0:
        for pair in range(gradient.shape[0]):
            constraint += local * weights[pair] * abs(information[pair]) * bonuses[pair]
    return constraint
