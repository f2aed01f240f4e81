"""What a rule is: it makes a number with an interval, and an answer, of each comparison that a claim asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.types import Floats
from solid_bandits._internal.wording import given
from solid_bandits.paper.outcome import Answer, Claim, Comparison
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.estimate import UNKNOWN, Estimate
from solid_bandits.statistics.metrics import METRICS

ROUNDING = 1e-9
"""Relative difference of two numbers of a run that is none: regrets are sums over many steps."""

ABOVE_ZERO = (
    "Confirmed if every interval lies above 0, refuted if one lies at or below 0, undecided otherwise."
)

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class NotHeldError(Exception):
    """Raised where the results do not hold a number that a rule needs."""


class SameError(Exception):
    """Raised where the two sides are the same in every run, so that the number, `value`, was certain beforehand."""

    def __init__(self, value: float) -> None:
        super().__init__(value)
        self.value = value


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
    def part(self) -> Part:
        """The part, or the first of them."""
        return self.parts[0]

    @property
    def last(self) -> Part:
        """The last part."""
        return self.parts[-1]

    @property
    def other(self) -> str:
        """The policy that this one is set against, or the first of them."""
        return self.others[0]

    @property
    def metric(self) -> str:
        """The claim's metric in words."""
        at = "" if self.claim.at == 1 else f" at {given(self.claim.at)} n"
        arm = f" ({arm_name(self.claim.arm)})" if self.claim.arm else ""
        return f"{self.claim.metric}{arm}{at}"

    def values(self, part: Part, policy: str) -> Floats:
        """Return the policy's numbers, run by run."""
        metric, arm = METRICS[self.claim.metric], self.claim.arm
        return held(metric.values(part.results, policy, self.claim.at, *([arm] if metric.of_arm else [])))

    def pair(self, part: Part, policy: str, other: str) -> tuple[Floats, Floats]:
        """Both policies' numbers, run by run."""
        one, two = self.values(part, policy), self.values(part, other)
        if len(one) != len(two):
            raise ValueError(
                f"part {part.label!r} must have the same runs of every policy, got {len(one)} of {policy!r} and "
                f"{len(two)} of {other!r}"
            )
        return one, two

    def differences(self, part: Part, policy: str, other: str) -> Floats:
        """Return the policy's numbers - the other's, run by run."""
        one, two = self.pair(part, policy, other)
        difference = one - two
        # Two policies with the same pulls in another order: rounding alike in all runs would be a sure lead.
        difference[np.abs(difference) <= ROUNDING * np.maximum(np.abs(one), np.abs(two))] = 0
        return difference


Measured = tuple[Estimate, Answer]


@dataclass(frozen=True)
class Rule:
    """How a claim is judged.

    Args:
        words: the rule, for humans.
        what: the number that it makes of a case, in words.
        measure: the number, and what it says to the claim.
        of_policies: whether it speaks of policies, or of the lower bound alone.
        against: with how many others it compares each: none, one at a time, or two at once.
        across: whether it compares the last part with the first, instead of looking into each part.
        whole: whether it looks at all parts, and at all that a policy is set against, at once.
        uses_metric: whether it reads the claim's metric.
        uses_margin: whether it reads the claim's margin.
        uses_level: whether it has intervals.

    """

    words: str
    what: Callable[[Case], str]
    measure: Callable[[Case], Measured]
    of_policies: bool = True
    against: int = 0
    across: bool = False
    whole: bool = False
    uses_metric: bool = True
    uses_margin: bool = False
    uses_level: bool = True

    def compare(self, case: Case) -> Comparison:
        """Make one comparison of a claim; it is undecided where the results do not hold the number."""
        what = self.what(case)
        try:
            return Comparison(what, *self.measure(case))
        except NotHeldError:
            return Comparison(what, UNKNOWN, Answer.UNDECIDED)
        except SameError as same:
            certain = Estimate(same.value, same.value, same.value)
            return Comparison(f"{what} (the same in every run)", certain, Answer.NOT_TESTABLE)


RULES: dict[str, Rule] = {}
"""Name -> rule."""


def rule(
    name: str, words: str, what: Callable[[Case], str], **kind: Any
) -> Callable[[Callable[[Case], Measured]], Callable[[Case], Measured]]:
    """Enter the function below as the `measure` of a rule; see `Rule`."""

    def enter(measure: Callable[[Case], Measured]) -> Callable[[Case], Measured]:
        RULES[name] = Rule(words, what, measure, **kind)
        return measure

    return enter


def held(values: Floats | None) -> Floats:
    """Return the numbers, if the results hold them."""
    if values is None:
        raise NotHeldError
    return values


def arm_name(arm: tuple[int, int]) -> str:
    """Such as a₂ in x₁ for (0, 1)."""
    return f"a{arm[1] + 1} in x{arm[0] + 1}".translate(_SUBSCRIPTS)


def check_differ(one: Floats, two: Floats, value: float) -> None:
    """Raise a SameError if two samples are the same run by run, but for rounding."""
    if len(one) == len(two) and (np.abs(one - two) <= ROUNDING * np.maximum(np.abs(one), np.abs(two))).all():
        raise SameError(value)


def above_zero(estimate: Estimate) -> Measured:
    """Give the estimate, and whether it is above 0."""
    return estimate, side_of(estimate, 0)


def side_of(estimate: Estimate, threshold: float) -> Answer:
    """Confirmed if the interval lies above the threshold, refuted if not a point of it does.

    So a point on the threshold refutes.
    """
    if estimate.low is None or estimate.high is None:
        return Answer.UNDECIDED
    if estimate.low > threshold:
        return Answer.CONFIRMED
    return Answer.REFUTED if estimate.high <= threshold else Answer.UNDECIDED


def within(estimate: Estimate, least: float, most: float) -> Answer:
    """Confirmed if the interval lies between two limits, refuted if it lies outside."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return Answer.UNDECIDED
    if high < least or low > most:
        return Answer.REFUTED
    return Answer.CONFIRMED if least <= low and high <= most else Answer.UNDECIDED


def opposite(answer: Answer) -> Answer:
    """What the same number says to the opposite claim."""
    swapped = {Answer.CONFIRMED: Answer.REFUTED, Answer.REFUTED: Answer.CONFIRMED}
    return swapped.get(answer, answer)
