"""Even sampling: the arm of the context that was pulled least. What exploring with a purpose is compared with."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits.identification.contract import Rule, register
from solid_bandits.identification.knowledge import Knowledge


class EvenRule(NamedTuple):
    """Even at work; it carries nothing."""

    unused: float


@jit
def choose(rule: EvenRule, known: Knowledge, context: int) -> int:
    """The arm that was pulled least, the first of several that tie."""
    best, least = 0, np.inf
    for arm in range(known.counts.shape[1]):
        if known.counts[context, arm] < least:
            best, least = arm, known.counts[context, arm]
    return best


register(EvenRule, choose)


@dataclass(frozen=True)
class Even(Rule):
    """Pull every arm equally often.

    Example:
        >>> import solid_bandits as sb
        >>> from solid_bandits import identification
        >>> found = identification.identify(sb.problems.end_of_optimism(0.3), identification.Even(), delta=0.1)
        >>> found.arms
        [2]
    """

    def start(self, known: Knowledge) -> EvenRule:
        """The rule at work."""
        return EvenRule(0.0)
