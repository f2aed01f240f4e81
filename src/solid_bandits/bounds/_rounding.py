"""Bounds on rounding errors, in doubles.

With u = 2⁻⁵³, a sum of n products computed in any order, with or without fused operations, is off by at most
γ_n = nu / (1 - nu) times the sum of their absolute values, if nothing underflows. EPS is 2u, so every bound here is
about twice as large as necessary, which covers the rounding of the bound itself. The frame's features are of size 1:
anything that underflows is below TINY, and no norm is taken to be less than LEAST, whose square does not underflow.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from solid_bandits._internal.types import Floats

# Doubles, or extended precision where terms nearly cancel.
Reals = NDArray[np.floating[Any]]

EPS = float(np.finfo(np.float64).eps)
WIDE_EPS = float(np.finfo(np.longdouble).eps)
"""EPS of extended precision, where the machine has it; otherwise EPS."""
TINY = 1e-280
LEAST = 1e-150


def upto(terms: int, size: Any, eps: float = EPS) -> Any:
    """Bound the rounding error of a sum of `terms` products of total size `size` (a number or an array)."""
    return (terms + 4) * eps * size + TINY


def unit_of(values: Reals) -> float:
    """Return the EPS of the precision that the values have."""
    return WIDE_EPS if values.dtype == np.longdouble else EPS


def norms(rows: Reals) -> Floats:
    """Return the norms of the rows, rounded up."""
    rows = np.asarray(rows, dtype=np.float64)
    return np.asarray(np.sqrt(np.vecdot(rows, rows)) * (1 + (rows.shape[1] + 4) * EPS) + LEAST)
