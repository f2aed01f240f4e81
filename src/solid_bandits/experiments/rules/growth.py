"""Rules that compare the last part with the first: growing, not growing, grows more, gap grows."""

import math

from solid_bandits._types import Floats
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
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.intervals import welch


def _increase(case: Case, allowed: float = 0.0) -> Finding:
    """Welch's interval of the last part's mean - (1 + `allowed`) times the first one's, and whether it is above 0."""
    first, last = case.parts
    before, after = case.values(first, case.policy), case.values(last, case.policy)
    times = f"{given(1 + allowed)} × " if allowed else ""
    what = f"{case.metric} of {case.policy}, ({last.label}) - {times}({first.label})"
    if before is None or after is None:
        return not_held(what)
    if never_differ(before, after):
        return not_testable(what, -allowed * float(before.mean()))
    estimate = welch(after, (1 + allowed) * before, case.level)
    return Finding(what, estimate, side_of(estimate, 0))


def _growing(case: Case) -> Finding:
    return _increase(case)


def _not_growing(case: Case) -> Finding:
    increase = _increase(case, case.claim.margin)
    return increase._replace(answer=opposite(increase.answer))


def _factor_below(case: Case) -> Finding:
    first, last = case.parts
    what = f"factor by which {case.metric} of {case.policy} grows from {first.label} to {last.label}"
    before, after = (case.values(part, case.policy) for part in (first, last))
    if before is None or after is None or before.mean() <= 0 or after.mean() <= 0:
        return not_held(what)
    if never_differ(before, after):
        return not_testable(what, 1.0)
    # The logarithm of a mean by the delta method.
    up, down = (math.log(one.mean()) + one / one.mean() - 1 for one in (after, before))
    logs = welch(up, down, case.level)
    estimate = Estimate(*(None if log is None else _exp(log) for log in logs))
    return Finding(what, estimate, opposite(side_of(logs, math.log(case.claim.margin))))


def _in_proportion(case: Case) -> Finding:
    found = _factor_below(case)
    low, high = found.estimate.low, found.estimate.high
    least, most = case.claim.margin / 2, case.claim.margin * 2
    if found.answer is Answer.NOT_TESTABLE or low is None or high is None:
        return found._replace(answer=Answer.UNDECIDED if low is None else found.answer)
    if high < least or low > most:
        return found._replace(answer=Answer.REFUTED)
    return found._replace(answer=Answer.CONFIRMED if least <= low and high <= most else Answer.UNDECIDED)


def _log_ratios(case: Case, part: Part, other: str) -> Floats | None:
    """Values whose mean is the log of the ratio of means, with the variance that the delta method gives it.

    Runs are paired, so the covariance of the two policies is in the values' spread.
    """
    pair = case.pair(part, case.policy, other)
    if pair is None or pair[0].mean() <= 0 or pair[1].mean() <= 0:
        return None
    one, two = pair
    log_ratio = math.log(one.mean() / two.mean())
    return log_ratio + one / one.mean() - two / two.mean()


def _grows_more(case: Case) -> Finding:
    first, last = case.parts
    (other,) = case.others
    what = f"growth factor of {case.metric} from {first.label} to {last.label}, {case.policy} / {other}"
    if all(_alike(case, part, other) for part in (first, last)):
        return not_testable(what, 1.0)
    before, after = _log_ratios(case, first, other), _log_ratios(case, last, other)
    if before is None or after is None:
        return not_held(what)
    logs = welch(after, before, case.level)
    estimate = Estimate(*(None if log is None else _exp(log) for log in logs))
    return Finding(what, estimate, side_of(logs, 0))


def _alike(case: Case, part: Part, other: str) -> bool:
    """Whether the policy never differs from the other in a part."""
    differences = case.differences(part, case.policy, other)
    return differences is not None and not differences.any()


def _exp(value: float) -> float:
    """e^value, at most the largest float: an interval from two or three runs may be that wide."""
    return math.exp(min(value, 709.0))


def _gap_grows(case: Case) -> Finding:
    first, last = case.parts
    (other,) = case.others
    what = f"{case.metric} of {other} - {case.metric} of {case.policy}, ({last.label}) - ({first.label})"
    before, after = (case.differences(part, other, case.policy) for part in (first, last))
    if before is None or after is None:
        return not_held(what)
    if never_differ(before, after):
        return not_testable(what, 0.0)
    estimate = welch(after, before, case.level)
    return Finding(what, estimate, side_of(estimate, 0))


_APART = (
    "arts are taken as independent samples of runs (run r has the same seed in each: where that correlates them, "
    "intervals are too wide)"
)

GROWING = Rule(
    f"Each policy has more in the last part than in the first. P{_APART}: Welch's interval of the "
    f"difference of means. {ABOVE_ZERO}",
    _growing,
    across=True,
)

NOT_GROWING = Rule(
    f"No policy has more in the last part than in the first, but for the margin. P{_APART}: Welch's "
    "interval of the last mean - (1 + margin) × the first. Confirmed if every interval lies at or "
    "below 0, refuted if one lies above, undecided otherwise.",
    _not_growing,
    across=True,
    uses_margin=True,
)

FACTOR_BELOW = Rule(
    "From the first part to the last, each policy's mean grows by a factor below the margin, here a limit on that "
    f"factor. P{_APART}: the logarithm of the factor by the delta method, with Welch's interval. Confirmed if every "
    "factor's interval lies at or below the margin, refuted if one lies above it, undecided otherwise.",
    _factor_below,
    across=True,
    uses_margin=True,
)

IN_PROPORTION = Rule(
    "From the first part to the last, each policy's mean grows by the margin, here a factor, give or take a factor "
    f"of 2. P{_APART}: the logarithm of the factor by the delta method, with Welch's interval. Confirmed if every "
    "factor's interval lies between half and twice the margin, refuted if one lies outside, undecided otherwise.",
    _in_proportion,
    across=True,
    uses_margin=True,
)

GROWS_MORE = Rule(
    "From the first part to the last, each policy's mean grows by a larger factor than that of each "
    f"that it is set against. Run by run within a part; p{_APART}: the logarithm "
    "of the ratio of the two factors by the delta method, with Welch's interval. Confirmed if every "
    "interval of the ratio of factors lies above 1, refuted if one lies at or below 1, undecided "
    "otherwise.",
    _grows_more,
    against=1,
    across=True,
)

GAP_GROWS = Rule(
    "The difference between those that a policy is set against and the policy is larger in the last "
    f"part than in the first. Run by run within a part; p{_APART}: Welch's interval. {ABOVE_ZERO}",
    _gap_grows,
    against=1,
    across=True,
)
