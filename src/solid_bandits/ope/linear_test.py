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

Where σ is not known there are two other tests of the same kind, the likelihood of the later rows under a prediction
made row by row over the largest likelihood that the alternatives can have (universal inference: Wasserman, Ramdas and
Balakrishnan 2020). For the true model that is no more than a supermartingale of mean at most 1:

- rewards within a range: the likelihood of coins with probability φᵀθ (`bounded_test`), which needs no σ.
  Where no θ at all is likely enough, or none with means in the range (`leaves_range`), the model is refuted, so that
  there is no answer;
- else Gaussian noise with one σ: prediction by the normal-inverse-gamma posterior of the first k rows, in closed form,
  and with RSS the sum of squares of the m later rows around their fit, RSS_0 the least one under the alternative,

      statistic m/2 log(RSS_0 / RSS),  RSS_0 = RSS + (θ~ᵀx + ε)²₊ / xᵀW⁻¹x.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from solid_bandits._internal import wording
from solid_bandits._internal.types import Floats
from solid_bandits.ope.bounded import unit
from solid_bandits.ope.bounded_test import Coins
from solid_bandits.ope.contrasts import EVERYONE, Asked
from solid_bandits.ope.ranges import Ends
from solid_bandits.ope.rows import Reader, Rows
from solid_bandits.ope.segments import Segments

FIRST = 8
"""Rows of the first part for each dimension, at the least."""
CONDITION = 1e-3
"""The share of the largest eigenvalue of V_k that its smallest must have."""

NAMED = "the log has named values of a context, and no features of arms: verdict(sb.logs.with_features(log)) has them"
BARE = "the log has no features"
FEW = "too few rows, or they leave directions of the features out"
BROKEN = (
    "rewards in {} cannot be linear in these features: add a constant column if there is none, or use others"
)
NONE = "there are fewer than two to choose from, or no largest likelihood was found"


class LinearTest(NamedTuple):
    """The test of a group of rows."""

    best: str
    """The label of who is best if rewards are linear."""
    statistic: float
    """How much less likely than the best fit the rewards are under the closest alternative, in units of log-likelihood:
    where σ is told the least of c + (θ~ᵀx + ε)² / xᵀW⁻¹x over the rivals, divided by 2σ²."""
    threshold: float
    """log(1/δ) and what it costs to have to learn the model: where σ is told log(det V_n / det V_k) / 2."""

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
    noise_std: float | None,
    ends: Ends | None,
    delta: float,
    tolerance: float,
) -> dict[str, LinearTest | str]:
    """Test who is best in all rows and in each segment; or say why there is no test.

    One θ holds for all groups, so that delta is for all of them together. With `noise_std` None rewards lie between
    `ends`; with both None noise is Gaussian.
    """
    chosen: list[Floats] = []
    rewards: list[Floats] = []
    groups = {name: _Group() for name in (EVERYONE, *(segments[0] if segments else ()))}
    for rows in reader.blocks():
        if rows.features is None:
            return dict.fromkeys(groups, NAMED if rows.context is not None else BARE)
        every = np.arange(len(rows.reward))
        chosen.append(rows.features[every, rows.place])
        rewards.append(rows.reward)
        for label, asked in policies.items():
            _add(groups, label, rows, np.asarray(asked.target.probabilities(rows)), segments)
    features, reward = np.concatenate(chosen), np.concatenate(rewards)
    first = set_aside(features)
    if first is None:
        return dict.fromkeys(groups, FEW)
    found: dict[str, LinearTest | None]
    if noise_std is None and ends is not None:
        width = ends[1] - ends[0]
        shares = unit(reward, ends)
        coins = Coins(features, shares, first)
        # Without a θ that the coins do not refute, or within the range, nothing is to be said of one.
        refuted = coins.ends and coins.most - coins.predicted <= math.log(delta)
        if refuted or leaves_range(features, shares, first, delta):
            said = f"[{wording.given(ends[0])}, {wording.given(ends[1])}]"
            return dict.fromkeys(groups, BROKEN.format(said))
        found = {
            name: judged(coins.test(group.means(), tolerance / width), delta)
            for name, group in groups.items()
        }
    else:
        found = {
            name: likelihood_ratio(features, reward, group.means(), noise_std, delta, tolerance)
            for name, group in groups.items()
        }
    return {name: NONE if one is None else one for name, one in found.items()}


