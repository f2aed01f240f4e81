"""Contextual adaptive doubly robust estimates: intervals that are valid for the log of a policy that learns.

Bibaut, Dimakopoulou, Kallus, Chambaz and van der Laan (2021), "Post-contextual-bandit inference" (arXiv 2106.00418):
the doubly robust term D_t of row t, by a model that knows the rows before it, is a martingale difference around the
value, but its variance follows what the logger has learnt, and a plain mean need not become normal. With weights 1 /
σ_t, σ_t² an estimate of the variance of D_t from the rows before it, it does:

    ψ = Σ D_t / σ_t / Σ 1 / σ_t,   standard error √(Σ (D_t - ψ)² / σ_t²) / Σ 1 / σ_t.

The paper estimates σ_t by evaluating the logger of step t on all earlier contexts. A log has the logger's probabilities
in its own contexts only, so here σ_t² is

    s²_t m_t + v_t,   m_t the mean of Σ_a π(a)² / g(a) over the last rows, s²_t that of (r - q)², v_t the variance of
    Σ_a π(a) q(a);

a tenth of the rows so far, as loggers change in proportion to time. It is a function of the past, which keeps the
estimate centred, and it only needs to follow σ_t up to a factor, since the standard error is computed from the terms
themselves.
"""

import math

import numpy as np

from solid_bandits._internal.compiling import jit_apart
from solid_bandits._internal.types import Floats
from solid_bandits.ope.contract import Value, normal
from solid_bandits.ope.terms import Terms, dr_terms

BURN = 20
"""Number of rows at the start that only serve the estimates of σ."""
SHARE = 0.1
LEAST = 50.0
"""Number of rows averaged in m_t: a share of those so far, or a fixed number."""
NO_VARIANCE = "no interval: the terms do not vary"


def cadr(terms: Terms, level: float) -> Value:
    """Return the estimate with its normal interval."""
    if len(terms.reward) <= 2 * BURN:
        return Value(None, note=f"needs more than {2 * BURN} rows")
    values, inverse = dr_terms(terms), inverses(terms)
    total = float(inverse.sum())
    if total == 0:
        return Value(float(values.mean()), note=NO_VARIANCE)
    value = float(inverse @ values) / total
    error = math.sqrt(float((inverse**2 * (values - value) ** 2).sum())) / total
    return normal(value, error, level, "adaptive", "if the value does not drift")


def inverses(terms: Terms) -> Floats:
    """Return 1 / σ_t of each row."""
    found = np.zeros(len(terms.reward))
    stabilise(terms.reward - terms.expected, terms.baseline, terms.second, found)
    return found


@jit_apart
def stabilise(residual: Floats, baseline: Floats, second: Floats, inverse: Floats) -> None:
    """Write 1 / σ_t of each row, from the rows before it; 0 for the first `BURN`."""
    squares = mean = spread = local = 0.0
    for t in range(residual.shape[0]):
        if t >= BURN:
            variance = squares / t * local + spread / t
            inverse[t] = 1.0 / math.sqrt(variance) if variance > 0.0 else 0.0
        squares += residual[t] * residual[t]
        step = baseline[t] - mean
        mean += step / (t + 1)
        spread += step * (baseline[t] - mean)
        local += (second[t] - local) / min(t + 1.0, max(SHARE * t, LEAST))
