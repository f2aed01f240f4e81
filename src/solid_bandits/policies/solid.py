"""SOLID: asymptotic Optimal Linear prImal Dual (Algorithm 1), as the paper's experiments run it.

`act` and `update` together are one pass through the loop of Algorithm 1; the comments `# Alg. 1:` quote its lines.
The appendix "Implementation Details" settles what differs from the theorems' form: no projection of the estimate
(θ-tilde is θ-hat), alternatives in all of R^d (so the closest one has a closed form), the exploitation test in the
last observed context.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Floats, Ints, Words
from solid_bandits.linalg import (
    best_arm,
    closest_alternative,
    difference_norm,
    dot,
    inner_products,
    symmetric_product,
    weighted_gram,
)
from solid_bandits.policies.contract import Policy, register
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork, make_regression, observe
from solid_bandits.stream import choose


class SolidParams(NamedTuple):
    """The chosen parameters as compiled code takes them, and what follows from them alone."""

    z0: float
    initial_multiplier: float
    max_multiplier: float
    policy_step: float
    multiplier_step: float
    constraint_bonus: float
    normalise_gradient: bool
    reset_at_phase: bool


class SolidState(NamedTuple):
    """All that SOLID carries from one step to the next."""

    regression: Regression
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """S_t: exploring rounds, shape ()."""
    context_counts: Ints
    """t ρ-hat_t(x): how often each context came, shape (contexts,)."""
    multiplier: Floats
    """λ_t, shape ()."""
    logits: Floats
    """log ω_t up to a constant per context, shape (contexts, arms): ω may underflow, its logarithm cannot."""
    omega: Floats
    """ω_t, the exploration policy, shape (contexts, arms)."""
    phase: Ints
    """K_t, shape ()."""
    phase_start: Ints
    """S at the end of the previous phase, shape ()."""
    stream: Words


class SolidWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    regression: RegressionWork
    weights: Floats
    columns: Floats
    gram: Floats
    norms: Floats
    delta: Floats
    information: Floats
    gradient: Floats


class SolidAgent(NamedTuple):
    """SOLID at work."""

    params: SolidParams
    known: View
    state: SolidState
    work: SolidWork


@jit
def log_log_horizon(view: View, step: int) -> float:
    """`log log n`; the current step takes the place of an unknown horizon, and 3 that of a smaller one."""
    horizon = view.horizon if view.horizon > 0 else step
    return math.log(math.log(max(horizon, 3)))


@jit
def exploitation_threshold(view: View, step: int) -> float:
    """β_{t-1} = σ² (log(t-1) + d log log n) at t = `step`, the logarithm of 0 read as 0."""
    dim = view.features.shape[2]
    return view.noise_std**2 * (math.log(max(step - 1, 1)) + dim * log_log_horizon(view, step))


@jit
def confidence_width(view: View, step: int, explored: int) -> float:
    """γ_t = σ² (log S_t + d log log n), S_t counted with this round."""
    dim = view.features.shape[2]
    return view.noise_std**2 * (math.log(explored) + dim * log_log_horizon(view, step))


@jit
def normalisation(params: SolidParams, phase: int) -> float:
    """z_k = z_0 e^k."""
    return params.z0 * math.exp(phase)


@jit
def phase_length(params: SolidParams, phase: int) -> float:
    """p_k = z_k e^{2k}, in exploring rounds."""
    return normalisation(params, phase) * math.exp(2 * phase)


@jit
def is_identified(
    regression: Regression, work: RegressionWork, view: View, context: int, threshold: float
) -> bool:
    """The exploitation test: whether every alternative in this context is farther than `threshold`.

    inf_{θ'} ‖θ-hat - θ'‖²_V over models with another optimal arm in `context` is
    min_{a ≠ a*} Δ(x,a)² / ‖φ*(x) - φ(x,a)‖²_{V^-1} (Eq. "pdlin.glr"); the first arm at or below the threshold decides.
    """
    means, sq_norms = regression.means[context], regression.sq_norms[context]
    features = view.features[context]
    best = best_arm(means)
    symmetric_product(regression.inverse, features[best], work.direction)
    for arm in range(means.shape[0]):
        if arm != best:
            parts = sq_norms[arm] + sq_norms[best]
            cross = dot(features[arm], work.direction)
            norm = difference_norm(regression.inverse, features[best], features[arm], parts, cross)
            gap = means[best] - means[arm]
            # A copy of the best arm (norm 0) is best in every model in which the best one is.
            if norm > 0.0 and gap * gap <= threshold * norm:
                return False
    return True


@jit
def optimistic_gradient(agent: SolidAgent, width: float, normaliser: float) -> float:
    """Write q_t, a supergradient of h_t(·, λ_t, z) at ω_t, into `work.gradient`; return g_t(ω_t, z) (Eqs. ft, gt, ht).

    By the envelope theorem the derivative of the infimum in g_t is the information at the closest alternative θ':
    q_t(x,a) = ρ-hat(x) [ μ(x,a) + √γ ‖φ‖_{V^-1} + λ ( d_{x,a}(θ-hat, θ') + 2BL/σ² √γ ‖φ‖_{V^-1} ) ].
    """
    params, view, state, work = agent.params, agent.known, agent.state, agent.work
    regression = state.regression
    n_contexts, n_arms = state.omega.shape
    contexts_seen = max(state.step.item(), 1)
    for context in range(n_contexts):
        frequency = state.context_counts[context] / contexts_seen
        for arm in range(n_arms):
            work.weights[context * n_arms + arm] = frequency * state.omega[context, arm]

    weighted_gram(view.features_by_dim, work.weights, work.columns, work.gram)
    closest_alternative(
        view.features_by_dim,
        regression.means,
        work.gram,
        work.regression.factor,
        work.columns,
        work.norms,
        work.delta,
    )
    inner_products(view.features_by_dim, work.delta, work.information)

    noise_var = view.noise_std**2
    root_width = math.sqrt(width)
    bonus_scale = params.constraint_bonus * 2.0 * view.theta_bound * view.feature_bound / noise_var
    multiplier = state.multiplier.item()
    constraint = -1.0 / normaliser
    for context in range(n_contexts):
        if state.context_counts[context] == 0:
            continue
        frequency = state.context_counts[context] / contexts_seen
        for arm in range(n_arms):
            pair = context * n_arms + arm
            divergence = work.information[pair] ** 2 / (2.0 * noise_var)
            bonus = root_width * math.sqrt(max(regression.sq_norms[context, arm], 0.0))
            optimistic_divergence = divergence + bonus_scale * bonus
            optimistic_mean = regression.means[context, arm] + bonus
            work.gradient[context, arm] = frequency * (optimistic_mean + multiplier * optimistic_divergence)
            constraint += work.weights[pair] * optimistic_divergence
    return constraint


@jit
def update_omega(agent: SolidAgent) -> None:
    """ω_{t+1}(x,a) ∝ ω_t(x,a) exp(α^ω q_t(x,a)) in every context seen so far; others have no gradient yet."""
    params, state, gradient = agent.params, agent.state, agent.work.gradient
    n_contexts, n_arms = state.omega.shape
    for context in range(n_contexts):
        if state.context_counts[context] == 0:
            continue
        size = 1.0
        if params.normalise_gradient:
            size = math.sqrt(dot(gradient[context], gradient[context]))
            if size == 0.0:
                continue
        logits, omega = state.logits[context], state.omega[context]
        largest = -np.inf
        for arm in range(n_arms):
            logits[arm] += params.policy_step * gradient[context, arm] / size
            largest = max(largest, logits[arm])
        total = 0.0
        for arm in range(n_arms):
            logits[arm] -= largest
            omega[arm] = math.exp(logits[arm])
            total += omega[arm]
        for arm in range(n_arms):
            omega[arm] /= total


@jit
def update_solution(agent: SolidAgent, step: int) -> None:
    """One primal-dual step on the optimistic Lagrangian h_t, then the phase stopping test."""
    params, view, state = agent.params, agent.known, agent.state
    width = confidence_width(view, step, state.explored.item())
    # Alg. 1: Compute q_t ∈ ∂h_t(ω_t, λ_t, z_{K_t})
    constraint = optimistic_gradient(agent, width, normalisation(params, state.phase.item()))
    # Alg. 1: Update policy
    update_omega(agent)
    # Alg. 1: Update multiplier: λ_{t+1} ← min{[λ_t - α^λ g_t(ω_t, z_{K_t})]_+, λ_max}
    multiplier = state.multiplier.item() - params.multiplier_step * constraint
    state.multiplier[()] = min(max(multiplier, 0.0), params.max_multiplier)
    # Alg. 1: if S_t - S_{T_{K_t}-1} = p_k (p_k is not whole in general, so: once it is reached)
    if state.explored.item() - state.phase_start.item() >= phase_length(params, state.phase.item()):
        # Alg. 1: Change phase: K_{t+1} ← K_t + 1
        state.phase[()] += 1
        state.phase_start[()] = state.explored.item()
        if params.reset_at_phase:
            # Alg. 1: Reset solution: ω_{t+1} ← ω_1, λ_{t+1} ← λ_1
            state.logits[:] = 0.0
            state.omega[:] = 1.0 / state.omega.shape[1]
            state.multiplier[()] = params.initial_multiplier


@jit
def act(agent: SolidAgent, context: int) -> tuple[int, bool]:
    """Choose an arm in context X_t, and step the solution if the round explores."""
    view, state, work = agent.known, agent.state, agent.work
    # Alg. 1: Receive context X_t ~ ρ
    step = state.step.item() + 1
    # Alg. 1: if inf_{θ'} ‖θ-tilde_{t-1} - θ'‖²_{V_{t-1}} > β_{t-1}
    threshold = exploitation_threshold(view, step)
    explores = not is_identified(state.regression, work.regression, view, context, threshold)
    if not explores:
        # Alg. 1: Exploitation Step: A_t ← argmax_a μ_{θ-tilde_{t-1}}(X_t, a)
        arm = best_arm(state.regression.means[context])
    else:
        # Alg. 1: Exploration Step: Sample arm: A_t ~ ω_t(X_t, ·)
        arm = choose(state.omega[context], state.stream)
        # Alg. 1: Set S_t ← S_{t-1} + 1
        state.explored[()] += 1
        # Alg. 1: Update Solution
        update_solution(agent, step)
    # Alg. 1: Update ρ-hat_t using X_t; done here and not in `update`, because a context is known before its reward.
    state.context_counts[context] += 1
    state.step[()] = step
    return arm, explores


@jit
def update(agent: SolidAgent, context: int, arm: int, reward: float) -> None:
    """Take in the outcome Y_t."""
    # Alg. 1: Update V_t, U_t, θ-hat_t using X_t, A_t, Y_t
    observe(agent.state.regression, agent.work.regression, agent.known, context, arm, reward)


register(SolidAgent, act, update)


@dataclass(frozen=True)
class Solid(Policy):
    """SOLID, the asymptotically optimal primal-dual algorithm of Tirinzoni et al. (NeurIPS 2020).

    Each round tests whether the estimate already identifies the optimal arm of the current context. If so the best
    arm is pulled. If not, an arm is drawn from the exploration policy ω, and one step of optimistic primal-dual
    descent moves ω and the multiplier λ towards the solution of the lower bound's problem (P_z).

    With P context-arm pairs, a step takes O(P d) when it exploits and O(P d² + d³) when it explores; memory is O(P d).

    Args:
        z0: z_0 in z_k = z_0 e^k; larger means less weight on information at the start.
        initial_multiplier: λ_1.
        max_multiplier: λ_max; the theorems need at least 2 B L z_min.
        policy_step: α^ω.
        multiplier_step: α^λ.
        constraint_bonus: scale of the optimistic bonus in g_t; 1 is Eq. (gt) as printed.
        ridge: ν, the regulariser of the estimate; the theorems need at least max(L², 1).
        normalise_gradient: divide q_t(x, ·) by its Euclidean norm in every context, as the experiments do.
        reset_at_phase: start ω and λ anew at each phase, as in Algorithm 1; the experiments do not.

    Example:
        >>> import solid_bandits as sb
        >>> sb.Solid.paper_random(n_arms=8)
        Solid(z0=8.0, initial_multiplier=50.0, ...)
    """

    z0: float = 1.0
    initial_multiplier: float = 0.0
    max_multiplier: float = 1000.0
    policy_step: float = 1.0
    multiplier_step: float = 0.5
    constraint_bonus: float = 1.0
    ridge: float = 1.0
    normalise_gradient: bool = True
    reset_at_phase: bool = False

    def __post_init__(self) -> None:
        _check.number("z0", self.z0, above=0)
        _check.number("max_multiplier", self.max_multiplier, least=0)
        _check.number("initial_multiplier", self.initial_multiplier, least=0, most=self.max_multiplier)
        _check.number("policy_step", self.policy_step, least=0)
        _check.number("multiplier_step", self.multiplier_step, least=0)
        _check.number("constraint_bonus", self.constraint_bonus, least=0)
        _check.number("ridge", self.ridge, above=0)

    @classmethod
    def paper_toy(cls) -> "Solid":
        """The parameters of the paper's toy experiment: z_0 = 1, λ_1 = 0, α^ω = 1, α^λ = 0.5."""
        return cls(z0=1.0, initial_multiplier=0.0)

    @classmethod
    def paper_random(cls, n_arms: int) -> "Solid":
        """The parameters of the paper's random problems and of Jester: z_0 is the number of arms, λ_1 = 50."""
        return cls(z0=float(_check.integer("n_arms", n_arms, least=1)), initial_multiplier=50.0)

    def start(self, view: View, stream: Words) -> SolidAgent:
        """A new agent: ω_1 uniform, V_0 = νI, U_0 = 0, S_0 = 0, phase 0 (the first lines of Algorithm 1)."""
        n_contexts, n_arms, dim = view.features.shape
        regression, regression_work = make_regression(view, self.ridge)
        params = SolidParams(
            z0=float(self.z0),
            initial_multiplier=float(self.initial_multiplier),
            max_multiplier=float(self.max_multiplier),
            policy_step=float(self.policy_step),
            multiplier_step=float(self.multiplier_step),
            constraint_bonus=float(self.constraint_bonus),
            normalise_gradient=bool(self.normalise_gradient),
            reset_at_phase=bool(self.reset_at_phase),
        )
        state = SolidState(
            regression=regression,
            step=np.array(0),
            explored=np.array(0),
            context_counts=np.zeros(n_contexts, dtype=np.int64),
            multiplier=np.array(params.initial_multiplier),
            logits=np.zeros((n_contexts, n_arms)),
            omega=np.full((n_contexts, n_arms), 1.0 / n_arms),
            phase=np.array(0),
            phase_start=np.array(0),
            stream=stream,
        )
        work = SolidWork(
            regression=regression_work,
            weights=np.zeros(n_contexts * n_arms),
            columns=np.zeros((dim, n_contexts * n_arms)),
            gram=np.zeros((dim, dim)),
            norms=np.zeros(n_contexts * n_arms),
            delta=np.zeros(dim),
            information=np.zeros(n_contexts * n_arms),
            gradient=np.zeros((n_contexts, n_arms)),
        )
        return SolidAgent(params, view, state, work)
