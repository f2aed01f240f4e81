"""Verdicts on claims: computed from results by stated rules, never typed.

A rule turns a claim into numbers with intervals (`Comparison`), each of which confirms the claim, refutes it
or leaves it undecided; one function adds them up. Nothing is simulated here. A false verdict is to be rare
over the whole claim, not for each number: the intervals that count share an error of 5% (Bonferroni).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import betaincinv, stdtrit

from solid_bandits import _check
from solid_bandits._types import Floats
from solid_bandits.experiments.outcome import Answer, Claim, Comparison, Verdict
from solid_bandits.results import Results

ERROR = 0.05
"""The share of false verdicts that a claim is allowed, all its counted comparisons together."""

LINEAR_RATE = 0.8
"""A run's regret is linear if its rate in the last two quarters is at least this share of its mean rate.

Linear regret from the start gives 1 in both, logarithmic regret about 0.1, √t 0.64 and 0.54. Both quarters
are asked for since a run with hardly any regret may owe most of it to a single late pull.
"""

RARE = 0.05
"""No run is linear if none was seen and, with confidence, fewer than this share would be."""

ROUNDING = 1e-9
"""Relative difference of two numbers of a run that is none: regrets are sums over many steps."""

ON_ARM = 0.999
"""The share of pulls that counts as all of them: allocations are solved to a tolerance."""


# --- metrics ------------------------------------------------------------------------------------------------


class Metric(NamedTuple):
    """A number per run: in words, and as read for a policy at a share of the horizon; None if not there."""

    words: str
    values: Callable[[Results, str, float], Floats | None]


class _Reading(NamedTuple):
    """A column at one checkpoint, ordered by run."""

    step: int
    values: Floats


def _reading(table: pl.DataFrame | None, column: str, policy: str, target: float) -> _Reading | None:
    """Read a column at the checkpoint nearest to step `target`; None where a run has no finite number."""
    if table is None or column not in table.columns:
        return None
    rows = table.filter(pl.col("policy") == policy)
    steps = rows["step"].unique().sort().to_numpy()
    if not len(steps):
        return None
    step = int(steps[np.abs(steps - target).argmin()])
    here = rows.filter(pl.col("step") == step).sort("run")[column].cast(pl.Float64)
    values = here.to_numpy()
    if here.null_count() or not np.isfinite(values).all():
        return None
    return _Reading(step, values)


def _target(results: Results, at: float) -> float:
    return at * results.manifest["configuration"]["horizon"]


def _column(column: str, of_insides: bool = False) -> Callable[[Results, str, float], Floats | None]:
    """The metric that is a column of the table, or of the insides, as it stands."""

    def values(results: Results, policy: str, at: float) -> Floats | None:
        table = results.insides if of_insides else results.table
        here = _reading(table, column, policy, _target(results, at))
        return None if here is None else here.values

    return values


def _slope(results: Results, policy: str, at: float) -> Floats | None:
    last = _reading(results.table, "regret", policy, _target(results, at))
    if last is None:
        return None
    before = _reading(results.table, "regret", policy, last.step / 10)
    if before is None or before.step >= last.step:
        return None
    return (last.values - before.values) / math.log(last.step / before.step)


def _exploring_share(results: Results, policy: str, at: float) -> Floats | None:
    here = _reading(results.table, "explored", policy, _target(results, at))
    return None if here is None else here.values / here.step


def _late_share(results: Results, policy: str, at: float) -> Floats | None:
    last = _reading(results.table, "regret", policy, _target(results, at))
    if last is None:
        return None
    half = _reading(results.table, "regret", policy, last.step / 2)
    if half is None or half.step >= last.step:
        return None
    late = last.values - half.values
    return np.divide(late, last.values, out=np.zeros_like(late), where=last.values > 0)


METRICS: dict[str, Metric] = {
    "regret": Metric("cumulative regret", _column("regret")),
    "slope": Metric("growth of regret per unit of log t over the last decade before", _slope),
    "explored": Metric("exploring rounds up to", _column("explored")),
    "exploring share": Metric("share of exploring rounds among all up to", _exploring_share),
    "multiplier": Metric("SOLID's multiplier λ", _column("multiplier", of_insides=True)),
    "information": Metric(
        "the exploitation test's statistic, the distance to the closest alternative,",
        _column("statistic", of_insides=True),
    ),
    "late share": Metric(
        "share of the regret that came in the second half of the time (0 for no regret) up to", _late_share
    ),
}


# --- intervals ----------------------------------------------------------------------------------------------


class _Estimate(NamedTuple):
    """A number and its interval, None where unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def side_of(self, threshold: float) -> Answer:
        """Confirmed if the interval lies above the threshold, refuted if not a point of it does.

        So a point on the threshold refutes: two policies that never differed are not "undecided".
        """
        if self.low is None or self.high is None:
            return Answer.UNDECIDED
        if self.low > threshold:
            return Answer.CONFIRMED
        return Answer.REFUTED if self.high <= threshold else Answer.UNDECIDED


