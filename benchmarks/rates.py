"""What pieces of work cost on this machine: kernels, the forms in which they can be done, and a meter.

A *kernel* is a piece of work of one shape, such as "the inner product of a vector with n columns of length
d". It has counts (multiply-adds; divisions, roots, logarithms and exponentials; numbers read and written) and
one or more *forms*, small programs that do it. Its cost at a shape is measured in the run that uses it, and
the fastest form counts: plain loops, blocked loops, BLAS or NumPy's vector functions, whatever wins at that
shape. Repetitions are chained, each waiting for the result of the one before, because the parts of a step
wait for each other too.
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy.linalg import blas, lapack

from solid_bandits.stream import normal, uniform

HUGE = 1e300
BLOCK = 64
"""Columns that a blocked form carries through all its work at once: few enough for the first cache."""
STRIP = 512
"""Columns of a table whose running sums a blocked form keeps in the first cache."""

# Without numba's reference counts: nothing is allocated here, and counting references is none of the work.
compiled = numba.njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz", "nnan"},
    _nrt=False,
)


# Forms. Each takes the number of repetitions first; the line with HUGE chains a repetition to the one before.


@compiled
def columns_rows(reps, columns, vector, out):
    """out_p = Σ_i v_i C_ip, one row after the other."""
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
    """The same by strips of columns, four rows at a time: sums are read and written a quarter as often."""
    dim, n = columns.shape
    for _ in range(reps):
        for start in range(0, n, STRIP):
            # Slices, because the compiler knows of an index from 0 that it does not count from the end.
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
    """Products with u, then every mean and squared norm moved by its product."""
    for _ in range(reps):
        columns_rows(1, columns, vector, out)
        for p in range(out.shape[0]):
            means[p] += error * out[p]
            norms[p] -= scale * (out[p] * out[p])
        vector[0] = max(vector[0], norms[0] - HUGE)


@compiled
def learn_fours(reps, columns, vector, out, means, norms, error, scale):
    """The same with `columns_fours`."""
    for _ in range(reps):
        columns_fours(1, columns, vector, out)
        for p in range(out.shape[0]):
            means[p] += error * out[p]
            norms[p] -= scale * (out[p] * out[p])
        vector[0] = max(vector[0], norms[0] - HUGE)


@compiled
def estimate_lower(reps, inverse, feature, theta, direction, reward):
    """Take in one reward: u = V^-1 φ, θ and V^-1; of V^-1 only the lower triangle is kept."""
    dim = feature.shape[0]
    for _ in range(reps):
        direction[:] = 0.0
        for i in range(dim):
            row = inverse[i]
            total = row[i] * feature[i]
            for j in range(i):
                total += row[j] * feature[j]
                direction[j] += row[j] * feature[i]
            direction[i] += total
        _estimate_move(inverse, feature, theta, direction, reward, True)


@compiled
def estimate_full(reps, inverse, feature, theta, direction, reward):
    """The same with all of V^-1: more arithmetic, but in whole rows."""
    dim = feature.shape[0]
    for _ in range(reps):
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += inverse[i, j] * feature[j]
            direction[i] = total
        _estimate_move(inverse, feature, theta, direction, reward, False)


@compiled
def _estimate_move(inverse, feature, theta, direction, reward, lower):
    dim = feature.shape[0]
    growth = 1.0
    seen = 0.0
    for i in range(dim):
        growth += feature[i] * direction[i]
        seen += feature[i] * theta[i]
    shrink = 1.0 / growth
    error = (reward - seen) * shrink
    for i in range(dim):
        scaled = direction[i] * shrink
        theta[i] += error * direction[i]
        row = inverse[i]
        for j in range(i + 1 if lower else dim):
            row[j] -= scaled * direction[j]


@compiled
def matvec_rows(reps, matrix, vector, out):
    """A symmetric matrix times a vector."""
    dim = vector.shape[0]
    for _ in range(reps):
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += matrix[i, j] * vector[j]
            out[i] = total
        vector[0] = max(vector[0], out[0] - HUGE)


@compiled
def top_loop(reps, values):
    """The first index of the largest value."""
    for _ in range(reps):
        best = 0
        largest = values[0]
        for p in range(1, values.shape[0]):
            if values[p] > largest:
                best, largest = p, values[p]
        values[0] = max(values[0], largest + best - HUGE)


@compiled
def top_passes(reps, values):
    """The same in two passes: the largest value, which takes vector registers, then where it is."""
    for _ in range(reps):
        largest = values[0]
        for p in range(1, values.shape[0]):
            largest = max(largest, values[p])
        best = 0
        while values[best] < largest:
            best += 1
        values[0] = max(values[0], largest + best - HUGE)


@compiled
def bounds_loop(reps, means, spreads, width, bounds):
    """The largest mean + width * spread, and the largest mean."""
    for _ in range(reps):
        for p in range(means.shape[0]):
            bounds[p] = means[p] + width[0] * spreads[p]
        _two_tops(means, bounds, width)


@compiled
def upper_loop(reps, means, norms, width, bounds):
    """The same with the spread √norm computed."""
    for _ in range(reps):
        for p in range(means.shape[0]):
            bounds[p] = means[p] + width[0] * math.sqrt(max(norms[p], 0.0))
        _two_tops(means, bounds, width)


@compiled
def _two_tops(means, bounds, width):
    best = greedy = 0
    largest, greatest = bounds[0], means[0]
    for p in range(1, means.shape[0]):
        if bounds[p] > largest:
            best, largest = p, bounds[p]
        if means[p] > greatest:
            greedy, greatest = p, means[p]
    width[0] = max(width[0], largest + best + greedy - HUGE)


@compiled
def gram_dots(reps, columns, weights, scaled, gram):
    """Σ_p w_p φ_p φ_pᵀ, lower triangle, one inner product per entry."""
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
    """The same, four entries at a time: twice the arithmetic for each number read."""
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
    """The same by strips of columns scaled by √w, sixteen entries at a time: two products per number read."""
    dim, n = columns.shape
    whole = dim - dim % 4
    width = STRIP // 2
    for _ in range(reps):
        for i in range(dim):
            for j in range(i + 1):
                gram[i, j] = 0.0
        for start in range(0, n, width):
            size = min(width, n - start)
            # The last row is written last: until then it holds the roots.
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
    """The same by BLAS: the symmetric product of the columns scaled by √w."""
    for _ in range(reps):
        np.multiply(columns, np.sqrt(weights), out=scaled)
        blas.dsyrk(1.0, scaled.T, trans=1, lower=1, c=gram, overwrite_c=1)


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
def rotate_rows(reps, upper, start, vector):
    """The factor of V + φφᵀ from that of V by plane rotations; Lᵀ is kept, so that rows are contiguous."""
    dim = upper.shape[0]
    for _ in range(reps):
        for i in range(dim):
            vector[i] = start[i]
        for k in range(dim):
            row = upper[k]
            pivot, value = row[k], vector[k]
            root = math.sqrt(pivot * pivot + value * value)
            inverse = 1.0 / root
            cosine, sine = pivot * inverse, value * inverse
            row[k] = root
            for i in range(k + 1, dim):
                old = row[i]
                row[i] = cosine * old + sine * vector[i]
                vector[i] = cosine * vector[i] - sine * old
        start[0] = max(start[0], upper[dim - 1, dim - 1] - HUGE)


@compiled
def gradient_loop(reps, means, norms, information, weights, scalars, out):
    """SOLID's optimistic gradient and constraint from what is known of every pair: one root each."""
    for _ in range(reps):
        root, bonus_scale, multiplier = scalars[0], scalars[1], scalars[2]
        constraint = 0.0
        for p in range(means.shape[0]):
            bonus = root * math.sqrt(max(norms[p], 0.0))
            divergence = information[p] * information[p] + bonus_scale * bonus
            out[p] = means[p] + bonus + multiplier * divergence
            constraint += weights[p] * divergence
        scalars[0] = max(scalars[0], constraint + out[0] - HUGE)


