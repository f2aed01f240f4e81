"""Events, the lines of a bandit's log: made from decisions, read and checked."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from solid_bandits.core.decision import EXPIRED, LEARNED, SAID, Decision
from solid_bandits.features.design import Named

DECISION, ADOPTED, REWARD, EXPIRY, DELETION, ERASED, ARMS = (
    "decision",
    "adopted",
    "reward",
    "expiry",
    "deletion",
    "erased",
    "arms",
)
"""Kinds of events. An adopted decision was made elsewhere (`warm_start`). An expiry closes a decision whose reward did
not come; a deletion records that events were erased, and an erased event is only a number in the sequence. Arms are
added and removed by name if features have names.
"""
DECIDED = (DECISION, ADOPTED)
"""Decisions made together have an event each, so that each can be found and erased by its id; their events state their
index and the size of the batch, are contiguous, are committed together and are replayed as one batch.
"""


class Event(NamedTuple):
    """One line of a log."""

    sequence: int
    """Counted from 1 within the log, without gaps; the state is the result of events in this order."""
    kind: str
    event_id: str | None
    """Id of the decision, for decisions, rewards and expiries; a log has each at most once of either kind."""
    subject: str | None
    """The person that a decision is about, if the caller says so; used to find a person's events."""
    time: int
    """Time in microseconds since 1970."""
    body: str
    """JSON."""
    numbers: bytes | None
    """Numbers of a decision: probabilities (arms) and features (arms, dim), little-endian float64; the features of
    named values are not stored, as they follow from these.
    """
    digest: bytes
    """Digest of all of the above (`digest_of`)."""


def digest_of(
    sequence: int,
    kind: str,
    event_id: str | None,
    subject: str | None,
    time: int,
    body: str,
    numbers: bytes | None,
) -> bytes:
    """Return 16 bytes that change with any of these."""
    found = hashlib.blake2b(
        json.dumps([sequence, kind, event_id, subject, time, body]).encode(), digest_size=16
    )
    if numbers is not None:
        found.update(numbers)
    return found.digest()


def _make(
    sequence: int,
    kind: str,
    event_id: str | None,
    time: int,
    body: dict[str, Any],
    subject: str | None = None,
    numbers: bytes | None = None,
) -> Event:
    text = json.dumps(body, separators=(",", ":"), allow_nan=False)
    digest = digest_of(sequence, kind, event_id, subject, time, text, numbers)
    return Event(sequence, kind, event_id, subject, time, text, numbers, digest)


def decided(one: Decision, kind: str = DECISION) -> Event:
    """Return the event of a decision, with the features of all arms if it has them."""
    assert one.arms is not None  # a bandit's decisions have names
    assert one.probabilities is not None
    body = {"arms": list(one.arms), "place": one.place, "explored": one.explored, "version": one.version}
    if one.named is not None:
        body["context"] = one.named.context
        if one.named.own is not None:
            body["features"] = list(one.named.own)
    if one.batch is not None:
        body["batch"] = list(one.batch)
    body |= one.said
    parts = [one.probabilities] if one.offered is None else [one.probabilities, one.offered.reshape(-1)]
    numbers = np.concatenate(parts).astype("<f8", copy=False).tobytes()
    return _make(one.sequence, kind, one.event_id, one.time, body, one.subject, numbers)


def closed(one: Decision) -> Event:
    """Return the event of its outcome: a reward, or an expiry with its default reward, if any."""
    assert one.reward_sequence is not None  # the decision is closed
    assert one.reward_time is not None
    kind = REWARD if one.status == LEARNED else EXPIRY
    return _make(one.reward_sequence, kind, one.event_id, one.reward_time, {"reward": one.reward})


def of_arms(sequence: int, time: int, change: Mapping[str, Any]) -> Event:
    """Return the event of an arm that was added (`add`, and `like` another one) or removed (`remove`)."""
    return _make(sequence, ARMS, None, time, dict(change))


def deletion(sequence: int, time: int, count: int) -> Event:
    """Return the event for the erasure of `count` decisions."""
    return _make(sequence, DELETION, None, time, {"count": count})


def erased(sequence: int, time: int) -> Event:
    """Return the remainder of an event that was erased at a time."""
    return _make(sequence, ERASED, None, time, {})


def decision_in(event: Event) -> Decision:
    """Return the decision that an event describes."""
    body = json.loads(event.body)
    numbers = np.frombuffer(event.numbers or b"", dtype="<f8").astype(np.float64)
    count = len(body["arms"])
    offered = numbers[count:].reshape(count, -1)
    probabilities, place = numbers[:count].copy(), body["place"]  # a view would keep the features in memory
    chosen = offered[place].copy() if offered.size else None
    for array in (probabilities, chosen):
        if array is not None:
            array.setflags(write=False)
    one = Decision(
        place,
        chosen,
        probabilities,
        body["explored"],
        arms=tuple(body["arms"]),
        offered=offered if offered.size else None,
        event_id=event.event_id or "",
        subject=event.subject,
        said={name: body[name] for name in SAID if name in body},
        time=event.time,
        sequence=event.sequence,
        version=body["version"],
        named=_named(body),
    )
    if "batch" in body:
        first, count = body["batch"]
        one.batch = first, count
    return one


def grouped(log: Iterable[Event]) -> Iterator[list[Event]]:
    """Yield the events of a log in order, those of decisions made together as one list."""
    group: list[Event] = []
    left = 0
    for event in log:
        group.append(event)
        left = left - 1 if left else _together(event) - 1
        if left == 0:
            yield group
            group = []
    if group:
        yield group


def _together(event: Event) -> int:
    """Return the number of decisions in the batch that begins with this event."""
    if event.kind != DECISION or '"batch":[' not in event.body:  # within text quotes are escaped
        return 1
    try:
        place, count = json.loads(event.body)["batch"]
    except (ValueError, KeyError, TypeError):  # damaged; the replay will report it
        return 1
    return count if place == 0 and type(count) is int and count > 1 else 1


def _named(body: dict[str, Any]) -> Named | None:
    if "context" not in body:
        return None
    own = body.get("features")
    return Named(body["context"], tuple(body["arms"]), None if own is None else tuple(own))


def reward_in(event: Event) -> float | None:
    """Return the reward in an event, if any."""
    value = json.loads(event.body)["reward"]
    return None if value is None else float(value)


def close_by(one: Decision, event: Event) -> None:
    """Set the outcome of a decision from an event, without learning."""
    one.status = LEARNED if event.kind == REWARD else EXPIRED
    one.reward, one.reward_sequence, one.reward_time = reward_in(event), event.sequence, event.time


def is_sound(event: Event) -> bool:
    """Return whether an event is unchanged since it was written."""
    return event.digest == digest_of(*event[:7])
