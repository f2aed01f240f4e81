"""Rules on means within a part, and on differences of them, taken run by run: less, more, between, below."""

from solid_bandits.experiments.outcome import Answer
from solid_bandits.experiments.rules.rule import ABOVE_ZERO, Case, Finding, Rule, not_held, opposite, side_of
from solid_bandits.statistics.estimate import UNKNOWN, Estimate
from solid_bandits.statistics.intervals import student


def _difference(case: Case, more: str, fewer: str) -> Finding:
    (part,) = case.parts
    differences = case.differences(part, more, fewer)
    estimate = UNKNOWN if differences is None else student(differences, case.level)
    return Finding(
        f"{case.metric} of {more} - {case.metric} of {fewer}, {part.label}", estimate, side_of(estimate, 0)
    )


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
