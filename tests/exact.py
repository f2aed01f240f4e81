"""Least squares in exact arithmetic: what floating-point estimates are held against where they could lose digits."""

import math
from fractions import Fraction

import numpy as np


def rational(values):
    """The same numbers as fractions: every float is one."""
    return np.vectorize(lambda value: Fraction(float(value)), otypes=[object])(np.asarray(values))


def solve(matrix, right):
    """`matrix`^-1 `right` by elimination without pivots: for positive definite matrices of fractions."""
    matrix, right = matrix.copy(), right.copy()
    size = len(matrix)
    for i in range(size):
        for j in range(size):
            if j != i:
                factor = matrix[j, i] / matrix[i, i]
                matrix[j] = matrix[j] - factor * matrix[i]
                right[j] = right[j] - factor * right[i]
    for i in range(size):
        right[i] = right[i] / matrix[i, i]
    return right


class LeastSquares:
    """V = νI + Σ n_k φ_k φ_kᵀ and U = Σ φ_k Σ y, from the rows φ_k, their counts and the sums of their rewards."""

    def __init__(self, dim, ridge):
        self.V = rational(ridge * np.eye(dim))
        self.U = rational(np.zeros(dim))

    def observe(self, phi, reward_sum, count=1):
        phi = rational(phi)
        self.V = self.V + int(count) * np.outer(phi, phi)
        self.U = self.U + phi * Fraction(reward_sum)

    def means(self, rows):
        return (rational(rows) @ solve(self.V, self.U)).astype(float)

    def norms(self, rows):
        """‖φ‖_{V^-1}"""
        exact = rational(rows)
        squares = (exact.T * solve(self.V, exact.T)).sum(axis=0)
        return np.array([math.sqrt(square) for square in squares])


def reduced(matrix):
    """Row echelon form of a table of fractions, each pivot 1 and alone in its column, and the pivots' columns."""
    rows, pivots = [list(row) for row in matrix], []
    width = len(rows[0]) if rows else 0
    for column in range(width):
        rank = len(pivots)
        chosen = next((i for i in range(rank, len(rows)) if rows[i][column] != 0), None)
        if chosen is None:
            continue
        rows[rank], rows[chosen] = rows[chosen], rows[rank]
        head = rows[rank][column]
        rows[rank] = [value / head for value in rows[rank]]
        for i in range(len(rows)):
            if i != rank and rows[i][column] != 0:
                factor = rows[i][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        pivots.append(column)
    return rows[: len(pivots)], pivots


def null_space(matrix, width):
    """A basis of the vectors orthogonal to every row, one in each column, shape (width, k)."""
    rows, pivots = reduced(matrix)
    free = [column for column in range(width) if column not in pivots]
    basis = np.full((width, len(free)), Fraction(0), dtype=object)
    for k, column in enumerate(free):
        basis[column, k] = Fraction(1)
        for row, pivot in zip(rows, pivots, strict=True):
            basis[pivot, k] = -row[column]
    return basis
