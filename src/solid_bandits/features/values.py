"""Named values: the values that each type takes, how they are stored in a log, and the columns they become."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.checks import short
from solid_bandits.core.setting import LARGEST_FEATURE

NUMBER, BOOLEAN, CATEGORY, TAGS, DATE, WEEKDAY, HOUR = (
    "number",
    "boolean",
    "category",
    "tags",
    "date",
    "weekday",
    "hour",
)
TYPES = (NUMBER, BOOLEAN, CATEGORY, TAGS, DATE, WEEKDAY, HOUR)
"""Types. `date` is a time as a number of days; `weekday` and `hour` are categories of a time."""
MEASURED = (NUMBER, DATE)
"""Types with one column of numbers, which is standardised."""
LONGEST = 200
"""Largest number of characters of a category."""
MOST_TAGS = 1000
"""Largest number of tags in one value."""
_DAY = 86_400.0
_NAMES_OF_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WANTED = {
    NUMBER: "a number",
    BOOLEAN: "true or false",
    CATEGORY: f"text of 1 to {LONGEST} printable characters, or a whole number",
    TAGS: f"a list of texts of 1 to {LONGEST} printable characters",
    DATE: "a date or a time, such as '2026-03-01' or '2026-03-01T12:30:00Z'",
    WEEKDAY: "a date or a time, such as '2026-03-01'",
    HOUR: "a time, such as '2026-03-01T12:30:00Z'",
}
_REMEDY = {
    NUMBER: "to use words, declare it as a category, {name!r}: 'category'",
    BOOLEAN: "for more than two values, declare {name!r}: 'category'",
    CATEGORY: "leave out the name, or give None, where the value is missing",
    TAGS: "one text that is not a list is a category: declare {name!r}: 'category'",
    DATE: "leave out the name, or give None, where the value is missing",
    WEEKDAY: "leave out the name, or give None, where the value is missing",
    HOUR: "leave out the name, or give None, where the value is missing",
}


def plain(value: Any) -> Any:
    """Return a NumPy value, or one of a subclass of Python's types, as a plain Python value."""
    if isinstance(value, np.datetime64):  # of nanoseconds `item` would make a whole number
        return None if np.isnat(value) else value.astype(f"datetime64[{_unit(value)}]").item()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def _unit(time: np.datetime64) -> str:
    unit = np.datetime_data(time.dtype)[0]
    return "us" if unit in ("ns", "ps", "fs", "as") else unit


def type_of(name: str, value: Any) -> str:
    """Return the type that a value, which is not missing, implies for its name."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    if isinstance(value, str):
        return CATEGORY
    if isinstance(value, list | tuple | set | frozenset):
        return TAGS
    if isinstance(value, date):
        raise checks.ArgumentError(
            name,
            f"must be declared to take dates, got {short(value)}; declare {name!r}: 'date' (a number of days), "
            "'weekday' or 'hour'",
        )
    raise checks.ArgumentError(
        name, f"must be a number, true or false, text, a list of tags, or None, got {short(value)}"
    )


def checked(name: str, kind: str, value: Any) -> Any:
    """Return a value, which is not missing, as a log stores it; raise an ArgumentError if its type does not take it."""
    found = _TAKEN[kind](value)
    if found is None:
        if isinstance(value, float) and value != value:
            raise checks.ArgumentError(
                name, "must not be NaN, got nan; leave out the name, or give None, where the value is missing"
            )
        remedy = (
            "give a number"
            if kind == NUMBER and _is_almost_a_number(value)
            else _REMEDY[kind].format(name=name)
        )
        raise checks.ArgumentError(name, f"must be {_WANTED[kind]}, got {short(value)}; {remedy}")
    return found


def _is_almost_a_number(value: Any) -> bool:
    """Return whether a value that is not taken as a number is no word either: 1e40, True or '34'."""
    try:
        return not isinstance(value, str) or float(value) is not None
    except ValueError:
        return False


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST_FEATURE:
        return None
    return value if isinstance(value, int) and abs(value) <= checks.LARGEST_INTEGER else float(value)


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool) or (isinstance(value, int | float) and value in (0, 1)):
        return bool(value)
    return None


def _category(value: Any) -> str | None:
    if isinstance(value, float) and abs(value) <= checks.LARGEST_INTEGER and value.is_integer():
        value = int(value)  # a column of pandas in which one is missing has floats
    if isinstance(value, int):
        value = str(value)
    if isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable():
        return value
    return None


def _tags(value: Any) -> list[str] | None:
    if not isinstance(value, list | tuple | set | frozenset) or len(value) > MOST_TAGS:
        return None
    found = [_category(plain(one)) for one in value]
    return None if None in found else sorted(set(found))  # type: ignore[arg-type]


def _time(value: Any) -> str | None:
    """Return a date or a time in ISO form; without a zone a time is UTC."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    try:
        return value if isinstance(value, str) and datetime.fromisoformat(value) is not None else None
    except ValueError:
        return None


def _time_of_day(value: Any) -> str | None:
    found = _time(value)
    return found if found is not None and len(found) > len("2026-03-01") else None


_TAKEN: dict[str, Callable[[Any], Any]] = {
    NUMBER: _number,
    BOOLEAN: _boolean,
    CATEGORY: _category,
    TAGS: _tags,
    DATE: _time,
    WEEKDAY: _time,
    HOUR: _time_of_day,
}


def moment_of(text: str) -> datetime:
    """Return a time in ISO form as an aware one, in the caller's zone if it has one."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def days_of(text: str) -> float:
    """Return a time in ISO form in days since 1970."""
    return moment_of(text).timestamp() / _DAY


def words_of(kind: str, value: Any) -> list[str]:
    """Return the categories of a checked value of a non-numeric type."""
    if kind == TAGS:
        return value
    if kind == WEEKDAY:
        return [_NAMES_OF_DAYS[moment_of(value).weekday()]]
    if kind == HOUR:
        return [str(moment_of(value).hour)]
    return [value]


def unknown_name(what: str, name: Any, known: list[str]) -> checks.ArgumentError:
    """Return the error for a name that was not declared."""
    near = get_close_matches(name, known, n=1) if isinstance(name, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(map(repr, known[:8])) + (", ..." if len(known) > 8 else "") if known else "none"
    return checks.ArgumentError(
        short(name),
        f"must be a declared name of {what}: there are {listed}{hint}; declare it, or leave it out",
    )


def is_missing(value: Any) -> bool:
    """Return whether a value of a frame or a call means that there is none."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def of_pandas(value: Any) -> Any:
    """Return a value of a pandas frame, where NaN is missing: its columns of numbers have nothing else. Anywhere else
    NaN is an error.
    """
    return None if is_missing(value) or (isinstance(value, float) and value != value) else value