@compiled
def exp_loop(reps, values, out):
    """One exponential for each value."""
    for _ in range(reps):
        for p in range(values.shape[0]):
            out[p] = math.exp(values[p])
        values[0] = max(values[0], out[0] - HUGE)


def exp_numpy(reps, values, out):
    """The same by NumPy's vector function."""
    for _ in range(reps):
        np.exp(values, out=out)


@compiled
def normalise_loop(reps, gradient, logits, omega):
    """Gradients of norm 1 added to the logits, the largest taken off; probabilities made to sum to 1."""
    n_contexts, n_arms = gradient.shape
    for _ in range(reps):
        for x in range(n_contexts):
            square = 0.0
            for a in range(n_arms):
                square += gradient[x, a] * gradient[x, a]
            scale = 1.0 / math.sqrt(square)
            total = 0.0
            for a in range(n_arms):
                logits[x, a] += scale * gradient[x, a]
                total += omega[x, a]
            largest = logits[x, 0]
            for a in range(1, n_arms):
                largest = max(largest, logits[x, a])
            inverse = 1.0 / total
            for a in range(n_arms):
                logits[x, a] -= largest
                omega[x, a] *= inverse
        gradient[0, 0] = max(gradient[0, 0], logits[0, 0] - HUGE)


@compiled
def cross_rows(reps, left, columns, out):
    """The product of an (a, d) and a (d, n) matrix, by rows."""
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
    """The same, four rows of the result at a time."""
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
    """The same by BLAS."""
    for _ in range(reps):
        np.matmul(left, columns, out=out)


