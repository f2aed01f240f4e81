"""The rule on the lower bound alone: where its allocation explores."""

import math

import numpy as np

from solid_bandits._check import ArgumentError
from solid_bandits.experiments.outcome import Answer
from solid_bandits.experiments.rules.rule import Case, Finding, Rule, arm_name, not_held
from solid_bandits.statistics.estimate import Estimate

ON_ARM = 0.999
"""The share of pulls that counts as all of them: allocations are solved to a tolerance."""


def _allocation(case: Case) -> Finding:
    (part,) = case.parts
    assert case.claim.arm is not None  # check_claim
    context, arm = case.claim.arm
    what = f"share of the lower bound's exploring pulls on {arm_name(case.claim.arm)}, {part.label}"
    allocation = part.results.lower_bound.get("allocation")
    if allocation is None:
        return not_held(what)
    pulls = np.asarray(allocation, dtype=np.float64)
    if context >= pulls.shape[0] or arm >= pulls.shape[1]:
        raise ArgumentError(
            "arm",
            f"must be [context, arm], counted from 0, of the {pulls.shape[0]} contexts and {pulls.shape[1]} arms in "
            f"part {part.label!r}, got {case.claim.arm!r}",
        )
    total = float(pulls.sum())
    if not (math.isfinite(total) and total > 0):
        return not_held(what)
    share = float(pulls[context, arm]) / total
    return Finding(what, Estimate(share), Answer.CONFIRMED if share >= ON_ARM else Answer.REFUTED)


ALLOCATION = Rule(
    f"In every part, at least {ON_ARM:.1%} of the pulls of suboptimal arms in the lower bound's "
    "allocation η* are of the arm that is named. Confirmed or refuted by the solution; undecided where "
    "there is none.",
    _allocation,
    of_policies=False,
    uses_metric=False,
    uses_level=False,
)
