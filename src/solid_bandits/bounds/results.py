"""What the programs answer: values with their brackets, and the evidence for both sides."""

from dataclasses import dataclass, field

import numpy as np

from solid_bandits._types import Floats, Ints
from solid_bandits.bounds._search import Restart


class _Frozen:
    """A frozen dataclass whose arrays are read-only."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Alternatives(_Frozen):
    """Alternatives θ' and their dual weights: what proves a lower bound.

    Each is one linear inequality on pulls, Σ η(x, a) (φ(x, a)ᵀ(θ - θ'))² / (2σ²) >= 1; the weights combine them.
    """

    shifts: Floats
    """θ* - θ', shape (alternatives, dim); the difference, since θ' itself would round small ones away."""
    contexts: Ints
    """(alternatives,): the context in which θ' makes another arm at least as good as the optimal one."""
    arms: Ints
    """(alternatives,): that arm."""
    weights: Floats
    """(alternatives,): dual weights, >= 0."""


@dataclass(frozen=True, eq=False)
class LowerBound(_Frozen):
    """The answer to (P): every uniformly good policy has regret >= value * log n, asymptotically."""

    value: float
    """v*(θ*): the middle of the bracket."""
    lower: float
    """Certified: v* >= lower."""
    upper: float
    """Certified: v* <= upper, the regret of `allocation`."""
    allocation: Floats
    """η*(x, a) per unit of log n, shape (contexts, arms); 0 at optimal arms, whose pulls are free."""
    pulls: float
    """z*(θ*) = Σ η* over suboptimal pairs."""
    z_bar: float
    """z-bar(θ*) = max_x Σ_a η*(x, a) / ρ(x)."""
    exploration_free: bool
    """No exploration is needed: pulls of the optimal arms rule out every alternative, and the value is 0."""
    converged: bool
    """Whether upper - lower <= tol * upper; if not, the bracket is true but wider."""
    alternatives: Alternatives
    restart: Restart | None = field(repr=False)
    """Where a solve of a nearby problem starts (argument `warm_start`)."""


@dataclass(frozen=True, eq=False)
class LowerBoundAt(_Frozen):
    """The answer to (P_z): the least regret of an exploration that may take z steps."""

    z: float
    value: float
    """u*(z, θ*): the middle of the bracket."""
    lower: float
    """Certified: u* >= lower."""
    upper: float
    """Certified: u* <= upper, z times the mean regret of `policy`."""
    policy: Floats
    """ω*_z(x, a), shape (contexts, arms); each row sums to 1."""
    multiplier: float
    """λ*(z, θ*) of the Lagrangian relaxation (P_λ)."""
    converged: bool
    alternatives: Alternatives
    exploration: "PureExploration" = field(repr=False)
    """What decided that z is feasible; give it to the next call for the same problem and another z."""
    restart: Restart | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class PureExploration(_Frozen):
    """The answer to pure exploration: the least z for which (P_z) is feasible."""

    z_min: float
    """The middle of the bracket."""
    lower: float
    """Certified: no policy does with fewer steps."""
    upper: float
    """Certified: `policy` does with this many."""
    policy: Floats
    """ω(x, a), shape (contexts, arms); each row sums to 1."""
    converged: bool
    alternatives: Alternatives
    restart: Restart | None = field(repr=False)