@compiled
def information_loop(reps, products, weights, spreads, out):
    """Σ_z q_z (|p_az| + c_a)² for every arm a."""
    for _ in range(reps):
        for a in range(products.shape[0]):
            total = 0.0
            for z in range(products.shape[1]):
                seen = abs(products[a, z]) + spreads[a]
                total += weights[z] * (seen * seen)
            out[a] = total
        spreads[0] = max(spreads[0], out[0] - HUGE)


@compiled
def mixtures_loop(reps, regrets, information, out):
    """The two arms and the probability between them with the least regret² / information."""
    count = regrets.shape[0]
    for _ in range(reps):
        least = HUGE
        chance = 0.0
        for a in range(count):
            for b in range(a + 1, count):
                rise, more = regrets[b] - regrets[a], information[b] - information[a]
                p = min(max(regrets[a] / rise - 2.0 * information[a] / more, 0.0), 1.0)
                regret = regrets[a] + p * rise
                ratio = regret * regret / (information[a] + p * more)
                if ratio < least:
                    least, chance = ratio, p
        out[0] = chance
        regrets[0] = max(regrets[0], least - 2.0 * HUGE)


@compiled
def log_loop(reps, value, total):
    """A logarithm; of a counter, as in the steps, which wait for nothing to compute it."""
    for rep in range(reps):
        total[0] += math.log(value[0] + rep)


@compiled
def uniform_loop(reps, stream, out):
    """A uniform number."""
    for _ in range(reps):
        out[0] += uniform(stream)


@compiled
def normals_loop(reps, stream, out):
    """Normal numbers, two from each pair of uniforms (Box and Muller)."""
    for _ in range(reps):
        for i in range(0, out.shape[0] - 1, 2):
            radius = math.sqrt(-2.0 * math.log(1.0 - uniform(stream)))
            angle = 2.0 * math.pi * uniform(stream)
            out[i] = radius * math.cos(angle)
            out[i + 1] = radius * math.sin(angle)
        if out.shape[0] % 2 == 1:
            out[-1] = normal(stream)


@compiled
def empty_loop(reps, stream, edges, out):
    """What the loop does beside the policy: one uniform, one normal, the search for the context."""
    last = edges.shape[0] - 1
    for _ in range(reps):
        point = uniform(stream)
        noise = normal(stream)
        context = 0
        while context < last and point >= edges[context]:
            context += 1
        out[context] += noise


# Kernels: shapes, forms, counts.


class Kernel(NamedTuple):
    """A piece of work of one shape."""

    what: str
    setup: Callable[..., tuple[Any, ...]]
    """From the shape to the arguments of a form, but for the number of repetitions."""
    forms: tuple[Callable[..., None], ...]
    """The first one does what the counts say; others may do more, and be faster."""
    madds: Callable[..., float]
    """Multiplications, each with the addition that follows it, as a function of the shape."""
    specials: Callable[..., float]
    """Divisions, roots, logarithms and exponentials."""
    floats: Callable[..., float]
    """Numbers read or written, each counted once for each way."""


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape) if shape else np.random.default_rng(0).normal()


def _positive(*shape: int) -> Any:
    return np.random.default_rng(1).uniform(0.5, 1.5, size=shape)


def _spd(dim: int) -> Any:
    half = _numbers(dim, 2 * dim)
    return half @ half.T / dim + np.eye(dim)


def _factor(dim: int) -> Any:
    return np.ascontiguousarray(np.linalg.cholesky(_spd(dim)))


def _stream() -> Any:
    return np.random.default_rng(2).integers(1, 2**63, size=4).astype(np.uint64)


