"""Compilation of forms, and their common constants.

Each form takes the number of repetitions first; its line with HUGE chains a repetition to the one before.
"""

import numba

HUGE = 1e300
BLOCK = 64
"""Number of columns that a blocked form carries through all its work at once: few enough for the first-level cache."""
STRIP = 512
"""Number of columns of a table whose running sums a blocked form keeps in the first-level cache."""

# Without numba's reference counts: nothing is allocated here, and counting references is not part of the work.
compiled = numba.njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz", "nnan"},
    _nrt=False,
)
