"""Parts of SOLID: chosen parameters, carried state, scratch; plain numbers and arrays."""

from typing import Any, NamedTuple

from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.tables import TableRegression
from solid_bandits.planning.pruned import Bounds


class Phases(NamedTuple):
    """z_k, p_k and the step sizes' factor, by phase; the last phase never ends."""

    normalisation: Floats
    """z_k."""
    length: Floats
    """p_k, in exploring rounds."""
    step_scale: Floats
    """Factor on both step sizes: 1, or 1/√p_k."""


class Bonus(NamedTuple):
    """The bonus in g_t as b (c + i |φᵀ(θ-tilde - θ')| + s b), b = √γ ‖φ‖_{V^-1}: every reading in one form."""

    constant: float
    """Coefficient c."""
    information: float
    """Coefficient i."""
    square: float
    """Coefficient s."""


class SolidParams(NamedTuple):
    """The chosen parameters in compiled form; components are named tuples of different types."""

    initial_multiplier: float
    max_multiplier: float
    policy_step: float
    multiplier_step: float
    bonus: Bonus
    """The bonus in g_t."""
    threshold_scale: float
    normalise_gradient: bool
    reset_at_phase: bool
    phases: Phases
    confidence: Any
    """A component of the module `confidence`."""
    test: Any
    """A component of the module `exploitation`."""
    drawing: Any
    """A component of the module `drawing`."""
    search: Any
    """A component of the module `search`."""


class Projected(NamedTuple):
    """The projected estimate, which the theorems' form carries next to the estimator."""

    theta: Floats
    """θ-tilde, shape (dim,)."""
    means: Floats
    """φ(x,a)ᵀθ-tilde, shape (contexts, arms)."""


class SolidState(NamedTuple):
    """State of SOLID."""

    regression: TableRegression
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
    rng: Words
    projected: Projected | None
    """θ-tilde, in the theorems' form; in the experiments' it is θ-hat."""


class SolidWork(NamedTuple):
    """Scratch; nothing that a decision depends on is carried over in it."""

    weights: Floats
    """ρ-hat(x) ω_t(x,a), shape (pairs,)."""
    bonuses: Floats
    chosen: Ints
    columns: Floats
    """Columns of features being processed, shape (dim, number processed at once)."""
    gram: Floats
    """V_ω."""
    factor: Floats
    norms: Floats
    bounds: Bounds
    """Saves work if there are many pairs; without it the results would be the same."""
    delta: Floats
    """θ-tilde - θ', θ' being the closest alternative."""
    information: Floats
    gradient: Floats
    """q_t(x,a) / ρ-hat(x)."""


class SolidAgent(NamedTuple):
    """Compiled form of SOLID."""

    params: SolidParams
    setting: Setting
    table: Table
    state: SolidState
    work: SolidWork
