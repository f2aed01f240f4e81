"""The ridge that makes the rewards most likely: MacKay's fixed point, updated at doubling counts of rewards.

Under the prior N(0, σ²/ν I) the evidence is greatest where (MacKay 1992, "Bayesian interpolation")

    ν = σ² γ / ‖θ-hat‖²,     γ = tr(V^-1 Σ φφᵀ) = d - ν tr V^-1, the number of well-determined parameters.

This assumes that all parameters have the size of the few that are known. With a `caution` c the ridge is ν γ / (γ + c)
instead: γ parameters determine their variance only to a factor 1 ± √(2/γ), so the fewer of them are known, the wider
the prior; where many are known, nothing changes.

So that ν can be replaced, the triangle of the rewards alone is carried next to the estimator's: νI with its d rows
rotated in *is* the estimator with that ridge, at O(d³) and without subtractions. Neither triangle has a scale of its
own: rewards or features multiplied by a power of two give the same digits.

Evidence that fades needs the same, because the triangle of the rewards can be scaled in O(d) and the estimator's, with
its ridge, cannot.
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Bools, Floats
from solid_bandits.estimation.estimator import Estimator, count_reward, solve_triangle, squared_norm
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.noise import noise_variance

LEAST_RATIO = 1e-40
"""Smallest ratio of the ridge to its starting value; anything below makes no difference except for overflow."""
LEAST_SCALE = 1e-60
"""Smallest squared scale of features; a ridge in proportion to less would let later features overflow."""
LEAST_PIVOT = LEAST_SCALE**2
"""Smallest weight in the rewards' triangle; anything less counts as zero."""

LEAST_APART = 1e-24
"""Smallest ratio of the squared spread of arms to their squared size; below it, arms differ only by the rounding of
their mean."""


class Search(NamedTuple):
    """Settings of the search for the ridge."""

    start: float
    """Initial ν, relative to the squared spread of the arms on offer."""
    rounds: int
    """Number of fixed-point iterations at each count."""
    first: int
    """Number of rewards from which on the ridge is searched for."""
    caution: float
    """Caution c: the ridge is γ / (γ + c) times MacKay's, so the fewer parameters are known, the wider the prior; 0 is
    his."""
    every: int = 0
    """For evidence that fades: number of rewards between searches; 0 searches at doubling counts."""


class Evidence(NamedTuple):
    """The rewards without a ridge, and the current ridge. All arrays are updated in place."""

    triangle: Floats
    """U, unit upper triangular, shape (dim, dim)."""
    weights: Floats
    """D, shape (dim,): Σ φφᵀ = Uᵀ D U; 0 where nothing is known."""
    targets: Floats
    """Targets, shape (dim,): least squares without a ridge is U θ = targets."""
    residual: Floats
    """Residual of least squares without a ridge, shape ()."""
    ridge: Floats
    """ν, shape (); 0 before the first arms."""
    start: Floats
    """Initial and largest value of ν, shape (); 0 until arms that differ have been on offer."""


def make_evidence(dim: int) -> Evidence:
    """Return the evidence before any reward."""
    return Evidence(np.eye(dim), np.zeros(dim), np.zeros(dim), np.array(0.0), np.array(0.0), np.array(0.0))


@jit
def rotate(
    triangle: Floats, weights: Floats, targets: Floats, row: Floats, target: float, weight: float
) -> tuple[float, float]:
    """Rotate one more row of this weight into Uᵀ D U, with D >= 0; `row` is overwritten.

    Returns the increase of the residual, and the remaining weight of the row: det V before over det V after.
    """
    dim = weights.shape[0]
    for i in range(dim):
        lead, old = row[i], weights[i]
        new = old + weight * lead * lead
        if new > LEAST_PIVOT and lead != 0.0:
            inverse = 1.0 / new
            gain, keep = weight * lead * inverse, old * inverse
            before = target
            target -= lead * targets[i]
            targets[i] = keep * targets[i] + gain * before
            line = triangle[i]
            # Not line += gain * (row - lead * line), which loses the row where the line is large and its weight small.
            for j in range(i + 1, dim):
                entry = row[j]
                row[j] = entry - lead * line[j]
                line[j] = keep * line[j] + gain * entry
            weights[i] = new
            weight *= keep
            if weight == 0.0:
                return 0.0, 0.0
    return weight * target * target, weight


