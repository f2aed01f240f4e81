"""What streaming SOLID is made of: chosen parameters, carried state, scratch; plain numbers and arrays."""

from typing import NamedTuple

from solid_bandits._types import Floats, Ints, Words
from solid_bandits.estimation.arms import ArmsWork
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.policies.solid.state import Phases
from solid_bandits.setting import Setting

NO_LIMIT = -1.0
"""As a budget: exploring may cost whatever it does."""


class StreamingParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    policy_step: float
    multiplier_step: float
    max_multiplier: float
    budget: float
    """Or NO_LIMIT."""
    fading: float
    threshold_scale: float
    phases: Phases


class Sums(NamedTuple):
    """What log ω of any context is read from."""

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
    """All that is carried from one step to the next."""

    estimator: Estimator
    sums: Sums
    gram: Floats
    """V_ω times `mass`: a mean over exploring rounds in which the past fades, shape (dim, dim)."""
    mass: Floats
    """The weights of that mean together, shape ()."""
    step: Ints
    """t: decisions made, shape ()."""
    explored: Ints
    """S_t: exploring rounds, shape ()."""
    multiplier: Floats
    """λ_t, shape ()."""
    phase: Ints
    """K_t, shape ()."""
    phase_start: Ints
    """S at the end of the previous phase, shape ()."""
    stake: Floats
    """What greedy play was expected to cost in all rounds so far, shape ()."""
    spent: Floats
    """What exploring was expected to cost, shape ()."""
    stream: Words


class StreamingWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    arms: ArmsWork
    theta: Floats
    gram: Floats
    factor: Floats
    inverse: Floats
    rows: Floats
    delta: Floats
    """θ-hat - θ', θ' being the closest alternative, shape (dim,)."""


class StreamingAgent(NamedTuple):
    """Streaming SOLID at work."""

    params: StreamingParams
    setting: Setting
    state: StreamingState
    work: StreamingWork
