"""Events for tests of stores: any numbers will do."""

import numpy as np

from solid_bandits.service import events
from solid_bandits.service.store import Event

NOW = 1_700_000_000_000_000


def decision(sequence: int, event_id: str, subject: str | None = None) -> Event:
    """A decision among three arms with two features."""
    numbers = np.random.default_rng(sequence).normal(size=(3, 2))
    decided = events.Decided(("x", 1, "z"), 1, np.array([0.2, 0.5, 0.3]), numbers, False, "v/0")
    return events.decision(sequence, event_id, NOW + sequence, decided, subject)


def closing(sequence: int, event_id: str, reward: float) -> Event:
    """Its reward."""
    return events.reward(sequence, event_id, NOW + sequence, reward)


def group(first: int, count: int, prefix: str = "e") -> list[Event]:
    """So many decisions."""
    return [decision(number, f"{prefix}{number}") for number in range(first, first + count)]
