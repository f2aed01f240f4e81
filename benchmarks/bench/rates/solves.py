"""Triangular factors, and solves with them: for one vector, and for every alternative."""

import math

import numpy as np
from scipy.linalg import blas, lapack

from bench.rates.compiled import BLOCK, HUGE, compiled


@compiled
def cholesky_dots(reps, matrix, factor):
    """Compute the lower triangular L with L Lᵀ = matrix."""
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
    """Do the same by LAPACK."""
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
    """Compute min_p gap_p² / ‖L^-1 (φ* - φ_p)‖² by rows of all columns."""
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
    """Do the same by blocks of columns, each taken through the whole solve while it is in the first-level cache."""
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
    """Solve BLOCK columns, a length known to the compiler; the last rows of the buffer are the current row and the
    squares.
    """
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
    """Do the same by BLAS: a triangular solve with all columns."""
    for _ in range(reps):
        np.subtract(optimal[:, None], columns, out=solved)
        # BLAS sees the rows of `solved` as columns: Yᵀ = Xᵀ L^-T.
        result = blas.dtrsm(1.0, factor.T, solved.T, side=1, lower=0, overwrite_b=1)
        np.einsum("pi,pi->p", result, result, out=norms)
        np.argmin(gaps * gaps / norms)


@compiled
def norms_sweep(reps, columns, upper, weights, targets, solved, means, norms):
    """Compute mean tᵀw and squared norm wᵀ D^-1 w of all columns, w = U^-T φ, by rows of all columns."""
    dim, n = columns.shape
    for _ in range(reps):
        norms[:] = 0.0
        means[:] = 0.0
        for i in range(dim):
            row = solved[i]
            for p in range(n):
                row[p] = columns[i, p]
            for j in range(i):
                scale = upper[j, i]
                other = solved[j]
                for p in range(n):
                    row[p] -= scale * other[p]
            _measure(row, targets[i], 1.0 / weights[i], means, norms)
        targets[0] = max(targets[0], means[0] - HUGE)


@compiled
def norms_blocks(reps, columns, upper, weights, targets, solved, means, norms):
    """Do the same by blocks of columns, four rows at a time."""
    dim, n = columns.shape
    for _ in range(reps):
        for start in range(0, n, BLOCK):
            end = min(start + BLOCK, n)
            mean, norm = means[start:end], norms[start:end]
            mean[:] = 0.0
            norm[:] = 0.0
            for i in range(dim):
                row, source = solved[i, : end - start], columns[i, start:end]
                for p in range(end - start):
                    row[p] = source[p]
                for q in range(i // 4):
                    j = 4 * q
                    a, b, c, e = upper[j, i], upper[j + 1, i], upper[j + 2, i], upper[j + 3, i]
                    w, x, y, z = solved[j], solved[j + 1], solved[j + 2], solved[j + 3]
                    for p in range(end - start):
                        row[p] -= a * w[p] + b * x[p] + c * y[p] + e * z[p]
                for j in range(i - i % 4, i):
                    scale, w = upper[j, i], solved[j]
                    for p in range(end - start):
                        row[p] -= scale * w[p]
                _measure(row, targets[i], 1.0 / weights[i], mean, norm)
        targets[0] = max(targets[0], means[0] - HUGE)


@compiled
def _measure(row, target, inverse, means, norms):
    for p in range(row.shape[0]):
        means[p] += target * row[p]
        norms[p] += inverse * row[p] * row[p]


@compiled
def norms_eights(reps, columns, upper, weights, targets, solved, means, norms):
    """Do the same, eight columns at a time with their sums in registers."""
    dim, n = columns.shape
    for _ in range(reps):
        for s in range(0, n, 8):
            last = min(s + 8, n) - 1
            k0, k1, k2, k3 = s, min(s + 1, last), min(s + 2, last), min(s + 3, last)
            k4, k5, k6, k7 = min(s + 4, last), min(s + 5, last), min(s + 6, last), last
            m0 = m1 = m2 = m3 = m4 = m5 = m6 = m7 = 0.0
            n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = 0.0
            for i in range(dim):
                c = columns[i]
                w0, w1, w2, w3, w4, w5, w6, w7 = c[k0], c[k1], c[k2], c[k3], c[k4], c[k5], c[k6], c[k7]
                for j in range(i):
                    u, o = upper[j, i], solved[j]
                    w0, w1, w2, w3 = w0 - u * o[k0], w1 - u * o[k1], w2 - u * o[k2], w3 - u * o[k3]
                    w4, w5, w6, w7 = w4 - u * o[k4], w5 - u * o[k5], w6 - u * o[k6], w7 - u * o[k7]
                o = solved[i]
                o[k0], o[k1], o[k2], o[k3], o[k4], o[k5], o[k6], o[k7] = w0, w1, w2, w3, w4, w5, w6, w7
                t, v = targets[i], 1.0 / weights[i]
                m0, m1, m2, m3 = m0 + t * w0, m1 + t * w1, m2 + t * w2, m3 + t * w3
                m4, m5, m6, m7 = m4 + t * w4, m5 + t * w5, m6 + t * w6, m7 + t * w7
                n0, n1, n2, n3 = n0 + v * w0 * w0, n1 + v * w1 * w1, n2 + v * w2 * w2, n3 + v * w3 * w3
                n4, n5, n6, n7 = n4 + v * w4 * w4, n5 + v * w5 * w5, n6 + v * w6 * w6, n7 + v * w7 * w7
            means[k7], means[k6], means[k5], means[k4] = m7, m6, m5, m4
            means[k3], means[k2], means[k1], means[k0] = m3, m2, m1, m0
            norms[k7], norms[k6], norms[k5], norms[k4] = n7, n6, n5, n4
            norms[k3], norms[k2], norms[k1], norms[k0] = n3, n2, n1, n0
        targets[0] = max(targets[0], means[0] - HUGE)


def norms_blas(reps, columns, upper, weights, targets, solved, means, norms):
    """Do the same by BLAS: a triangular solve with all columns."""
    for _ in range(reps):
        solved[...] = columns
        result = blas.dtrsm(1.0, upper.T, solved.T, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
        np.dot(result, targets, out=means)
        np.einsum("pi,pi,i->p", result, result, 1.0 / weights, out=norms)


@compiled
def solves_sweep(reps, columns, upper, weights, solved):
    """Compute V^-1 φ of all columns, by rows of all of them."""
    dim, n = columns.shape
    for _ in range(reps):
        for i in range(dim):
            row = solved[i]
            for p in range(n):
                row[p] = columns[i, p]
            for j in range(i):
                scale, other = upper[j, i], solved[j]
                for p in range(n):
                    row[p] -= scale * other[p]
        for i in range(dim - 1, -1, -1):
            row, inverse = solved[i], 1.0 / weights[i]
            for p in range(n):
                row[p] *= inverse
            for j in range(i + 1, dim):
                scale, other = upper[i, j], solved[j]
                for p in range(n):
                    row[p] -= scale * other[p]
        columns[0, 0] = max(columns[0, 0], solved[0, 0] - HUGE)


def solves_blas(reps, columns, upper, weights, solved):
    """Do the same by BLAS."""
    for _ in range(reps):
        solved[...] = columns
        half = blas.dtrsm(1.0, upper.T, solved.T, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
        half /= weights
        whole = blas.dtrsm(1.0, upper.T, half, side=1, lower=1, diag=1, overwrite_b=1)
        if not np.shares_memory(whole, solved):
            solved[...] = whole.T
