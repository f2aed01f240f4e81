"""Arguments of a bandit's calls, checked."""

import time as clock
from collections.abc import Sequence
from reprlib import repr as short
from typing import Any

import numpy as np

from solid_bandits import _check
from solid_bandits.live.memory import Arm
from solid_bandits.setting import LARGEST_REWARD

LONGEST_ID = 200


def now() -> int:
    """The time, in microseconds since 1970."""
    return clock.time_ns() // 1000


def names_of(arms: Sequence[Arm] | None, count: int) -> tuple[Arm, ...]:
    """The names of the arms on offer, text or whole numbers, different from each other."""
    if arms is None:
        return tuple(range(count))
    if isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray):
        raise ValueError(f"arms must be a list of {count} names, got {short(arms)}")
    found = tuple(arms.tolist() if isinstance(arms, np.ndarray) else arms)
    if len(found) != count:
        raise ValueError(f"arms must be {count} names, one per row of features, got {len(found)}")
    if not all(type(name) in (str, int) for name in found):
        wrong = next(name for name in found if type(name) not in (str, int))
        raise ValueError(f"arms must be text or whole numbers, got {short(wrong)}")
    if len({str(name) for name in found}) < count:
        raise ValueError(f"arms must be different from each other, got {short(found)}")
    return found


def checked_id(event_id: Any) -> str:
    """An id, if it is one."""
    if not isinstance(event_id, str) or not 0 < len(event_id) <= LONGEST_ID or not event_id.isprintable():
        raise ValueError(f"event_id must be text of 1 to {LONGEST_ID} printable signs, got {short(event_id)}")
    return event_id


def reward_of(reward: Any) -> float:
    """A reward as a float; a click is 1 or 0."""
    if isinstance(reward, bool | np.bool_):
        return float(reward)
    return _check.number("reward", reward, least=-LARGEST_REWARD, most=LARGEST_REWARD)
