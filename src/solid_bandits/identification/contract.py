"""What a rule of identification is: parameters, arrays of its own, and a kernel that chooses an arm."""

from collections.abc import Callable
from typing import Any

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.dispatch import by_type, variant
from solid_bandits._internal.parameters import check_parameters
from solid_bandits.identification.knowledge import Knowledge

NEVER = float("inf")


@by_type
def choose(rule: Any, known: Knowledge, context: int) -> int:
    """The arm that a rule at work pulls next in a context, after the first k rewards."""
    raise NotImplementedError


def register(kind: type, kernel: Callable[..., object]) -> None:
    """Have rules at work of this type choose by a kernel."""
    variant(choose, kind, kernel)


@jit
def least_tracked(known: Knowledge, context: int) -> int:
    """C-tracking: the arm of the smallest N(x, a) - Σ ω(x, a), of those that an allocation has ever had."""
    best, least = 0, np.inf
    for arm in range(known.counts.shape[1]):
        ahead = known.counts[context, arm] - known.tracked[context, arm]
        if known.tracked[context, arm] > 0.0 and ahead < least:
            best, least = arm, ahead
    return best


class Rule:
    """How arms are chosen in order to find out which are best."""

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters(self)

    def start(self, known: Knowledge) -> Any:
        """The rule at work: a named tuple of arrays and numbers."""
        raise NotImplementedError

    def plan(self, rule: Any, known: Knowledge) -> float:
        """Plan anew, outside of compiled code; return the number of rewards at which to plan again."""
        return NEVER
