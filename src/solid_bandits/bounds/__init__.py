"""The regret lower bound of the paper, each answer with a certificate (Section 3 and its appendix)."""

from typing import TYPE_CHECKING

from solid_bandits._internal.lazy import lazy
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

if TYPE_CHECKING:
    from solid_bandits.bounds.theorems import regret_bound as regret_bound
    from solid_bandits.bounds.theorems import worst_case_bound as worst_case_bound
    from solid_bandits.estimation.confidence import confidence_radius as confidence_radius

# Loaded on first use: the theorems' radius is compiled, and the lower bound needs no compiler.
_HOMES = {
    "confidence_radius": "estimation.confidence",
    "regret_bound": "bounds.theorems",
    "worst_case_bound": "bounds.theorems",
}
__all__ = [
    *_HOMES,
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
__getattr__, _ = lazy(__name__, _HOMES)
