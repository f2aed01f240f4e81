"""Ranks of floating-point tables, decided in exact arithmetic.

Every float is an integer times a power of two. The rank of an integer table modulo a prime is at most its rank, and a
minor that vanishes modulo primes whose product exceeds Hadamard's bound on it is zero. So one prime that yields
another pivot disproves `rank <= r`, and enough primes that yield none prove it, without forming any fraction.
"""

from functools import cache

import numpy as np

from solid_bandits._internal.types import Floats, Ints

# Products of two residues fit into 64 bits.
_TOP = 2**31
_BITS_PER_PRIME = 30.9


def rank_at_most(rows: Floats, rank: int) -> bool:
    """Return whether the table, taken as exact numbers, has rank at most `rank`."""
    table = rows[:, np.any(rows != 0, axis=0)]
    table = table[np.any(table != 0, axis=1)]
    if min(table.shape) <= rank:
        return True
    table = _distinct(table)
    if len(table) <= rank:
        return True
    mantissas, exponents, bits = _integers(table)
    # Hadamard: a minor of size r + 1 is at most the product of the norms of its rows.
    limit = float(np.sort(bits)[::-1][: rank + 1].sum()) + 1.0
    count = int(np.ceil(limit / _BITS_PER_PRIME)) + 1
    return all(_rank_at_most_modulo(mantissas, exponents, rank, p) for p in _primes(count))


def _distinct(table: Floats) -> Floats:
    """Keep one of any rows that are equal up to sign and a power of two; no row is zero."""
    first = table[np.arange(len(table)), (table != 0).argmax(axis=1)]
    exponents = np.frexp(np.abs(table).max(axis=1))[1]
    scaled = np.ldexp(table, -exponents[:, None]) * np.sign(first)[:, None]
    # Scaling is exact except for underflow, after which rows that differ could look alike.
    if np.any((scaled == 0) != (table == 0)) or np.abs(scaled[scaled != 0]).min() < 1e-290:
        return table
    return np.asarray(table[np.unique(scaled, axis=0, return_index=True)[1]])


def _integers(table: Floats) -> tuple[Ints, Ints, Floats]:
    """Return odd integers m and exponents e >= 0 with rows proportional to m 2^e, and log2 of their norms.

    Columns are scaled by powers of two as well, which changes no rank.
    """
    fractions, powers = np.frexp(table)
    mantissas = np.ldexp(fractions, 53).astype(np.int64)
    zeros = mantissas == 0
    lowest = np.where(zeros, 1, mantissas & -mantissas)
    mantissas //= lowest
    far = 1 << 20
    exponents = powers.astype(np.int64) - 53 + np.round(np.log2(lowest.astype(np.float64))).astype(np.int64)
    exponents[zeros] = far
    exponents -= exponents.min(axis=0)
    exponents[zeros] = far
    exponents -= exponents.min(axis=1, keepdims=True)
    exponents[zeros] = 0
    sizes = np.where(zeros, -1.0, np.log2(np.abs(np.where(zeros, 1, mantissas))) + exponents)
    # The norm is at most √(columns) times the largest entry.
    return mantissas, exponents, sizes.max(axis=1) + 0.5 * np.log2(table.shape[1]) + 1e-6


def _rank_at_most_modulo(mantissas: Ints, exponents: Ints, rank: int, p: int) -> bool:
    distinct, where = np.unique(exponents, return_inverse=True)
    powers = np.array([pow(2, int(e), p) for e in distinct], dtype=np.int64)
    left = (mantissas % p) * powers[where].reshape(exponents.shape) % p
    for _ in range(rank):
        rows = np.flatnonzero(left.any(axis=1))
        if len(rows) == 0:
            return True
        left = left[rows]
        column = int((left[0] != 0).argmax())
        pivot = left[0] * pow(int(left[0, column]), -1, p) % p
        left = (left[1:] - left[1:, column, None] * pivot % p) % p
    return not left.any()


@cache
def _primes(count: int) -> tuple[int, ...]:
    """Return the largest primes below 2^31, each over 2^30.9."""
    window = 60 * count + 4000
    small = np.ones(46342, dtype=bool)
    small[:2] = False
    for i in range(2, 216):
        if small[i]:
            small[i * i :: i] = False
    start = _TOP - window
    kept = np.ones(window, dtype=bool)
    for q in np.flatnonzero(small):
        kept[(-start) % q :: q] = False
    return tuple(int(start + i) for i in np.flatnonzero(kept)[::-1][:count])
