"""The allocation that the lower bound asks for, solved inside the loop: (P) at the estimates, compiled, warm-started.

With gaps Δ, a*(x) and θ read from the estimates, (P) is: minimise Σ η(x,a) Δ(x,a) over η >= 0 such that every
alternative gets information 1. Optimal arms cost nothing, so their pulls go to infinity: let Q be an orthonormal basis
of the part of the features outside the span of the optimal arms. Only suboptimal pairs i with u_i = Qᵀφ_i ≠ 0
remain. In the shares x_i = η_i Δ_i of the regret, with u_i / √Δ_i in place of u_i and r_j = σ √(2 / Δ_j), it is the
program of `interior`: minimise Σ x_i such that r_j² ‖u_j‖²_{M^-1} <= 1 for every j, M = Σ x_i u_i u_iᵀ.

Estimates move little between rounds, so the next solve starts from the last solution, pulled back into the interior.
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit_allocating, jit_part
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.estimation.linalg.vectors import best_arm, dot
from solid_bandits.planning.interior import (
    BEST_LAM,
    BEST_X,
    INFO,
    LAM,
    PRICE,
    TOLERANCE,
    AllocationWork,
    S,
    T,
    X,
    inform,
    minimise,
)

IN_SPAN = 1e-7
"""Relative size of the part of a feature outside a span below which the feature counts as inside."""
GAP_FLOOR = 1e-8
"""Smallest gap relative to the largest: an arm that ties with the best one would need infinitely many pulls."""
NEGLIGIBLE = 5e-3
"""Shares of the regret below this are residues of the interior point, not pulls that the solution needs."""
TIE = 1e-9
"""Relative difference below which ratios of pulls to allocated pulls count as equal, for policies that compare them."""


class Allocation(NamedTuple):
    """The last solution, which policies follow and where the next solve starts."""

    pulls: Floats
    """η(x,a) per unit of log n, shape (contexts, arms); 0 at optimal arms, whose pulls are free."""
    shares: Floats
    """x per pair as a fraction of the value, shape (pairs,)."""
    multipliers: Floats
    """λ per pair as a fraction of the value, shape (pairs,)."""
    bracket: Floats
    """Lower and upper bound on the value at the last solve, shape (2,)."""
    steps: Ints
    """Newton steps of the last solve, shape ()."""


def make_allocation(n_contexts: int, n_arms: int, dim: int) -> tuple[Allocation, AllocationWork]:
    """Return an allocation without a solution, and scratch; memory is O(P²) for P pairs."""
    pairs = n_contexts * n_arms
    solution = Allocation(
        pulls=np.zeros((n_contexts, n_arms)),
        shares=np.zeros(pairs),
        multipliers=np.zeros(pairs),
        bracket=np.zeros(2),
        steps=np.array(0),
    )
    work = AllocationWork(
        basis=np.zeros((dim, dim)),
        rest=np.zeros((pairs, dim)),
        active=np.zeros(pairs, dtype=np.int64),
        gaps=np.zeros(pairs),
        columns=np.zeros((dim, pairs)),
        whitened=np.zeros((dim, pairs)),
        scales=np.zeros(pairs),
        gram=np.zeros((dim, dim)),
        factor=np.zeros((dim, dim)),
        kernel=np.zeros((pairs, pairs)),
        along=np.zeros((pairs, pairs)),
        gradient=np.zeros((pairs, pairs)),
        system=np.zeros((pairs, pairs)),
        system_factor=np.zeros((pairs, pairs)),
        vectors=np.zeros((15, pairs)),
    )
    return solution, work


@jit_part
def remove_component(rest: Floats, direction: Floats, norm: float) -> None:
    """Remove the component along `direction` (of this norm) from every row of `rest`, and normalise `direction`."""
    for i in range(direction.shape[0]):
        direction[i] /= norm
    # Done twice, because the second pass of Gram and Schmidt removes what the first leaves by rounding.
    for _ in range(2):
        for pair in range(rest.shape[0]):
            part = dot(rest[pair], direction)
            for i in range(direction.shape[0]):
                rest[pair, i] -= part * direction[i]


@jit_part
def reduce_problem(
    features: Floats, noise_std: float, means: Floats, work: AllocationWork
) -> tuple[int, int]:
    """Write gaps, the active pairs and their coordinates outside the optimal arms' span; return (pairs, dimensions)."""
    n_contexts, n_arms = means.shape
    dim = features.shape[2]
    rest, basis = work.rest, work.basis
    largest_gap = 0.0
    for context in range(n_contexts):
        best = best_arm(means[context])
        for arm in range(n_arms):
            pair = context * n_arms + arm
            gap = means[context, best] - means[context, arm]
            work.gaps[pair] = gap if arm != best else -1.0
            largest_gap = max(largest_gap, gap)
            rest[pair] = features[context, arm]
            work.scales[pair] = math.sqrt(dot(rest[pair], rest[pair]))
    if largest_gap <= 0.0:
        return 0, 0
    for context in range(n_contexts):
        pair = context * n_arms + best_arm(means[context])
        norm = math.sqrt(dot(rest[pair], rest[pair]))
        if norm > IN_SPAN * work.scales[pair] and norm > 0.0:
            basis[0] = rest[pair]
            remove_component(rest, basis[0], norm)
    # The farthest feature gives the next direction, until only rounding noise is left.
    kept = 0
    while kept < dim:
        farthest, length = -1, 0.0
        for pair in range(rest.shape[0]):
            norm = math.sqrt(dot(rest[pair], rest[pair]))
            if norm > IN_SPAN * work.scales[pair] and norm > length:
                farthest, length = pair, norm
        if farthest < 0:
            break
        basis[kept] = rest[farthest]
        remove_component(rest, basis[kept], length)
        kept += 1
    count = 0
    for pair in range(rest.shape[0]):
        if work.gaps[pair] < 0.0:
            continue
        feature = features[pair // n_arms, pair % n_arms]
        gap = max(work.gaps[pair], GAP_FLOOR * largest_gap)
        size = 0.0
        for i in range(kept):
            part = dot(basis[i], feature)
            work.columns[i, count] = part / math.sqrt(gap)
            size += part * part
        if size > (IN_SPAN * work.scales[pair]) ** 2:
            work.active[count] = pair
            work.gaps[count] = gap  # position `count` is never ahead of `pair`
            count += 1
    for j in range(count):
        work.scales[j] = noise_std * math.sqrt(2.0 / work.gaps[j])
    return count, kept


@jit_part
def set_out(work: AllocationWork, solution: Allocation, n: int, k: int, warm: bool) -> None:
    """Write a starting point: every share and multiplier positive, with matching slacks and reduced costs."""
    v = work.vectors
    floor = 0.01 / n
    for i in range(n):
        pair = work.active[i]
        v[X, i] = solution.shares[pair] + floor if warm else 1.0 / n
        v[LAM, i] = solution.multipliers[pair] + floor if warm else 1.0 / n
    least = inform(work, v[X], n, k)
    room = 1.02 if warm else 2.0
    for i in range(n):
        v[X, i] *= room / least
        v[T, i] = room * v[INFO, i] / least - 1.0
        if not warm:
            v[LAM, i] = 1.0 / v[T, i]
    largest_price = 0.0
    for i in range(n):
        # G does not depend on the length of x.
        v[PRICE, i] = dot(work.gradient[i, :n], v[LAM, :n])
        largest_price = max(largest_price, v[PRICE, i])
    for i in range(n):
        v[LAM, i] /= room * largest_price
        v[S, i] = 1.0 - v[PRICE, i] / (room * largest_price)


@jit_part
def clear_residues(work: AllocationWork, bracket: Floats, n: int, k: int) -> None:
    """Set negligible shares in BEST_X to zero if the bracket stays narrow; scale BEST_X to be feasible."""
    v = work.vectors
    total = 0.0
    for i in range(n):
        total += v[BEST_X, i]
    kept = 0.0
    for i in range(n):
        v[X, i] = v[BEST_X, i] if v[BEST_X, i] > NEGLIGIBLE * total else 0.0
        kept += v[X, i]
    least = inform(work, v[X], n, k)
    if kept <= max((1.0 + TOLERANCE) * bracket[0], bracket[1]) * least:
        bracket[1] = kept / least
        v[BEST_X, :n] = v[X, :n]
        total = kept
    # The upper bound is the cost of the feasible multiple of BEST_X.
    for i in range(n):
        v[BEST_X, i] *= bracket[1] / total


@jit_allocating
def solve_allocation(
    features: Floats, noise_std: float, means: Floats, solution: Allocation, work: AllocationWork
) -> None:
    """Solve (P) at the estimated means, starting from the last solution; the result goes to `solution`.

    Never fails: without a positive gap, or with optimal arms that span everything, the allocation is zero; where the
    bracket stays wide, the result is the best feasible allocation found.

    Args:
        features: φ(x, a), shape (contexts, arms, dim).
        noise_std: σ.
        means: estimates of μ(x, a), shape (contexts, arms).
        solution: starting point of the solve, overwritten with the result.
        work: scratch.
    """
    n_arms = means.shape[1]
    solution.pulls[:] = 0.0
    solution.bracket[:] = 0.0
    solution.steps[()] = 0
    n, k = reduce_problem(features, noise_std, means, work)
    if n == 0:
        return
    v, bracket = work.vectors, solution.bracket
    # If the solve fails, try again from the centre: the last solution may be far from this one.
    for attempt in range(2):
        set_out(work, solution, n, k, bool(attempt == 0 and solution.shares.sum() > 0.0))
        solution.steps[()] += minimise(work, bracket, n, k)
        if bracket[1] <= (1.0 + TOLERANCE) * bracket[0]:
            break
    if not math.isfinite(bracket[1]):
        bracket[:] = 0.0
        return
    clear_residues(work, bracket, n, k)
    weight = 0.0
    for i in range(n):
        weight += v[BEST_LAM, i]
    solution.shares[:] = 0.0
    solution.multipliers[:] = 0.0
    # Features near the limits of floats can overflow here; no result is better than an infinite one.
    usable = weight > 0.0 and bracket[1] > 0.0 and math.isfinite(weight)
    for i in range(n):
        usable = (
            usable and math.isfinite(v[BEST_X, i] / work.gaps[i]) and math.isfinite(v[BEST_X, i] / bracket[1])
        )
    if not usable:
        bracket[:] = 0.0
        return
    for i in range(n):
        pair = work.active[i]
        solution.pulls[pair // n_arms, pair % n_arms] = v[BEST_X, i] / work.gaps[i]
        solution.shares[pair] = v[BEST_X, i] / bracket[1]
        solution.multipliers[pair] = v[BEST_LAM, i] / weight
