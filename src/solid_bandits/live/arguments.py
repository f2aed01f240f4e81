"""Arguments of a bandit's calls, checked."""

import time as clock
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.checks import short
from solid_bandits.core.decision import Arm
from solid_bandits.core.ids_and_times import FIRST_TIME, LAST_TIME, LONGEST_ID, NAME, is_name, microseconds
from solid_bandits.core.setting import LARGEST_REWARD

Time = datetime | float
"""An aware datetime, or seconds since 1970."""
LARGEST_NAME = 2**64
"""Bound on the size of whole numbers that name arms."""


def now() -> int:
    """Return the time, in microseconds since 1970."""
    return clock.time_ns() // 1000


def moment(name: str, value: Time | None) -> int:
    """Return a time in microseconds since 1970 that a log can hold; None is now."""
    if value is None:
        return now()
    found = microseconds(name, value)
    if not FIRST_TIME <= found <= LAST_TIME:
        raise ValueError(f"{name} must be within the years 1 to 9999, got {short(value)}")
    return found


def names_of(arms: Sequence[Arm] | None, count: int) -> tuple[Arm, ...]:
    """Return the names of the arms on offer: text or whole numbers, all distinct."""
    if arms is None:
        return tuple(range(count))
    if isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray) or np.ndim(arms) == 0:
        raise ValueError(f"arms must be a list of {count} names, got {short(arms)}")
    found = tuple(arms.tolist() if isinstance(arms, np.ndarray) else arms)
    if len(found) != count:
        raise ValueError(f"arms must be {count} names, one per row of features, got {len(found)}")
    for name in found:
        _check_arm(name)
    if len({str(name) for name in found}) < count:
        raise ValueError(f"arms must be different from each other, got {short(found)}")
    return found


def _check_arm(name: Any) -> None:
    if type(name) is str:
        if not is_name(name):
            raise ValueError(
                f"arms must have names of 1 to {LONGEST_ID} printable characters, got {short(name)}"
            )
    elif type(name) is not int:
        raise ValueError(f"arms must be text or whole numbers, got {short(name)}")
    elif not -LARGEST_NAME < name < LARGEST_NAME:
        raise ValueError("arms must be whole numbers of at most 64 bits, got a larger one")


def checked_id(event_id: Any, name: str = "event_id") -> str:
    """Return an id; raise a ValueError if it is not valid."""
    if not is_name(event_id):
        raise ValueError(f"{name} must be {NAME}, got {short(event_id)}")
    return event_id


def text_id(event_id: Any, name: str = "event_id") -> str:
    """Return an id to search for, which may be any text."""
    if not isinstance(event_id, str):
        raise ValueError(f"{name} must be text, got {short(event_id)}")
    return event_id


def text_ids(name: str, ids: Any) -> list[str]:
    """Return ids to search for, given one or several."""
    if isinstance(ids, str):
        return [ids]
    try:
        return [text_id(one, name) for one in ids]
    except TypeError:
        raise ValueError(f"{name} must be text, or a list of texts, got {short(ids)}") from None


def reward_of(reward: Any) -> float:
    """Return a reward as a float; a click is 1 or 0."""
    if type(reward) is float and -LARGEST_REWARD <= reward <= LARGEST_REWARD:
        return reward
    if isinstance(reward, bool | np.bool_):
        return float(reward)
    return checks.number("reward", reward, least=-LARGEST_REWARD, most=LARGEST_REWARD)
