"""Estimates of a policy's value from the terms of a log, with the intervals of a logger that does not learn."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from solid_bandits._types import Floats
from solid_bandits.ope.terms import Terms
from solid_bandits.statistics.intervals import student

GRID = 25
"""Values of τ and λ that are tried."""


class Value(NamedTuple):
    """An estimate: its value, its interval where there is one, and what it is an interval of."""

    value: float | None
    low: float | None = None
    high: float | None = None
    interval: str = ""
    note: str = ""


def ips(terms: Terms, level: float) -> Value:
    """Inverse propensity: mean of w r. Unbiased."""
    return _mean(terms.weight * terms.reward, level)


def snips(terms: Terms, level: float) -> Value:
    """Self-normalised: Σ w r / Σ w, with the interval of a ratio of means."""
    total = float(terms.weight.sum())
    if total == 0:
        return Value(None, note="the policy never chooses what was logged")
    value = float((terms.weight * terms.reward).sum()) / total
    error = math.sqrt(float((terms.weight**2 * (terms.reward - value) ** 2).sum())) / total
    half = _normal(level) * error
    return Value(value, value - half, value + half, "normal")


def doubly_robust(terms: Terms, level: float) -> Value:
    """Mean of Σ_a π(a) q(a) + w (r - q). Unbiased whatever the model."""
    return _mean(dr_terms(terms), level)


def dr_terms(terms: Terms, weight: Floats | None = None) -> Floats:
    """The terms of a doubly robust estimate, with other weights where they are given."""
    used = terms.weight if weight is None else weight
    return terms.baseline + used * (terms.reward - terms.expected)


def switch_dr(terms: Terms, level: float, threshold: float | None = None) -> Value:
    """Doubly robust where w <= τ, the model alone elsewhere (Wang, Agarwal and Dudík 2017)."""
    return _tuned(terms, level, threshold, switched, "τ")


def shrinkage_dr(terms: Terms, level: float, strength: float | None = None) -> Value:
    """Doubly robust with weights λ w / (w² + λ) (Su, Dimakopoulou, Krishnamurthy and Dudík 2020, optimistic)."""
    return _tuned(terms, level, strength, shrunk, "λ")


def switched(weight: Floats, threshold: float) -> Floats:
    """W where it is at most τ, else 0."""
    return np.where(weight <= threshold, weight, 0.0)


def shrunk(weight: Floats, strength: float) -> Floats:
    """λ w / (w² + λ)."""
    return weight if math.isinf(strength) else strength * weight / (weight**2 + strength)


def _tuned(terms: Terms, level: float, given: float | None, changed: Any, symbol: str) -> Value:
    """With the parameter given, or with that of least estimated variance + bias².

    The bias is that of the changed weights on the log itself, mean of (w' - w)(r - q), and two of its standard errors.
    The interval is of the estimator's own mean: a bias is not in it.
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
    """Mean reward where the policy would have chosen what was logged (Li et al. 2011), for a uniform logger."""
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
    terms: Terms, level: float, name: str, samples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The interval of the quantiles over samples of rows, with replacement, of one of the estimators above."""
    above, below = _ratio(terms, name)
    count = len(above)
    found = np.empty(samples)
    for place in range(samples):
        times = np.bincount(rng.integers(count, size=count), minlength=count)
        total = times @ below
        found[place] = (
            (times @ above) / total if total > 0 else np.nan
        )  # a sample without any row that counts
    tail = (1 - level) / 2
    low, high = np.nanquantile(found, [tail, 1 - tail])
    return float(low), float(high)


def _ratio(terms: Terms, name: str) -> tuple[Floats, Floats]:
    """Every estimator that is resampled is a ratio of two sums over rows."""
    ones = np.ones(len(terms.reward))
    if name == "snips":
        return terms.weight * terms.reward, terms.weight
    if name == "replay":
        return terms.matched * terms.reward, terms.matched
    return (terms.weight * terms.reward if name == "ips" else dr_terms(terms)), ones


def _normal(level: float) -> float:
    return float(ndtri(0.5 + level / 2))
