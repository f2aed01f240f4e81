"""Products of vectors and matrices with tables of columns."""

import numpy as np

from bench.rates.compiled import HUGE, STRIP, compiled


@compiled
def columns_rows(reps, columns, vector, out):
    """Compute out_p = Σ_i v_i C_ip, row by row."""
    for _ in range(reps):
        for p in range(out.shape[0]):
            out[p] = vector[0] * columns[0, p]
        for i in range(1, columns.shape[0]):
            scale = vector[i]
            row = columns[i]
            for p in range(out.shape[0]):
                out[p] += scale * row[p]
        vector[0] = max(vector[0], out[0] - HUGE)


@compiled
def columns_fours(reps, columns, vector, out):
    """Do the same by strips of columns, four rows at a time: sums are read and written a quarter as often."""
    dim, n = columns.shape
    for _ in range(reps):
        for start in range(0, n, STRIP):
            # Slices, because the compiler knows that their indices are not negative.
            end = min(start + STRIP, n)
            sums = out[start:end]
            sums[:] = 0.0
            for q in range(dim // 4):
                i = 4 * q
                a, b, c, e = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
                first, second = columns[i, start:end], columns[i + 1, start:end]
                third, fourth = columns[i + 2, start:end], columns[i + 3, start:end]
                for p in range(end - start):
                    sums[p] += a * first[p] + b * second[p] + c * third[p] + e * fourth[p]
            for i in range(dim - dim % 4, dim):
                scale = vector[i]
                row = columns[i, start:end]
                for p in range(end - start):
                    sums[p] += scale * row[p]
        vector[0] = max(vector[0], out[0] - HUGE)


@compiled
def learn_rows(reps, columns, vector, out, means, norms, error, scale):
    """Compute products with u, then update every mean and squared norm by its product."""
    for _ in range(reps):
        columns_rows(1, columns, vector, out)
        for p in range(out.shape[0]):
            means[p] += error * out[p]
            norms[p] -= scale * (out[p] * out[p])
        vector[0] = max(vector[0], norms[0] - HUGE)


@compiled
def learn_fours(reps, columns, vector, out, means, norms, error, scale):
    """Do the same with `columns_fours`."""
    for _ in range(reps):
        columns_fours(1, columns, vector, out)
        for p in range(out.shape[0]):
            means[p] += error * out[p]
            norms[p] -= scale * (out[p] * out[p])
        vector[0] = max(vector[0], norms[0] - HUGE)


@compiled
def matvec_rows(reps, matrix, vector, out):
    """Multiply a symmetric matrix by a vector."""
    dim = vector.shape[0]
    for _ in range(reps):
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += matrix[i, j] * vector[j]
            out[i] = total
        vector[0] = max(vector[0], out[0] - HUGE)


@compiled
def cross_rows(reps, left, columns, out):
    """Multiply an (a, d) by a (d, n) matrix, by rows."""
    for _ in range(reps):
        for a in range(left.shape[0]):
            row = out[a]
            row[:] = 0.0
            for i in range(left.shape[1]):
                scale = left[a, i]
                source = columns[i]
                for p in range(row.shape[0]):
                    row[p] += scale * source[p]
        left[0, 0] = max(left[0, 0], out[0, 0] - HUGE)


@compiled
def cross_fours(reps, left, columns, out):
    """Do the same, four rows of the result at a time."""
    rows, dim = left.shape
    for _ in range(reps):
        a = 0
        while a + 4 <= rows:
            one, two, three, four = out[a], out[a + 1], out[a + 2], out[a + 3]
            out[a : a + 4] = 0.0
            for i in range(dim):
                b, c, e, f = left[a, i], left[a + 1, i], left[a + 2, i], left[a + 3, i]
                source = columns[i]
                for p in range(source.shape[0]):
                    one[p] += b * source[p]
                    two[p] += c * source[p]
                    three[p] += e * source[p]
                    four[p] += f * source[p]
            a += 4
        while a < rows:
            row = out[a]
            row[:] = 0.0
            for i in range(dim):
                scale = left[a, i]
                source = columns[i]
                for p in range(row.shape[0]):
                    row[p] += scale * source[p]
            a += 1
        left[0, 0] = max(left[0, 0], out[0, 0] - HUGE)


def cross_blas(reps, left, columns, out):
    """Do the same by BLAS."""
    for _ in range(reps):
        np.matmul(left, columns, out=out)
