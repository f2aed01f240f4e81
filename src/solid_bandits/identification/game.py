"""The allocation that does best against the worst of a few linear payoffs: a small linear program, by the simplex."""

import numpy as np

from solid_bandits._internal.compiling import jit_part
from solid_bandits._internal.types import Floats, Ints

SMALL = 1e-12
"""Reduced costs and pivots below, in units of the largest payoff, count as 0."""
MOST_PIVOTS = 500


@jit_part
def pivot(table: Floats, rows: int, row: int, column: int) -> None:
    """Make a column the unit vector of a row, by row operations on the rows and on the objective below them."""
    width = table.shape[1]
    inverse = 1.0 / table[row, column]
    for j in range(width):
        table[row, j] *= inverse
    for i in range(rows + 1):
        factor = table[i, column]
        if i != row and factor != 0.0:
            for j in range(width):
                table[i, j] -= factor * table[row, j]


@jit_part
def solve_game(
    payoffs: Floats, offsets: Floats, count: int, contexts: int, table: Floats, basis: Ints, out: Floats
) -> float:
    """Maximise min_j (Σ payoffs_j z - offsets_j) over z whose part of each context is a distribution.

    Args:
        payoffs: shape (at least count, pairs), >= 0, pairs of a context beside each other.
        offsets: shape (at least count,).
        count: how many payoffs.
        contexts: how many distributions.
        table: scratch, shape (at least contexts + count + 1, pairs + payoffs + 2).
        basis: scratch, shape (at least contexts + count,).
        out: is given z, shape (pairs,).

    Returns:
        The value.
    """
    pairs = out.shape[0]
    arms, rows = pairs // contexts, contexts + count
    level, last = pairs, pairs + 1 + payoffs.shape[0]  # the columns of v and of the right-hand side
    lift, scale = 0.0, 0.0
    for j in range(count):
        lift = max(lift, offsets[j])  # so that v >= 0
        for pair in range(pairs):
            scale = max(scale, payoffs[j, pair])
    if scale == 0.0:
        scale = 1.0
    for i in range(rows + 1):
        for j in range(last + 1):
            table[i, j] = 0.0
    for context in range(contexts):  # Σ_a z(x, a) = 1
        for arm in range(arms):
            table[context, context * arms + arm] = 1.0
        table[context, last] = 1.0
        basis[context] = context * arms
    for j in range(count):  # v + slack = Σ payoffs z - offset + lift
        row = contexts + j
        for pair in range(pairs):
            table[row, pair] = -payoffs[j, pair] / scale
        table[row, level] = 1.0
        table[row, level + 1 + j] = 1.0
        table[row, last] = (lift - offsets[j]) / scale
        basis[row] = level + 1 + j
    for context in range(contexts):
        pivot(table, rows, context, basis[context])
    least = contexts
    for row in range(contexts, rows):
        if table[row, last] < table[least, last]:
            least = row
    table[rows, level] = 1.0  # the objective: what is left of it is what a column would add
    pivot(table, rows, least, level)
    basis[least] = level
    for _ in range(MOST_PIVOTS):
        entering = -1
        for j in range(last):  # Bland's rule, which does not cycle
            if table[rows, j] > SMALL:
                entering = j
                break
        if entering < 0:
            break
        leaving, best = -1, np.inf
        for row in range(rows):
            if table[row, entering] > SMALL:
                ratio = table[row, last] / table[row, entering]
                if ratio < best - SMALL or (
                    ratio <= best + SMALL and leaving >= 0 and basis[row] < basis[leaving]
                ):
                    leaving, best = row, min(best, ratio)
        if leaving < 0:
            break
        pivot(table, rows, leaving, entering)
        basis[leaving] = entering
    for pair in range(pairs):
        out[pair] = 0.0
    for row in range(rows):
        if basis[row] < pairs:
            out[basis[row]] = max(table[row, last], 0.0)
    value = np.inf
    for j in range(count):
        total = -offsets[j]
        for pair in range(pairs):
            total += payoffs[j, pair] * out[pair]
        value = min(value, total)
    return value
