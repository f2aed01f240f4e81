"""Triangular factors, and solves with them: of one vector, and of every alternative."""

import math

import numpy as np
from scipy.linalg import blas, lapack

from bench.rates.compiled import BLOCK, HUGE, compiled


@compiled
def cholesky_dots(reps, matrix, factor):
    """The lower triangular L with L Lᵀ = matrix."""
    dim = matrix.shape[0]
    for _ in range(reps):
        for j in range(dim):
            pivot = matrix[j, j]
            for k in range(j):
                pivot -= factor[j, k] * factor[j, k]
            root = math.sqrt(pivot)
            factor[j, j] = root
            inverse = 1.0 / root
            for i in range(j + 1, dim):
                value = matrix[i, j]
                for k in range(j):
                    value -= factor[i, k] * factor[j, k]
                factor[i, j] = value * inverse
        matrix[0, 0] = max(matrix[0, 0], factor[dim - 1, dim - 1] - HUGE)


def cholesky_lapack(reps, matrix, factor):
    """The same by LAPACK."""
    for _ in range(reps):
        lapack.dpotrf(matrix, lower=1)


@compiled
def triangular_rows(reps, factor, start, vector):
    """Solve Lᵀ x = z."""
    dim = factor.shape[0]
    for _ in range(reps):
        for i in range(dim):
            vector[i] = start[i]
        for i in range(dim - 1, -1, -1):
            value = vector[i] / factor[i, i]
            vector[i] = value
            for j in range(i):
                vector[j] -= factor[i, j] * value
        start[0] = max(start[0], vector[0] - HUGE)


@compiled
def alternatives_sweep(reps, columns, factor, optimal, gaps, solved, buffer, norms):
    """min_p gap_p² / ‖L^-1 (φ* - φ_p)‖² by rows of all columns."""
    dim, n = columns.shape
    for _ in range(reps):
        norms[:] = 0.0
        for i in range(dim):
            row = solved[i]
            for p in range(n):
                row[p] = optimal[i] - columns[i, p]
            for j in range(i):
                scale = factor[i, j]
                other = solved[j]
                for p in range(n):
                    row[p] -= scale * other[p]
            inverse = 1.0 / factor[i, i]
            for p in range(n):
                row[p] *= inverse
                norms[p] += row[p] * row[p]
        _closest(optimal, gaps, norms)


@compiled
def alternatives_blocks(reps, columns, factor, optimal, gaps, solved, buffer, norms):
    """The same by blocks of columns, each taken through the whole solve while it lies in the first cache."""
    n = columns.shape[1]
    for _ in range(reps):
        for start in range(0, n, BLOCK):
            end = min(start + BLOCK, n)
            if end - start == BLOCK:
                _solve_block(columns, factor, optimal, buffer, norms, start)
            else:
                _solve_rest(columns, factor, optimal, solved, norms, start, end)
        _closest(optimal, gaps, norms)


@compiled
def _solve_block(columns, factor, optimal, buffer, norms, start):
    """BLOCK columns, a length the compiler knows. Last rows of the buffer: the row at work, the squares."""
    dim = columns.shape[0]
    row, squares = buffer[dim], buffer[dim + 1]
    for p in range(BLOCK):
        squares[p] = 0.0
    for i in range(dim):
        source = columns[i, start : start + BLOCK]
        for p in range(BLOCK):
            row[p] = optimal[i] - source[p]
        for q in range(i // 4):
            j = 4 * q
            a, b, c, e = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
            for p in range(BLOCK):
                row[p] -= (
                    a * buffer[j, p] + b * buffer[j + 1, p] + c * buffer[j + 2, p] + e * buffer[j + 3, p]
                )
        for j in range(i - i % 4, i):
            scale = factor[i, j]
            for p in range(BLOCK):
                row[p] -= scale * buffer[j, p]
        inverse = 1.0 / factor[i, i]
        for p in range(BLOCK):
            row[p] *= inverse
            buffer[i, p] = row[p]
            squares[p] += row[p] * row[p]
    norm = norms[start : start + BLOCK]
    for p in range(BLOCK):
        norm[p] = squares[p]


@compiled
def _solve_rest(columns, factor, optimal, solved, norms, start, end):
    for p in range(start, end):
        norms[p] = 0.0
    for i in range(columns.shape[0]):
        for p in range(start, end):
            solved[i, p] = optimal[i] - columns[i, p]
        for j in range(i):
            scale = factor[i, j]
            for p in range(start, end):
                solved[i, p] -= scale * solved[j, p]
        inverse = 1.0 / factor[i, i]
        for p in range(start, end):
            solved[i, p] *= inverse
            norms[p] += solved[i, p] * solved[i, p]


@compiled
def _closest(optimal, gaps, norms):
    closest = 0
    least = HUGE
    for p in range(norms.shape[0]):
        distance = gaps[p] * gaps[p] / norms[p]
        if distance < least:
            closest, least = p, distance
    optimal[0] = max(optimal[0], least + closest - 2.0 * HUGE)


def alternatives_blas(reps, columns, factor, optimal, gaps, solved, buffer, norms):
    """The same by BLAS: a triangular solve with all columns."""
    for _ in range(reps):
        np.subtract(optimal[:, None], columns, out=solved)
        # Rows of `solved` are columns to BLAS: Yᵀ = Xᵀ L^-T.
        result = blas.dtrsm(1.0, factor.T, solved.T, side=1, lower=0, overwrite_b=1)
        np.einsum("pi,pi->p", result, result, out=norms)
        np.argmin(gaps * gaps / norms)
