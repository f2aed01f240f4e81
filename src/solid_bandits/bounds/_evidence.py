"""The arithmetic of the certificate, compiled; it shares nothing with the solver."""

import numpy as np

from solid_bandits._compile import jit_allocating
from solid_bandits._types import Floats, Ints

_EPS = float(np.finfo(np.float64).eps)
# Pairs solved for together: one row of the block fits a few vector registers, the block the nearest cache.
_BLOCK = 32


@jit_allocating
def _length(values: Floats) -> float:
    total = 0.0
    for i in range(len(values)):
        total += values[i] * values[i]
    return np.sqrt(total)


@jit_allocating
def triangle(rows: Floats) -> Floats:
    """R of rows = QR by Householder reflections, shape (k, k); zero rows at the end where there are too few."""
    n, k = rows.shape
    columns = np.ascontiguousarray(rows.T)
    factor = np.zeros((k, k))
    for j in range(min(n, k)):
        normal = columns[j, j:]
        norm = _length(normal)
        if norm > 0:
            pivot = -norm if normal[0] > 0 else norm
            normal[0] -= pivot
            half = norm * abs(normal[0])
            factor[j, j] = pivot
            for h in range(j + 1, k):
                column = columns[h, j:]
                along = 0.0
                for i in range(n - j):
                    along += normal[i] * column[i]
                along /= half
                for i in range(n - j):
                    column[i] -= along * normal[i]
        for h in range(j + 1, k):
            factor[j, h] = columns[h, j]
    return factor


@jit_allocating
def least_unbounded(spread: Floats, pulls: Floats, apart: Floats, stretch: Floats, fine: float) -> float:
    """Least information over pairs with normals v_j = stretch_j · apart_j where θ' is any vector, rounding charged.

    With A = diag(√pulls) · spread = QR it is 1 / ‖R⁻ᵀv‖², attained at β = R⁻¹R⁻ᵀv / ‖R⁻ᵀv‖². ‖(R + dR)β‖ differs from
    ‖Rβ‖ by at most ‖dR‖‖β‖, and Householder QR has ‖dR‖ ~ k ε ‖R‖. Since ‖β‖ <= ‖R⁻¹‖‖Rβ‖, one charge does for all
    pairs where it is no more than `fine`, relatively; else each pair is charged by its own β.

    """
    used = np.flatnonzero(pulls > 0)
    k = spread.shape[1]
    rows = np.empty((len(used), k))
    for i in range(len(used)):
        root = np.sqrt(pulls[used[i]])
        for h in range(k):
            rows[i, h] = root * spread[used[i], h]
    factor = triangle(rows)
    size = _length(factor.ravel())
    if not np.isfinite(size):
        return 0.0
    for i in range(k):
        if abs(factor[i, i]) <= _EPS * max(size, 1e-300):
            return 0.0
    charge = 4 * k * _EPS * size
    common = charge * _inverse_size(factor)
    each = not common <= fine
    least = np.inf
    z = np.zeros((k, _BLOCK))
    sums = np.zeros(_BLOCK)
    lengths = np.zeros(_BLOCK)
    for start in range(0, len(apart), _BLOCK):
        count = min(_BLOCK, len(apart) - start)
        for p in range(count):
            for i in range(k):
                z[i, p] = apart[start + p, i]
        _forward(factor, z, sums)
        if each:
            _backward(factor, z, lengths)
        for p in range(count):
            if sums[p] == 0:
                continue
            root = 1.0 / (stretch[start + p] * np.sqrt(sums[p]))
            off = charge * root * np.sqrt(lengths[p] / sums[p]) if each else common * root
            if np.isnan(root - off):
                return np.nan
            least = min(least, max(root - off, 0.0) ** 2)
    return least


