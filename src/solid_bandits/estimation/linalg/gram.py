"""V_ω: the weighted sum of the outer products of all features with themselves."""

import math

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.estimation.linalg.vectors import BLOCK, TILE, dot

GRAM_RIDGE = 1e-9
"""Ridge added to V_ω, relative to its trace, so that it can be inverted where the weights leave directions out."""
NEGLIGIBLE = 2.0**-53
"""Weights are left out of V_ω as long as all of them together add at most this fraction of its mean eigenvalue to any
eigenvalue: a ten-millionth of the ridge, and less than the rounding of the remaining sums.
"""


@jit
def weighted_gram(columns: Floats, weights: Floats, block: Floats, gram: Floats) -> None:
    """Write V_ω = Σ_p w_p φ_p φ_pᵀ plus a ridge of GRAM_RIDGE times its mean eigenvalue into `gram`.

    `block`, shape (dim, any width), is scratch for columns √w φ.
    """
    dim, pairs = columns.shape
    width = min(block.shape[1], BLOCK)
    gram[:] = 0.0
    for start in range(0, pairs, width):
        count = min(width, pairs - start)
        # The last row is written last, so it can store the roots of the weights until then.
        roots = block[dim - 1]
        for k in range(count):
            roots[k] = math.sqrt(weights[start + k])
        for i in range(dim):
            row, out = columns[i], block[i]
            for k in range(count):
                out[k] = roots[k] * row[start + k]
        add_symmetric_product(block, count, gram)
    mirror_and_add_ridge(gram)


@jit_apart
def sparse_weighted_gram(
    columns: Floats, weights: Floats, feature_bound: float, chosen: Ints, block: Floats, gram: Floats
) -> None:
    """Write what `weighted_gram` writes, without the pairs whose weights are zero or below NEGLIGIBLE.

    Pairs left out would add at most (Σ w_p) L² to any eigenvalue. Where that is not negligible, or where few would be
    left out, all are included.
    """
    dim, pairs = columns.shape
    width = min(block.shape[1], BLOCK)
    total = 0.0
    for pair in range(pairs):
        total += weights[pair]
    # Well below NEGLIGIBLE, because features are shorter than their bound.
    least = 2.0**-7 * NEGLIGIBLE * total / (pairs * dim)
    count, left_out = weights_that_matter(weights, least, chosen)
    negligible = False
    if 2 * count < pairs:
        gram[:] = 0.0
        for start in range(0, count, width):
            here = min(width, count - start)
            for i in range(dim):
                row, out = columns[i], block[i]
                for k in range(here):
                    pair = chosen[start + k]
                    out[k] = math.sqrt(weights[pair]) * row[pair]
            add_symmetric_product(block, here, gram)
        trace = 0.0
        for i in range(dim):
            trace += gram[i, i]
        negligible = left_out * feature_bound * feature_bound <= NEGLIGIBLE * trace / dim
    if negligible:
        mirror_and_add_ridge(gram)
    else:
        weighted_gram(columns, weights, block, gram)


@jit
def weights_that_matter(weights: Floats, least: float, chosen: Ints) -> tuple[int, float]:
    """Write the pairs whose weight is above `least` into `chosen`; return their number and the sum of the other
    weights.
    """
    count = 0
    left_out = 0.0
    for pair in range(weights.shape[0]):
        if weights[pair] > least:
            chosen[count] = pair
            count += 1
        else:
            left_out += weights[pair]
    return count, left_out


@jit_apart
def add_symmetric_product(block: Floats, count: int, gram: Floats) -> None:
    """Add B Bᵀ to `gram` for the first `count` columns B of `block`; only on and below the diagonal's tiles."""
    dim = gram.shape[0]
    whole = dim - dim % TILE
    for i in range(0, whole, TILE):
        for j in range(0, i + 1, TILE):
            _add_tile(block, count, i, j, gram)
    for i in range(whole, dim):
        for j in range(i + 1):
            gram[i, j] += dot(block[i, :count], block[j, :count])


@jit
def _add_tile(block: Floats, count: int, i: int, j: int, gram: Floats) -> None:
    """Add Σ_p b_ip b_jp over the first `count` columns to the TILE x TILE entries of `gram` from (i, j) on.

    Keeps sixteen sums in registers: eight numbers are read per sixteen products, which keeps the multipliers busy.
    """
    a0, a1, a2, a3 = block[i], block[i + 1], block[i + 2], block[i + 3]
    b0, b1, b2, b3 = block[j], block[j + 1], block[j + 2], block[j + 3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for p in range(count):
        x0, x1, x2, x3 = a0[p], a1[p], a2[p], a3[p]
        y0, y1, y2, y3 = b0[p], b1[p], b2[p], b3[p]
        s00, s01, s02, s03 = s00 + x0 * y0, s01 + x0 * y1, s02 + x0 * y2, s03 + x0 * y3
        s10, s11, s12, s13 = s10 + x1 * y0, s11 + x1 * y1, s12 + x1 * y2, s13 + x1 * y3
        s20, s21, s22, s23 = s20 + x2 * y0, s21 + x2 * y1, s22 + x2 * y2, s23 + x2 * y3
        s30, s31, s32, s33 = s30 + x3 * y0, s31 + x3 * y1, s32 + x3 * y2, s33 + x3 * y3
    g0, g1, g2, g3 = gram[i], gram[i + 1], gram[i + 2], gram[i + 3]
    g0[j], g0[j + 1], g0[j + 2], g0[j + 3] = g0[j] + s00, g0[j + 1] + s01, g0[j + 2] + s02, g0[j + 3] + s03
    g1[j], g1[j + 1], g1[j + 2], g1[j + 3] = g1[j] + s10, g1[j + 1] + s11, g1[j + 2] + s12, g1[j + 3] + s13
    g2[j], g2[j + 1], g2[j + 2], g2[j + 3] = g2[j] + s20, g2[j + 1] + s21, g2[j + 2] + s22, g2[j + 3] + s23
    g3[j], g3[j + 1], g3[j + 2], g3[j + 3] = g3[j] + s30, g3[j + 1] + s31, g3[j + 2] + s32, g3[j + 3] + s33


@jit
def mirror_and_add_ridge(gram: Floats) -> None:
    """Copy the lower triangle to the upper one, and add GRAM_RIDGE times the mean eigenvalue to the diagonal."""
    dim = gram.shape[0]
    trace = 0.0
    for i in range(dim):
        for j in range(i):
            gram[j, i] = gram[i, j]
        trace += gram[i, i]
    for i in range(dim):
        gram[i, i] += GRAM_RIDGE * trace / dim
