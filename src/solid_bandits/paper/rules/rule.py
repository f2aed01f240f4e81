"""Definition of a rule: for each comparison that a claim needs, it computes a number with an interval and an answer."""

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
"""Relative difference below which two numbers of a run count as equal: regrets are sums over many steps."""

ABOVE_ZERO = (
    "Confirmed if every interval lies above 0, refuted if one lies at or below 0, undecided otherwise."
)

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class NotHeldError(Exception):
    """Raised if the results do not contain a number that a rule needs."""


class SameError(Exception):
    """Raised if both sides are the same in every run, so that the number, `value`, was certain beforehand."""

    def __init__(self, value: float) -> None:
        super().__init__(value)
        self.value = value


class Part(NamedTuple):
    """A part of an experiment, with its results."""

    label: str
    results: Results


class Case(NamedTuple):
    """Subject of one comparison."""

    claim: Claim
    parts: tuple[Part, ...]
    """One part, or the first and the last for a rule that compares parts."""
    policy: str
    """The policy; empty for a rule about the lower bound alone."""
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
        """The policy that this one is compared with, or the first of several."""
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
        """Return both policies' numbers, run by run."""
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
        # Two policies may have the same pulls in a different order; rounding errors equal in all runs would then count
        # as a certain lead.
        difference[np.abs(difference) <= ROUNDING * np.maximum(np.abs(one), np.abs(two))] = 0
        return difference


Measured = tuple[Estimate, Answer]


@dataclass(frozen=True)
class Rule:
    """A way of judging a claim.

    Args:
        words: the rule in words.
        what: function that describes a case's number in words.
        measure: function that computes the number and its answer to the claim.
        of_policies: whether it is about policies, or about the lower bound alone.
        against: how many others it compares each policy with: none, one at a time, or two at once.
        across: whether it compares the last part with the first, instead of examining each part.
        whole: whether it examines all parts, and all other policies, at once.
        uses_metric: whether it uses the claim's metric.
        uses_margin: whether it uses the claim's margin.
        uses_level: whether it computes intervals.

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
        """Make one comparison of a claim; it is undecided if the results do not contain the number."""
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
    """Register the function below as the `measure` of a rule; see `Rule`."""

    def enter(measure: Callable[[Case], Measured]) -> Callable[[Case], Measured]:
        RULES[name] = Rule(words, what, measure, **kind)
        return measure

    return enter


def held(values: Floats | None) -> Floats:
    """Return the numbers; raise a NotHeldError if the results do not contain them."""
    if values is None:
        raise NotHeldError
    return values


def arm_name(arm: tuple[int, int]) -> str:
    """Return a name such as a₂ in x₁ for (0, 1)."""
    return f"a{arm[1] + 1} in x{arm[0] + 1}".translate(_SUBSCRIPTS)


def check_differ(one: Floats, two: Floats, value: float) -> None:
    """Raise a SameError if two samples agree run by run, up to rounding."""
    if len(one) == len(two) and (np.abs(one - two) <= ROUNDING * np.maximum(np.abs(one), np.abs(two))).all():
        raise SameError(value)


def above_zero(estimate: Estimate) -> Measured:
    """Return the estimate, and whether it is above 0."""
    return estimate, side_of(estimate, 0)


def side_of(estimate: Estimate, threshold: float) -> Answer:
    """Return confirmed if the interval lies above the threshold, refuted if no point of it does.

    So an interval that only touches the threshold refutes.
    """
    if estimate.low is None or estimate.high is None:
        return Answer.UNDECIDED
    if estimate.low > threshold:
        return Answer.CONFIRMED
    return Answer.REFUTED if estimate.high <= threshold else Answer.UNDECIDED


def within(estimate: Estimate, least: float, most: float) -> Answer:
    """Return confirmed if the interval lies between two limits, refuted if it lies outside."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return Answer.UNDECIDED
    if high < least or low > most:
        return Answer.REFUTED
    return Answer.CONFIRMED if least <= low and high <= most else Answer.UNDECIDED


def opposite(answer: Answer) -> Answer:
    """Return the answer of the same number to the opposite claim."""
    swapped = {Answer.CONFIRMED: Answer.REFUTED, Answer.REFUTED: Answer.CONFIRMED}
    return swapped.get(answer, answer)
