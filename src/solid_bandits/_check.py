"""Checks of arguments: one ValueError each, naming the argument, what was received and what would do."""

import math
from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._types import Floats


def array(name: str, value: ArrayLike, *axes: str) -> Floats:
    """Return `value` as a read-only float64 array with the named axes, all of them non-empty and finite."""
    shape_wanted = f"({', '.join(axes)})"
    try:
        result = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not an array of numbers; give floats of shape {shape_wanted}") from None
    if result.ndim != len(axes) or 0 in result.shape:
        raise ValueError(f"{name} has shape {result.shape}; give a non-empty array of shape {shape_wanted}")
    if not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise ValueError(f"{name} holds {result[where]} at index {where}; every entry must be finite")
    result.flags.writeable = False
    return result


def number(
    name: str,
    value: float,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> float:
    """Return `value` as a finite float that is > `above`, >= `least` and <= `most`."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; give a number") from None
    fits = (
        math.isfinite(result)
        and (above is None or result > above)
        and (least is None or result >= least)
        and (most is None or result <= most)
    )
    if fits:
        return result
    bounds = [
        f"> {above:g}" if above is not None else "",
        f">= {least:g}" if least is not None else "",
        f"<= {most:g}" if most is not None else "",
    ]
    wanted = " and ".join(bound for bound in bounds if bound) or "any finite value"
    raise ValueError(f"{name} is {value!r}; give a finite number {wanted}")


def integer(name: str, value: int, *, least: int) -> int:
    """Return `value` as an int that is >= `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} is {value!r}; give a whole number >= {least}")
    return int(value)


def index(name: str, value: int, count: int) -> int:
    """Return `value` as an int from 0 to `count` - 1."""
    if type(value) is int and 0 <= value < count:  # at once: this is asked at every decision
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < count:
        raise ValueError(f"{name} is {value!r}; give an index from 0 to {count - 1}")
    return int(value)


def choice(name: str, value: str, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`; the error names the nearest one."""
    known = list(options)
    if value in known:
        return value
    near = get_close_matches(str(value), known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"{name} is {value!r}; {hint}choose from {', '.join(known)}")
