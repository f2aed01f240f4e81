"""What SOLID is made of: chosen parameters, carried state, scratch; plain numbers and arrays."""

from typing import NamedTuple

from solid_bandits._types import Floats, Ints, Words
from solid_bandits.alternatives.pruned import Bounds
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork

MANY_PAIRS = 512
"""From so many context-arm pairs on, leaving pairs out pays for finding out which."""


class SolidParams(NamedTuple):
    """The chosen parameters as compiled code takes them; switches are positions in the tuples of `solid_rules.py`."""

    z0: float
    initial_multiplier: float
    max_multiplier: float
    policy_step: float
    multiplier_step: float
    constraint_bonus: float
    threshold_scale: float
    optimism_scale: float
    dimension_scale: float
    random_width: float
    ridge: float
    schedule: int
    arm_choice: int
    exploit_test: int
    test_all_contexts: bool
    gradient_scale: int
    policy_memory: float
    step_first: bool
    decay_steps: bool
    reset_at_phase: bool
    theorem_confidence: bool
    anytime: bool


class Theory(NamedTuple):
    """What the theorems' form carries beside the regression."""

    theta: Floats
    """θ-tilde, shape (dim,)."""
    means: Floats
    """φ(x,a)ᵀθ-tilde, shape (contexts, arms)."""


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
    omega_sum: Floats
    """Σ ω_s(x, ·) over exploring rounds in x, shape (contexts, arms); kept by tracking only."""
    pulls: Ints
    """Exploring pulls, shape (contexts, arms); kept by tracking only."""
    phase: Ints
    """K_t, shape ()."""
    phase_start: Ints
    """S at the end of the previous phase, shape ()."""
    stream: Words
    theory: Theory | None
    """The projected estimate, in the theorems' form."""


class SolidWork(NamedTuple):
    """Scratch; nothing that a decision depends on is carried in it."""

    regression: RegressionWork
    weights: Floats
    """ρ-hat(x) ω_t(x,a), shape (pairs,)."""
    bonuses: Floats
    chosen: Ints
    columns: Floats
    """Columns of features at work, shape (dim, as many as are taken at once)."""
    gram: Floats
    """V_ω."""
    norms: Floats
    bounds: Bounds
    """Saves work where there are many pairs; a new one would give the same results."""
    delta: Floats
    """θ-tilde - θ', θ' being the closest alternative."""
    information: Floats
    gradient: Floats
    """q_t(x,a) / ρ-hat(x)."""


class SolidAgent(NamedTuple):
    """SOLID at work."""

    params: SolidParams
    known: View
    state: SolidState
    work: SolidWork
