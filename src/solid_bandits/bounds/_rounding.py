"""Bounds on rounding errors, in doubles.

With u = 2⁻⁵³, a sum of n products computed in any order, with or without fused operations, is off by at most
γ_n = nu / (1 - nu) times the sum of their absolute values, if nothing underflows. EPS is 2u: every bound here is about
twice what is needed, which covers the rounding of the bound itself. The frame's features are of size 1: what underflows
is below TINY, and no norm is taken to be less than LEAST, whose square does not underflow.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from solid_bandits._internal.types import Floats

# Doubles, or extended precision for what nearly cancels.
Reals = NDArray[np.floating[Any]]

EPS = float(np.finfo(np.float64).eps)
WIDE_EPS = float(np.finfo(np.longdouble).eps)
"""Of extended precision, where the machine has it; else EPS."""
TINY = 1e-280
LEAST = 1e-150


def upto(terms: int, size: Any, eps: float = EPS) -> Any:
    """What a sum of so many products of total size `size` (a number or an array) may be off by."""
    return (terms + 4) * eps * size + TINY


def unit_of(values: Reals) -> float:
    """EPS of the precision that the values are in."""
    return WIDE_EPS if values.dtype == np.longdouble else EPS


def norms(rows: Reals) -> Floats:
    """Norms of the rows, rounded up."""
    rows = np.asarray(rows, dtype=np.float64)
    return np.asarray(np.sqrt(np.vecdot(rows, rows)) * (1 + (rows.shape[1] + 4) * EPS) + LEAST)
