"""Limits of ids, names and times of decisions, in calls, in stores and in logs."""

from datetime import UTC, datetime
from typing import Any, TypeGuard

from solid_bandits._internal import checks

FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999 in microseconds since 1970: the range of a datetime, and so of a log."""
LONGEST_ID = 200
"""Largest number of characters of an id or of an arm's name."""
NAME = f"text of 1 to {LONGEST_ID} printable characters"


def is_name(value: Any) -> TypeGuard[str]:
    """Return whether this is text that every file and log can hold; unpaired surrogates are not printable."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable()


def microseconds(name: str, value: datetime | float) -> int:
    """Return a time, as an aware datetime or Unix seconds, in microseconds since 1970."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} must have a time zone, such as datetime.now(UTC), got {value!r}")
        difference = value - datetime(1970, 1, 1, tzinfo=UTC)
        return (difference.days * 86_400 + difference.seconds) * 1_000_000 + difference.microseconds
    return round(checks.number(name, value, least=-1e11, most=1e11) * 1e6)