@jit
def rotate_both(
    evidence: Evidence,
    estimator: Estimator,
    features: Floats,
    reward: float,
    weight: float,
    row: Floats,
    other: Floats,
) -> None:
    """Rotate a reward of this weight into both triangles, interleaved because each `rotate` waits for its divisions."""
    bare, ridged = evidence.triangle, estimator.triangle
    bare_weights, ridged_weights = evidence.weights, estimator.weights
    dim = features.shape[0]
    for i in range(dim):
        row[i] = features[i]
        other[i] = features[i]
    target, rest = reward, reward
    given, left = weight, weight
    for i in range(dim):
        lead, old = row[i], bare_weights[i]
        new = old + weight * lead * lead
        gain, keep = 0.0, 1.0
        if new > LEAST_PIVOT and weight > 0.0:
            inverse = 1.0 / new
            gain, keep = weight * lead * inverse, old * inverse
            bare_weights[i] = new
            weight *= keep
            before = target
            target -= lead * evidence.targets[i]
            evidence.targets[i] = keep * evidence.targets[i] + gain * before
        head, ridge = other[i], ridged_weights[i]
        grown = ridge + left * head * head
        inverse = 1.0 / grown
        share, stay = left * head * inverse, ridge * inverse
        ridged_weights[i] = grown
        left *= stay
        before = rest
        rest -= head * estimator.targets[i]
        estimator.targets[i] = stay * estimator.targets[i] + share * before
        line, row_of = bare[i], ridged[i]
        for j in range(i + 1, dim):
            entry, another = row[j], other[j]
            row[j] = entry - lead * line[j]
            line[j] = keep * line[j] + gain * entry
            other[j] = another - head * row_of[j]
            row_of[j] = stay * row_of[j] + share * another
    evidence.residual[()] += weight * target * target
    estimator.residual[()] += left * rest * rest
    if given > 0.0:
        estimator.log_det_ratio[()] -= math.log(left / given)


@jit
def absorb(
    search: Search,
    evidence: Evidence,
    estimator: Estimator,
    noise_std: float,
    features: Floats,
    reward: float,
    weight: float,
    row: Floats,
    other: Floats,
) -> None:
    """Add one reward, once the ridge is set; at doubling counts, update the ridge."""
    rotate_both(evidence, estimator, features, reward, weight, row, other)
    count_reward(estimator, reward, weight)
    if is_due(search, estimator):
        refine(search, search.rounds, evidence, estimator, noise_std, row)


@jit
def is_due(search: Search, estimator: Estimator) -> bool:
    """Return whether the ridge is to be updated after this reward."""
    count = estimator.rewards.item()
    due = count & (count - 1) == 0 or (search.every > 0 and count % search.every == 0)
    return due and count >= search.first


@jit
def fade(evidence: Evidence, estimator: Estimator, share: float) -> None:
    """Keep a share of the evidence; the estimator matches it only once its ridge is put back."""
    fade_weights(evidence.weights, share)
    fade_sums(evidence, estimator, share)


@jit
def fade_weights(weights: Floats, share: float) -> None:
    """Multiply the weights of a triangle by a share."""
    for i in range(weights.shape[0]):
        kept = share * weights[i]
        weights[i] = kept if kept > LEAST_PIVOT else 0.0


@jit
def fade_sums(evidence: Evidence, estimator: Estimator, share: float) -> None:
    """Multiply all sums over rewards by a share."""
    evidence.residual[()] *= share
    estimator.mass[()] *= share
    estimator.reward_sum[()] *= share
    estimator.reward_scatter[()] *= share


@jit
def regularise(evidence: Evidence, estimator: Estimator, ridge: float, row: Floats) -> tuple[float, float]:
    """Rebuild a triangle from these rewards with this ridge.

    Returns the ridge's contribution to the residual, and log(det V / det νI).
    """
    triangle, weights, targets = estimator.triangle, estimator.weights, estimator.targets
    dim = weights.shape[0]
    for i in range(dim):
        weights[i], targets[i] = ridge, 0.0
        for j in range(i + 1, dim):
            triangle[i, j] = 0.0
    residual = 0.0
    for i in range(dim):
        if evidence.weights[i] > 0.0:
            for j in range(dim):
                row[j] = evidence.triangle[i, j]
            left, _ = rotate(triangle, weights, targets, row, evidence.targets[i], evidence.weights[i])
            residual += left
    total = 0.0
    for i in range(dim):
        total += math.log(weights[i] / ridge)
    return residual, max(total, 0.0)


