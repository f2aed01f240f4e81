"""Triangular factors of positive definite matrices, and solves with them.

Where only the leading block of a larger array is used, its size is an argument; vectors have exactly that length.
"""

import math

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.linalg.vectors import TILE

PIVOT_FLOOR = 1e-15
"""Smallest ratio of a Cholesky pivot to its diagonal entry; anything below is rounding noise."""


@jit
def cholesky(matrix: Floats, factor: Floats) -> None:
    """Write the lower triangular L with L Lᵀ = `matrix` into `factor`, zeros above the diagonal.

    Never fails: a pivot that rounding made too small or negative is raised to PIVOT_FLOOR.
    """
    cholesky_of_block(matrix, factor, matrix.shape[0])


@jit
def cholesky_of_block(matrix: Floats, factor: Floats, size: int) -> None:
    """Write the factor of `cholesky` for the leading `size` rows and columns, reading only the lower triangle."""
    for j in range(size):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= factor[j, k] * factor[j, k]
        # The tolerance is relative to the row's own entry because its rounding errors are, whatever the scales of the
        # rows.
        root = math.sqrt(max(pivot, PIVOT_FLOOR * matrix[j, j], 1e-300))
        factor[j, j] = root
        for i in range(j):
            factor[i, j] = 0.0
        for i in range(j + 1, size):
            value = matrix[i, j]
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            factor[i, j] = value / root


@jit
def solve_lower(factor: Floats, vector: Floats) -> None:
    """Replace `vector` by the solution of L y = vector."""
    for i in range(vector.shape[0]):
        value = vector[i]
        for j in range(i):
            value -= factor[i, j] * vector[j]
        vector[i] = value / factor[i, i]


@jit
def solve_transposed(factor: Floats, vector: Floats) -> None:
    """Replace `vector` by the solution of Lᵀ x = vector."""
    for i in range(vector.shape[0] - 1, -1, -1):
        vector[i] /= factor[i, i]
        for j in range(i):
            vector[j] -= factor[i, j] * vector[i]


@jit
def solve_columns(factor: Floats, columns: Floats) -> None:
    """Replace each column of `columns`, shape (dim, pairs), by the solution of L y = column."""
    solve_block(factor, columns, columns.shape[0], columns.shape[1])


@jit
def solve_block(factor: Floats, columns: Floats, dim: int, pairs: int) -> None:
    """Solve as `solve_columns` does, for the leading `dim` rows and `pairs` columns."""
    for i in range(dim):
        row = columns[i]
        whole = i - i % TILE
        for j in range(0, whole, TILE):
            l0, l1, l2, l3 = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
            y0, y1, y2, y3 = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
            for p in range(pairs):
                row[p] -= l0 * y0[p] + l1 * y1[p] + l2 * y2[p] + l3 * y3[p]
        for j in range(whole, i):
            scale = factor[i, j]
            other = columns[j]
            for p in range(pairs):
                row[p] -= scale * other[p]
        inverse = 1.0 / factor[i, i]
        for p in range(pairs):
            row[p] *= inverse
