"""Mean and norm of the requested arms: φᵀθ-hat and ‖φ‖²_{V^-1}, a block of arms at a time.

With w = U^-T φ, which takes d²/2 products, the mean is tᵀw and the squared norm wᵀ D^-1 w: no V^-1, and no difference
of large numbers. Scratch has a fixed size, whatever the number of arms.
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Bools, Floats
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.estimation.linalg.vectors import TILE, aligned_zeros, dot

NARROW = 8
"""Number of arms whose eight sums stay in registers; fastest for few arms."""
WIDE = 64
"""Largest number of arms in a block; their columns at d = 65 just fill the processor's first-level cache."""
MANY = 16
"""Number of arms from which loops over arms run in vector registers and are faster."""


class ArmsWork(NamedTuple):
    """Scratch; nothing is carried over in it."""

    columns: Floats
    """Features of a block, one column per arm, being transformed to U^-T φ; shape (dim, WIDE)."""
    means: Floats
    """φᵀθ-hat, shape (WIDE,)."""
    sq_norms: Floats
    """‖φ‖²_{V^-1}, shape (WIDE,)."""


def make_arms_work(dim: int) -> ArmsWork:
    """Return scratch for features of dimension `dim`."""
    return ArmsWork(aligned_zeros(dim, WIDE), np.zeros(WIDE), np.zeros(WIDE))


@jit
def block_size(left: int) -> int:
    """Return how many of the remaining arms form the next block."""
    if left < MANY:
        return min(left, NARROW)
    return min(left, WIDE)


@jit
def estimate_arms(estimator: Estimator, arms: Floats, first: int, work: ArmsWork) -> int:
    """Write mean and squared norm of the arms from `first` on into `work`; return how many are in the block."""
    count = block_size(arms.shape[0] - first)
    # Row by row of the scratch: its rows are a power of two apart, so writing down its columns would thrash the cache.
    block = arms[first : first + count]
    for i in range(arms.shape[1]):
        row = work.columns[i]
        for k in range(count):
            row[k] = block[k, i]
    measure_columns(estimator, work, count)
    return count


@jit
def estimate_differences(estimator: Estimator, arms: Floats, best: int, first: int, work: ArmsWork) -> int:
    """Write gap and squared norm of φ* - φ for the arms from `first` on, φ* belonging to `best`; return the block's
    size.
    """
    count = block_size(arms.shape[0] - first)
    block = arms[first : first + count]
    for i in range(arms.shape[1]):
        row, optimal = work.columns[i], arms[best, i]
        for k in range(count):
            row[k] = optimal - block[k, i]
    measure_columns(estimator, work, count)
    return count


@jit
def whiten(
    estimator: Estimator, arms: Floats, means: Floats, sq_norms: Floats, whitened: Floats, work: ArmsWork
) -> None:
    """Write mean and squared norm of every arm, and D^-½ U^-T φ as its column of `whitened`, shape (dim, arms).

    Inner products and distances of these columns are those of ‖·‖_{V^-1}.
    """
    first = 0
    while first < arms.shape[0]:
        count = estimate_arms(estimator, arms, first, work)
        for k in range(count):
            means[first + k], sq_norms[first + k] = work.means[k], work.sq_norms[k]
        for i in range(whitened.shape[0]):
            scale = 1.0 / math.sqrt(estimator.weights[i])
            row, target = work.columns[i], whitened[i, first : first + count]
            for k in range(count):
                target[k] = scale * row[k]
        first += count


@jit
def measure_columns(estimator: Estimator, work: ArmsWork, count: int) -> None:
    """Replace the first `count` columns by U^-T φ, and write tᵀw and wᵀ D^-1 w of each."""
    if count <= NARROW:
        for k in range(count, NARROW):
            for i in range(work.columns.shape[0]):
                work.columns[i, k] = 0.0
        _measure_narrow(estimator, work)
    else:
        _measure_wide(
            estimator.triangle,
            estimator.weights,
            estimator.targets,
            work.columns,
            work.means,
            work.sq_norms,
            count,
        )


@jit
def _measure_narrow(estimator: Estimator, work: ArmsWork) -> None:
    """Measure eight columns, zeros where the block has fewer arms, with twenty-four sums in registers."""
    triangle, weights, targets = estimator.triangle, estimator.weights, estimator.targets
    columns, means, norms = work.columns, work.means, work.sq_norms
    m0 = m1 = m2 = m3 = m4 = m5 = m6 = m7 = 0.0
    n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = 0.0
    for i in range(weights.shape[0]):
        row = columns[i]
        w0, w1, w2, w3, w4, w5, w6, w7 = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
        for j in range(i):
            u, above = triangle[j, i], columns[j]
            w0, w1, w2, w3 = w0 - u * above[0], w1 - u * above[1], w2 - u * above[2], w3 - u * above[3]
            w4, w5, w6, w7 = w4 - u * above[4], w5 - u * above[5], w6 - u * above[6], w7 - u * above[7]
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7] = w0, w1, w2, w3, w4, w5, w6, w7
        t, v = targets[i], 1.0 / weights[i]
        m0, m1, m2, m3 = m0 + t * w0, m1 + t * w1, m2 + t * w2, m3 + t * w3
        m4, m5, m6, m7 = m4 + t * w4, m5 + t * w5, m6 + t * w6, m7 + t * w7
        n0, n1, n2, n3 = n0 + v * w0 * w0, n1 + v * w1 * w1, n2 + v * w2 * w2, n3 + v * w3 * w3
        n4, n5, n6, n7 = n4 + v * w4 * w4, n5 + v * w5 * w5, n6 + v * w6 * w6, n7 + v * w7 * w7
    means[0], means[1], means[2], means[3] = m0, m1, m2, m3
    means[4], means[5], means[6], means[7] = m4, m5, m6, m7
    norms[0], norms[1], norms[2], norms[3] = n0, n1, n2, n3
    norms[4], norms[5], norms[6], norms[7] = n4, n5, n6, n7


@jit_apart
def _measure_wide(
    triangle: Floats,
    weights: Floats,
    targets: Floats,
    columns: Floats,
    means: Floats,
    sq_norms: Floats,
    count: int,
) -> None:
    for k in range(count):
        means[k], sq_norms[k] = 0.0, 0.0
    for i in range(weights.shape[0]):
        row = columns[i]
        whole = i - i % TILE
        for j in range(0, whole, TILE):
            u0, u1, u2, u3 = triangle[j, i], triangle[j + 1, i], triangle[j + 2, i], triangle[j + 3, i]
            w0, w1, w2, w3 = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
            for k in range(count):
                row[k] -= u0 * w0[k] + u1 * w1[k] + u2 * w2[k] + u3 * w3[k]
        for j in range(whole, i):
            scale, above = triangle[j, i], columns[j]
            for k in range(count):
                row[k] -= scale * above[k]
        target, inverse = targets[i], 1.0 / weights[i]
        for k in range(count):
            means[k] += target * row[k]
            sq_norms[k] += inverse * row[k] * row[k]


@jit
def best_available(arms: Floats, available: Bools, theta: Floats) -> int:
    """Return argmax_a φ_aᵀθ over the available arms, the first one in a tie."""
    best = -1
    largest = -np.inf
    for arm in range(arms.shape[0]):
        if available[arm]:
            value = dot(arms[arm], theta)
            if best < 0 or value > largest:
                best, largest = arm, value
    return best


@jit
def count_available(available: Bools) -> int:
    """Return how many arms may be pulled.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import extend
        >>> extend.count_available(np.array([True, False, True]))
        2
    """
    count = 0
    for arm in range(available.shape[0]):
        if available[arm]:
            count += 1
    return count