_NOT_HELD = _Estimate(None)


def _opposite(answer: Answer) -> Answer:
    swapped = {Answer.CONFIRMED: Answer.REFUTED, Answer.REFUTED: Answer.CONFIRMED}
    return swapped.get(answer, answer)


def _quantile(freedom: float, level: float) -> float:
    """Student's quantile for a two-sided interval."""
    return float(stdtrit(freedom, 0.5 + level / 2))


def _around(value: float, variance: float, freedom: float, level: float) -> _Estimate:
    half = _quantile(freedom, level) * math.sqrt(variance)
    return _Estimate(value, value - half, value + half)


def _student(values: Floats, level: float) -> _Estimate:
    """Mean with Student's interval; a point where all values are equal, unknown for one value."""
    count = len(values)
    mean = float(values.mean())
    if count < 2:
        return _Estimate(mean)
    return _around(mean, float(values.var(ddof=1)) / count, count - 1, level)


def _welch(last: Floats, first: Floats, level: float) -> _Estimate:
    """Mean of `last` less that of `first`, two independent samples, with Welch's interval."""
    difference = float(last.mean() - first.mean())
    if min(len(last), len(first)) < 2:
        return _Estimate(difference)
    parts = [(float(sample.var(ddof=1)) / len(sample), len(sample) - 1) for sample in (last, first)]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return _Estimate(difference, difference, difference)
    # As shares of the variance, whose squares do not underflow.
    freedom = 1 / sum((part / variance) ** 2 / freedom for part, freedom in parts)
    return _around(difference, variance, freedom, level)


def _ratio(above: Floats, below: Floats, level: float) -> _Estimate:
    """Mean of `above` over that of `below`, paired, with Fieller's interval: the r that a Student test of
    mean(above - r below) = 0 does not reject. Unknown where that is no interval, `below` being too near 0.
    """
    count = len(above)
    if count > 1 and np.array_equal(above, below):
        return _Estimate(1.0, 1.0, 1.0)
    top, bottom = float(above.mean()), float(below.mean())
    if bottom == 0:
        return _NOT_HELD
    ratio = top / bottom
    if count < 2:
        return _Estimate(ratio)
    scale = _quantile(count - 1, level) ** 2 / count
    # In units of the two means, so that neither small nor large ones lose digits; r / ratio solves
    # a r² - 2 b r + c <= 0. Where the upper mean is 0, its unit is the lower one's.
    unit = top if top != 0 else bottom
    cov = np.cov(above / unit, below / bottom)
    a = 1 - scale * cov[1, 1]
    b = top / unit - scale * cov[0, 1]
    c = (top / unit) ** 2 - scale * cov[0, 0]
    if a <= 0:
        return _Estimate(ratio)
    root = math.sqrt(max(b * b - a * c, 0.0))
    ends = sorted(float((b + sign * root) / a * (unit / bottom)) for sign in (-1, 1))
    return _Estimate(ratio, *ends)


