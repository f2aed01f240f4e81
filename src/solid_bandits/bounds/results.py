"""Answers of the programs: values with their brackets, and the evidence for both sides."""

from dataclasses import dataclass, field

import numpy as np

from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.bounds._search import Restart


class _Frozen:
    """A frozen dataclass whose arrays are read-only."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Alternatives(_Frozen):
    """Alternatives θ' and their dual weights, which prove a lower bound.

    Each is one linear inequality on pulls, Σ η(x, a) (φ(x, a)ᵀ(θ - θ'))² / (2σ²) >= 1; the weights combine them.

    Example:
        >>> import solid_bandits as sb
        >>> bound = sb.bounds.lower_bound(sb.problems.toy(noise_std=1.0))
        >>> bound.alternatives.shifts.shape[1]  # each is a parameter of the problem's dimension
        3
    """

    shifts: Floats
    """θ* - θ', shape (alternatives, dim); the difference, since θ' itself would round small ones away."""
    contexts: Ints
    """(alternatives,): the context in which θ' makes another arm at least as good as the optimal one."""
    arms: Ints
    """(alternatives,): that other arm."""
    weights: Floats
    """(alternatives,): dual weights, >= 0."""

    @classmethod
    def none(cls, dim: int) -> "Alternatives":
        """Return an empty set of alternatives in this dimension."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(np.zeros((0, dim)), nothing, nothing, np.zeros(0))


@dataclass(frozen=True, eq=False)
class LowerBound(_Frozen):
    """The answer to (P): every uniformly good policy has regret >= value * log n, asymptotically.

    Example:
        >>> import solid_bandits as sb
        >>> bound = sb.bounds.lower_bound(sb.problems.toy(noise_std=1.0))
        >>> bound.lower <= bound.value <= bound.upper
        True
        >>> round(bound.pulls, 3)
        50.0
    """

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
    """Whether no exploration is needed: pulls of the optimal arms rule out every alternative, and the value is 0."""
    converged: bool
    """Whether upper - lower <= tol * upper; if not, the bracket is valid but wider."""
    alternatives: Alternatives
    restart: Restart | None = field(repr=False)
    """Starting point for a solve of a nearby problem (argument `warm_start`)."""


@dataclass(frozen=True, eq=False)
class LowerBoundAt(_Frozen):
    """The answer to (P_z): the least regret of an exploration that may take z steps.

    Example:
        >>> import solid_bandits as sb
        >>> at = sb.bounds.lower_bound_at(sb.problems.toy(noise_std=1.0), z=1e4)
        >>> at.policy.sum(axis=1).round(6)
        array([1., 1.])
    """

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
    """Pure exploration, which decided that z is feasible; pass it to the next call for the same problem and another
    z."""
    restart: Restart | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class PureExploration(_Frozen):
    """The answer to pure exploration: the least z for which (P_z) is feasible.

    Example:
        >>> import solid_bandits as sb
        >>> pure = sb.bounds.pure_exploration(sb.problems.toy(noise_std=1.0))
        >>> pure.lower <= pure.z_min <= pure.upper
        True
    """

    z_min: float
    """z_min: the middle of the bracket."""
    lower: float
    """Certified: no policy needs fewer steps."""
    upper: float
    """Certified: `policy` needs at most this many steps."""
    policy: Floats
    """ω(x, a), shape (contexts, arms); each row sums to 1."""
    converged: bool
    alternatives: Alternatives
    restart: Restart | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class LowerBoundInTotal(_Frozen):
    """The answer to (P̃_z): the least regret of z pulls in contexts of one's choice.

    Example:
        >>> import solid_bandits as sb
        >>> total = sb.bounds.lower_bound_in_total(sb.problems.toy(noise_std=1.0), z=1000)
        >>> round(float(total.allocation.sum()))
        1000
    """

    z: float
    value: float
    """ũ*_z: the middle of the bracket."""
    lower: float
    """Certified: ũ*_z >= lower."""
    upper: float
    """Certified: ũ*_z <= upper, the regret of `allocation`."""
    allocation: Floats
    """η̃*_z(x, a), shape (contexts, arms); sums to z."""
    multiplier: float
    """Multiplier of the information constraint."""
    z_min: float
    """Certified: this many pulls are enough when contexts can be chosen."""
    converged: bool
    alternatives: Alternatives
    exploration: PureExploration = field(repr=False)
    """Pure exploration, which decided that z is feasible; its policy has one row for all pairs."""


@dataclass(frozen=True, eq=False)
class Execution(_Frozen):
    """Expected outcome of z steps when arms are drawn in proportion to an allocation of z pulls.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.toy(first_context_prob=0.9, noise_std=1.0)
        >>> prescribed = sb.bounds.lower_bound_in_total(problem, z=1000)
        >>> played = sb.bounds.execute(problem, prescribed.allocation)
        >>> round(played.information, 2)  # a tenth of what is needed
        0.1
    """

    z: float
    mismatch: Floats
    """α_z(x) = zρ(x) / Σ_a η(x, a), shape (contexts,): share of its pulls that a context gets; infinite if it has
    none."""
    pulls: Floats
    """ζ̃_z(x, a): expected pulls, shape (contexts, arms)."""
    regret: float
    """Expected regret, Σ ζ̃ Δ."""
    information: float
    """Information against the closest alternative, rounded down; below 1, what is played does not rule it out."""


@dataclass(frozen=True, eq=False)
class BestExecution(_Frozen):
    """The answer to (P̃_α): the best correction of an allocation that is possible when contexts are drawn by ρ.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.toy(first_context_prob=0.9, noise_std=1.0)
        >>> prescribed = sb.bounds.lower_bound_in_total(problem, z=1000)
        >>> sb.bounds.best_execution(problem, prescribed.allocation).value  # no correction has enough information
        inf
    """

    z: float
    value: float
    """The middle of the bracket; infinite where no correction has enough information."""
    lower: float
    """Certified."""
    upper: float
    """Certified: the regret of `policy` in z steps."""
    policy: Floats
    """ω(x, a) = η α / (zρ), shape (contexts, arms); each row sums to 1, or is NaN where there is no correction."""
    factors: Floats
    """α(x, a), shape (contexts, arms); NaN where the allocation has no pulls."""
    support: Bools
    """Mask of the pairs that the allocation pulls, shape (contexts, arms)."""
    converged: bool
    alternatives: Alternatives
    """Evidence for `lower`; where there is no correction, it proves that more than z steps are needed."""
