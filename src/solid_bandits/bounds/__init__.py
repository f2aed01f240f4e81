"""The regret lower bound of the paper, each answer with a certificate (Section 3 and its appendix)."""

from solid_bandits.bounds.certificate import Proof, verify
from solid_bandits.bounds.curve import Curve, curve
from solid_bandits.bounds.programs import lower_bound, lower_bound_at, pure_exploration
from solid_bandits.bounds.results import Alternatives, LowerBound, LowerBoundAt, PureExploration

__all__ = [
    "Alternatives",
    "Curve",
    "LowerBound",
    "LowerBoundAt",
    "Proof",
    "PureExploration",
    "curve",
    "lower_bound",
    "lower_bound_at",
    "pure_exploration",
    "verify",
]