def _share(hits: int, count: int, level: float) -> _Estimate:
    """Share of hits with the Clopper-Pearson interval."""
    tail = (1 - level) / 2
    low = float(betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1 - tail)) if hits < count else 1.0
    return _Estimate(hits / count, low, high)


# --- rules --------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    label: str
    results: Results


class _Case(NamedTuple):
    """What one comparison is about."""

    claim: Claim
    parts: tuple[_Part, ...]
    """One part; the first and the last for a rule that looks across parts."""
    policy: str
    """Empty for a rule on the lower bound alone."""
    others: tuple[str, ...]
    level: float

    @property
    def metric(self) -> str:
        at = "" if self.claim.at == 1 else f" at {self.claim.at:g} n"
        return f"{self.claim.metric}{at}"

    def values(self, part: _Part, policy: str) -> Floats | None:
        return METRICS[self.claim.metric].values(part.results, policy, self.claim.at)

    def differences(self, part: _Part, policy: str, other: str) -> Floats | None:
        """The policy's numbers less the other's, run by run."""
        pair = self.pair(part, policy, other)
        if pair is None:
            return None
        difference = pair[0] - pair[1]
        # Two policies with the same pulls in another order: rounding alike in all runs would be a sure lead.
        difference[np.abs(difference) <= ROUNDING * np.maximum(*np.abs(pair))] = 0
        return difference

    def pair(self, part: _Part, policy: str, other: str) -> tuple[Floats, Floats] | None:
        """Both policies' numbers, run by run."""
        one, two = self.values(part, policy), self.values(part, other)
        if one is None or two is None:
            return None
        if len(one) != len(two):
            raise ValueError(
                f"part {part.label!r} holds {len(one)} runs of {policy!r} and {len(two)} of {other!r}; "
                "give results with the same runs of every policy"
            )
        return one, two


class _Finding(NamedTuple):
    what: str
    estimate: _Estimate
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
        uses_metric: whether it reads the claim's metric.
        uses_margin: whether it reads the claim's margin.
        uses_level: whether it has intervals.

    """

    words: str
    measure: Callable[[_Case], _Finding]
    of_policies: bool = True
    against: int = 0
    across: bool = False
    uses_metric: bool = True
    uses_margin: bool = False
    uses_level: bool = True


def _difference(case: _Case, more: str, fewer: str) -> _Finding:
    (part,) = case.parts
    differences = case.differences(part, more, fewer)
    estimate = _NOT_HELD if differences is None else _student(differences, case.level)
    return _Finding(
        f"{case.metric} of {more} less that of {fewer}, {part.label}", estimate, estimate.side_of(0)
    )


def _less(case: _Case) -> _Finding:
    return _difference(case, case.others[0], case.policy)


def _more(case: _Case) -> _Finding:
    return _difference(case, case.policy, case.others[0])


def _similar(case: _Case) -> _Finding:
    (part,) = case.parts
    (other,) = case.others
    pair = case.pair(part, case.policy, other)
    estimate = _NOT_HELD if pair is None else _ratio(*pair, case.level)
    least, most = 1 - case.claim.margin, 1 + case.claim.margin
    if estimate.low is None or estimate.high is None:
        answer = Answer.UNDECIDED
    elif estimate.high < least or estimate.low > most:
        answer = Answer.REFUTED
    else:
        inside = least <= estimate.low and estimate.high <= most
        answer = Answer.CONFIRMED if inside else Answer.UNDECIDED
    return _Finding(f"{case.metric} of {case.policy} over that of {other}, {part.label}", estimate, answer)


def _different(case: _Case) -> _Finding:
    same = _similar(case)
    return same._replace(answer=_opposite(same.answer))


def _inside(from_one: float, from_two: float) -> float:
    """How far a number lies between two others, given its differences from them; negative outside."""
    return max(min(from_one, -from_two), min(-from_one, from_two))


def _between(case: _Case) -> _Finding:
    (part,) = case.parts
    samples = [case.differences(part, case.policy, other) for other in case.others]
    # Two intervals that share the error; the claim holds in either order, so no end is picked by its mean.
    level = 1 - (1 - case.level) / 2
    differences = [_student(sample, level) for sample in samples if sample is not None]
    what = (
        f"how far {case.metric} of {case.policy} lies between those of {' and '.join(case.others)} "
        f"(negative: outside), {part.label}"
    )
    values = [difference.value for difference in differences if difference.value is not None]
    if len(values) < 2:
        return _Finding(what, _NOT_HELD, Answer.UNDECIDED)
    ends = [(low, high) for _, low, high in differences if low is not None and high is not None]
    if len(ends) < 2:
        return _Finding(what, _Estimate(_inside(*values)), Answer.UNDECIDED)
    # Over a box of differences, `_inside` is least and greatest at corners.
    corners = [_inside(one, two) for one in ends[0] for two in ends[1]]
    estimate = _Estimate(_inside(*values), min(corners), max(corners))
    return _Finding(what, estimate, estimate.side_of(0))


def _increase(case: _Case, allowed: float = 0.0) -> tuple[str, _Estimate]:
    """Welch's interval of the last part's mean less (1 + `allowed`) times the first one's."""
    first, last = case.parts
    before, after = case.values(first, case.policy), case.values(last, case.policy)
    times = f" times {1 + allowed:g}" if allowed else ""
    what = f"{case.metric} of {case.policy}, {last.label} less {first.label}{times}"
    if before is None or after is None:
        return what, _NOT_HELD
    return what, _welch(after, (1 + allowed) * before, case.level)


