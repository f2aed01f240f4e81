"""What a rule is: it turns one comparison that a claim asks for into a number with an interval, and an answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._types import Floats
from solid_bandits._words import given
from solid_bandits.experiments.outcome import Answer, Claim
from solid_bandits.results import Results
from solid_bandits.statistics.estimate import UNKNOWN, Estimate
from solid_bandits.statistics.metrics import METRICS

ROUNDING = 1e-9
"""Relative difference of two numbers of a run that is none: regrets are sums over many steps."""

ABOVE_ZERO = (
    "Confirmed if every interval lies above 0, refuted if one lies at or below 0, undecided otherwise."
)


_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Part(NamedTuple):
    """A part of an experiment, and what it gave."""

    label: str
    results: Results


class Case(NamedTuple):
    """What one comparison is about."""

    claim: Claim
    parts: tuple[Part, ...]
    """One part; the first and the last for a rule that looks across parts."""
    policy: str
    """Empty for a rule on the lower bound alone."""
    others: tuple[str, ...]
    level: float

    @property
    def metric(self) -> str:
        """The claim's metric in words."""
        at = "" if self.claim.at == 1 else f" at {given(self.claim.at)} n"
        arm = f" ({arm_name(self.claim.arm)})" if self.claim.arm else ""
        return f"{self.claim.metric}{arm}{at}"

    def values(self, part: Part, policy: str) -> Floats | None:
        """The policy's numbers, run by run."""
        metric = METRICS[self.claim.metric]
        return metric.values(
            part.results, policy, self.claim.at, *([self.claim.arm] if metric.of_arm else [])
        )

    def pair(self, part: Part, policy: str, other: str) -> tuple[Floats, Floats] | None:
        """Both policies' numbers, run by run."""
        one, two = self.values(part, policy), self.values(part, other)
        if one is None or two is None:
            return None
        if len(one) != len(two):
            raise ValueError(
                f"part {part.label!r} must have the same runs of every policy, got {len(one)} of {policy!r} and "
                f"{len(two)} of {other!r}"
            )
        return one, two

    def differences(self, part: Part, policy: str, other: str) -> Floats | None:
        """The policy's numbers - the other's, run by run."""
        pair = self.pair(part, policy, other)
        if pair is None:
            return None
        difference = pair[0] - pair[1]
        # Two policies with the same pulls in another order: rounding alike in all runs would be a sure lead.
        difference[np.abs(difference) <= ROUNDING * np.maximum(*np.abs(pair))] = 0
        return difference


def arm_name(arm: tuple[int, int]) -> str:
    """Such as a₂ in x₁ for (0, 1)."""
    return f"a{arm[1] + 1} in x{arm[0] + 1}".translate(_SUBSCRIPTS)


def never_differ(one: Floats | None, two: Floats | None) -> bool:
    """Whether two samples are the same run by run, but for rounding."""
    if one is None or two is None or len(one) != len(two):
        return False
    return bool((np.abs(one - two) <= ROUNDING * np.maximum(np.abs(one), np.abs(two))).all())


class Finding(NamedTuple):
    """What a rule makes of a case: the number in words, the number, and what it says to the claim."""

    what: str
    estimate: Estimate
    answer: Answer


@dataclass(frozen=True)
class Rule:
    """How a claim is judged.

    Args:
        words: the rule, for humans.
        measure: one comparison.
        of_policies: whether it speaks of policies, or of the lower bound alone.
        against: with how many others it compares each: none, one at a time, or two at once.
        across: whether it compares the last part with the first, instead of looking into each part.
        whole: whether it looks at all parts, and at all that a policy is set against, at once.
        uses_metric: whether it reads the claim's metric.
        uses_margin: whether it reads the claim's margin.
        uses_level: whether it has intervals.

    """

    words: str
    measure: Callable[[Case], Finding]
    of_policies: bool = True
    against: int = 0
    across: bool = False
    whole: bool = False
    uses_metric: bool = True
    uses_margin: bool = False
    uses_level: bool = True


def not_held(what: str) -> Finding:
    """The finding where the results do not hold the number."""
    return Finding(what, UNKNOWN, Answer.UNDECIDED)


def not_testable(what: str, value: float) -> Finding:
    """The finding where the two sides are the same in every run, so that `value` was certain beforehand."""
    return Finding(f"{what} (the same in every run)", Estimate(value, value, value), Answer.NOT_TESTABLE)


def side_of(estimate: Estimate, threshold: float) -> Answer:
    """Confirmed if the interval lies above the threshold, refuted if not a point of it does.

    So a point on the threshold refutes.
    """
    if estimate.low is None or estimate.high is None:
        return Answer.UNDECIDED
    if estimate.low > threshold:
        return Answer.CONFIRMED
    return Answer.REFUTED if estimate.high <= threshold else Answer.UNDECIDED


def opposite(answer: Answer) -> Answer:
    """What the same number says to the opposite claim."""
    swapped = {Answer.CONFIRMED: Answer.REFUTED, Answer.REFUTED: Answer.CONFIRMED}
    return swapped.get(answer, answer)
