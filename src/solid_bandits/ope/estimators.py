"""All estimators of a policy's value from the terms of a log, by name.

A new one is a function of the terms and an entry at the end; everything else reads the entry.
"""

import math
from typing import Any

import numpy as np

from solid_bandits._internal.types import Floats
from solid_bandits.ope.adaptive import cadr
from solid_bandits.ope.anytime import anytime
from solid_bandits.ope.contract import Estimator, Settings, Value, normal
from solid_bandits.ope.terms import Found, Terms, dr_terms
from solid_bandits.statistics.intervals import student

GRID = 25
"""Values of τ and λ that are tried."""


def ips(terms: Terms, level: float) -> Value:
    """Return the inverse propensity estimate, the mean of w r, which is unbiased."""
    return _mean(terms.weight * terms.reward, level)


def snips(terms: Terms, level: float) -> Value:
    """Return the self-normalised estimate Σ w r / Σ w, with the interval of a ratio of means."""
    total = float(terms.weight.sum())
    if total == 0:
        return Value(None, note="the policy never chooses what was logged")
    value = float((terms.weight * terms.reward).sum()) / total
    error = math.sqrt(float((terms.weight**2 * (terms.reward - value) ** 2).sum())) / total
    return normal(value, error, level, "normal")


def doubly_robust(terms: Terms, level: float) -> Value:
    """Return the mean of Σ_a π(a) q(a) + w (r - q), which is unbiased whatever the model."""
    return _mean(dr_terms(terms), level)


def switched(weight: Floats, threshold: float) -> Floats:
    """Return w where it is at most τ, else 0, leaving only the model there (Wang, Agarwal and Dudík 2017)."""
    return np.where(weight <= threshold, weight, 0.0)


def shrunk(weight: Floats, strength: float) -> Floats:
    """Return λ w / (w² + λ) (Su, Dimakopoulou, Krishnamurthy and Dudík 2020, optimistic)."""
    return weight if math.isinf(strength) else strength * weight / (weight**2 + strength)


def _tuned(terms: Terms, level: float, given: float | None, changed: Any, symbol: str) -> Value:
    """Return the estimate with the given parameter, or with the one of least estimated variance + bias².

    The bias is that of the changed weights on the log itself, the mean of (w' - w)(r - q), plus two standard errors.
    The interval is for the estimator's own mean and does not include a bias.
    """
    if given is None:
        top = float(terms.weight.max(initial=0.0))
        scale = max(top, 1.0)
        candidates = (
            np.geomspace(1.0, scale, GRID) if symbol == "τ" else scale**2 * np.geomspace(1e-4, 1e4, GRID)
        )
        errors = [_error(terms, changed(terms.weight, one)) for one in candidates]
        given = float(candidates[int(np.argmin(errors))])
    estimate = _mean(dr_terms(terms, changed(terms.weight, given)), level)
    return estimate._replace(note=f"{symbol} = {given:.4g}; a bias is not in the interval")


def _error(terms: Terms, weight: Floats) -> float:
    values = dr_terms(terms, weight)
    lost = (weight - terms.weight) * (terms.reward - terms.expected)
    bias = abs(float(lost.mean())) + 2 * math.sqrt(float(lost.var()) / len(lost))
    return float(values.var()) / len(values) + bias**2


def replayed(terms: Terms, level: float) -> Value:
    """Return the mean reward where the policy agrees with the log (Li et al. 2011), for a uniform logger."""
    count = int(terms.offered[0])
    same = bool(
        (terms.offered == count).all() and np.allclose(terms.propensity, 1 / count, rtol=1e-9, atol=0)
    )
    if not same:
        return Value(None, note="needs a logger that is uniform over the same number of arms in every row")
    plain = terms._replace(weight=terms.matched)
    return snips(plain, level)


def _mean(values: Floats, level: float) -> Value:
    estimate = student(values, level)
    kind = "Student" if estimate.low is not None else ""
    return Value(estimate.value, estimate.low, estimate.high, kind)


def bootstrap(
    above: Floats, below: Floats, level: float, samples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the interval of the quantiles of Σ above / Σ below over samples of rows, with replacement."""
    count = len(above)
    found = np.empty(samples)
    for place in range(samples):
        times = np.bincount(rng.integers(count, size=count), minlength=count)
        total = times @ below
        found[place] = (times @ above) / total if total > 0 else np.nan  # if none of the rows counts
    tail = (1 - level) / 2
    low, high = np.nanquantile(found, [tail, 1 - tail])
    return float(low), float(high)


def _bounded(found: Found, settings: Settings) -> Value:
    if settings.ends is None:
        return Value(None, note="needs reward_range, as rewards are not all within [0, 1]")
    return anytime(found.terms, settings.level, settings.ends)


ESTIMATORS = {
    "replay": Estimator(
        "mean reward of the rows in which the policy agrees with a uniform logger",
        lambda found, settings: replayed(found.terms, settings.level),
        ratio=lambda terms: (terms.matched * terms.reward, terms.matched),
    ),
    "ips": Estimator(
        "inverse propensity weights",
        lambda found, settings: ips(found.terms, settings.level),
        ratio=lambda terms: (terms.weight * terms.reward, np.ones(len(terms.reward))),
    ),
    "snips": Estimator(
        "the same, self-normalised",
        lambda found, settings: snips(found.terms, settings.level),
        ratio=lambda terms: (terms.weight * terms.reward, terms.weight),
    ),
    "dm": Estimator(
        "direct method: what the reward model expects",
        lambda found, _: Value(found.direct, note="no interval: the error of the model is in none"),
        weighted=False,
    ),
    "dr": Estimator(
        "doubly robust",
        lambda found, settings: doubly_robust(found.terms, settings.level),
        ratio=lambda terms: (dr_terms(terms), np.ones(len(terms.reward))),
    ),
    "switch-dr": Estimator(
        "doubly robust where weights are small, the model elsewhere",
        lambda found, settings: _tuned(found.terms, settings.level, settings.threshold, switched, "τ"),
    ),
    "dros": Estimator(
        "doubly robust with shrunk weights",
        lambda found, settings: _tuned(found.terms, settings.level, settings.strength, shrunk, "λ"),
    ),
    "cadr": Estimator(
        "doubly robust, stabilised: holds for a logger that learns",
        lambda found, settings: (
            settings.retraced(found.terms) if settings.retraced else cadr(found.terms, settings.level)
        ),
        learning=True,
    ),
    "anytime": Estimator(
        "doubly robust mean with bounds that hold at every time at once",
        _bounded,
        ranged=True,
        learning=True,
        normal=False,
    ),
}
"""Name -> estimator."""
