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