def _growing(case: _Case) -> _Finding:
    what, estimate = _increase(case)
    return _Finding(what, estimate, estimate.side_of(0))


def _not_growing(case: _Case) -> _Finding:
    what, estimate = _increase(case, case.claim.margin)
    # What has not changed at all has not grown.
    return _Finding(what, estimate, _opposite(estimate.side_of(0)))


def _log_ratios(case: _Case, part: _Part, other: str) -> Floats | None:
    """Values whose mean is the log of the ratio of means, with the variance that the delta method gives it.

    Runs are paired, so the covariance of the two policies is in the values' spread.
    """
    pair = case.pair(part, case.policy, other)
    if pair is None or pair[0].mean() <= 0 or pair[1].mean() <= 0:
        return None
    one, two = pair
    log_ratio = math.log(one.mean() / two.mean())
    return log_ratio + one / one.mean() - two / two.mean()


def _grows_more(case: _Case) -> _Finding:
    first, last = case.parts
    (other,) = case.others
    factor = f"growth factor of {case.metric} from {first.label} to {last.label}"
    what = f"{factor}, {case.policy} over that of {other}"
    before, after = _log_ratios(case, first, other), _log_ratios(case, last, other)
    if before is None or after is None:
        return _Finding(what, _NOT_HELD, Answer.UNDECIDED)
    logs = _welch(after, before, case.level)
    estimate = _Estimate(*(None if log is None else _exp(log) for log in logs))
    return _Finding(what, estimate, logs.side_of(0))


def _exp(value: float) -> float:
    """e^value, at most the largest float: an interval from two or three runs may be that wide."""
    return math.exp(min(value, 709.0))


def _gap_grows(case: _Case) -> _Finding:
    first, last = case.parts
    (other,) = case.others
    what = f"{case.metric} of {other} less that of {case.policy}, {last.label} less the same, {first.label}"
    before, after = (case.differences(part, other, case.policy) for part in (first, last))
    if before is None or after is None:
        return _Finding(what, _NOT_HELD, Answer.UNDECIDED)
    estimate = _welch(after, before, case.level)
    return _Finding(what, estimate, estimate.side_of(0))


