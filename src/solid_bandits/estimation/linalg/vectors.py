"""Vectors and tables of vectors: products, lengths, the largest entry.

Matrices that hold one column per context-arm pair have shape (dim, pairs), so that the inner loops run over pairs in
contiguous memory and vectorise at any dimension.
"""

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats

TILE = 4
"""Rows handled at once: each number read from memory then serves four products, and the sums stay in registers."""
BLOCK = 256
"""Columns handled at once: at any usual dimension, a block of them stays in the processor's second-level cache."""


def aligned_zeros(rows: int, columns: int) -> Floats:
    """Return zeros, shape (rows, columns), aligned to a cache line, so that no vector straddles two lines."""
    line = 64
    raw = np.zeros(rows * columns + line // 8)
    start = -raw.ctypes.data % line // 8
    return raw[start : start + rows * columns].reshape(rows, columns)


@jit
def dot(first: Floats, second: Floats) -> float:
    """Return the inner product of two vectors."""
    total = 0.0
    for i in range(first.shape[0]):
        total += first[i] * second[i]
    return total


@jit
def best_arm(values: Floats) -> int:
    """Return the first index of the largest value."""
    best = 0
    for arm in range(1, values.shape[0]):
        if values[arm] > values[best]:
            best = arm
    return best


@jit
def sum_of_squares(columns: Floats, out: Floats) -> None:
    """Write the squared length of each column into `out`."""
    out[:] = 0.0
    for i in range(columns.shape[0]):
        row = columns[i]
        for p in range(out.shape[0]):
            out[p] += row[p] * row[p]


@jit
def inner_products(columns: Floats, vector: Floats, out: Floats) -> None:
    """Write φ_pᵀ v for every column φ_p of `columns`, shape (dim, pairs), into `out`, shape (pairs,)."""
    dim, pairs = columns.shape
    whole = dim - dim % TILE
    out[:] = 0.0
    for i in range(0, whole, TILE):
        v0, v1, v2, v3 = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        r0, r1, r2, r3 = columns[i], columns[i + 1], columns[i + 2], columns[i + 3]
        for p in range(pairs):
            out[p] += v0 * r0[p] + v1 * r1[p] + v2 * r2[p] + v3 * r3[p]
    for i in range(whole, dim):
        scale = vector[i]
        row = columns[i]
        for p in range(pairs):
            out[p] += scale * row[p]
