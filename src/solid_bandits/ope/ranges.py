"""The least and the largest possible reward, as declared, or 0 and 1 if the rewards suggest it."""

from typing import Any

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits.core.setting import LARGEST_REWARD
from solid_bandits.ope.rows import Reader

Ends = tuple[float, float]
ASSUMED = "all rewards are within [0, 1], and the anytime-valid bounds take it that they must be"


def checked_range(given: Any) -> Ends | None:
    """Return a declared range, checked; None if there is none."""
    if given is None:
        return None
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise ArgumentError("reward_range", f"must be two numbers, got {short(given)}") from None
    if not -LARGEST_REWARD <= low < high <= LARGEST_REWARD:
        raise ArgumentError(
            "reward_range",
            f"must be two finite numbers of at most {LARGEST_REWARD:g} in size, the smaller first, got {short(given)}",
        )
    return low, high


def range_of(reader: Reader, given: Any) -> tuple[Ends | None, list[str]]:
    """Return the range of the rewards of a log (None if unknown), and assumptions in words."""
    ends = checked_range(given)
    rewards = reader.table()["reward"].drop_nulls()
    filled = [] if reader.missing_reward is None else [reader.missing_reward]
    seen = [*filled, *([rewards.min(), rewards.max()] if rewards.len() else [])]
    low, high = ends or (0.0, 1.0)
    within = all(low <= float(one) <= high for one in seen)  # type: ignore[arg-type]
    if ends is not None and not within:
        raise ArgumentError("reward_range", f"must hold all rewards, got {ends}")
    if ends is not None:
        return ends, []
    return ((0.0, 1.0), [ASSUMED]) if within else (None, [])