def _below(case: _Case) -> _Finding:
    (part,) = case.parts
    values = case.values(part, case.policy)
    estimate = _NOT_HELD if values is None else _student(values, case.level)
    return _Finding(
        f"{case.metric} of {case.policy}, {part.label}",
        estimate,
        _opposite(estimate.side_of(case.claim.margin)),
    )


def _linear_runs(case: _Case) -> _Finding:
    (part,) = case.parts
    what = f"share of runs of {case.policy} with linear regret, {part.label}"
    linear = _is_linear(part.results, case.policy, case.claim.at)
    if linear is None:
        return _Finding(what, _NOT_HELD, Answer.UNDECIDED)
    hits = int(linear.sum())
    estimate = _share(hits, len(linear), case.level)
    if hits:
        answer = Answer.CONFIRMED
    else:
        rare = estimate.side_of(RARE) is Answer.REFUTED
        answer = Answer.REFUTED if rare else Answer.UNDECIDED
    return _Finding(what, estimate, answer)


def _is_linear(results: Results, policy: str, at: float) -> Floats | None:
    """1 for each run whose regret is linear (`LINEAR_RATE`), 0 for the others."""
    last = _reading(results.table, "regret", policy, _target(results, at))
    if last is None:
        return None
    half = _reading(results.table, "regret", policy, last.step / 2)
    third = _reading(results.table, "regret", policy, last.step * 3 / 4)
    if half is None or third is None or not half.step < third.step < last.step:
        return None
    least = LINEAR_RATE * last.values / last.step
    steady = (last.values > 0) & (_rate(half, third) >= least) & (_rate(third, last) >= least)
    return steady.astype(np.float64)


def _rate(start: _Reading, end: _Reading) -> Floats:
    return (end.values - start.values) / (end.step - start.step)


_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def _allocation(case: _Case) -> _Finding:
    (part,) = case.parts
    assert case.claim.arm is not None  # check_claim
    context, arm = case.claim.arm
    name = f"a{arm + 1} in x{context + 1}".translate(_SUBSCRIPTS)
    what = f"share of the lower bound's exploring pulls on {name}, {part.label}"
    bound = part.results.manifest.get("lower_bound") or {}
    if bound.get("allocation") is None:
        return _Finding(what, _NOT_HELD, Answer.UNDECIDED)
    pulls = np.asarray(bound["allocation"], dtype=np.float64)
    if context >= pulls.shape[0] or arm >= pulls.shape[1]:
        raise ValueError(
            f"arm is {case.claim.arm!r}; give [context, arm], counted from 0, of the {pulls.shape[0]} "
            f"contexts and {pulls.shape[1]} arms in part {part.label!r}"
        )
    total = float(pulls.sum())
    if not (math.isfinite(total) and total > 0):
        return _Finding(what, _NOT_HELD, Answer.UNDECIDED)
    share = float(pulls[context, arm]) / total
    return _Finding(what, _Estimate(share), Answer.CONFIRMED if share >= ON_ARM else Answer.REFUTED)


def _slower(case: _Case) -> _Finding:
    (part,) = case.parts
    (other,) = case.others
    what = f"CPU time of {case.policy} over that of {other}, {part.label}"
    seconds = part.results.manifest.get("seconds") or {}
    mine, theirs = (seconds.get(label) or 0.0 for label in (case.policy, other))
    if mine <= 0 or theirs <= 0:
        return _Finding(what, _NOT_HELD, Answer.UNDECIDED)
    ratio = mine / theirs
    if ratio <= 1:
        return _Finding(what, _Estimate(ratio), Answer.REFUTED)
    enough = ratio >= 1 + case.claim.margin
    return _Finding(what, _Estimate(ratio), Answer.CONFIRMED if enough else Answer.UNDECIDED)


_PAIRED = (
    "Run by run, since run r of every policy sees the same contexts and noise; Student's interval of the mean"
)
_APART = (
    "Parts are taken as independent samples of runs (run r has the same seed in each: where that correlates them, "
    "intervals are too wide)"
)
_ABOVE = "Confirmed if every interval lies above 0, refuted if one lies at or below 0, undecided otherwise."

