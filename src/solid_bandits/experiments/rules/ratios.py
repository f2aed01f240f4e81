"""Rules on ratios of means within a part: similar and different, give or take the margin."""

from solid_bandits.experiments.outcome import Answer
from solid_bandits.experiments.rules.rule import (
    Case,
    Finding,
    Rule,
    never_differ,
    not_held,
    not_testable,
    opposite,
)
from solid_bandits.statistics.intervals import ratio


def _similar(case: Case) -> Finding:
    (part,) = case.parts
    (other,) = case.others
    what = f"{case.metric} of {case.policy} / {case.metric} of {other}, {part.label}"
    pair = case.pair(part, case.policy, other)
    if pair is None:
        return not_held(what)
    if never_differ(*pair):
        return not_testable(what, 1.0)
    estimate = ratio(*pair, case.level)
    least, most = 1 - case.claim.margin, 1 + case.claim.margin
    if estimate.low is None or estimate.high is None:
        answer = Answer.UNDECIDED
    elif estimate.high < least or estimate.low > most:
        answer = Answer.REFUTED
    else:
        inside = least <= estimate.low and estimate.high <= most
        answer = Answer.CONFIRMED if inside else Answer.UNDECIDED
    return Finding(what, estimate, answer)


def _different(case: Case) -> Finding:
    same = _similar(case)
    return same._replace(answer=opposite(same.answer))


SIMILAR = Rule(
    "In every part, each policy's mean is that of each that it is set against, give or take the margin. "
    "Run by run; Fieller's interval of the ratio of means. Confirmed if every interval lies within "
    "1 ± margin, refuted if one lies outside, undecided otherwise.",
    _similar,
    against=1,
    uses_margin=True,
)

DIFFERENT = Rule(
    "In every part, each policy's mean differs from that of each that it is set against by more than "
    "the margin. Run by run; Fieller's interval of the ratio of means. Confirmed if every interval "
    "lies outside 1 ± margin, refuted if one lies within, undecided otherwise.",
    _different,
    against=1,
    uses_margin=True,
)