KERNELS = {
    "columns": Kernel(
        "inner products of a vector with n columns of length d",
        lambda d, n: (_numbers(d, n), _numbers(d), np.zeros(n)),
        (columns_rows, columns_fours),
        lambda d, n: d * n,
        lambda d, n: 0,
        lambda d, n: d * n + n,
    ),
    "learn": Kernel(
        "products of n columns with u, means and squared norms moved by them",
        lambda d, n: (_numbers(d, n), _numbers(d), np.zeros(n), _numbers(n), _numbers(n), 1e-3, 1e-3),
        (learn_rows, learn_fours),
        lambda d, n: d * n + 3 * n,
        lambda d, n: 0,
        lambda d, n: d * n + 4 * n,
    ),
    "estimate": Kernel(
        "u = V^-1 φ, then θ and V^-1 by Sherman and Morrison's formula",
        lambda d: (np.linalg.inv(_spd(d)), _numbers(d), _numbers(d), np.zeros(d), 1.0),
        (estimate_lower, estimate_full),
        lambda d: d * d + d * (d + 1) / 2 + 4 * d + 1,
        lambda d: 1,
        lambda d: d * (d + 1) + 3 * d,
    ),
    "matvec": Kernel(
        "V^-1 times a vector",
        lambda d: (_spd(d), _numbers(d), np.zeros(d)),
        (matvec_rows,),
        lambda d: d * d,
        lambda d: 0,
        lambda d: d * d + 2 * d,
    ),
    "top": Kernel(
        "the largest of n values",
        lambda n: (_numbers(n),),
        (top_loop, top_passes),
        lambda n: 0,
        lambda n: 0,
        lambda n: n,
    ),
    "bounds": Kernel(
        "the largest of n values a + w b, and of n values a",
        lambda n: (_numbers(n), _positive(n), np.ones(1), np.zeros(n)),
        (bounds_loop,),
        lambda n: n,
        lambda n: 0,
        lambda n: 2 * n,
    ),
    "upper": Kernel(
        "the largest of n values a + w √b, and of n values a",
        lambda n: (_numbers(n), _positive(n), np.ones(1), np.zeros(n)),
        (upper_loop,),
        lambda n: n,
        lambda n: n,
        lambda n: 2 * n,
    ),
    "gram": Kernel(
        "Σ w φφᵀ over n columns of length d, lower triangle",
        lambda d, n: (_numbers(d, n), _positive(n), np.zeros((d, n)), np.zeros((d, d), order="F")),
        (gram_dots, gram_tiles, gram_sixteens, gram_blas),
        lambda d, n: d * n + n * d * (d + 1) / 2,
        lambda d, n: 0,
        lambda d, n: d * n + n + d * (d + 1) / 2,
    ),
    "cholesky": Kernel(
        "the triangular factor of a (d, d) matrix",
        lambda d: (_spd(d), np.zeros((d, d))),
        (cholesky_dots, cholesky_lapack),
        lambda d: (d**3 + 3 * d**2 - 4 * d) / 6,
        lambda d: 2 * d,
        lambda d: d * (d + 1),
    ),
    "alternatives": Kernel(
        "the least gap² / ‖L^-1 (φ* - φ)‖² over n columns φ of length d: a triangular solve with each",
        lambda d, n: (
            _numbers(d, n),
            _factor(d),
            2.0 + _positive(d),
            _positive(n),
            np.zeros((d, n)),
            np.zeros((d + 2, BLOCK)),
            np.zeros(n),
        ),
        (alternatives_sweep, alternatives_blocks, alternatives_blas),
        lambda d, n: n * (d * (d - 1) / 2 + 2 * d + 1),
        lambda d, n: d + n,
        lambda d, n: d * n + 2 * n + d * (d + 1) / 2,
    ),
    "triangular": Kernel(
        "a triangular solve with one vector",
        lambda d: (_factor(d), _numbers(d), np.zeros(d)),
        (triangular_rows,),
        lambda d: d * (d - 1) / 2,
        lambda d: d,
        lambda d: d * (d + 1) / 2 + 2 * d,
    ),
    "rotate": Kernel(
        "the factor of V + φφᵀ from that of V",
        lambda d: (np.ascontiguousarray(_factor(d).T), _numbers(d), np.zeros(d)),
        (rotate_rows,),
        lambda d: 4 * d + 2 * d * (d - 1),
        lambda d: 2 * d,
        lambda d: d * (d + 1) + 2 * d,
    ),
    "gradient": Kernel(
        "the optimistic gradient of n pairs, with a root each",
        lambda n: (_numbers(n), _positive(n), _numbers(n), _positive(n), np.ones(3), np.zeros(n)),
        (gradient_loop,),
        lambda n: 5 * n,
        lambda n: n,
        lambda n: 5 * n,
    ),
    "exp": Kernel(
        "n exponentials",
        lambda n: (-30.0 * np.random.default_rng(3).uniform(size=n), np.zeros(n)),
        (exp_loop, exp_numpy),
        lambda n: 0,
        lambda n: n,
        lambda n: 2 * n,
    ),
    "normalise": Kernel(
        "gradients scaled and added to logits, probabilities scaled, per context",
        lambda x, a: (_numbers(x, a), _numbers(x, a), _positive(x, a)),
        (normalise_loop,),
        lambda x, a: 3 * x * a,
        lambda x, a: 3 * x,
        lambda x, a: 5 * x * a,
    ),
    "cross": Kernel(
        "the product of an (a, d) and a (d, n) matrix",
        lambda a, d, n: (_numbers(a, d), _numbers(d, n), np.zeros((a, n))),
        (cross_rows, cross_fours, cross_blas),
        lambda a, d, n: a * d * n,
        lambda a, d, n: 0,
        lambda a, d, n: a * d + d * n + a * n,
    ),
    "information": Kernel(
        "Σ q (|p| + c)² over n alternatives for each of a arms",
        lambda a, n: (_numbers(a, n), _positive(n), _positive(a), np.zeros(a)),
        (information_loop,),
        lambda a, n: 2 * a * n,
        lambda a, n: 0,
        lambda a, n: a * n + n + 2 * a,
    ),
    "mixtures": Kernel(
        "the best mixture of two of a arms, over all pairs of arms",
        lambda a: (np.sort(_positive(a)), np.sort(_positive(a) ** 2), np.zeros(1)),
        (mixtures_loop,),
        lambda a: 4 * a * (a - 1) / 2,
        lambda a: 3 * a * (a - 1) / 2,
        lambda a: 2 * a,
    ),
    "log": Kernel(
        "a logarithm", lambda: (np.ones(1), np.zeros(1)), (log_loop,), lambda: 0, lambda: 1, lambda: 0
    ),
    "uniform": Kernel(
        "a uniform number",
        lambda: (_stream(), np.zeros(1)),
        (uniform_loop,),
        lambda: 0,
        lambda: 0,
        lambda: 8,
    ),
    "normals": Kernel(
        "n normal numbers",
        lambda n: (_stream(), np.zeros(n)),
        (normals_loop,),
        lambda n: 3 * n,
        lambda n: 2 * n,
        lambda n: n,
    ),
}


