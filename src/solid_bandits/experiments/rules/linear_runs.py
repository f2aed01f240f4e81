"""The rule on runs that never learn: linear runs."""

from solid_bandits._words import given
from solid_bandits.experiments.outcome import Answer
from solid_bandits.experiments.rules.rule import Case, Finding, Rule, not_held, side_of
from solid_bandits.statistics.intervals import share
from solid_bandits.statistics.metrics import LINEAR_RATE, is_linear

RARE = 0.05
"""No run is linear if none was seen and, with confidence, fewer than this share would be."""


def _linear_runs(case: Case) -> Finding:
    (part,) = case.parts
    what = f"share of runs of {case.policy} with linear regret, {part.label}"
    linear = is_linear(part.results, case.policy, case.claim.at)
    if linear is None:
        return not_held(what)
    hits = int(linear.sum())
    estimate = share(hits, len(linear), case.level)
    if hits:
        return Finding(what, estimate, Answer.CONFIRMED)
    rare = side_of(estimate, RARE) is Answer.REFUTED
    return Finding(what, estimate, Answer.REFUTED if rare else Answer.UNDECIDED)


LINEAR_RUNS = Rule(
    "In every part, some runs of each policy have linear regret: in the third and in the fourth "
    f"quarter of the time, the regret per step is at least {given(LINEAR_RATE)} of its mean over all the "
    "time (1 if linear from the start, about 0.1 if logarithmic). Clopper-Pearson's interval of the "
    "share of such runs. Confirmed if each policy has such a run, refuted if one has none and its "
    f"interval lies below {given(RARE)}, undecided otherwise.",
    _linear_runs,
    uses_metric=False,
)
