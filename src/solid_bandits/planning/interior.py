"""A compiled primal-dual interior-point method for the allocation that (P) asks for, without memory allocations.

    minimise Σ_i x_i   s.t.   I_j(x) = 1 / (r_j² u_jᵀ M^-1 u_j) >= 1 for every j,   M = Σ_i x_i u_i u_iᵀ,   x >= 0.

I_j is concave with gradient G_ij = (I_j r_j K_ij)², K = uᵀM^-1u, so Newton's method needs only K. Every point gives
two bounds on the value: x divided by its least information is feasible, and for multipliers λ >= 0,
Σ λ_j / max_i Σ_j λ_j G_ij is below the value (weak duality; each j is the linear cut of one alternative). The method
stops when they are within `TOLERANCE`, so its result is certified up to rounding. The programs of `bounds` are
solved to 1e-6 with more care; this one is for the inside of a loop.
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit_part
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.estimation.linalg.triangular import (
    cholesky_of_block,
    solve_block,
    solve_lower,
    solve_transposed,
)
from solid_bandits.estimation.linalg.vectors import dot

TOLERANCE = 0.01
"""Relative width of the bracket around the value at which the method stops."""
MAX_STEPS = 40
"""Largest number of Newton steps, for the warm start and again for the cold one; 4 to 7 are usual."""

X, S, T, LAM, INFO, PRICE, STEP_0, STEP_1, DX, DS, DT, DLAM, RESIDUAL, BEST_X, BEST_LAM = range(15)
"""Row indices of `AllocationWork.vectors`."""


class AllocationWork(NamedTuple):
    """Scratch; nothing is carried over in it. Only the first entries of arrays over pairs are used, one per active
    pair.
    """

    basis: Floats
    rest: Floats
    active: Ints
    gaps: Floats
    columns: Floats
    whitened: Floats
    scales: Floats
    gram: Floats
    factor: Floats
    kernel: Floats
    along: Floats
    gradient: Floats
    system: Floats
    system_factor: Floats
    vectors: Floats
    """One row per quantity over pairs: X, S, ..."""


@jit_part
def inform(work: AllocationWork, x: Floats, n: int, k: int) -> float:
    """Write K, u_iᵀβ_j, its square G and I at x; return the smallest I_j."""
    gram, kernel, info = work.gram, work.kernel, work.vectors[INFO]
    for i in range(k):
        for j in range(i + 1):
            total = 0.0
            for p in range(n):
                total += x[p] * work.columns[i, p] * work.columns[j, p]
            gram[i, j] = total
    cholesky_of_block(gram, work.factor, k)
    work.whitened[:k, :n] = work.columns[:k, :n]
    solve_block(work.factor, work.whitened, k, n)
    least = np.inf
    for i in range(n):
        row = kernel[i]
        row[:n] = 0.0
        for h in range(k):
            scale = work.whitened[h, i]
            other = work.whitened[h]
            for p in range(n):
                row[p] += scale * other[p]
        info[i] = 1.0 / (work.scales[i] ** 2 * max(row[i], 1e-300))
        least = min(least, info[i])
    for i in range(n):
        for j in range(n):
            along = info[j] * work.scales[j] * kernel[i, j]
            work.along[i, j] = along
            work.gradient[i, j] = along * along
    return least


@jit_part
def longest_step(values: Floats, change: Floats, n: int, longest: float) -> float:
    """Return the largest step <= `longest` that keeps values + step * change >= 0."""
    for i in range(n):
        if change[i] < 0.0:
            longest = min(longest, -values[i] / change[i])
    return longest


@jit_part
def directions(work: AllocationWork, target: float, n: int) -> None:
    """Write the Newton directions towards complementary products equal to `target`."""
    v = work.vectors
    for i in range(n):
        v[DX, i] = v[STEP_0, i] + target * v[STEP_1, i]
        v[DT, i] = v[RESIDUAL, i]
        v[DS, i] = (target - v[S, i] * v[DX, i]) / v[X, i] - v[S, i]
    for i in range(n):
        scale = v[DX, i]
        for j in range(n):
            v[DT, j] += scale * work.gradient[i, j]
    for j in range(n):
        v[DLAM, j] = (target - v[LAM, j] * v[DT, j]) / v[T, j] - v[LAM, j]


@jit_part
def newton_system(work: AllocationWork, n: int) -> None:
    """Factorise the reduced system and solve it for both parts of the direction: STEP_0 + target * STEP_1.

    The conditions 1 - Gλ - s = 0, I(x) - 1 - t = 0, λt = sx = target, linearised and reduced to dx:
    [ Σ_j λ_j (-∇²I_j) + G diag(λ/t) Gᵀ + diag(s/x) ] dx = -1 - G(λ/t · residual) + target (G(1/t) + 1/x).
    """
    v = work.vectors
    curvature, weight = v[DS], v[DLAM]  # not needed yet, so they serve as scratch
    for j in range(n):
        curvature[j] = 2.0 * v[LAM, j]
        weight[j] = v[LAM, j] / v[T, j] - 2.0 * v[LAM, j] / v[INFO, j]
    for i in range(n):
        first = work.along[i]
        for h in range(i + 1):
            second = work.along[h]
            kernel = work.kernel[i, h]
            total = 0.0
            for j in range(n):
                product = first[j] * second[j]
                total += product * (kernel * curvature[j] + weight[j] * product)
            work.system[i, h] = total
        work.system[i, i] += v[S, i] / v[X, i]
        constant, linear = -1.0, 1.0 / v[X, i]
        for j in range(n):
            constant -= work.gradient[i, j] * v[LAM, j] / v[T, j] * v[RESIDUAL, j]
            linear += work.gradient[i, j] / v[T, j]
        v[STEP_0, i], v[STEP_1, i] = constant, linear
    cholesky_of_block(work.system, work.system_factor, n)
    for row in (STEP_0, STEP_1):
        solve_lower(work.system_factor, v[row, :n])
        solve_transposed(work.system_factor, v[row, :n])


@jit_part
def minimise(work: AllocationWork, bracket: Floats, n: int, k: int) -> int:
    """Take Newton steps along the central path from the point in `work.vectors`, until the bracket is narrow.

    Leaves the best x and λ in BEST_X and BEST_LAM, the bounds in `bracket`; returns the number of steps.
    """
    v = work.vectors
    bracket[0], bracket[1] = 0.0, np.inf
    for step in range(MAX_STEPS):
        least = inform(work, v[X], n, k)
        total_x = total_lam = products = 0.0
        largest_price = 0.0
        for i in range(n):
            price = dot(work.gradient[i, :n], v[LAM, :n])
            largest_price = max(largest_price, price)
            total_x += v[X, i]
            total_lam += v[LAM, i]
            products += v[X, i] * v[S, i] + v[T, i] * v[LAM, i]
            v[RESIDUAL, i] = v[INFO, i] - 1.0 - v[T, i]
        upper, lower = total_x / least, total_lam / largest_price
        if not (math.isfinite(upper) and math.isfinite(lower) and math.isfinite(products)):
            return step
        if upper < bracket[1]:
            bracket[1] = upper
            v[BEST_X, :n] = v[X, :n]
        if lower > bracket[0]:
            bracket[0] = lower
            v[BEST_LAM, :n] = v[LAM, :n]
        if bracket[1] <= (1.0 + 0.5 * TOLERANCE) * bracket[0]:
            return step
        newton_system(work, n)
        mean = products / (2 * n)
        directions(work, 0.0, n)
        primal = longest_step(v[T], v[DT], n, longest_step(v[X], v[DX], n, 1.0))
        dual = longest_step(v[LAM], v[DLAM], n, longest_step(v[S], v[DS], n, 1.0))
        after = 0.0
        for i in range(n):
            after += (v[X, i] + primal * v[DX, i]) * (v[S, i] + dual * v[DS, i])
            after += (v[T, i] + primal * v[DT, i]) * (v[LAM, i] + dual * v[DLAM, i])
        ratio = after / products
        # Stay as far from the boundary as the tolerance allows.
        target = max(mean * min(max(ratio * ratio * ratio, 1e-3), 1.0), 0.1 * TOLERANCE * upper / (2 * n))
        directions(work, target, n)
        primal = 0.95 * longest_step(v[T], v[DT], n, longest_step(v[X], v[DX], n, 1.0 / 0.95))
        dual = 0.95 * longest_step(v[LAM], v[DLAM], n, longest_step(v[S], v[DS], n, 1.0 / 0.95))
        for i in range(n):
            v[X, i] += primal * v[DX, i]
            v[T, i] += primal * v[DT, i]
            v[S, i] += dual * v[DS, i]
            v[LAM, i] += dual * v[DLAM, i]
    return MAX_STEPS