RULES: dict[str, Rule] = {
    "less": Rule(
        f"In every part, each policy has less than each that it is set against. {_PAIRED} difference. "
        f"{_ABOVE}",
        _less,
        against=1,
    ),
    "more": Rule(
        f"In every part, each policy has more than each that it is set against. {_PAIRED} difference. "
        f"{_ABOVE}",
        _more,
        against=1,
    ),
    "similar": Rule(
        "In every part, each policy's mean is that of each that it is set against, give or take the margin. "
        "Run by run; Fieller's interval of the ratio of means. Confirmed if every interval lies within "
        "1 ± margin, refuted if one lies outside, undecided otherwise.",
        _similar,
        against=1,
        uses_margin=True,
    ),
    "different": Rule(
        "In every part, each policy's mean differs from that of each that it is set against by more than "
        "the margin. Run by run; Fieller's interval of the ratio of means. Confirmed if every interval "
        "lies outside 1 ± margin, refuted if one lies within, undecided otherwise.",
        _different,
        against=1,
        uses_margin=True,
    ),
    "between": Rule(
        "In every part, each policy's mean lies between those of the two that it is set against, in either "
        "order. Run by run; Student's intervals of the mean differences from the two, which share the "
        f"error; the number is the distance to the nearer of the two, negative outside. {_ABOVE}",
        _between,
        against=2,
    ),
    "below": Rule(
        "In every part, each policy's mean is below the margin, here an absolute limit. Student's interval "
        "of the mean. Confirmed if every interval lies below the margin, refuted if one lies above it, "
        "undecided otherwise.",
        _below,
        uses_margin=True,
    ),
    "growing": Rule(
        f"Each policy has more in the last part than in the first. {_APART}: Welch's interval of the "
        f"difference of means. {_ABOVE}",
        _growing,
        across=True,
    ),
    "not growing": Rule(
        f"No policy has more in the last part than in the first, but for the margin. {_APART}: Welch's "
        "interval of the last mean less 1 + margin times the first. Confirmed if every interval lies at or "
        "below 0, refuted if one lies above, undecided otherwise.",
        _not_growing,
        across=True,
        uses_margin=True,
    ),
    "grows more": Rule(
        "From the first part to the last, each policy's mean grows by a larger factor than that of each "
        f"that it is set against. Run by run within a part; {_APART[0].lower()}{_APART[1:]}: the logarithm "
        "of the ratio of the two factors by the delta method, with Welch's interval. Confirmed if every "
        "interval of the ratio of factors lies above 1, refuted if one lies at or below 1, undecided "
        "otherwise.",
        _grows_more,
        against=1,
        across=True,
    ),
    "gap grows": Rule(
        "The difference between those that a policy is set against and the policy is larger in the last "
        f"part than in the first. Run by run within a part; {_APART[0].lower()}{_APART[1:]}: Welch's "
        f"interval. {_ABOVE}",
        _gap_grows,
        against=1,
        across=True,
    ),
    "linear runs": Rule(
        "In every part, some runs of each policy have linear regret: in the third and in the fourth "
        f"quarter of the time, the regret per step is at least {LINEAR_RATE:g} of its mean over all the "
        "time (1 if linear from the start, about 0.1 if logarithmic). Clopper-Pearson's interval of the "
        "share of such runs. Confirmed if each policy has such a run, refuted if one has none and its "
        f"interval lies below {RARE:g}, undecided otherwise.",
        _linear_runs,
        uses_metric=False,
    ),
    "allocation": Rule(
        f"In every part, at least {ON_ARM:.1%} of the pulls of suboptimal arms in the lower bound's "
        "allocation η* are of the arm that is named. Confirmed or refuted by the solution; undecided where "
        "there is none.",
        _allocation,
        of_policies=False,
        uses_metric=False,
        uses_level=False,
    ),
    "slower": Rule(
        "In every part, each policy took more CPU time than each that it is set against, by the margin as "
        "a share. Sums over all runs, as measured: without interval. Confirmed if every ratio is at least "
        "1 + margin, refuted if one is at most 1, undecided otherwise.",
        _slower,
        against=1,
        uses_metric=False,
        uses_margin=True,
        uses_level=False,
    ),
}


