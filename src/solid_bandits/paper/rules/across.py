"""Rules that compare the last part with the first: growing, not growing, grows more, gap grows."""

import math

from solid_bandits._internal.types import Floats
from solid_bandits._internal.wording import given
from solid_bandits.paper.rules import rule as of
from solid_bandits.paper.rules.rule import ABOVE_ZERO, Case, Measured, NotHeldError, Part, SameError, rule
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.intervals import welch

_APART = (
    "arts are taken as independent samples of runs (run r has the same seed in each: where that correlates them, "
    "intervals are too wide)"
)


def _increase(case: Case, allowed: float = 0.0) -> Measured:
    """Return Welch's interval of the last mean - (1 + `allowed`) times the first, and whether it is above 0."""
    before, after = (case.values(part, case.policy) for part in case.parts)
    of.check_differ(before, after, -allowed * float(before.mean()))
    return of.above_zero(welch(after, (1 + allowed) * before, case.level))


@rule(
    "growing",
    f"Each policy has more in the last part than in the first. P{_APART}: Welch's interval of the "
    f"difference of means. {ABOVE_ZERO}",
    lambda case: f"{case.metric} of {case.policy}, ({case.last.label}) - ({case.part.label})",
    across=True,
)
def _growing(case: Case) -> Measured:
    return _increase(case)


@rule(
    "not growing",
    f"No policy has more in the last part than in the first, but for the margin. P{_APART}: Welch's "
    "interval of the last mean - (1 + margin) × the first. Confirmed if every interval lies at or "
    "below 0, refuted if one lies above, undecided otherwise.",
    lambda case: (
        f"{case.metric} of {case.policy}, ({case.last.label}) - {given(1 + case.claim.margin)} × ({case.part.label})"
    ),
    across=True,
    uses_margin=True,
)
def _not_growing(case: Case) -> Measured:
    estimate, answer = _increase(case, case.claim.margin)
    return estimate, of.opposite(answer)


def _factor_in_words(case: Case) -> str:
    return f"factor by which {case.metric} of {case.policy} grows from {case.part.label} to {case.last.label}"


def _logs(values: Floats) -> Floats:
    """Return values whose mean is the logarithm of the mean, with the variance that the delta method gives it."""
    mean = values.mean()
    if mean <= 0:
        raise NotHeldError
    return math.log(mean) + values / mean - 1


def _factor(logs: Estimate) -> Estimate:
    """Exponentiate an estimate of a logarithm, limited to the largest float: two or three runs may give so wide an
    interval.
    """
    return Estimate(*(None if log is None else math.exp(min(log, 709.0)) for log in logs))


@rule(
    "factor below",
    "From the first part to the last, each policy's mean grows by a factor below the margin, here a limit on that "
    f"factor. P{_APART}: the logarithm of the factor by the delta method, with Welch's interval. Confirmed if every "
    "factor's interval lies at or below the margin, refuted if one lies above it, undecided otherwise.",
    _factor_in_words,
    across=True,
    uses_margin=True,
)
def _factor_below(case: Case) -> Measured:
    before, after = (case.values(part, case.policy) for part in case.parts)
    down, up = _logs(before), _logs(after)
    of.check_differ(before, after, 1.0)
    logs = welch(up, down, case.level)
    return _factor(logs), of.opposite(of.side_of(logs, math.log(case.claim.margin)))


@rule(
    "in proportion",
    "From the first part to the last, each policy's mean grows by the margin, here a factor, give or take a factor "
    f"of 2. P{_APART}: the logarithm of the factor by the delta method, with Welch's interval. Confirmed if every "
    "factor's interval lies between half and twice the margin, refuted if one lies outside, undecided otherwise.",
    _factor_in_words,
    across=True,
    uses_margin=True,
)
def _in_proportion(case: Case) -> Measured:
    factor, _ = _factor_below(case)
    return factor, of.within(factor, case.claim.margin / 2, case.claim.margin * 2)


def _log_ratios(case: Case, part: Part) -> Floats:
    """Return values whose mean is the log of the ratio of means, with the variance that the delta method gives it.

    Runs are paired, so the spread of the values includes the covariance of the two policies.
    """
    one, two = case.pair(part, case.policy, case.other)
    return _logs(one) - _logs(two)


@rule(
    "grows more",
    "From the first part to the last, each policy's mean grows by a larger factor than that of each "
    f"policy it is compared with. Run by run within a part; p{_APART}: the logarithm "
    "of the ratio of the two factors by the delta method, with Welch's interval. Confirmed if every "
    "interval of the ratio of factors lies above 1, refuted if one lies at or below 1, undecided "
    "otherwise.",
    lambda case: (
        f"growth factor of {case.metric} from {case.part.label} to {case.last.label}, {case.policy} / {case.other}"
    ),
    against=1,
    across=True,
)
def _grows_more(case: Case) -> Measured:
    if not any(case.differences(part, case.policy, case.other).any() for part in case.parts):
        raise SameError(1.0)
    before, after = (_log_ratios(case, part) for part in case.parts)
    logs = welch(after, before, case.level)
    return _factor(logs), of.side_of(logs, 0)


@rule(
    "gap grows",
    "The difference between the others and the policy is larger in the last "
    f"part than in the first. Run by run within a part; p{_APART}: Welch's interval. {ABOVE_ZERO}",
    lambda case: (
        f"{case.metric} of {case.other} - {case.metric} of {case.policy}, ({case.last.label}) - ({case.part.label})"
    ),
    against=1,
    across=True,
)
def _gap_grows(case: Case) -> Measured:
    before, after = (case.differences(part, case.other, case.policy) for part in case.parts)
    of.check_differ(before, after, 0.0)
    return of.above_zero(welch(after, before, case.level))
