"""The generalised likelihood ratio test of who is best where rewards are linear, valid at every time at once.

Let V_n, b_n be Σ φ φᵀ and Σ φ r over the chosen arms of the first n rows, θ-hat_n = V_n⁻¹ b_n, and let the first k
rows be set aside. With the Gaussian N(θ-hat_k, σ² V_k⁻¹) for a prior, the ratio of the likelihood of the later rows
under the prior to that under θ is

    M_n(θ) = √(det V_k / det V_n) exp((|θ - θ-hat_n|²_{V_n} - |θ - θ-hat_k|²_{V_k}) / 2σ²),

for the true θ a supermartingale of mean at most 1 if noise is sub-Gaussian with σ, whoever chose the arms (the method
of mixtures: Abbasi-Yadkori et al. 2011, Kaufmann and Koolen 2021), with no bound on |θ|. So with probability at least
1 - δ no row ever comes at which the true θ has M_n(θ) >= 1/δ. One may stop where every θ has that under which a rival
with mean features x less than those of the best is better by ε or more, θᵀx <= -ε. The exponent is a quadratic form
around the estimate θ~ of the later rows alone, whose matrix is W = V_n - V_k, so its least value there is

    c + (θ~ᵀx + ε)₊² / xᵀW⁻¹x,   c = |θ~ - θ-hat_n|²_{V_n} - |θ~ - θ-hat_k|²_{V_k}.

This is SOLID's exploitation test with another threshold. k is the first of 8d, 16d, 32d, ... at which V_k is well
enough conditioned, a stopping time.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.types import Floats
from solid_bandits.ope.contrasts import EVERYONE, Asked
from solid_bandits.ope.rows import Reader, Rows
from solid_bandits.ope.segments import Segments

FIRST = 8
"""Rows of the first part for each dimension, at the least."""
CONDITION = 1e-3
"""The share of the largest eigenvalue of V_k that its smallest must have."""


class LinearTest(NamedTuple):
    """The test of a group of rows."""

    best: str
    statistic: float
    """The least of c + (θ~ᵀx + ε)² / xᵀW⁻¹x over the rivals, divided by 2σ²."""
    threshold: float
    """log(1/δ) + log(det V_n / det V_k) / 2."""

    @property
    def stop(self) -> bool:
        """Whether one may stop."""
        return self.statistic > self.threshold


class _Group:
    """Sums of the features of each arm that a policy would choose, over some rows."""

    def __init__(self) -> None:
        self.sums: dict[str, Floats] = {}
        self.counts: dict[str, float] = {}

    def add(self, label: str, features: Floats, chosen: Floats) -> None:
        where = chosen.any(axis=1)
        total = np.einsum("nk,nkd->d", chosen[where], features[where])
        self.sums[label] = self.sums.get(label, 0.0) + total
        self.counts[label] = self.counts.get(label, 0.0) + float(where.sum())

    def means(self) -> dict[str, Floats]:
        return {label: self.sums[label] / count for label, count in self.counts.items() if count}


def linear_test(
    reader: Reader,
    policies: Mapping[str, Asked],
    segments: Segments | None,
    noise_std: float,
    delta: float,
    tolerance: float,
) -> dict[str, LinearTest]:
    """Test who is best in all rows and in each segment; nothing where rows have no features or too few directions.

    One θ holds for all groups, so that delta is for all of them together.
    """
    chosen: list[Floats] = []
    rewards: list[Floats] = []
    groups = {name: _Group() for name in (EVERYONE, *(segments[0] if segments else ()))}
    for rows in reader.blocks():
        if rows.features is None:
            return {}
        every = np.arange(len(rows.reward))
        chosen.append(rows.features[every, rows.place])
        rewards.append(rows.reward)
        for label, asked in policies.items():
            _add(groups, label, rows, np.asarray(asked.target.probabilities(rows)), segments)
    features, reward = np.concatenate(chosen), np.concatenate(rewards)
    found = {
        name: likelihood_ratio(features, reward, group.means(), noise_std, delta, tolerance)
        for name, group in groups.items()
    }
    return {name: one for name, one in found.items() if one is not None}


def _add(
    groups: Mapping[str, _Group], label: str, rows: Rows, chosen: Floats, segments: Segments | None
) -> None:
    assert rows.features is not None  # checked by the caller
    groups[EVERYONE].add(label, rows.features, chosen)
    for place, name in enumerate(segments[0] if segments else ()):
        assert segments is not None
        inside = segments[1][rows.where] == place
        groups[name].add(label, rows.features[inside], chosen[inside])


def _set_aside(features: Floats) -> int | None:
    """The number k of rows; None where the later ones would not be well conditioned either."""
    count = FIRST * features.shape[1]
    while count < len(features):
        if _well(features[:count]):
            return count if _well(features[count:]) else None
        count *= 2
    return None


def _well(features: Floats) -> bool:
    eigenvalues = np.linalg.eigvalsh(features.T @ features)
    return bool(eigenvalues[0] > CONDITION * eigenvalues[-1])


def likelihood_ratio(
    features: Floats,
    reward: Floats,
    means: Mapping[str, Floats],
    noise_std: float,
    delta: float,
    tolerance: float,
) -> LinearTest | None:
    """Test candidates with these mean features, from chosen features and rewards; None where that cannot be."""
    first = _set_aside(features)
    if first is None or len(means) < 2:
        return None
    early, late = features[:first], features[first:]
    before, later = early.T @ early, late.T @ late
    every = before + later
    theta = np.linalg.solve(later, late.T @ reward[first:])
    at_first = np.linalg.solve(before, early.T @ reward[:first])
    at_last = np.linalg.solve(every, features.T @ reward)
    least = _square(theta - at_last, every) - _square(theta - at_first, before)
    best = max(means, key=lambda label: float(means[label] @ theta))
    found = []
    for label, mean in means.items():
        apart = means[best] - mean
        if label != best and apart.any():
            lead = float(apart @ theta) + tolerance
            found.append(least + max(lead, 0.0) ** 2 / float(apart @ np.linalg.solve(later, apart)))
        elif label != best and not tolerance:
            found.append(least)  # the same features: nobody can tell them apart
    if not found:
        return None
    threshold = math.log(1 / delta) + 0.5 * float(np.linalg.slogdet(every)[1] - np.linalg.slogdet(before)[1])
    return LinearTest(best, min(found) / (2 * noise_std**2), threshold)


def _square(apart: Floats, matrix: Floats) -> float:
    return float(apart @ matrix @ apart)
