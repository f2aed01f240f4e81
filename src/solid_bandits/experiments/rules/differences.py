"""Rules on means within a part, and on differences of them, taken run by run: less, more, between, below."""

from solid_bandits._words import given
from solid_bandits.experiments.outcome import Answer
from solid_bandits.experiments.rules.rule import (
    ABOVE_ZERO,
    Case,
    Finding,
    Part,
    Rule,
    never_differ,
    not_held,
    not_testable,
    opposite,
    side_of,
)
from solid_bandits.statistics.estimate import UNKNOWN, Estimate
from solid_bandits.statistics.intervals import student
from solid_bandits.statistics.metrics import slope


def _difference(case: Case, more: str, fewer: str) -> Finding:
    (part,) = case.parts
    what = f"{case.metric} of {more} - {case.metric} of {fewer}, {part.label}"
    differences = case.differences(part, more, fewer)
    if differences is None:
        return not_held(what)
    if not differences.any():
        return not_testable(what, 0.0)
    estimate = student(differences, case.level)
    return Finding(what, estimate, side_of(estimate, 0))


def _less(case: Case) -> Finding:
    return _difference(case, case.others[0], case.policy)


def _more(case: Case) -> Finding:
    return _difference(case, case.policy, case.others[0])


def _inside(from_one: float, from_two: float) -> float:
    """How far a number lies between two others, given its differences from them; negative outside."""
    return max(min(from_one, -from_two), min(-from_one, from_two))


def _between(case: Case) -> Finding:
    (part,) = case.parts
    samples = [case.differences(part, case.policy, other) for other in case.others]
    # Two intervals that share the error; the claim holds in either order, so no end is picked by its mean.
    level = 1 - (1 - case.level) / 2
    differences = [student(sample, level) for sample in samples if sample is not None]
    what = (
        f"how far {case.metric} of {case.policy} lies between those of {' and '.join(case.others)} "
        f"(negative: outside), {part.label}"
    )
    values = [difference.value for difference in differences if difference.value is not None]
    if len(values) < 2:
        return not_held(what)
    if any(sample is not None and not sample.any() for sample in samples):
        return not_testable(what, 0.0)
    ends = [(low, high) for _, low, high in differences if low is not None and high is not None]
    if len(ends) < 2:
        return Finding(what, Estimate(_inside(*values)), Answer.UNDECIDED)
    # Over a box of differences, `_inside` is least and greatest at corners.
    corners = [_inside(one, two) for one in ends[0] for two in ends[1]]
    estimate = Estimate(_inside(*values), min(corners), max(corners))
    return Finding(what, estimate, side_of(estimate, 0))


def _below(case: Case) -> Finding:
    (part,) = case.parts
    values = case.values(part, case.policy)
    estimate = UNKNOWN if values is None else student(values, case.level)
    answer = opposite(side_of(estimate, case.claim.margin))
    return Finding(f"{case.metric} of {case.policy}, {part.label}", estimate, answer)


def _at_most(case: Case) -> Finding:
    found = _below(case)
    return found._replace(answer=Answer.UNDECIDED) if found.answer is Answer.REFUTED else found


def _slowing(case: Case) -> Finding:
    (part,) = case.parts
    what = f"slope of {case.policy} up to {given(case.claim.at / 10)} n - up to {given(case.claim.at)} n, {part.label}"
    before, last = (slope(part.results, case.policy, at) for at in (case.claim.at / 10, case.claim.at))
    if before is None or last is None:
        return not_held(what)
    if never_differ(before, last):
        return not_testable(what, 0.0)
    estimate = student(before - last, case.level)
    return Finding(what, estimate, side_of(estimate, 0))


def _smallest(case: Case, part: Part, level: float) -> Answer | None:
    """Whether the policy has less than every other in a part; None where the results do not hold it."""
    answers = []
    for other in case.others:
        differences = case.differences(part, other, case.policy)
        if differences is None:
            return None
        same = not differences.any()
        answers.append(Answer.NOT_TESTABLE if same else side_of(student(differences, level), 0))
    for answer in (Answer.REFUTED, Answer.NOT_TESTABLE, Answer.UNDECIDED):
        if answer in answers:
            return answer
    return Answer.CONFIRMED


def _often(case: Case) -> Finding:
    others = "all others" if len(case.others) > 1 else case.others[0]
    what = f"share of the {len(case.parts)} parts in which {case.metric} of {case.policy} is below {others}"
    level = 1 - (1 - case.level) / (len(case.parts) * len(case.others))
    found = [_smallest(case, part, level) for part in case.parts]
    if None in found:
        return not_held(what)
    half = len(found) / 2
    value = found.count(Answer.CONFIRMED) / len(found)
    if found.count(Answer.NOT_TESTABLE) >= half:
        return not_testable(what, value)
    if found.count(Answer.CONFIRMED) > half:
        return Finding(what, Estimate(value), Answer.CONFIRMED)
    refuted = found.count(Answer.REFUTED) >= half
    return Finding(what, Estimate(value), Answer.REFUTED if refuted else Answer.UNDECIDED)


_PAIRED = (
    "Run by run, since run r of every policy sees the same contexts and noise; Student's interval of the mean"
)

LESS = Rule(
    f"In every part, each policy has less than each that it is set against. {_PAIRED} difference. {ABOVE_ZERO}",
    _less,
    against=1,
)

MORE = Rule(
    f"In every part, each policy has more than each that it is set against. {_PAIRED} difference. {ABOVE_ZERO}",
    _more,
    against=1,
)

BETWEEN = Rule(
    "In every part, each policy's mean lies between those of the two that it is set against, in either "
    "order. Run by run; Student's intervals of the mean differences from the two, which share the "
    f"error; the number is the distance to the nearer of the two, negative outside. {ABOVE_ZERO}",
    _between,
    against=2,
)

BELOW = Rule(
    "In every part, each policy's mean is below the margin, here an absolute limit. Student's interval "
    "of the mean. Confirmed if every interval lies below the margin, refuted if one lies above it, "
    "undecided otherwise.",
    _below,
    uses_margin=True,
)

AT_MOST = Rule(
    "In every part, each policy's mean is below the margin, here an absolute limit, the number being one that bounds "
    "from above what the claim speaks of. Student's interval of the mean. Confirmed if every interval lies below the "
    "margin, undecided otherwise.",
    _at_most,
    uses_margin=True,
)

SLOWING = Rule(
    "In every part, the regret of each policy grows more slowly per unit of log t over the last decade than over the "
    f"decade before: less than logarithmically. Run by run; Student's interval of the mean difference. {ABOVE_ZERO}",
    _slowing,
    uses_metric=False,
)

OFTEN = Rule(
    "In more than half of the parts, each policy has less than every one that it is set against. Run by run; Student's "
    "intervals of the mean differences, which share the error. Confirmed if in more than half of the parts all of "
    "them lie above 0, refuted if in half or more one of them lies at or below 0, undecided otherwise.",
    _often,
    against=1,
    whole=True,
)
