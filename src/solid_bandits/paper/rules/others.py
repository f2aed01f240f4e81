"""Rules about other things than means of runs: linear runs, the lower bound's allocation, CPU time."""

import math

import numpy as np

from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.wording import given
from solid_bandits.paper.outcome import Answer
from solid_bandits.paper.rules.rule import Case, Measured, NotHeldError, arm_name, held, rule, side_of
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.intervals import share
from solid_bandits.statistics.metrics import LINEAR_RATE, is_linear

RARE = 0.05
"""Share of runs. No run is called linear if none was seen and, with confidence, fewer than this share would be."""
ON_ARM = 0.999
"""Share of pulls that counts as all of them, since allocations are solved to a tolerance."""


@rule(
    "linear runs",
    "In every part, some runs of each policy have linear regret: in the third and in the fourth "
    f"quarter of the time, the regret per step is at least {given(LINEAR_RATE)} of its mean over all the "
    "time (1 if linear from the start, about 0.1 if logarithmic). Clopper-Pearson's interval of the "
    "share of such runs. Confirmed if each policy has such a run, refuted if one has none and its "
    f"interval lies below {given(RARE)}, undecided otherwise.",
    lambda case: f"share of runs of {case.policy} with linear regret, {case.part.label}",
    uses_metric=False,
)
def _linear_runs(case: Case) -> Measured:
    linear = held(is_linear(case.part.results, case.policy, case.claim.at))
    hits = int(linear.sum())
    estimate = share(hits, len(linear), case.level)
    if hits:
        return estimate, Answer.CONFIRMED
    rare = side_of(estimate, RARE) is Answer.REFUTED
    return estimate, Answer.REFUTED if rare else Answer.UNDECIDED


def _allocation_in_words(case: Case) -> str:
    assert case.claim.arm is not None  # check_claim
    return f"share of the lower bound's exploring pulls on {arm_name(case.claim.arm)}, {case.part.label}"


@rule(
    "allocation",
    f"In every part, at least {ON_ARM:.1%} of the pulls of suboptimal arms in the lower bound's "
    "allocation η* are of the named arm. Confirmed or refuted by the solution; undecided where "
    "there is none.",
    _allocation_in_words,
    of_policies=False,
    uses_metric=False,
    uses_level=False,
)
def _allocation(case: Case) -> Measured:
    assert case.claim.arm is not None  # check_claim
    context, arm = case.claim.arm
    pulls = np.array(held(case.part.results.lower_bound.get("allocation")), dtype=np.float64)
    if context >= pulls.shape[0] or arm >= pulls.shape[1]:
        raise ArgumentError(
            "arm",
            f"must be [context, arm], counted from 0, of the {pulls.shape[0]} contexts and {pulls.shape[1]} arms in "
            f"part {case.part.label!r}, got {case.claim.arm!r}",
        )
    total = float(pulls.sum())
    if not (math.isfinite(total) and total > 0):
        raise NotHeldError
    share = float(pulls[context, arm]) / total
    return Estimate(share), Answer.CONFIRMED if share >= ON_ARM else Answer.REFUTED


@rule(
    "slower",
    "In every part, each policy took more CPU time than each policy it is compared with, by the margin as "
    "a share. Sums over all runs, as measured: without interval. Confirmed if every ratio is at least "
    "1 + margin, refuted if one is at most 1, undecided otherwise.",
    lambda case: f"CPU time of {case.policy} / CPU time of {case.other}, {case.part.label}",
    against=1,
    uses_metric=False,
    uses_margin=True,
    uses_level=False,
)
def _slower(case: Case) -> Measured:
    mine, theirs = (case.part.results.seconds.get(label) or 0.0 for label in (case.policy, case.other))
    if mine <= 0 or theirs <= 0:
        raise NotHeldError
    ratio = mine / theirs
    if ratio <= 1:
        return Estimate(ratio), Answer.REFUTED
    return Estimate(ratio), Answer.CONFIRMED if ratio >= 1 + case.claim.margin else Answer.UNDECIDED
