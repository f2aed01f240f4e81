"""SOLID: asymptotic Optimal Linear prImal Dual (Algorithm 1).

`act` and `update` together are one pass through the loop of Algorithm 1; the comments `# Alg. 1:` quote its lines.
What the paper's ablations switch is in `solid_rules.py`; what only the theorems need is in `solid_theory.py`; what is
carried is in `solid_state.py`. The form of the experiments (appendix "Implementation Details") has no projection of the
estimate (θ-tilde is θ-hat), alternatives in all of R^d (so the closest one has a closed form), and the exploitation
test in the last observed context: `Solid.paper_toy()` and `Solid.paper_random(n_arms)`. `Solid()` differs from it by
the parameters and rules that docs/defaults.md chose.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Floats, Plain, Words
from solid_bandits.linalg import (
    BLOCK,
    aligned_zeros,
    dot,
    inner_products,
    make_bounds,
    sparse_weighted_gram,
    weighted_gram,
)
from solid_bandits.policies.contract import Policy, register
from solid_bandits.policies.solid_rules import (
    ARM_CHOICES,
    CONFIDENCES,
    EXPLOIT_TESTS,
    GRADIENT_SCALES,
    SCHEDULES,
    TEST_CONTEXTS,
    UNITS,
    choose_arm,
    confidence_width,
    draw_width,
    exploitation_threshold,
    gradient_rate,
    normalisation,
    phase_length,
    step_scale,
    test_statistic,
)
from solid_bandits.policies.solid_state import (
    MANY_PAIRS,
    SolidAgent,
    SolidParams,
    SolidState,
    SolidWork,
    Theory,
)
from solid_bandits.policies.solid_theory import best_estimated_arm, bounded_statistic, closest_model, project
from solid_bandits.problem import View
from solid_bandits.regression import make_regression, observe

LEAST_EXPONENT = -745.2
"""exp rounds to 0 from here on down."""


@jit
def distance_to_alternatives(theory: Theory | None, agent: SolidAgent, context: int, enough: float) -> float:
    """The exploitation test's statistic: inf ‖θ-tilde - θ'‖²_V over alternatives θ', as far as the test needs it."""
    params, view, state, work = agent.params, agent.known, agent.state, agent.work
    if theory is None:
        return test_statistic(
            params, state.regression, state.regression.means, work.regression, view, context, enough
        )
    only = -1 if params.test_all_contexts else context
    return bounded_statistic(
        theory, state.regression, view, work.regression.factor, work.columns, work.norms, work.delta, only
    )


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
    sq_norms = agent.state.regression.sq_norms.reshape(-1)
    root_width = math.sqrt(width)
    for pair in range(bonuses.shape[0]):
        bonuses[pair] = root_width * math.sqrt(max(sq_norms[pair], 0.0))


@jit
def write_information(agent: SolidAgent, means: Floats) -> None:
    """Write φ(x,a)ᵀ(θ-tilde - θ') into `work.information`, θ' being the closest alternative under V_ω (inf in g_t)."""
    view, state, work = agent.known, agent.state, agent.work
    if work.weights.shape[0] < MANY_PAIRS:
        weighted_gram(view.features_by_dim, work.weights, work.columns, work.gram)
    else:
        sparse_weighted_gram(
            view.features_by_dim, work.weights, view.feature_bound, work.chosen, work.columns, work.gram
        )
    closest_model(
        state.theory,
        view,
        means,
        work.gram,
        work.regression.factor,
        work.columns,
        work.norms,
        work.bounds,
        work.delta,
    )
    inner_products(view.features_by_dim, work.delta, work.information)


