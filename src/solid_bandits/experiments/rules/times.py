"""The rule on CPU time: slower."""

from solid_bandits.experiments.outcome import Answer
from solid_bandits.experiments.rules.rule import Case, Finding, Rule, not_held
from solid_bandits.statistics.estimate import Estimate


def _slower(case: Case) -> Finding:
    (part,) = case.parts
    (other,) = case.others
    what = f"CPU time of {case.policy} / CPU time of {other}, {part.label}"
    mine, theirs = (part.results.seconds.get(label) or 0.0 for label in (case.policy, other))
    if mine <= 0 or theirs <= 0:
        return not_held(what)
    ratio = mine / theirs
    if ratio <= 1:
        return Finding(what, Estimate(ratio), Answer.REFUTED)
    enough = ratio >= 1 + case.claim.margin
    return Finding(what, Estimate(ratio), Answer.CONFIRMED if enough else Answer.UNDECIDED)


SLOWER = Rule(
    "In every part, each policy took more CPU time than each that it is set against, by the margin as "
    "a share. Sums over all runs, as measured: without interval. Confirmed if every ratio is at least "
    "1 + margin, refuted if one is at most 1, undecided otherwise.",
    _slower,
    against=1,
    uses_metric=False,
    uses_margin=True,
    uses_level=False,
)
