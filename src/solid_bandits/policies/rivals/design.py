"""An approximately G-optimal design over the arms of one decision: whole counts, so that no arm is left uncertain.

The arms' coordinates in a basis of arms are found by Gauss-Jordan elimination, the largest entry first. The design
begins with the basis, once each, whose information matrix is the identity in these coordinates; while an arm's squared
norm under the inverse information exceeds 1, that arm is added once more. Each addition more than doubles the
determinant, so there are few. In the end every squared norm is at most 1, which for the design as a distribution, N
pulls in all, means at most N; least possible is the rank of the arms (Kiefer and Wolfowitz 1960).
"""

import numpy as np

from solid_bandits._internal.compiling import jit_allocating
from solid_bandits._internal.types import Floats

NEGLIGIBLE = 1e-9
"""Size of a coordinate, relative to its column's largest, below which it shows no new direction."""
TIE = 1e-9
"""Relative difference below which two entries, or two squared norms, count as equal, so that the first arm wins."""


@jit_allocating
def use_a_basis(rows: Floats, counts: Floats) -> None:
    """Replace rows by their coordinates in a basis of rows, whose counts become 1; the other counts are 0."""
    n_rows, dim = rows.shape
    for j in range(dim):
        largest = 0.0
        for a in range(n_rows):
            largest = max(largest, abs(rows[a, j]))
        for a in range(n_rows):
            rows[a, j] = rows[a, j] / largest if largest > 0.0 else 0.0
    in_basis = np.zeros(dim, dtype=np.bool_)
    line = np.empty(dim)
    for _ in range(dim):
        row, column, largest = -1, -1, NEGLIGIBLE
        for a in range(n_rows):
            if counts[a] == 0.0:
                for j in range(dim):
                    if not in_basis[j] and abs(rows[a, j]) > (1.0 + TIE) * largest:
                        row, column, largest = a, j, abs(rows[a, j])
        if row < 0:
            break
        in_basis[column], counts[row] = True, 1.0
        for j in range(dim):
            line[j] = rows[row, j]
        for a in range(n_rows):
            lead = rows[a, column] / line[column]
            for j in range(dim):
                rows[a, j] -= lead * line[j]
            rows[a, column] = lead
    for j in range(dim):
        if not in_basis[j]:
            for a in range(n_rows):
                rows[a, j] = 0.0


@jit_allocating
def approximate_design(rows: Floats, counts: Floats) -> float:
    """Write how often each arm is pulled into `counts`, initially zeros, and return the sum; `rows` is overwritten.

    Args:
        rows: features, shape (arms, dim); an arm of zeros is not pulled.
        counts: shape (arms,).
    """
    use_a_basis(rows, counts)
    n_rows, dim = rows.shape
    inverse, image, norms = np.eye(dim), np.empty(dim), np.empty(n_rows)
    for a in range(n_rows):
        norms[a] = 0.0
        for j in range(dim):
            norms[a] += rows[a, j] * rows[a, j]
    while True:
        worst, largest = -1, 1.0
        for a in range(n_rows):
            if norms[a] > (1.0 + TIE) * largest:
                worst, largest = a, norms[a]
        if worst < 0:
            break
        counts[worst] += 1.0
        share = 1.0 / (1.0 + largest)
        for i in range(dim):
            image[i] = 0.0
            for j in range(dim):
                image[i] += inverse[i, j] * rows[worst, j]
        for i in range(dim):
            for j in range(dim):
                inverse[i, j] -= share * image[i] * image[j]
        for a in range(n_rows):
            product = 0.0
            for j in range(dim):
                product += rows[a, j] * image[j]
            norms[a] -= share * product * product
    total = 0.0
    for a in range(n_rows):
        total += counts[a]
    return total