@jit
def optimistic_gradient(theory: Theory | None, agent: SolidAgent, width: float, normaliser: float) -> float:
    """Write q_t / ρ-hat, q_t in ∂h_t(ω_t, λ_t, z), into `work.gradient`; return g_t(ω_t, z) (Eqs. ft, gt, ht).

    By the envelope theorem the derivative of the infimum in g_t is the information at the closest alternative θ':
    q_t(x,a) = ρ-hat(x) [ μ(x,a) + √γ ‖φ‖_{V^-1} + λ ( d_{x,a}(θ-hat, θ') + 2BL/σ² √γ ‖φ‖_{V^-1} ) ].

    At λ_t = 0 the information has no part in q_t; in g_t it is an addend >= 0. So where the bonuses alone make g_t
    positive, λ_{t+1} = 0 whatever θ' is: the costly search for it is left out, and the bonuses' part of g_t returned.
    """
    params, view, state, work = agent.params, agent.known, agent.state, agent.work
    weights, bonuses, information, gradient = work.weights, work.bonuses, work.information, work.gradient
    table = state.regression.means if theory is None else theory.means
    means = table.reshape(-1)
    multiplier = state.multiplier.item()
    write_weights(agent)
    write_bonuses(agent, width)
    bonus_scale = params.constraint_bonus * 2.0 * view.theta_bound * view.feature_bound / view.noise_std**2
    constraint = bonus_scale * dot(weights, bonuses) - 1.0 / normaliser
    if multiplier == 0.0 and constraint >= 0.0:
        for pair in range(gradient.shape[0]):
            gradient[pair] = means[pair] + bonuses[pair]
        return constraint

    write_information(agent, table)
    half_precision = 0.5 / view.noise_std**2
    for pair in range(gradient.shape[0]):
        divergence = half_precision * information[pair] * information[pair]
        optimistic_mean = means[pair] + bonuses[pair]
        gradient[pair] = optimistic_mean + multiplier * (divergence + bonus_scale * bonuses[pair])
        constraint += weights[pair] * divergence
    return constraint


@jit
def update_omega(agent: SolidAgent, policy_step: float) -> None:
    """ω_{t+1}(x,a) ∝ ω_t(x,a)^m exp(α^ω q_t(x,a)) in every context seen so far; others have no gradient yet."""
    params, state = agent.params, agent.state
    n_contexts, n_arms = state.omega.shape
    contexts_seen = max(state.step.item(), 1)
    for context in range(n_contexts):
        if state.context_counts[context] == 0:
            continue
        gradient = agent.work.gradient[context * n_arms : (context + 1) * n_arms]
        rate = gradient_rate(params, gradient, policy_step, state.context_counts[context] / contexts_seen)
        logits, omega = state.logits[context], state.omega[context]
        largest = -np.inf
        for arm in range(n_arms):
            logits[arm] = params.policy_memory * logits[arm] + rate * gradient[arm]
            largest = max(largest, logits[arm])
        total = 0.0
        for arm in range(n_arms):
            logits[arm] -= largest
            # Exact, and spares the slow way in which exp finds that its value is 0. A mere branch would not: the
            # compiler computes both sides and chooses.
            vanishes = logits[arm] < LEAST_EXPONENT
            omega[arm] = math.exp(0.0 if vanishes else logits[arm])
            if vanishes:
                omega[arm] = 0.0
            total += omega[arm]
        for arm in range(n_arms):
            omega[arm] /= total


@jit
def primal_dual_step(agent: SolidAgent, width: float, normaliser: float, scale: float) -> None:
    """One step on the optimistic Lagrangian h_t(·, ·, z): ascent in ω, descent in λ."""
    params, state = agent.params, agent.state
    # Alg. 1: Compute q_t ∈ ∂h_t(ω_t, λ_t, z_{K_t})
    constraint = optimistic_gradient(state.theory, agent, width, normaliser)
    # Alg. 1: Update policy
    update_omega(agent, scale * params.policy_step)
    # Alg. 1: Update multiplier: λ_{t+1} ← min{[λ_t - α^λ g_t(ω_t, z_{K_t})]_+, λ_max}
    multiplier = state.multiplier.item() - scale * params.multiplier_step * constraint
    state.multiplier[()] = min(max(multiplier, 0.0), params.max_multiplier)