@jit_allocating
def _inverse_size(factor: Floats) -> float:
    """‖R⁻¹‖, Frobenius."""
    k = factor.shape[0]
    inverse = np.zeros((k, k))
    total = 0.0
    for j in range(k):
        # Row j of R⁻ᵀ, by forward substitution.
        row = inverse[j]
        row[j] = 1.0
        for i in range(j, k):
            row[i] /= factor[i, i]
            value = row[i]
            total += value * value
            for h in range(i + 1, k):
                row[h] -= value * factor[i, h]
    return np.sqrt(total)


@jit_allocating
def _forward(factor: Floats, z: Floats, sums: Floats) -> None:
    """Overwrite z by R⁻ᵀz, and `sums` by its squared norms, column by column."""
    sums[:] = 0.0
    for i in range(z.shape[0]):
        row = z[i]
        for h in range(i):
            other = z[h]
            weight = factor[h, i]
            for p in range(_BLOCK):
                row[p] -= weight * other[p]
        for p in range(_BLOCK):
            row[p] /= factor[i, i]
            sums[p] += row[p] * row[p]


@jit_allocating
def _backward(factor: Floats, z: Floats, sums: Floats) -> None:
    """Overwrite z by R⁻¹z, and `sums` by its squared norms, column by column."""
    sums[:] = 0.0
    for i in range(z.shape[0] - 1, -1, -1):
        row = z[i]
        for h in range(i + 1, z.shape[0]):
            other = z[h]
            weight = factor[i, h]
            for p in range(_BLOCK):
                row[p] -= weight * other[p]
        for p in range(_BLOCK):
            row[p] /= factor[i, i]
            sums[p] += row[p] * row[p]


@jit_allocating
def reaches(
    features: Floats, optimal: Ints, gaps: Floats, contexts: Ints, arms: Ints, shifts: Floats
) -> Floats:
    """(φ* - φ)ᵀ(θ - θ_j') / Δ at each alternative's pair: at 1 its arm is exactly as good as the optimal one.

    NaN where there is no such pair.

    """
    reach = np.full(len(shifts), np.nan)
    for j in range(len(shifts)):
        x = contexts[j]
        if not (0 <= x < features.shape[0] and 0 <= arms[j] < features.shape[1]):
            continue
        best = features[x, optimal[x]]
        arm = features[x, arms[j]]
        total = 0.0
        for i in range(len(best)):
            total += (best[i] - arm[i]) * shifts[j, i]
        reach[j] = total / gaps[x, arms[j]]
    return reach


@jit_allocating
def largest_price(
    features: Floats,
    optimal: Ints,
    gaps: Floats,
    pairs: Ints,
    scale: Floats,
    shifts: Floats,
    weights: Floats,
    slack: float,
) -> tuple[float, int]:
    """The largest Σ_j w_j (φᵀ(θ - θ_j'))² / Δ over the pairs, and an alternative that changes an optimal arm's mean.

    -1 where there is none, up to `slack` relative to the norms of the feature and of θ - θ_j' in units of `scale`.

    """
    n_contexts, n_arms, dim = features.shape
    means = np.dot(features.reshape(-1, dim), np.ascontiguousarray(shifts.T))
    lengths = np.empty(len(shifts))
    for j in range(len(shifts)):
        total = 0.0
        for i in range(dim):
            total += (shifts[j, i] * scale[i]) ** 2
        lengths[j] = slack * np.sqrt(total)
    changed = -1
    for x in range(n_contexts):
        total = 0.0
        for i in range(dim):
            total += (features[x, optimal[x], i] / scale[i]) ** 2
        size = np.sqrt(total)
        for j in range(len(shifts)):
            if not abs(means[x * n_arms + optimal[x], j]) <= size * lengths[j]:
                changed = j
    largest = 0.0
    for i in pairs:
        price = 0.0
        for j in range(len(weights)):
            price += weights[j] * (means[i, j] * means[i, j])
        price /= gaps[i // n_arms, i % n_arms]
        if np.isnan(price):
            return np.nan, changed
        largest = max(largest, price)
    return largest, changed
