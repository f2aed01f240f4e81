"""Numbers, intervals, times and counts as people read them; every printed number of the package is formatted here.

A number shows as many digits as it deserves: those that its interval supports, or three if it has none.
"""

import math

ABSENT = "–"
"""Text in place of a missing number."""

FIGURES = 3
"""Significant digits of a number without an interval."""

INTERVAL_FIGURES = 2
"""Significant digits of an interval's half-width, which also set the decimals of the number next to it."""

_LARGE, _SMALL = 1e9, 1e-4
_MOST_DECIMALS = 8


def number(value: float | None, figures: int = FIGURES, sign: str = "") -> str:
    """Return a number to `figures` significant digits, without an exponent unless it is extreme.

    Example:
        >>> [number(value) for value in (0.5, 12.345, 123456.7, 2e12, -3e-7, None)]
        ['0.500', '12.3', '123,457', '2.00e+12', '−3.00e−07', '–']
    """
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    if not _SMALL <= abs(value) < _LARGE:
        return _typeset(f"{value:{sign}.{figures - 1}e}")
    return fixed(value, decimals(value, figures), sign)


def fixed(value: float | None, places: int, sign: str = "") -> str:
    """Return a number to `places` decimals, for numbers that are compared with each other."""
    if value is None or not math.isfinite(value):
        return ABSENT
    # A number that rounds to 0 has no sign.
    return _typeset(f"{round(value, places) + 0.0:{sign},.{places}f}")


def given(value: float, figures: int = 6) -> str:
    """Return a number that somebody chose, as short as possible and without added digits.

    Example:
        >>> [given(value) for value in (1.0, 0.95, 0.1)]
        ['1', '0.95', '0.1']
    """
    return _typeset(f"{value:.{figures}g}")


def decimals(size: float, figures: int) -> int:
    """Return the number of decimals that shows `figures` digits of a number of this size."""
    rounded = abs(float(f"{size:.{figures - 1}e}"))  # 0.9999 counts as 1
    if rounded == 0:
        return 0
    return min(max(figures - 1 - math.floor(math.log10(rounded)), 0), _MOST_DECIMALS)


def measured(
    value: float | None, half_width: float | None, sign: str = "", figures: int = INTERVAL_FIGURES
) -> str:
    """Return a number to the precision of its interval's half-width; without one, as `number` does."""
    places = _places(half_width, figures)
    if value is None or places is None or abs(value) >= _LARGE:
        return number(value, sign=sign)
    return fixed(value, places, sign)


def plus_minus(value: float | None, half_width: float | None, sign: str = "", space: str = " ") -> str:
    """Return a mean and its half-width to the same decimals, such as "26.8 ± 4.3", or the mean alone."""
    mean = measured(value, half_width, sign)
    if value is None or not math.isfinite(value) or half_width is None or not math.isfinite(half_width):
        return mean
    same = _places(half_width, INTERVAL_FIGURES) is not None and abs(value) < _LARGE
    half = measured(half_width, half_width) if same else number(half_width)
    return f"{mean}{space}±{space}{half}"


def ends(low: float | None, high: float | None, figures: int = INTERVAL_FIGURES, space: str = " ") -> str:
    """Return an interval, such as "[22.5, 31.1]", to the decimals that show `figures` digits of its half-width."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ABSENT
    half_width = (high - low) / 2
    return (
        f"[{measured(low, half_width, figures=figures)},{space}{measured(high, half_width, figures=figures)}]"
    )


def bracket(lower: float, upper: float) -> str:
    """Return two ends that agree in many digits, with one digit more than tells them apart."""
    for figures in range(4, 16):
        if number(lower, figures) != number(upper, figures):
            return f"[{number(lower, figures + 1)}, {number(upper, figures + 1)}]"
    return f"[{number(lower, 6)}, {number(upper, 6)}]"


def _places(half_width: float | None, figures: int) -> int | None:
    """Return the number of decimals that a half-width calls for; None if it is unknown."""
    if half_width is None or not 1e-6 <= half_width < _LARGE:
        return None
    return decimals(half_width, figures)


def _typeset(text: str) -> str:
    return text.replace("-", "−")


def duration(seconds: float | None, figures: int = 2) -> str:
    """Return a time in a suitable unit.

    Example:
        >>> [duration(seconds) for seconds in (3.2e-7, 0.0123, 4.56, 75, 600, 7260)]
        ['0.32 µs', '12 ms', '4.6 s', '75 s', '10 min', '2 h 01 min']
    """
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    for unit, size in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{number(seconds / size, figures)} {unit}"
    if seconds < 90:
        return f"{number(seconds, figures)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def count(many: int, thing: str, things: str = "") -> str:
    """Return a count with its noun, such as "1 run" or "1,000 policies"."""
    return f"{many:,} {thing if many == 1 else things or thing + 's'}"