@jit
def update_solution(agent: SolidAgent, step: int, extra: float) -> None:
    """A primal-dual step with the confidence, normalisation and step sizes of now; then the phase stopping test."""
    params, state = agent.params, agent.state
    phase = state.phase.item()
    width = confidence_width(params, agent.known, step, state.explored.item()) + extra
    primal_dual_step(agent, width, normalisation(params, phase), step_scale(params, phase))
    # Alg. 1: if S_t - S_{T_{K_t}-1} = p_k (p_k is not whole in general, so: once it is reached)
    if state.explored.item() - state.phase_start.item() >= phase_length(params, phase):
        # Alg. 1: Change phase: K_{t+1} ← K_t + 1
        state.phase[()] += 1
        state.phase_start[()] = state.explored.item()
        if params.reset_at_phase:
            # Alg. 1: Reset solution: ω_{t+1} ← ω_1, λ_{t+1} ← λ_1
            state.logits[:] = 0.0
            state.omega[:] = 1.0 / state.omega.shape[1]
            state.multiplier[()] = params.initial_multiplier


@jit
def count_context(state: SolidState, context: int) -> None:
    """Count X_t, which moves ρ-hat, and the step."""
    state.context_counts[context] += 1
    state.step[()] += 1


@jit
def act(agent: SolidAgent, context: int) -> tuple[int, bool]:
    """Choose an arm in context X_t, and step the solution if the round explores."""
    params, state = agent.params, agent.state
    # Alg. 1: Receive context X_t ~ ρ
    step = state.step.item() + 1
    extra = draw_width(params, agent.known, state.stream)
    # Alg. 1: if inf_{θ'} ‖θ-tilde_{t-1} - θ'‖²_{V_{t-1}} > β_{t-1}
    threshold = exploitation_threshold(params, agent.known, step) + extra
    explores = not distance_to_alternatives(state.theory, agent, context, threshold) > threshold
    if params.step_first:
        count_context(state, context)
    if not explores:
        # Alg. 1: Exploitation Step: A_t ← argmax_a μ_{θ-tilde_{t-1}}(X_t, a)
        arm = best_estimated_arm(state.theory, state.regression, context)
    else:
        # Alg. 1: Set S_t ← S_{t-1} + 1
        state.explored[()] += 1
        if params.step_first:
            update_solution(agent, step, extra)
        # Alg. 1: Exploration Step: Sample arm: A_t ~ ω_t(X_t, ·)
        arm = choose_arm(params, state.omega, state.omega_sum, state.pulls, state.stream, context)
        if not params.step_first:
            # Alg. 1: Update Solution
            update_solution(agent, step, extra)
    if not params.step_first:
        # Alg. 1: Update ρ-hat_t using X_t; done here and not in `update`: a context is known before its reward.
        count_context(state, context)
    return arm, explores


@jit
def update(agent: SolidAgent, context: int, arm: int, reward: float) -> None:
    """Take in the outcome Y_t."""
    state = agent.state
    # Alg. 1: Update V_t, U_t, θ-hat_t using X_t, A_t, Y_t
    observe(state.regression, agent.work.regression, agent.known, context, arm, reward)
    # Alg. 1: Set θ-tilde_t := argmin_{θ ∈ Θ ∩ C_t} ‖θ - θ-hat_t‖_{V_t}
    project(state.theory, state.regression, agent.known, agent.params, state.step.item())


register(SolidAgent, act, update)


