"""Checks of arguments: one `ArgumentError` each, naming the argument, what it must be and what was received."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from reprlib import repr as _repr
from typing import TYPE_CHECKING, Any

try:
    import numpy as np
except ModuleNotFoundError:  # a client's checks are without it: there are no values of its types then
    _INTEGERS: Any = int
    _NUMBERS: Any = int | float
    _TRUTHS: Any = bool
    _NO_NUMBERS: Any = bool
else:
    _INTEGERS = int | np.integer
    _NUMBERS = int | float | np.integer | np.floating
    _TRUTHS = bool | np.bool_
    _NO_NUMBERS = bool | np.timedelta64

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from solid_bandits._internal.types import Floats

SMALLEST, LARGEST = 1e-20, 1e20
"""Limits of σ, B, ridges and factors; features and rewards may be up to 1e30 (`setting`)."""
LARGEST_INTEGER = 2**53
"""Largest integer: floats represent every integer up to here, and compiled code can count further without overflow."""


class ArgumentError(ValueError):
    """Raised for an invalid argument.

    Args:
        argument: its name, which begins the message; a reader of files finds the line of the value by it.
        complaint: the rest of the message.

    """

    def __init__(self, argument: str, complaint: str) -> None:
        super().__init__(argument, complaint)
        self.argument = argument

    def __str__(self) -> str:
        return " ".join(self.args)


def short(value: object) -> str:
    """Return a value in a few words and one line."""
    return " ".join(_repr(value).split())


def is_masked(value: object) -> bool:
    """Return whether this is an array with masked entries; NumPy loads that class only on first use."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)


def array(name: str, value: ArrayLike, *axes: str) -> Floats:
    """Return `value` as a read-only float64 array with the named axes, all of them non-empty and finite."""
    wanted = f"must be an array of numbers of shape ({', '.join(axes)})"
    try:
        found = np.asarray(value)
    except ValueError:  # rows of different lengths
        raise ArgumentError(name, f"{wanted}, got {short(value)}") from None
    # Reject types that NumPy would also turn into floats: complex numbers, text, dates, masked entries, objects.
    if found.dtype.kind not in "biuf" or is_masked(value):
        kind = "masked values" if is_masked(value) else f"{found.dtype} of {short(value)}"
        raise ArgumentError(name, f"{wanted}, got {kind}")
    result = np.array(found, dtype=np.float64, order="C")
    if result.ndim != len(axes) or 0 in result.shape:
        empty = ", none of them empty" if 0 in result.shape else ""
        raise ArgumentError(name, f"{wanted}{empty}, got shape {result.shape}")
    if not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise ArgumentError(name, f"must be finite everywhere, got {result[where]} at index {where}")
    result.flags.writeable = False
    return result


def number(
    name: str,
    value: float,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """Return `value` as a finite float that is > `above`, >= `least`, < `below` and <= `most`."""
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, _NUMBERS):
        raise ArgumentError(name, f"must be a number, got {short(value)}")
    try:
        result = float(value)
    except OverflowError:
        raise ArgumentError(name, f"must be a number that fits a float, got {short(value)}") from None
    limits = [
        (f"> {above:g}", result > above) if above is not None else None,
        (f">= {least:g}", result >= least) if least is not None else None,
        (f"< {below:g}", result < below) if below is not None else None,
        (f"<= {most:g}", result <= most) if most is not None else None,
    ]
    asked = [limit for limit in limits if limit is not None]
    if math.isfinite(result) and all(holds for _, holds in asked):
        return result
    wanted = [words for words, _ in asked]
    if not math.isfinite(result):
        wanted.insert(0, "finite")
    raise ArgumentError(name, f"must be {' and '.join(wanted)}, got {value!r}")


def positive(name: str, value: float) -> float:
    """Return `value` as a float from `SMALLEST` to `LARGEST`, within which no product of a policy overflows."""
    result = number(name, value, above=0)
    if not SMALLEST <= result <= LARGEST:
        raise ArgumentError(name, f"must be from {SMALLEST:g} to {LARGEST:g}, got {value!r}; use other units")
    return result


def not_negative(name: str, value: float) -> float:
    """Return `value` as a float from 0 to `LARGEST`."""
    return number(name, value, least=0, most=LARGEST)


def integer(name: str, value: int, *, least: int, most: int = LARGEST_INTEGER) -> int:
    """Return `value` as an int that is >= `least` and <= `most`."""
    result = whole(value)
    if result is None or result < least:
        raise ArgumentError(name, f"must be an integer >= {least}, got {short(value)}")
    if result > most:
        raise ArgumentError(name, f"must be an integer from {least} to {most}, got {short(value)}")
    return result


def whole(value: object) -> int | None:
    """A whole number as an int, compared as one: what a class of its own says of itself counts for nothing."""
    if isinstance(value, _NO_NUMBERS) or not isinstance(value, _INTEGERS):
        return None
    return int.__int__(operator.index(value))


def switch(name: str, value: bool) -> bool:
    """Return `value` if it is true or false."""
    if not isinstance(value, _TRUTHS):
        raise ArgumentError(name, f"must be True or False, got {short(value)}")
    return bool(value)


def index(name: str, value: int, count: int) -> int:
    """Return `value` as an int from 0 to `count` - 1."""
    if type(value) is int and 0 <= value < count:  # fast path, because every decision calls this
        return value
    result = whole(value)
    if result is None or not 0 <= result < count:
        raise ArgumentError(name, f"must be an integer from 0 to {count - 1}, got {short(value)}")
    return result


def choice(name: str, value: str, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`; the error suggests the nearest one."""
    known = list(options)
    if isinstance(value, str):
        for one in known:
            if str.__eq__(one, value) is True:
                return one
    raise ArgumentError(name, must_be_one_of(value, known))


def must_be_one_of(value: object, known: list[str]) -> str:
    """Return the complaint about a value that is not one of the known ones; it suggests the nearest one."""
    near = get_close_matches(value, known, n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"must be one of {', '.join(known)}, got {short(value)}{hint}"
