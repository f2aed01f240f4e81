"""The closest model with another optimal arm, in closed form, over all context-arm pairs."""

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.linalg.triangular import cholesky, solve_columns, solve_transposed
from solid_bandits.estimation.linalg.vectors import best_arm, sum_of_squares


@jit
def closest_alternative(
    columns: Floats,
    means: Floats,
    gram: Floats,
    factor: Floats,
    differences: Floats,
    norms: Floats,
    delta: Floats,
) -> float:
    """Find the closest model with another optimal arm in some context, in closed form (appendix, Eq. "pdlin.glr").

    Minimises Δ(x,a)² / ‖φ*(x) - φ(x,a)‖²_{W^-1} over all contexts x and arms a ≠ a*(x), W being `gram`; at the
    minimiser θ - θ' = Δ / ‖d‖²_{W^-1} W^-1 d with d = φ*(x) - φ(x,a).

    Args:
        columns: features, shape (dim, pairs).
        means: μ_θ(x, a), shape (contexts, arms).
        gram: W, shape (dim, dim), positive definite.
        factor: scratch, shape (dim, dim).
        differences: scratch, shape (dim, pairs).
        norms: filled with ‖φ*(x) - φ(x,a)‖²_{W^-1}, shape (pairs,).
        delta: filled with θ - θ', shape (dim,); zeros where no model has another optimal arm.

    Returns:
        ‖θ - θ'‖²_W, infinite where there is no alternative.
    """
    n_contexts, n_arms = means.shape
    for context in range(n_contexts):
        first = context * n_arms
        write_differences(columns, first, best_arm(means[context]), differences[:, first : first + n_arms])
    cholesky(gram, factor)
    solve_columns(factor, differences)
    sum_of_squares(differences, norms)

    closest = -1
    least = np.inf
    closest_gap = 0.0
    for context in range(n_contexts):
        optimal_mean = means[context, best_arm(means[context])]
        for arm in range(n_arms):
            pair = context * n_arms + arm
            # The optimal arm itself, and copies of it, give no alternative, because their difference is exactly zero.
            if norms[pair] > 0.0:
                gap = optimal_mean - means[context, arm]
                distance = gap * gap / norms[pair]
                if distance < least:
                    closest, least, closest_gap = pair, distance, gap
    delta[:] = 0.0
    if closest >= 0:
        for i in range(delta.shape[0]):
            delta[i] = closest_gap / norms[closest] * differences[i, closest]
        solve_transposed(factor, delta)
    return least


@jit
def write_differences(columns: Floats, first: int, best: int, differences: Floats) -> None:
    """Write φ*(x) - φ(x,a) for every arm a of the context whose first pair is `first`, one column each."""
    for i in range(columns.shape[0]):
        row, out = columns[i], differences[i]
        optimal = row[first + best]
        for arm in range(out.shape[0]):
            out[arm] = optimal - row[first + arm]
