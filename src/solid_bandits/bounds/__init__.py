"""The regret lower bound of the paper, each answer with a certificate (Section 3 and its appendix)."""

from solid_bandits.bounds.certificate import Proof
from solid_bandits.bounds.curve import Curve, curve
from solid_bandits.bounds.executions import best_execution, execute, lower_bound_in_total
from solid_bandits.bounds.programs import lower_bound, lower_bound_at, pure_exploration
from solid_bandits.bounds.results import (
    Alternatives,
    BestExecution,
    Execution,
    LowerBound,
    LowerBoundAt,
    LowerBoundInTotal,
    PureExploration,
)
from solid_bandits.bounds.verification import verify

__all__ = [
    "Alternatives",
    "BestExecution",
    "Curve",
    "Execution",
    "LowerBound",
    "LowerBoundAt",
    "LowerBoundInTotal",
    "Proof",
    "PureExploration",
    "best_execution",
    "curve",
    "execute",
    "lower_bound",
    "lower_bound_at",
    "lower_bound_in_total",
    "pure_exploration",
    "verify",
]
