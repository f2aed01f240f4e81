"""Parts of streaming SOLID: chosen parameters, carried state, scratch; plain numbers and arrays."""

from typing import Any, NamedTuple

from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.setting import Setting
from solid_bandits.policies.solid.state import Phases

NO_LIMIT = -1.0
"""Budget without a limit."""


class StreamingParams(NamedTuple):
    """The chosen parameters in compiled form."""

    policy_step: float
    multiplier_step: float
    max_multiplier: float
    budget: float
    """Budget of exploration, or NO_LIMIT."""
    fading: float
    threshold_scale: float
    phases: Phases


class Sums(NamedTuple):
    """Sums from which log ω of any context is computed."""

    along: Floats
    """M, shape (dim,)."""
    width: Floats
    """N, shape (dim, dim)."""
    information: Floats
    """Q, shape (dim, dim)."""
    optimism: Floats
    """R, shape (dim, dim)."""
    weight: Floats
    """w, shape ()."""


class StreamingState(NamedTuple):
    """State of StreamingSolid."""

    regression: Any
    sums: Sums
    gram: Floats
    """V_ω times `mass`: a mean over exploring rounds in which the past fades, shape (dim, dim)."""
    mass: Floats
    """Total weight of that mean, shape ()."""
    explored: Ints
    """S_t: exploring rounds, shape ()."""
    multiplier: Floats
    """λ_t, shape ()."""
    phase: Ints
    """K_t, shape ()."""
    phase_start: Ints
    """S at the end of the previous phase, shape ()."""
    stake: Floats
    """Expected cost of greedy play in all rounds so far, shape ()."""
    spent: Floats
    """Expected cost of exploration so far, shape ()."""
    rng: Words


class StreamingWork(NamedTuple):
    """Scratch; nothing is carried over in it."""

    gram: Floats
    factor: Floats
    inverse: Floats
    rows: Floats
    delta: Floats
    """θ-hat - θ', θ' being the closest alternative, shape (dim,)."""


class StreamingAgent(NamedTuple):
    """Compiled form of StreamingSolid."""

    params: StreamingParams
    setting: Setting
    state: StreamingState
    work: StreamingWork
