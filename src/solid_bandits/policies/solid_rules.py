"""The rules of SOLID that can be switched: confidence values, phase schedules, tests, arm choices.

The paper's ablations turn most of them; the rest is what `Solid()` does otherwise than the paper, and docs/defaults.md
says why. `policies/solid.py` is the algorithm that uses them.
"""

import math

import numpy as np

from solid_bandits._compile import jit
from solid_bandits._types import Floats, Ints, Words
from solid_bandits.confidence import squared_radius
from solid_bandits.linalg.vectors import best_arm, dot
from solid_bandits.policies.identification import alternative_distance, least_positive_gap, squared_width
from solid_bandits.policies.solid_state import SolidParams
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork
from solid_bandits.stream import choose, uniform

SCHEDULES = ("exp-exp", "lin-exp", "lin-pol", "lin-lin")
"""(z_k, p_k): (z_0 e^k, z_k e^2k), (z_0 (1+k), z_k e^k), (z_0 (1+k), z_k (1+k)²), (z_0 (1+k), z_k (1+k))."""
ARM_CHOICES = ("sampling", "direct", "cumulative")
"""A draw from ω_t; the arm farthest behind ω_t; the arm farthest behind the sum of all ω_s."""
EXPLOIT_TESTS = ("likelihood-ratio", "oam")
"""Δ² / ‖φ* - φ‖²_{V^-1} or, as in OAM, Δ² / ‖φ‖²_{V^-1}, against β."""
TEST_CONTEXTS = ("last", "all")
"""Alternatives in the context at hand only, or in every context."""
CONFIDENCES = ("paper", "theorem")
"""β and γ without numerical constants, as in the experiments; or c_{n,δ} of the concentration theorem."""
GRADIENT_SCALES = ("none", "norm", "spread")
"""What q_t(x, ·) is divided by in every context: nothing, its Euclidean norm, or its range over the arms."""
TIE = 1e-10
"""Gradients whose spread is below this part of their size differ by rounding alone."""
UNITS = ("absolute", "noise")
"""What rewards are counted in: as they are, or in σ (and squared features in L²)."""


@jit
def log_horizon(params: SolidParams, view: View, step: int) -> float:
    """`log n`; the current step takes the place of an unknown horizon, and 3 that of a smaller one."""
    horizon = step if view.horizon == 0 or params.anytime else view.horizon
    return math.log(max(horizon, 3))


@jit
def exploitation_threshold(params: SolidParams, view: View, step: int) -> float:
    """β_{t-1} at t = `step`: σ² (log(t-1) + κ d log log n), the logarithm of 0 read as 0; or c_{n,1/n}."""
    log_n = log_horizon(params, view, step)
    if params.theorem_confidence:
        return params.threshold_scale * _theorem_radius(params, view, log_n, log_n)
    return params.threshold_scale * squared_width(view, log_n, step - 1, params.dimension_scale)


@jit
def confidence_width(params: SolidParams, view: View, step: int, explored: int) -> float:
    """γ_t, S_t counted with this round: σ² (log S_t + κ d log log n); or c_{n,1/S_t²}."""
    log_n = log_horizon(params, view, step)
    if params.theorem_confidence:
        return params.optimism_scale * _theorem_radius(params, view, log_n, 2.0 * math.log(explored))
    return params.optimism_scale * squared_width(view, log_n, explored, params.dimension_scale)


@jit
def _theorem_radius(params: SolidParams, view: View, log_n: float, log_inverse_delta: float) -> float:
    return squared_radius(
        log_n,
        log_inverse_delta,
        view.features.shape[2],
        view.noise_std,
        view.theta_bound,
        view.feature_bound,
        params.ridge,
    )


@jit
def draw_width(params: SolidParams, view: View, stream: Words) -> float:
    """E_t, which widens this round's β and γ: exponential with mean 2τσ², so that P(E_t > D) = exp(-D / 2τσ²).

    At τ = 1 a model at squared distance D is thus as likely to be considered as Thompson sampling makes it: a round
    that would exploit by mistake explores sooner or later. At τ = 0 nothing is drawn.
    """
    if params.random_width == 0.0:
        return 0.0
    return -2.0 * params.random_width * view.noise_std**2 * math.log(1.0 - uniform(stream))


