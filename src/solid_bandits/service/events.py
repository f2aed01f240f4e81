"""Events as the log has them: made, read and checked."""

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._types import Floats
from solid_bandits.service.store import DECISION, DELETION, ERASED, EXPIRY, REWARD, Event

Arm = str | int


class Decided(NamedTuple):
    """What the event of a decision says."""

    arms: tuple[Arm, ...]
    place: int
    probabilities: Floats
    features: Floats
    explored: bool
    version: str


def digest_of(
    sequence: int,
    kind: str,
    event_id: str | None,
    subject: str | None,
    time: int,
    body: str,
    numbers: bytes | None,
) -> bytes:
    """16 bytes that change with any of these."""
    found = hashlib.blake2b(
        json.dumps([sequence, kind, event_id, subject, time, body]).encode(), digest_size=16
    )
    if numbers is not None:
        found.update(numbers)
    return found.digest()


def make(
    sequence: int,
    kind: str,
    event_id: str | None,
    time: int,
    body: dict[str, Any],
    *,
    subject: str | None = None,
    numbers: bytes | None = None,
) -> Event:
    """An event with its digest."""
    text = json.dumps(body, separators=(",", ":"), allow_nan=False)
    digest = digest_of(sequence, kind, event_id, subject, time, text, numbers)
    return Event(sequence, kind, event_id, subject, time, text, numbers, digest)


def decision(sequence: int, event_id: str, time: int, decided: Decided, subject: str | None = None) -> Event:
    """The event of a decision."""
    body = {
        "arms": list(decided.arms),
        "place": decided.place,
        "explored": decided.explored,
        "version": decided.version,
    }
    numbers = np.concatenate([decided.probabilities, decided.features.reshape(-1)]).astype("<f8").tobytes()
    return make(sequence, DECISION, event_id, time, body, subject=subject, numbers=numbers)


def decided_in(event: Event) -> Decided:
    """What a decision's event says."""
    body = json.loads(event.body)
    arms = tuple(body["arms"])
    numbers = np.frombuffer(event.numbers or b"", dtype="<f8").astype(np.float64)
    count = len(arms)
    return Decided(
        arms=arms,
        place=body["place"],
        probabilities=numbers[:count],
        features=numbers[count:].reshape(count, -1),
        explored=body["explored"],
        version=body["version"],
    )


def reward(sequence: int, event_id: str, time: int, value: float) -> Event:
    """The event of a reward."""
    return make(sequence, REWARD, event_id, time, {"reward": value})


def expiry(sequence: int, event_id: str, time: int, value: float | None) -> Event:
    """A decision has waited long enough; the reward that is learnt for it, if any."""
    return make(sequence, EXPIRY, event_id, time, {"reward": value})


def reward_in(event: Event) -> float | None:
    """The reward that an event brings."""
    value = json.loads(event.body)["reward"]
    return None if value is None else float(value)


def deletion(sequence: int, time: int, count: int) -> Event:
    """So many events were erased."""
    return make(sequence, DELETION, None, time, {"count": count})


def erased(sequence: int, time: int) -> Event:
    """What stays of an event that was erased at a time."""
    return make(sequence, ERASED, None, time, {})


def is_sound(event: Event) -> bool:
    """Whether an event is what was written."""
    return event.digest == digest_of(*event[:7])
