"""Weighted sums of outer products."""

import math

import numpy as np
from scipy.linalg import blas

from bench.rates.compiled import HUGE, STRIP, compiled


@compiled
def gram_dots(reps, columns, weights, scaled, gram):
    """Compute Σ_p w_p φ_p φ_pᵀ, lower triangle, one inner product per entry."""
    dim, n = columns.shape
    for _ in range(reps):
        for i in range(dim):
            for p in range(n):
                scaled[i, p] = weights[p] * columns[i, p]
        for i in range(dim):
            for j in range(i + 1):
                total = 0.0
                for p in range(n):
                    total += scaled[i, p] * columns[j, p]
                gram[i, j] = total
        weights[0] = max(weights[0], gram[0, 0] - HUGE)


@compiled
def gram_tiles(reps, columns, weights, scaled, gram):
    """Do the same, four entries at a time: twice the arithmetic for each number read."""
    dim, n = columns.shape
    for _ in range(reps):
        for i in range(dim):
            for p in range(n):
                scaled[i, p] = weights[p] * columns[i, p]
        for i in range(0, dim - 1, 2):
            one, two = scaled[i], scaled[i + 1]
            for j in range(0, i + 2, 2):
                left, right = columns[j], columns[j + 1]
                a = b = c = e = 0.0
                for p in range(n):
                    a += one[p] * left[p]
                    b += one[p] * right[p]
                    c += two[p] * left[p]
                    e += two[p] * right[p]
                gram[i, j], gram[i, j + 1], gram[i + 1, j], gram[i + 1, j + 1] = a, b, c, e
        if dim % 2 == 1:
            for j in range(dim):
                total = 0.0
                for p in range(n):
                    total += scaled[dim - 1, p] * columns[j, p]
                gram[dim - 1, j] = total
        weights[0] = max(weights[0], gram[0, 0] - HUGE)


@compiled
def gram_sixteens(reps, columns, weights, scaled, gram):
    """Do the same by strips of columns scaled by √w, sixteen entries at a time: two products per number read."""
    dim, n = columns.shape
    whole = dim - dim % 4
    width = STRIP // 2
    for _ in range(reps):
        for i in range(dim):
            for j in range(i + 1):
                gram[i, j] = 0.0
        for start in range(0, n, width):
            size = min(width, n - start)
            # The last row is written last, because it stores the roots until then.
            weight, roots = weights[start : start + size], scaled[dim - 1]
            for p in range(size):
                roots[p] = math.sqrt(weight[p])
            for i in range(dim):
                source, target = columns[i, start : start + size], scaled[i]
                for p in range(size):
                    target[p] = roots[p] * source[p]
            for i in range(0, whole, 4):
                for j in range(0, i + 1, 4):
                    _add_sixteen(scaled, size, i, j, gram)
            for i in range(whole, dim):
                for j in range(i + 1):
                    total = 0.0
                    for p in range(size):
                        total += scaled[i, p] * scaled[j, p]
                    gram[i, j] += total
        weights[0] = max(weights[0], gram[0, 0] - HUGE)


@compiled
def _add_sixteen(block, size, i, j, gram):
    a0, a1, a2, a3 = block[i], block[i + 1], block[i + 2], block[i + 3]
    b0, b1, b2, b3 = block[j], block[j + 1], block[j + 2], block[j + 3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for p in range(size):
        x0, x1, x2, x3 = a0[p], a1[p], a2[p], a3[p]
        y0, y1, y2, y3 = b0[p], b1[p], b2[p], b3[p]
        s00, s01, s02, s03 = s00 + x0 * y0, s01 + x0 * y1, s02 + x0 * y2, s03 + x0 * y3
        s10, s11, s12, s13 = s10 + x1 * y0, s11 + x1 * y1, s12 + x1 * y2, s13 + x1 * y3
        s20, s21, s22, s23 = s20 + x2 * y0, s21 + x2 * y1, s22 + x2 * y2, s23 + x2 * y3
        s30, s31, s32, s33 = s30 + x3 * y0, s31 + x3 * y1, s32 + x3 * y2, s33 + x3 * y3
    for k, sums in enumerate(
        ((s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23), (s30, s31, s32, s33))
    ):
        for m in range(4):
            gram[i + k, j + m] += sums[m]


def gram_blas(reps, columns, weights, scaled, gram):
    """Do the same by BLAS: the symmetric product of the columns scaled by √w."""
    for _ in range(reps):
        np.multiply(columns, np.sqrt(weights), out=scaled)
        blas.dsyrk(1.0, scaled.T, trans=1, lower=1, c=gram, overwrite_c=1)