@jit
def gradient_rate(params: SolidParams, gradient: Floats, policy_step: float, frequency: float) -> float:
    """What a context's gradient q_t(x, ·) / ρ-hat(x) is multiplied with: the step over the scale chosen.

    ρ-hat(x) cancels in the scaled forms. A gradient of scale 0 has no part in ω. Arms that tie but for rounding are a
    tie: otherwise rounding would choose among them, and choose otherwise in other units.
    """
    if params.gradient_scale == 0:
        return policy_step * frequency
    scale = 0.0
    if params.gradient_scale == 1:
        scale = math.sqrt(dot(gradient, gradient))
    else:
        low, high = np.inf, -np.inf
        for arm in range(gradient.shape[0]):
            low, high = min(low, gradient[arm]), max(high, gradient[arm])
        scale = high - low
        if scale <= TIE * max(abs(low), abs(high)):
            scale = 0.0
    return policy_step / scale if scale > 0.0 else 0.0


@jit
def normalisation(params: SolidParams, phase: int) -> float:
    """z_k: z_0 e^k, or z_0 (1 + k) in the linear schedules."""
    return params.z0 * (math.exp(phase) if params.schedule == 0 else 1.0 + phase)


@jit
def phase_length(params: SolidParams, phase: int) -> float:
    """p_k in exploring rounds: z_k times e^{2k}, e^k, (1 + k)² or 1 + k."""
    z = normalisation(params, phase)
    if params.schedule == 0:
        return z * math.exp(2 * phase)
    if params.schedule == 1:
        return z * math.exp(phase)
    return z * (1.0 + phase) ** 2 if params.schedule == 2 else z * (1.0 + phase)


@jit
def step_scale(params: SolidParams, phase: int) -> float:
    """What both step sizes are multiplied with in phase k: 1, or 1/√p_k where they decay as in the regret theorem."""
    return 1.0 / math.sqrt(max(phase_length(params, phase), 1.0)) if params.decay_steps else 1.0


@jit
def oam_distance(
    regression: Regression, means: Floats, context: int, least_gap: float, enough: float
) -> float:
    """min_a max(Δ(x,a), least_gap)² / ‖φ(x,a)‖²_{V^-1}: OAM's statistic in one context."""
    best = best_arm(means[context])
    least = np.inf
    for arm in range(means.shape[1]):
        gap = max(means[context, best] - means[context, arm], least_gap)
        norm = regression.sq_norms[context, arm]
        if norm > 0.0:
            least = min(least, gap * gap / norm)
            if least <= enough:
                break
    return least


@jit
def test_statistic(
    params: SolidParams,
    regression: Regression,
    means: Floats,
    work: RegressionWork,
    view: View,
    context: int,
    enough: float,
) -> float:
    """What the exploitation test compares with β: exact above `enough`, otherwise some value at or below it."""
    first = 0 if params.test_all_contexts else context
    last = means.shape[0] if params.test_all_contexts else context + 1
    least_gap = least_positive_gap(means) if params.exploit_test == 1 else 0.0
    least = np.inf
    for x in range(first, last):
        if params.exploit_test == 1:
            distance = oam_distance(regression, means, x, least_gap, enough)
        else:
            distance = alternative_distance(regression, means, work, view, x, enough)
        least = min(least, distance)
        if least <= enough:
            break
    return least


@jit
def choose_arm(
    params: SolidParams, omega: Floats, omega_sum: Floats, pulls: Ints, stream: Words, context: int
) -> int:
    """An exploring round's arm: a draw from ω_t, or the arm whose exploring pulls are farthest behind their target.

    Direct tracking aims at (N(x) + 1) ω_t(x, ·), N(x) the exploring rounds in x so far; cumulative tracking at the sum
    of ω_s(x, ·) over the exploring rounds in x, this one included.
    """
    if params.arm_choice == 0:
        return choose(omega[context], stream)
    rounds = 1
    for arm in range(pulls.shape[1]):
        rounds += pulls[context, arm]
    chosen = 0
    farthest = -np.inf
    for arm in range(pulls.shape[1]):
        omega_sum[context, arm] += omega[context, arm]
        target = rounds * omega[context, arm] if params.arm_choice == 1 else omega_sum[context, arm]
        behind = target - pulls[context, arm]
        if behind > farthest:
            chosen, farthest = arm, behind
    pulls[context, chosen] += 1
    return chosen