@dataclass(frozen=True)
class Solid(Policy):
    """SOLID, the asymptotically optimal primal-dual algorithm of Tirinzoni et al. (NeurIPS 2020).

    Each round tests whether the estimate already identifies the optimal arm of the current context. If so the best
    arm is pulled. If not, an arm is drawn from the exploration policy ω, and one step of optimistic primal-dual
    descent moves ω and the multiplier λ towards the solution of the lower bound's problem (P_z).

    With P context-arm pairs, a step takes O(P d) when it exploits and at most O(P d² + d³) when it explores: O(P d)
    while λ = 0, and O(S d² + P d + d³) where weights are large in S pairs only and P is large. Memory is O(P d). The
    documentation has the cost of each switch.

    The defaults are those of the study in the documentation ("The defaults of `Solid()`"), not the paper's; the paper's
    are `paper_toy`, `paper_random` and `theory`.

    Args:
        z0: z_0 > 0, the first normalisation; larger means less weight on information at the start.
        initial_multiplier: λ_1, in `units` of rewards.
        max_multiplier: λ_max, in `units` of rewards; the theorems need at least 2 B L z_min. None computes that from
            `least_gap`.
        policy_step: α^ω; where the gradient is not scaled, per unit of rewards.
        multiplier_step: α^λ, in `units` of rewards.
        constraint_bonus: scale of the optimistic bonus in g_t; 1 is Eq. (gt) as printed.
        threshold_scale: multiplies β.
        optimism_scale: multiplies γ.
        dimension_scale: κ, multiplies `d log log n` in β and γ; 1 in the paper. Not used by `confidence="theorem"`.
        random_width: τ; each round adds to its β and γ a draw E_t of the exponential distribution with mean 2τσ².
            0 in the paper. At 1 tails are those of Thompson sampling; less explores less.
        ridge: ν, the regulariser of the estimate; in noise units a multiple of L², to be made smaller where rewards are
            many σ. None is max(L², 1), the least the theorems allow.
        units: what rewards are counted in: `absolute`, as they are; or `noise`, in σ, with ν in L²: then rewards and
            noise times c (and so B), or features times c and θ (and so B) over c, make the same choices.
        schedule: of (z_k, p_k): `exp-exp`, `lin-exp`, `lin-pol` or `lin-lin`.
        arm_choice: in exploring rounds: `sampling` from ω_t, `direct` or `cumulative` tracking of it.
        exploit_test: `likelihood-ratio`, or `oam` for the form that OAM uses.
        test_contexts: alternatives in the `last` observed context or in `all`.
        gradient_scale: what q_t(x, ·) is divided by in every context: its Euclidean `norm`, as in the experiments; its
            `spread` over the arms, which a constant added to all means does not change; or `none`, as in the theorems.
        policy_memory: m in ω_{t+1} ∝ ω_t^m exp(α^ω q_t); 1 in the paper; 0 is a softmax of the present gradient.
        step_first: step ω and λ before the arm is drawn, so that it answers to the estimate of now; in Algorithm 1
            after it.
        decay_steps: divide both steps by √p_k in phase k, as in the regret theorem.
        reset_at_phase: start ω and λ anew at each phase, as in Algorithm 1; the experiments do not.
        confidence: `paper`, β_t = σ²(log t + κ d log log n) and γ_t = σ²(log S_t + κ d log log n); or `theorem`,
            β = c_{n,1/n} and γ_t = c_{n,1/S_t²} with all constants (`confidence_radius`).
        bounded: project the estimate on ‖θ‖ <= B and the ellipsoid, and restrict alternatives to ‖θ'‖ <= B.
        anytime: do not use the horizon even where it is given: the current step takes its place.
        least_gap: a lower bound on the positive gaps, from which λ_max is computed where it is None.
        least_context_prob: a lower bound on the context probabilities, for the same; needed with several contexts.

    Example:
        >>> import solid_bandits as sb
        >>> sb.Solid.paper_random(n_arms=8)
        Solid(z0=8.0, initial_multiplier=50.0, ...)
    """

    z0: float = 30.0
    initial_multiplier: float = 0.0
    max_multiplier: float | None = 1000.0
    policy_step: float = 3000.0
    multiplier_step: float = 0.5
    constraint_bonus: float = 1.0
    threshold_scale: float = 0.0
    optimism_scale: float = 0.2
    dimension_scale: float = 0.0
    random_width: float = 0.5
    ridge: float | None = 0.2
    units: str = "noise"
    schedule: str = "exp-exp"
    arm_choice: str = "sampling"
    exploit_test: str = "likelihood-ratio"
    test_contexts: str = "last"
    gradient_scale: str = "spread"
    policy_memory: float = 0.0
    step_first: bool = True
    decay_steps: bool = False
    reset_at_phase: bool = False
    confidence: str = "paper"
    bounded: bool = False
    anytime: bool = False
    least_gap: float | None = None
    least_context_prob: float | None = None

    def __post_init__(self) -> None:
        _check.number("z0", self.z0, above=0)
        most = None
        if self.max_multiplier is not None:
            most = _check.number("max_multiplier", self.max_multiplier, least=0)
        elif self.least_gap is None:
            raise ValueError("max_multiplier is None; give a number, or least_gap to compute it from")
        _check.number("initial_multiplier", self.initial_multiplier, least=0, most=most)
        for name in (
            "policy_step",
            "multiplier_step",
            "constraint_bonus",
            "threshold_scale",
            "optimism_scale",
            "dimension_scale",
            "random_width",
        ):
            _check.number(name, getattr(self, name), least=0)
        _check.number("policy_memory", self.policy_memory, least=0, most=1)
        for name in ("ridge", "least_gap", "least_context_prob"):
            if getattr(self, name) is not None:
                _check.number(name, getattr(self, name), above=0)
        _check.choice("schedule", self.schedule, SCHEDULES)
        _check.choice("arm_choice", self.arm_choice, ARM_CHOICES)
        _check.choice("exploit_test", self.exploit_test, EXPLOIT_TESTS)
        _check.choice("test_contexts", self.test_contexts, TEST_CONTEXTS)
        _check.choice("confidence", self.confidence, CONFIDENCES)
        _check.choice("gradient_scale", self.gradient_scale, GRADIENT_SCALES)
        _check.choice("units", self.units, UNITS)
        if self.units == "noise" and self.ridge is None:
            raise ValueError(
                "ridge is None, max(L², 1), which no change of units leaves alone; give a multiple of L², or "
                "units='absolute'"
            )
        if self.bounded and self.exploit_test == "oam":
            raise ValueError(
                "exploit_test is 'oam', which knows no bound on alternatives; leave out bounded=True"
            )

    @classmethod
    def paper_toy(cls) -> "Solid":
        """The parameters of the paper's toy experiment: z_0 = 1, λ_1 = 0, α^ω = 1, α^λ = 0.5."""
        return cls(
            z0=1.0,
            initial_multiplier=0.0,
            policy_step=1.0,
            multiplier_step=0.5,
            threshold_scale=1.0,
            optimism_scale=1.0,
            dimension_scale=1.0,
            random_width=0.0,
            ridge=1.0,
            units="absolute",
            gradient_scale="norm",
            policy_memory=1.0,
            step_first=False,
        )

    @classmethod
    def paper_random(cls, n_arms: int) -> "Solid":
        """The parameters of the paper's random problems and of Jester: z_0 is the number of arms, λ_1 = 50."""
        z0 = float(_check.integer("n_arms", n_arms, least=1))
        return replace(cls.paper_toy(), z0=z0, initial_multiplier=50.0)

    @classmethod
    def theory(
        cls,
        max_multiplier: float | None = None,
        least_gap: float | None = None,
        least_context_prob: float | None = None,
        z0: float = 1.0,
    ) -> "Solid":
        """The algorithm of the regret theorem: all constants, projection, bounded alternatives, decaying steps, resets.

        λ_max must be at least 2 B L z_min. Give it, or lower bounds on the gaps and on the context probabilities to
        compute it from: by the optimal design of all features, z_min <= 8 σ² d / (ρ_min Δ_min²).
        """
        return replace(
            cls.paper_toy(),
            z0=z0,
            max_multiplier=max_multiplier,
            multiplier_step=1.0,
            ridge=None,
            test_contexts="all",
            decay_steps=True,
            gradient_scale="none",
            reset_at_phase=True,
            confidence="theorem",
            bounded=True,
            least_gap=least_gap,
            least_context_prob=least_context_prob,
        )

    def compiled_params(self, view: View) -> SolidParams:
        """The parameters as compiled code takes them, what is None computed from the view."""
        n_contexts, _, dim = view.features.shape
        # One unit of rewards and of squared features. Where all features are 0, any ridge does.
        unit, sq_unit = (
            (view.noise_std, view.feature_bound**2 or 1.0) if self.units == "noise" else (1.0, 1.0)
        )
        ridge = max(view.feature_bound**2, 1.0) if self.ridge is None else float(self.ridge) * sq_unit
        if self.max_multiplier is None:
            assert self.least_gap is not None  # __post_init__ saw to it
            if self.least_context_prob is None and n_contexts > 1:
                raise ValueError(
                    f"least_context_prob is None; to compute max_multiplier for {n_contexts} contexts give a lower "
                    "bound on their probabilities"
                )
            least_prob = 1.0 if self.least_context_prob is None else self.least_context_prob
            # The optimal design over all contexts has max ‖φ‖²_{V_ω^-1} <= d / ρ_min (Kiefer and Wolfowitz), so
            # differences of features have at most four times that.
            z_min = 8.0 * view.noise_std**2 * dim / (least_prob * self.least_gap**2)
            max_multiplier = 2.0 * view.theta_bound * view.feature_bound * z_min
        else:
            max_multiplier = float(self.max_multiplier) * unit
        return SolidParams(
            z0=float(self.z0),
            initial_multiplier=float(self.initial_multiplier) * unit,
            max_multiplier=max_multiplier,
            policy_step=float(self.policy_step) / (unit if self.gradient_scale == "none" else 1.0),
            multiplier_step=float(self.multiplier_step) * unit,
            constraint_bonus=float(self.constraint_bonus),
            threshold_scale=float(self.threshold_scale),
            optimism_scale=float(self.optimism_scale),
            dimension_scale=float(self.dimension_scale),
            random_width=float(self.random_width),
            ridge=ridge,
            schedule=SCHEDULES.index(self.schedule),
            arm_choice=ARM_CHOICES.index(self.arm_choice),
            exploit_test=EXPLOIT_TESTS.index(self.exploit_test),
            test_all_contexts=self.test_contexts == "all",
            gradient_scale=GRADIENT_SCALES.index(self.gradient_scale),
            policy_memory=float(self.policy_memory),
            step_first=bool(self.step_first),
            decay_steps=bool(self.decay_steps),
            reset_at_phase=bool(self.reset_at_phase),
            theorem_confidence=self.confidence == "theorem",
            anytime=bool(self.anytime),
        )

    def start(self, view: View, stream: Words) -> SolidAgent:
        """A new agent: ω_1 uniform, V_0 = νI, U_0 = 0, S_0 = 0, phase 0 (the first lines of Algorithm 1)."""
        n_contexts, n_arms, dim = view.features.shape
        params = self.compiled_params(view)
        regression, regression_work = make_regression(view, params.ridge)
        pairs = n_contexts * n_arms
        state = SolidState(
            regression=regression,
            step=np.array(0),
            explored=np.array(0),
            context_counts=np.zeros(n_contexts, dtype=np.int64),
            multiplier=np.array(params.initial_multiplier),
            logits=np.zeros((n_contexts, n_arms)),
            omega=np.full((n_contexts, n_arms), 1.0 / n_arms),
            omega_sum=np.zeros((n_contexts, n_arms)),
            pulls=np.zeros((n_contexts, n_arms), dtype=np.int64),
            phase=np.array(0),
            phase_start=np.array(0),
            stream=stream,
            theory=Theory(np.zeros(dim), np.zeros((n_contexts, n_arms))) if self.bounded else None,
        )
        at_once = pairs if self.bounded or pairs < MANY_PAIRS else BLOCK
        work = SolidWork(
            regression=regression_work,
            weights=np.zeros(pairs),
            bonuses=np.zeros(pairs),
            chosen=np.zeros(pairs, dtype=np.int64),
            columns=aligned_zeros(dim, at_once),
            gram=np.zeros((dim, dim)),
            norms=np.zeros(pairs),
            bounds=make_bounds(n_contexts, n_arms, dim),
            delta=np.zeros(dim),
            information=np.zeros(pairs),
            gradient=np.zeros(pairs),
        )
        return SolidAgent(params, view, state, work)

    def diagnostics(self, agent: SolidAgent) -> Plain:
        """What there is to see at a checkpoint; the statistic is over all contexts, the threshold is the next β.

        Where a draw widens β, the threshold is β with the mean of the draw, 2τσ².
        """
        params, state = agent.params, agent.state
        everywhere = agent._replace(params=params._replace(test_all_contexts=True))
        return {
            "multiplier": state.multiplier.item(),
            "phase": state.phase.item(),
            "normalisation": normalisation(params, state.phase.item()),
            "explored": state.explored.item(),
            "statistic": distance_to_alternatives(state.theory, everywhere, 0, -math.inf),
            "threshold": exploitation_threshold(params, agent.known, state.step.item() + 1)
            + 2.0 * params.random_width * agent.known.noise_std**2,
            "omega": state.omega.ravel().tolist(),
        }