# --- judging ------------------------------------------------------------------------------------------------


def judge(claim: Claim, parts: Mapping[str, Results]) -> Verdict:
    """Say what results say to a claim; `parts` are label -> results."""
    check_claim(claim, {label: results.policies for label, results in parts.items()})
    rule = RULES[claim.rule]
    named = tuple(_Part(label, parts[label]) for label in claim.parts or parts)
    scopes = [(named[0], named[-1])] if rule.across else [(part,) for part in named]
    subjects = list(_subjects(claim, rule))
    # Counted before anything is read: a number that turns out to be missing does not widen the others' share.
    counted = len(scopes) * sum(counts for _, _, counts in subjects)
    comparisons = []
    for scope in scopes:
        for policy, others, counts in subjects:
            level = 1 - ERROR / (counted if counts else 1)
            what, estimate, answer = rule.measure(_Case(claim, scope, policy, others, level))
            comparisons.append(Comparison(what, *estimate, answer, counts))
    return Verdict(claim, together(comparisons), _rule_words(claim, counted), tuple(comparisons))


def together(comparisons: Sequence[Comparison]) -> Answer:
    """Add up those that count: refuted if one is, confirmed if all are, undecided otherwise."""
    answers = [comparison.answer for comparison in comparisons if comparison.counted]
    if Answer.REFUTED in answers:
        return Answer.REFUTED
    if answers and all(answer is Answer.CONFIRMED for answer in answers):
        return Answer.CONFIRMED
    return Answer.UNDECIDED


def comparison_words(comparison: Comparison) -> str:
    """One line, such as "regret of LinUCB less that of SOLID, toy: 12.3 [10.1, 14.5], confirmed"."""
    if comparison.estimate is None:
        number = "not in the results"
    elif comparison.low is None or comparison.high is None:
        number = _number(comparison.estimate)
    else:
        number = f"{_number(comparison.estimate)} [{_number(comparison.low)}, {_number(comparison.high)}]"
    beside = "" if comparison.counted else " (not counted)"
    return f"{comparison.what}: {number}, {comparison.answer}{beside}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def _subjects(claim: Claim, rule: Rule) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """(policy, others, counted) of each comparison in a part.

    What stands beside joins those compared with where the rule takes them one at a time, else the policies.
    """
    if not rule.of_policies:
        yield "", (), True
    for policy in claim.policies:
        if rule.against == 1:
            yield from ((policy, (other,), True) for other in claim.against)
            yield from ((policy, (other,), False) for other in claim.beside)
        else:
            yield policy, claim.against, True
    if rule.against != 1:
        yield from ((policy, claim.against, False) for policy in claim.beside)


def _rule_words(claim: Claim, counted: int) -> str:
    """The rule with the claim's metric, margin and level."""
    rule = RULES[claim.rule]
    here = []
    if rule.uses_metric:
        where = "the end" if claim.at == 1 else f"{claim.at:g} of the horizon"
        words = METRICS[claim.metric].words
        here.append(f"{words} {where}" if words.endswith(("up to", "before")) else f"{words} at {where}")
    if rule.uses_margin:
        here.append(f"margin {claim.margin:g}")
    if rule.uses_level:
        level = f"{1 - ERROR / counted:.5g}"
        shared = f", {1 - ERROR:g} for the {counted} that count together" if counted > 1 else ""
        beside = f", {1 - ERROR:g} each for those beside" if claim.beside and counted > 1 else ""
        here.append(f"level {level} for each interval{shared}{beside}")
    return f"{rule.words} Here: {'; '.join(here)}." if here else rule.words


