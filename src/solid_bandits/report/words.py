"""Numbers, intervals and times in words, as the page of experiments writes them."""

import math

from solid_bandits import _words
from solid_bandits.report.measures import Estimate

UNKNOWN = "–"


def number(value: float | None, half_width: float | None = None, sign: str = "", figures: int = 4) -> str:
    """A number with the decimals that two figures of its interval's half-width ask for, or its own `figures`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if half_width is not None and 0 < half_width < math.inf:
        decimals = _decimals(half_width, 2)
    else:
        decimals = _decimals(abs(value), figures) if value else 0
    # What rounds to 0 has no sign of its own.
    return f"{round(value, decimals) + 0.0:{sign},.{decimals}f}".replace("-", "−")


def _decimals(size: float, figures: int) -> int:
    """Decimals that show so many figures of a number of this size."""
    rounded = float(f"{size:.{figures}g}")  # 0.9999 is as large as 1
    return min(max(figures - 1 - math.floor(math.log10(rounded)), 0), 8)


def interval(estimate: Estimate | None) -> str:
    """Both ends, or a dash where they are unknown."""
    if estimate is None or estimate.half_width is None:
        return UNKNOWN
    low, high = (number(end, estimate.half_width) for end in (estimate.low, estimate.high))
    return f"[{low}, {high}]"


def duration(seconds: float | None) -> str:
    """A time in the unit that suits it."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    for unit, size in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{number(seconds / size, figures=3)} {unit}"
    return f"{number(seconds, figures=3)} s" if seconds < 90 else _words.duration(seconds)
