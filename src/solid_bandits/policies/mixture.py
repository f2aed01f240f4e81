"""The mixture of arms with the least (expected regret)² per information, which has at most two arms.

Russo and Van Roy (2018), Proposition 6: some minimiser of (πᵀΔ)² / πᵀv over the distributions π has at most two arms.
For a given regret the most information lies on the upper hull of the points (Δ_a, v_a), so the two are neighbours
there. Arms are inserted into the hull one by one, and nothing is kept of the others.
"""

from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats, Ints

CORNERS = 128
"""Largest number of corners, more than hundreds of thousands of random arms have; later corners are omitted."""


class Hull(NamedTuple):
    """Arms on the upper hull, by regret: information grows along them, ever more slowly. Scratch."""

    regrets: Floats
    information: Floats
    arms: Ints


def make_hull() -> Hull:
    """Return an empty hull, with room for one corner more before another is removed."""
    return Hull(np.zeros(CORNERS + 1), np.zeros(CORNERS + 1), np.zeros(CORNERS + 1, dtype=np.int64))


@jit
def _move(hull: Hull, source: int, target: int) -> None:
    hull.regrets[target] = hull.regrets[source]
    hull.information[target] = hull.information[source]
    hull.arms[target] = hull.arms[source]


@jit
def _remove_corner(hull: Hull, place: int, count: int) -> int:
    for other in range(place + 1, count):
        _move(hull, other, other - 1)
    return count - 1


@jit
def _is_below(hull: Hull, left: int, middle: int, right: int) -> bool:
    """Return whether the middle one of three corners is on or below the line through the others."""
    regrets, information = hull.regrets, hull.information
    rise = (information[middle] - information[left]) * (regrets[right] - regrets[left])
    return rise <= (information[right] - information[left]) * (regrets[middle] - regrets[left])


@jit
def insert_arm(hull: Hull, count: int, arm: int, regret: float, information: float) -> int:
    """Insert an arm into a hull of `count` corners, if it is one; return the new number of corners."""
    place = count
    while place > 0 and hull.regrets[place - 1] > regret:
        place -= 1
    if count >= CORNERS or (place > 0 and hull.information[place - 1] >= information):
        return count
    for other in range(count, place, -1):
        _move(hull, other - 1, other)
    hull.regrets[place], hull.information[place], hull.arms[place] = regret, information, arm
    count += 1
    if place > 0 and hull.regrets[place - 1] == regret:  # the same regret for less information
        count = _remove_corner(hull, place - 1, count)
        place -= 1
    while place + 1 < count and hull.information[place + 1] <= information:
        count = _remove_corner(hull, place + 1, count)
    if 0 < place < count - 1 and _is_below(hull, place - 1, place, place + 1):
        return _remove_corner(hull, place, count)
    while place + 2 < count and _is_below(hull, place, place + 1, place + 2):
        count = _remove_corner(hull, place + 1, count)
    while place >= 2 and _is_below(hull, place - 2, place - 1, place):
        count = _remove_corner(hull, place - 1, count)
        place -= 1
    return count


@jit
def best_mixture(hull: Hull, count: int) -> tuple[int, int, float]:
    """Return the mixture of neighbours with the least squared regret per information: two arms, and the second's
    chance.

    If the first corner has no regret, it is the answer alone.

    Between two corners the ratio is convex in the second one's probability q, with its minimum at
    q = Δ₁ / (Δ₂ - Δ₁) - 2 v₁ / (v₂ - v₁).
    """
    regrets, information, arms = hull.regrets, hull.information, hull.arms
    first, second, chance = arms[0], arms[0], 0.0
    least = np.inf
    if regrets[0] > 0.0:
        if information[0] > 0.0:
            least = regrets[0] * regrets[0] / information[0]
        for left in range(count - 1):
            dearer, more = regrets[left + 1] - regrets[left], information[left + 1] - information[left]
            q = min(max(regrets[left] / dearer - 2.0 * information[left] / more, 0.0), 1.0)
            regret, gained = regrets[left] + q * dearer, information[left] + q * more
            if gained > 0.0 and regret * regret < least * gained:
                least = regret * regret / gained
                first, second, chance = arms[left], arms[left + 1], q
    return first, second, chance


@jit
def write_mixture(out: Floats | None, first: int, second: int, chance: float) -> None:
    """Write the probabilities of the arms, `chance` being the second's, if they are asked for."""
    if out is not None:
        for arm in range(out.shape[0]):
            out[arm] = 0.0
        out[first] += 1.0 - chance
        out[second] += chance
