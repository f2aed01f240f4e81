"""Diagnostics of whether a log can answer for a policy: weights, effective rewards, support."""

import math

import numpy as np
from scipy.special import chdtrc

from solid_bandits._internal import wording
from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.types import Floats, Plain
from solid_bandits.ope.answering import DRIFT, SEEN, UNDER_DRIFT
from solid_bandits.ope.terms import Found, Terms, dr_terms

SMALL = 100
"""Effective sample size below which a caution is given."""
SYMMETRIC = 25
"""Number of rows per squared skewness that it also needs (studies/off_policy/answers.py)."""
ENOUGH = 50
"""Number of effective rewards needed for a normal approximation (studies/off_policy/rare_rewards.py)."""


def check_support(found: Found, who: str = "the policy") -> None:
    """Raise an error if the logger never chose arms that the policy would choose."""
    check_terms(found.terms, who)


def check_terms(terms: Terms, who: str) -> None:
    """Raise the same error for the terms of a policy."""
    outside = terms.outside
    if outside.sum() > 0:
        raise ArgumentError(
            "log",
            f"cannot answer: in {(outside > 0).sum():,} of {len(outside):,} rows {who} would choose arms that the "
            f"logger gave probability 0, {100 * outside.mean():.3g}% of its choices; log with a floor, or evaluate "
            "a policy that stays among the logger's arms",
        )


def effective_rewards(terms: Terms) -> float:
    """Count the rewards that an estimate is based on; for rewards 0 and 1, those of the rarer outcome.

    With u = r - min r or u = max r - r over the rows of the log, whichever gives less, it is the smaller of

        (Σ w u)² / Σ (w u)²   and   (Σ u)² / Σ u² · n / Σ_t Σ_a π(a)² / g(a).

    The first is observed. The second is expected if all arms had the same rewards: it accounts for arms with large
    weights and no rewards yet, which the first does not. Both are the same for a + b r in place of r, whatever a and b
    != 0, so that neither units nor the names of outcomes matter.
    """
    if not terms.weight.any():
        return 0.0
    found = []
    for u in (terms.reward - terms.reward.min(), terms.reward.max() - terms.reward):
        seen = _effective(float(terms.weight @ u), float(((terms.weight * u) ** 2).sum()))
        plain = _effective(float(u.sum()), float((u**2).sum()))
        found += [seen, plain * len(u) / float(terms.second.sum())]
    return min(found)


def rows_per_skewness(terms: Terms, inverse: Floats) -> float:
    """Return 1 / γ², γ being the skewness of a weighted sum of terms if all arms had the same rewards.

    The terms are w (r - mean r) / σ_t, with `inverse` 1 / σ_t: 1 for a plain mean, `cadr`'s for `cadr`. A normal
    interval misses on one side by about γ (Cochran's rule requires 25). For rare rewards of 0 or 1, weights of 1 and a
    plain mean, 1 / γ² is about the number of the rarer outcome.
    """
    apart = terms.reward - terms.reward.mean()
    above = float((inverse**3 * terms.third).sum()) * float((apart**3).mean())
    below = float((inverse**2 * terms.second).sum()) * float((apart**2).mean())
    if below <= 0:
        return 0.0
    return below**3 / above**2 if abs(above) * 1e9 > below**1.5 else math.inf


def drift(terms: Terms) -> float:
    """Return the p-value of a test that the doubly robust terms have the same mean in each quarter of the rows.

    Quarters are in time. The statistic has a χ² distribution with 3 degrees of freedom: Σ (mean of the quarter - m)² /
    its squared standard error.
    """
    quarters = [part for part in np.array_split(dr_terms(terms), 4) if len(part) > 1]
    errors = np.array([float(part.var(ddof=1)) / len(part) for part in quarters])
    if len(quarters) < 4 or not (errors > 0).all():
        return 1.0
    means = np.array([float(part.mean()) for part in quarters])
    centre = float((means / errors).sum() / (1 / errors).sum())
    return float(chdtrc(3, float(((means - centre) ** 2 / errors).sum())))


def _effective(total: float, squares: float) -> float:
    return total**2 / squares if squares > 0 else 0.0


def diagnostics(found: Found, weighted: bool) -> Plain:
    """Return the diagnostics by name; those of weights only if there are any."""
    terms = found.terms
    log = {
        "rows": len(terms.reward),
        "rows without a reward, left out": found.left_out,
        "mean reward of the log": float(terms.reward.mean()),
    }
    if not weighted:
        return log
    weight, rows = terms.weight, len(terms.weight)
    total, squares = float(weight.sum()), float((weight**2).sum())
    effective = _effective(total, squares)
    error = float(weight.std()) / math.sqrt(rows)
    shares = {"median": 0.5, "90%": 0.9, "99%": 0.99, "99.9%": 0.999}
    largest = np.sort(weight)[-max(rows // 100, 1) :].sum()
    return log | {
        "effective sample size": effective,
        "effective share": effective / rows,
        "effective rewards": effective_rewards(terms),
        DRIFT: drift(terms),
        "mean weight": total / rows,
        "standard error of the mean weight": error,
        **{f"weight, {name}": float(np.quantile(weight, share)) for name, share in shares.items()},
        "weight, largest": float(weight.max()),
        "share of the weight in 1% of the rows": float(largest) / total if total > 0 else 0.0,
        "smallest probability of a chosen arm": float(terms.propensity.min()),
        "rows that the policy might have played": float((terms.matched > 0).mean()),
    }


def cautions(found: Found, numbers: Plain) -> list[str]:
    """Return warnings to read before the numbers; `numbers` are the diagnostics."""
    said = []
    if found.learnt:
        said.append(
            f"the policy has learnt from {wording.count(found.learnt, 'reward')} of this log, at the least: it knows "
            "their noise, and looks better than it is; evaluate it on rows that came later, or a policy of "
            "sb.ope.fitted on the rest"
        )
    if "effective rewards" not in numbers:  # for estimates without weights
        return said
    if found.left_out:
        said.append(
            f"{wording.count(found.left_out, 'decision')} without a reward left out; if they go missing for a reason, "
            "give missing_reward"
        )
    if numbers["effective sample size"] < SMALL:
        said.append(
            f"the weights leave an effective sample of {wording.number(numbers['effective sample size'])} rows: "
            "the policy is far from the logger"
        )
    if numbers["effective rewards"] < ENOUGH:
        said.append(
            f"the estimates rest on {wording.number(numbers['effective rewards'])} effective rewards, too few for "
            f"intervals by a normal approximation, which need {ENOUGH}: only those of anytime are shown"
        )
    if numbers[DRIFT] < SEEN:
        said.append(UNDER_DRIFT)
    off = abs(numbers["mean weight"] - 1)
    if off > 4 * numbers["standard error of the mean weight"] and off > 1e-9:
        said.append(
            f"the mean weight is {wording.number(numbers['mean weight'])} instead of 1, by more than 4 standard "
            "errors: the logged probabilities are not those that arms were drawn with, or arms have no support"
        )
    if np.isnan(found.terms.outside).any():
        said.append(
            "the log has the probability of the chosen arm alone: whether the logger could have chosen all that the "
            "policy chooses cannot be checked"
        )
    return said