def leaves_range(features: Floats, reward: Floats, first: int, delta: float) -> bool:
    """Whether means within [0, 1] that are linear in the features are refuted, at error probability delta.

    Rewards on [0, 1] are sub-Gaussian with σ = 1/2. So with probability at least 1 - delta no row ever comes at which
    the true θ has M_n(θ) >= 1/δ, that is (with c of the module's equation) outside of

        |θ - θ~|²_W <= σ² (log(det V_n / det V_k) + 2 log(1/δ)) - c,

    and if all θ of that ellipsoid give some chosen arm a mean outside of [0, 1], rewards are not linear.
    """
    early, late = features[:first], features[first:]
    before, later = early.T @ early, late.T @ late
    every = before + later
    theta = np.linalg.solve(later, late.T @ reward[first:])
    at_first = np.linalg.solve(before, early.T @ reward[:first])
    at_last = np.linalg.solve(every, features.T @ reward)
    growth = float(np.linalg.slogdet(every)[1] - np.linalg.slogdet(before)[1])
    least = _square(theta - at_last, every) - _square(theta - at_first, before)
    radius = math.sqrt(max(0.25 * (growth - 2 * math.log(delta)) - least, 0.0))
    across = np.linalg.solve(later, features.T)
    spread = radius * np.sqrt(np.maximum(np.einsum("nd,dn->n", features, across), 0.0))
    mean = features @ theta
    return bool(((mean - spread > 1) | (mean + spread < 0)).any())


def _add(
    groups: Mapping[str, _Group], label: str, rows: Rows, chosen: Floats, segments: Segments | None
) -> None:
    assert rows.features is not None  # checked by the caller
    groups[EVERYONE].add(label, rows.features, chosen)
    for place, name in enumerate(segments[0] if segments else ()):
        assert segments is not None
        inside = segments[1][rows.where] == place
        groups[name].add(label, rows.features[inside], chosen[inside])


def set_aside(features: Floats) -> int | None:
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


def judged(tested: tuple[str, float, float] | None, delta: float) -> LinearTest | None:
    """The test, from the best, the statistic and what learning costs."""
    if tested is None:
        return None
    best, statistic, cost = tested
    return LinearTest(best, statistic, -math.log(delta) + cost)


def likelihood_ratio(
    features: Floats,
    reward: Floats,
    means: Mapping[str, Floats],
    noise_std: float | None,
    delta: float,
    tolerance: float,
) -> LinearTest | None:
    """Test candidates with these mean features, from chosen features and rewards; None where that cannot be."""
    first = set_aside(features)
    if first is None or len(means) < 2:
        return None
    early, late = features[:first], features[first:]
    before, later = early.T @ early, late.T @ late
    every = before + later
    theta = np.linalg.solve(later, late.T @ reward[first:])
    at_first = np.linalg.solve(before, early.T @ reward[:first])
    best = max(means, key=lambda label: float(means[label] @ theta))
    found = []
    for label, mean in means.items():
        apart = means[best] - mean
        if label != best and apart.any():
            lead = float(apart @ theta) + tolerance
            found.append(max(lead, 0.0) ** 2 / float(apart @ np.linalg.solve(later, apart)))
        elif label != best and not tolerance:
            found.append(0.0)  # the same features: nobody can tell them apart
    if not found:
        return None
    growth = 0.5 * float(np.linalg.slogdet(every)[1] - np.linalg.slogdet(before)[1])
    at_last = np.linalg.solve(every, features.T @ reward)
    if noise_std is not None:
        least = _square(theta - at_last, every) - _square(theta - at_first, before)
        return judged((best, (least + min(found)) / (2 * noise_std**2), growth), delta)
    at_early, at_late, at_every = (
        float(((some @ fit - values) ** 2).sum())
        for some, fit, values in (
            (early, at_first, reward[:first]),
            (late, theta, reward[first:]),
            (features, at_last, reward),
        )
    )
    if not at_early > 0 or not at_late > 0:  # rewards without any noise
        return None
    count, dim = len(reward), features.shape[1]
    rest, least_degrees, degrees = count - first, 0.5 * (first - dim), 0.5 * (count - dim)
    predicted = (
        math.lgamma(degrees)
        - math.lgamma(least_degrees)
        - growth
        + least_degrees * math.log(at_early / 2)
        - degrees * math.log(at_every / 2)
    )
    fitted = -0.5 * rest * (math.log(at_late / rest) + 1)  # of both, the (2π)^(-m/2) is left out
    return judged((best, 0.5 * rest * math.log1p(min(found) / at_late), fitted - predicted), delta)


def _square(apart: Floats, matrix: Floats) -> float:
    return float(apart @ matrix @ apart)
