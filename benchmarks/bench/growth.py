"""The power of each size with which the time of a step grows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench.cases import BASE, ONE_CONTEXT, cells_of
from bench.floors import FLOORS
from bench.timing import Measured, measure_size

AXES = ("|X|", "|A|", "d")
GROWTH = ((25, 50, 100), (10, 20, 40), (8, 16, 32))
"""Sizes along each axis through BASE."""
OAM_BASE = (4, 8, 16)
OAM_GROWTH = ((2, 4, 8), (4, 8, 16), (8, 16, 32))
"""Base size of OAM's exploring steps; around BASE one of its solves takes minutes."""


def exponent(sizes: Any, values: Any) -> float:
    """Return the power of the size with which the values grow: the slope of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


class Growth(NamedTuple):
    """Exponents of one policy and kind along one axis."""

    label: str
    kind: str
    axis: str
    time: float
    floor: float


def measure_growth(labels: set[str], rounds: int, seconds: float, say: Callable[[str], None]) -> list[Growth]:
    """Return the exponents along every axis, next to those of the floor."""
    found: list[Growth] = []
    for base, axes, chosen in (
        (BASE, GROWTH, {pair for pair in FLOORS if pair != ("OAM", "exploring")}),
        (OAM_BASE, OAM_GROWTH, {("OAM", "exploring")}),
    ):
        chosen = {(label, kind) for label, kind in chosen if label in labels}
        sizes = sorted(
            {
                tuple(n if i == axis else b for i, b in enumerate(base))
                for axis in range(3)
                for n in axes[axis]
            }
        )
        table: dict[tuple[str, str, Any], Measured] = {}
        for size in sizes:
            cells = [cell for cell in cells_of(size, labels) if (cell.label, cell.kind) in chosen]
            # If there is only one context, other numbers of contexts are the same cell.
            if size[0] != base[0]:
                cells = [cell for cell in cells if cell.label not in ONE_CONTEXT]
            if cells:
                say(f"growth: {size}")
                for result in measure_size(cells, rounds, seconds, lambda results: []):
                    table[result.cell.label, result.cell.kind, result.cell.size] = result
        for label, kind in [pair for pair in FLOORS if pair in chosen]:
            for axis in range(3):
                if axis == 0 and label in ONE_CONTEXT:
                    continue
                line = []
                for n in axes[axis]:
                    size = tuple(n if i == axis else b for i, b in enumerate(base))
                    line.append(
                        table[label, kind, (1 if label in ONE_CONTEXT else size[0], size[1], size[2])]
                    )
                found.append(
                    Growth(
                        label,
                        kind,
                        AXES[axis],
                        exponent(axes[axis], [result.time for result in line]),
                        exponent(axes[axis], [result.floor for result in line]),
                    )
                )
    return found