# --- checking -----------------------------------------------------------------------------------------------


def check_claim(claim: Claim, parts: Mapping[str, Sequence[str]]) -> None:
    """Raise a ValueError unless the claim can be judged; `parts` are label -> the labels of its policies."""
    for field in ("text", "source"):
        value = getattr(claim, field)
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{field} is {value!r}; give a sentence")
    rule = RULES[_check.choice("rule", claim.rule, RULES)]
    _check.choice("metric", claim.metric, METRICS)
    _check_number("at", claim.at, most=1)
    _check_number("margin", claim.margin)
    for field in ("policies", "against", "beside", "parts"):
        _check_labels(field, getattr(claim, field))
    _check_parts(claim, rule, parts)
    _check_policies(claim, rule, parts)
    _check_arm(claim, rule)


def _check_number(field: str, value: object, most: float | None = None) -> None:
    # A number in quotes would pass as one and fail when it is used.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{field} is {value!r}; give a number")
    _check.number(field, value, above=0, most=most)


def _check_labels(field: str, labels: object) -> None:
    if not isinstance(labels, tuple | list) or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"{field} is {labels!r}; give a list of labels")
    twice = next((label for label in labels if list(labels).count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"{field} names {twice!r} twice; name each label once")


def _check_parts(claim: Claim, rule: Rule, parts: Mapping[str, Sequence[str]]) -> None:
    for label in claim.parts:
        _check.choice("parts", label, parts)
    named = list(claim.parts or parts)
    least, words = (2, "a first and a last part") if rule.across else (1, "a part")
    if len(named) < least:
        raise ValueError(f"parts is {named!r}; rule {claim.rule!r} takes {words}")


def _check_policies(claim: Claim, rule: Rule, parts: Mapping[str, Sequence[str]]) -> None:
    wanted = {"policies": int(rule.of_policies), "against": rule.against}
    for field, least in wanted.items():
        labels = getattr(claim, field)
        if least == 0 and labels:
            raise ValueError(f"{field} is {list(labels)!r}; rule {claim.rule!r} takes none, leave it out")
        if len(labels) < least or (least == 2 and len(labels) > 2):
            count = "exactly two labels" if least == 2 else "at least one label"
            raise ValueError(f"{field} is {list(labels)!r}; rule {claim.rule!r} takes {count}")
    if claim.beside and not rule.of_policies:
        raise ValueError(f"beside is {list(claim.beside)!r}; rule {claim.rule!r} takes none, leave it out")
    seen: dict[str, str] = {}
    for field in ("policies", "against", "beside"):
        for label in getattr(claim, field):
            if label in seen:
                raise ValueError(
                    f"{field} names {label!r}, which is in {seen[label]} too; a policy is not compared with "
                    "itself"
                )
            seen[label] = field
            _check_in_parts(field, label, claim, parts)


def _check_in_parts(field: str, label: str, claim: Claim, parts: Mapping[str, Sequence[str]]) -> None:
    having = [part for part, policies in parts.items() if label in policies]
    for part in claim.parts or parts:
        if having and part not in having:
            raise ValueError(
                f"{field} is {label!r}, which part {part!r} does not have; leave it out, or let parts be "
                f"among {', '.join(having)}"
            )
        _check.choice(field, label, parts[part])


def _check_arm(claim: Claim, rule: Rule) -> None:
    takes = not rule.of_policies
    if claim.arm is None:
        if takes:
            raise ValueError(f"arm is None; rule {claim.rule!r} takes [context, arm], counted from 0")
        return
    if not takes:
        raise ValueError(f"arm is {claim.arm!r}; rule {claim.rule!r} takes none, leave it out")
    if not isinstance(claim.arm, tuple | list) or len(claim.arm) != 2:
        raise ValueError(f"arm is {claim.arm!r}; give [context, arm], counted from 0")
    for name, value in zip(("context", "arm"), claim.arm, strict=True):
        _check.integer(f"arm ({name})", value, least=0)
