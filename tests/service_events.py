"""Events for tests of stores: any numbers will do."""

import numpy as np

from solid_bandits.core.decision import EXPIRED, LEARNED, Decision
from solid_bandits.live import events
from solid_bandits.live.events import Event

NOW = 1_700_000_000_000_000


def decided(sequence: int, event_id: str, time: int, offered: np.ndarray, **more) -> Event:
    """A decision among two or three arms."""
    shares = np.array([0.2, 0.5, 0.3] if len(offered) == 3 else [0.2, 0.8])
    more = {"arms": ("x", 1, "z")[: len(offered)], "version": "v/0"} | more
    one = Decision(
        1, offered[1], shares, offered=offered, event_id=event_id, time=time, sequence=sequence, **more
    )
    return events.decided(one)


def decision(sequence: int, event_id: str, subject: str | None = None) -> Event:
    """A decision among three arms with two features."""
    numbers = np.random.default_rng(sequence).normal(size=(3, 2))
    return decided(sequence, event_id, NOW + sequence, numbers, subject=subject)


def outcome(sequence: int, event_id: str, time: int, reward: float | None, status: str = LEARNED) -> Event:
    """What became of one."""
    found = Decision(0, event_id=event_id, status=status, reward=reward)
    found.reward_sequence, found.reward_time = sequence, time
    return events.closed(found)


def expiry(sequence: int, event_id: str, time: int, reward: float | None) -> Event:
    """It has waited long enough."""
    return outcome(sequence, event_id, time, reward, EXPIRED)


def closing(sequence: int, event_id: str, reward: float) -> Event:
    """Its reward."""
    return outcome(sequence, event_id, NOW + sequence, reward)


def group(first: int, count: int, prefix: str = "e") -> list[Event]:
    """So many decisions."""
    return [decision(number, f"{prefix}{number}") for number in range(first, first + count)]