@jit_apart
def replace_ridge(evidence: Evidence, estimator: Estimator, ridge: float, row: Floats) -> None:
    """Rebuild the estimator from these rewards with another ridge."""
    evidence.ridge[()] = ridge
    left, log_det_ratio = regularise(evidence, estimator, ridge, row)
    estimator.residual[()] = evidence.residual.item() + left
    estimator.log_det_ratio[()] = log_det_ratio


@jit
def determined(evidence: Evidence, estimator: Estimator, row: Floats) -> float:
    """Return γ = tr(V^-1 Σ φφᵀ), as a sum of squares."""
    total = 0.0
    for i in range(row.shape[0]):
        if evidence.weights[i] > 0.0:
            for j in range(row.shape[0]):
                row[j] = evidence.triangle[i, j]
            total += evidence.weights[i] * squared_norm(estimator, row)
    return total


@jit
def most_ridge(evidence: Evidence) -> float:
    """Return the largest allowed ridge: its starting value, or its current value if it has not started."""
    return evidence.start.item() if evidence.start.item() > 0.0 else evidence.ridge.item()


@jit
def next_ridge(search: Search, most: float, variance: float, size: float, square: float) -> float:
    """Return ν = σ² γ² / ((γ + c) ‖θ-hat‖²), never above `most`; 0 where the rewards say nothing about it."""
    wanted = variance * size * (size / (size + search.caution)) if size > 0.0 else 0.0
    if not wanted > 0.0:
        return 0.0
    return most if wanted >= most * square else max(wanted / square, LEAST_RATIO * most)


@jit_apart
def refine(
    search: Search, rounds: int, evidence: Evidence, estimator: Estimator, noise_std: float, row: Floats
) -> None:
    """Iterate the fixed point; the ridge keeps its value where rewards say nothing about it."""
    most = most_ridge(evidence)
    for _ in range(rounds):
        size = determined(evidence, estimator, row)
        for i in range(row.shape[0]):
            row[i] = estimator.targets[i]
        solve_triangle(estimator, row)
        ridge = next_ridge(search, most, noise_variance(noise_std, estimator), size, dot(row, row))
        if not ridge > 0.0:
            return
        replace_ridge(evidence, estimator, ridge, row)


@jit
def spread_of(arms: Floats, available: Bools, row: Floats) -> tuple[float, float]:
    """Return the largest ‖φ_a - mean of φ‖² and the largest ‖φ_a‖² among the arms that may be pulled.

    The first is the scale of the differences between arms, without an offset that they share.
    """
    count = 0
    for i in range(row.shape[0]):
        row[i] = 0.0
    for arm in range(arms.shape[0]):
        if available[arm]:
            count += 1
            for i in range(row.shape[0]):
                row[i] += arms[arm, i]
    for i in range(row.shape[0]):
        row[i] /= count
    widest = largest = 0.0
    for arm in range(arms.shape[0]):
        if available[arm]:
            apart = size = 0.0
            for i in range(row.shape[0]):
                entry = arms[arm, i]
                apart += (entry - row[i]) * (entry - row[i])
                size += entry * entry
            widest, largest = max(widest, apart), max(largest, size)
    return widest, largest


@jit
def begin(
    search: Search, evidence: Evidence, estimator: Estimator, arms: Floats, available: Bools, row: Floats
) -> None:
    """Set the initial ridge from the first arms on offer that differ; until then from their size."""
    if evidence.start.item() > 0.0:
        return
    widest, largest = spread_of(arms, available, row)
    if widest > LEAST_APART * largest:
        evidence.start[()] = search.start * max(widest, LEAST_SCALE)
        replace_ridge(evidence, estimator, evidence.start.item(), row)
    elif evidence.ridge.item() == 0.0:
        begin_by_size(search, evidence, estimator, largest, row)


@jit
def begin_by_size(
    search: Search, evidence: Evidence, estimator: Estimator, square: float, row: Floats
) -> None:
    """Set a ridge for features of this squared size, until arms that differ have been on offer."""
    scale = max(square, LEAST_SCALE) if square > 0.0 else 1.0
    replace_ridge(evidence, estimator, search.start * scale, row)
