"""Rules on means within a part, run by run: less, more, similar, different, between, below, at most, often, slowing."""

from solid_bandits._internal.wording import given
from solid_bandits.paper.outcome import Answer
from solid_bandits.paper.rules import rule as of
from solid_bandits.paper.rules.rule import ABOVE_ZERO, Case, Measured, Part, SameError, rule
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.intervals import ratio, student
from solid_bandits.statistics.metrics import slope

_PAIRED = (
    "Run by run, since run r of every policy sees the same contexts and noise; Student's interval of the mean"
)


def _difference(case: Case, more: str, fewer: str) -> Measured:
    differences = case.differences(case.part, more, fewer)
    if not differences.any():
        raise SameError(0.0)
    return of.above_zero(student(differences, case.level))


@rule(
    "less",
    f"In every part, each policy has less than each policy it is compared with. {_PAIRED} difference. {ABOVE_ZERO}",
    lambda case: f"{case.metric} of {case.other} - {case.metric} of {case.policy}, {case.part.label}",
    against=1,
)
def _less(case: Case) -> Measured:
    return _difference(case, case.other, case.policy)


@rule(
    "more",
    f"In every part, each policy has more than each policy it is compared with. {_PAIRED} difference. {ABOVE_ZERO}",
    lambda case: f"{case.metric} of {case.policy} - {case.metric} of {case.other}, {case.part.label}",
    against=1,
)
def _more(case: Case) -> Measured:
    return _difference(case, case.policy, case.other)


def _ratio_in_words(case: Case) -> str:
    return f"{case.metric} of {case.policy} / {case.metric} of {case.other}, {case.part.label}"


@rule(
    "similar",
    "In every part, each policy's mean is that of each policy it is compared with, give or take the margin. "
    "Run by run; Fieller's interval of the ratio of means. Confirmed if every interval lies within "
    "1 ± margin, refuted if one lies outside, undecided otherwise.",
    _ratio_in_words,
    against=1,
    uses_margin=True,
)
def _similar(case: Case) -> Measured:
    pair = case.pair(case.part, case.policy, case.other)
    of.check_differ(*pair, 1.0)
    estimate = ratio(*pair, case.level)
    return estimate, of.within(estimate, 1 - case.claim.margin, 1 + case.claim.margin)


@rule(
    "different",
    "In every part, each policy's mean differs from that of each policy it is compared with by more than "
    "the margin. Run by run; Fieller's interval of the ratio of means. Confirmed if every interval "
    "lies outside 1 ± margin, refuted if one lies within, undecided otherwise.",
    _ratio_in_words,
    against=1,
    uses_margin=True,
)
def _different(case: Case) -> Measured:
    estimate, answer = _similar(case)
    return estimate, of.opposite(answer)


def _inside(from_one: float, from_two: float) -> float:
    """Return how far a number lies between two others, given its differences from them; negative outside."""
    return max(min(from_one, -from_two), min(-from_one, from_two))


@rule(
    "between",
    "In every part, each policy's mean lies between those of the two it is compared with, in either "
    "order. Run by run; Student's intervals of the mean differences from the two, which share the "
    f"error; the number is the distance to the nearer of the two, negative outside. {ABOVE_ZERO}",
    lambda case: (
        f"how far {case.metric} of {case.policy} lies between those of {' and '.join(case.others)} "
        f"(negative: outside), {case.part.label}"
    ),
    against=2,
)
def _between(case: Case) -> Measured:
    samples = [case.differences(case.part, case.policy, other) for other in case.others]
    if not all(sample.any() for sample in samples):
        raise SameError(0.0)
    # Two intervals that share the error; the claim holds in either order, so neither end is selected by its mean.
    level = 1 - (1 - case.level) / 2
    value = _inside(*(float(sample.mean()) for sample in samples))
    ends = [(low, high) for _, low, high in (student(sample, level) for sample in samples)]
    # Over a box of differences, `_inside` takes its extremes at corners.
    corners = [_inside(one, two) for one in ends[0] for two in ends[1] if one is not None and two is not None]
    return of.above_zero(Estimate(value, min(corners, default=None), max(corners, default=None)))


def _mean_in_words(case: Case) -> str:
    return f"{case.metric} of {case.policy}, {case.part.label}"


@rule(
    "below",
    "In every part, each policy's mean is below the margin, here an absolute limit. Student's interval "
    "of the mean. Confirmed if every interval lies below the margin, refuted if one lies above it, "
    "undecided otherwise.",
    _mean_in_words,
    uses_margin=True,
)
def _below(case: Case) -> Measured:
    estimate = student(case.values(case.part, case.policy), case.level)
    return estimate, of.opposite(of.side_of(estimate, case.claim.margin))


@rule(
    "at most",
    "In every part, each policy's mean is below the margin, here an absolute limit, the number being one that bounds "
    "from above what the claim speaks of. Student's interval of the mean. Confirmed if every interval lies below the "
    "margin, undecided otherwise.",
    _mean_in_words,
    uses_margin=True,
)
def _at_most(case: Case) -> Measured:
    estimate, answer = _below(case)
    return estimate, Answer.UNDECIDED if answer is Answer.REFUTED else answer


def _smallest(case: Case, part: Part, level: float) -> Answer:
    """Return whether the policy has less than every other in a part."""
    answers = []
    for other in case.others:
        differences = case.differences(part, other, case.policy)
        same = not differences.any()
        answers.append(Answer.NOT_TESTABLE if same else of.side_of(student(differences, level), 0))
    for answer in (Answer.REFUTED, Answer.NOT_TESTABLE, Answer.UNDECIDED):
        if answer in answers:
            return answer
    return Answer.CONFIRMED


@rule(
    "often",
    "In more than half of the parts, each policy has less than every policy it is compared with. Run by run; Student's "
    "intervals of the mean differences, which share the error. Confirmed if in more than half of the parts all of "
    "them lie above 0, refuted if in half or more one of them lies at or below 0, undecided otherwise.",
    lambda case: (
        f"share of the {len(case.parts)} parts in which {case.metric} of {case.policy} is below "
        f"{'all others' if len(case.others) > 1 else case.other}"
    ),
    against=1,
    whole=True,
)
def _often(case: Case) -> Measured:
    level = 1 - (1 - case.level) / (len(case.parts) * len(case.others))
    found = [_smallest(case, part, level) for part in case.parts]
    half = len(found) / 2
    value = found.count(Answer.CONFIRMED) / len(found)
    if found.count(Answer.NOT_TESTABLE) >= half:
        raise SameError(value)
    if found.count(Answer.CONFIRMED) > half:
        return Estimate(value), Answer.CONFIRMED
    return Estimate(value), Answer.REFUTED if found.count(Answer.REFUTED) >= half else Answer.UNDECIDED


@rule(
    "slowing",
    "In every part, the regret of each policy grows more slowly per unit of log t over the last decade than over the "
    f"decade before: less than logarithmically. Run by run; Student's interval of the mean difference. {ABOVE_ZERO}",
    lambda case: (
        f"slope of {case.policy} up to {given(case.claim.at / 10)} n - up to {given(case.claim.at)} n, "
        f"{case.part.label}"
    ),
    uses_metric=False,
)
def _slowing(case: Case) -> Measured:
    results, at = case.part.results, case.claim.at
    before, last = (of.held(slope(results, case.policy, when)) for when in (at / 10, at))
    of.check_differ(before, last, 0.0)
    return of.above_zero(student(before - last, case.level))
