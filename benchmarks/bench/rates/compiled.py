"""How forms are compiled, and what they have in common.

Each form takes the number of repetitions first; its line with HUGE chains a repetition to the one before.
"""

import numba

HUGE = 1e300
BLOCK = 64
"""Columns that a blocked form carries through all its work at once: few enough for the first cache."""
STRIP = 512
"""Columns of a table whose running sums a blocked form keeps in the first cache."""

# Without numba's reference counts: nothing is allocated here, and counting references is none of the work.
compiled = numba.njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz", "nnan"},
    _nrt=False,
)