def placed(array: Any, offset: int) -> Any:
    """A copy of an array whose first byte lies `offset` bytes after a multiple of 64, a line of the cache."""
    memory = np.empty(array.nbytes + 128, dtype=np.uint8)
    start = (offset - memory.ctypes.data) % 64
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape, order=order)
    copy[...] = array
    copy.flags.writeable = array.flags.writeable
    return copy


class Meter:
    """The cost of kernels at shapes, each measured again in every round of a run."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """Of processor time for one form in one round."""
        self._ready: dict[
            tuple[str, tuple[int, ...]], list[tuple[Callable[..., None], tuple[Any, ...], int]]
        ] = {}

    def cost(self, key: tuple[str, tuple[int, ...]]) -> float:
        """Seconds of one repetition of the fastest form, now."""
        if key not in self._ready:
            self._ready[key] = self._prepare(key)
        return min(seconds_of(form, arguments, reps) for form, arguments, reps in self._ready[key])

    def _prepare(
        self, key: tuple[str, tuple[int, ...]]
    ) -> list[tuple[Callable[..., None], tuple[Any, ...], int]]:
        name, shape = key
        kernel = KERNELS[name]
        found = []
        for form in kernel.forms:
            # Where arrays lie makes a third of the time of small kernels: a floor has them at the best place.
            arguments = tuple(
                placed(value, 0) if isinstance(value, np.ndarray) else value for value in kernel.setup(*shape)
            )
            found.append((calibrated(form, arguments, self.seconds), form, arguments))
        fastest = min(seconds for (_, seconds), _, _ in found)
        # What is far slower at this shape will not win in a later round.
        return [
            (form, arguments, reps) for (reps, seconds), form, arguments in found if seconds < 1.6 * fastest
        ]


def seconds_of(form: Callable[..., None], arguments: tuple[Any, ...], reps: int) -> float:
    """Processor seconds of one repetition: what other programs take of the processor is not counted."""
    start = time.thread_time()
    form(reps, *arguments)
    return (time.thread_time() - start) / reps


def calibrated(form: Callable[..., None], arguments: tuple[Any, ...], seconds: float) -> tuple[int, float]:
    """Repetitions that take about `seconds`, and the seconds of one."""
    form(1, *arguments)  # compiles, or loads what was compiled
    reps = 1
    while True:
        each = max(seconds_of(form, arguments, reps), 1e-10)
        if each * reps > 0.2 * seconds:
            return max(1, round(seconds / each)), each
        reps *= 4
