"""Bandits from their logs: snapshot and replay."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from solid_bandits._internal.types import Plain
from solid_bandits.core.agent_file import policy_from_plain
from solid_bandits.core.decision import EXPIRED, LEARNED, OPEN, Decision
from solid_bandits.features.spec import Features
from solid_bandits.live import events
from solid_bandits.live.events import (
    ADOPTED,
    ARMS,
    DECIDED,
    DECISION,
    DELETION,
    ERASED,
    EXPIRY,
    REWARD,
    Event,
)
from solid_bandits.live.history import History
from solid_bandits.live.snapshots import ids_in, opened, packed, sealed, unpacked
from solid_bandits.live.store import ModelRow, Snapshot, Store, StoreError
from solid_bandits.live.weighed import Weighed, size_of
from solid_bandits.policies.contract import Policy

if TYPE_CHECKING:
    from solid_bandits.live.bandit import Bandit

MOST_STARTS = 20
"""Number of times a replay restarts at a new origin before it gives up, if deletions come faster than it replays."""
FEW = 32
"""Events that are read by their ids at a time: each may have a megabyte."""
COUNTED = (
    (DECISION, "decision"),
    (ADOPTED, "adopted decision"),
    (REWARD, "reward"),
    (EXPIRY, "expired decision"),
    (ARMS, "arm change"),
    ("snapshot", "snapshot"),
)
logger = logging.getLogger("solid_bandits.live")


class Beside(Protocol):
    """Data derived from a bandit's decisions and updated with it, such as statistics."""

    def take(self, decision: Decision) -> None:
        """Handle a decision that was made (it is open), or has its outcome."""

    def state(self) -> Plain:
        """Return everything as plain data, for a snapshot."""


class Source(NamedTuple):
    """The log of a bandit, and its initial state."""

    store: Store
    row: ModelRow
    name: str
    """Name in messages."""
    new: "Callable[[], Bandit]"
    """The bandit before its first event."""
    policy: Policy | None = None
    """The policy, if it is not one of this package."""
    beside: Callable[[Plain | None, int], Beside] | None = None
    """Function that makes the derived data from a snapshot's part after an event; from None at the beginning."""
    memory: Callable[[], int] | None = None
    """Bytes that remembered decisions may take, older ones being left to the log; None keeps all."""

    def decisions(self, event_ids: Sequence[str]) -> Iterator[Decision]:
        """Yield logged decisions of these ids, a few in memory at a time; a ValueError if one is damaged."""
        for start in range(0, len(event_ids), FEW):
            for event in self.store.find(self.row.id, event_ids[start : start + FEW]):
                if event.kind in DECIDED:
                    if not events.is_sound(event):
                        raise ValueError(
                            f"event {event.sequence} is not what was written: its digest differs"
                        )
                    yield events.decision_in(event)


class ReplayDiverged(Exception):  # noqa: N818 (it says what happened)
    """Raised if a log does not match its replay: it is damaged, or another version of this package decides otherwise.

    Example:
        >>> import solid_bandits as sb
        >>> raise sb.errors.ReplayDiverged("'shop.db'", "event 7 (reward): event_id 'visit-3' is not open")
        Traceback (most recent call last):
        solid_bandits.live.recovery.ReplayDiverged: 'shop.db', event 7 (reward): event_id 'visit-3' is not open
    """

    def __init__(self, name: str, words: str) -> None:
        super().__init__(f"{name}, {words}")


def _diverged(source: Source, event: Event, words: str) -> ReplayDiverged:
    return ReplayDiverged(source.name, f"event {event.sequence} ({event.kind}): {words}")


def loaded(source: Source, snapshot: Snapshot | None) -> "Bandit":
    """A bandit as a snapshot has it, a StoreError where that cannot be used; None is one before its first event."""
    if snapshot is None:
        bandit = source.new()
        bandit._remembered = Weighed(bandit._remembered, {})
        if source.beside is not None:
            bandit.beside = source.beside(None, 0)
        return bandit
    try:
        content = opened(snapshot.content)
        decisions, left = _decisions_of(content["bandit"], source)
        bandit = unpacked(content["bandit"], decisions, source.policy)
        bandit._remembered = Weighed(bandit._remembered, left)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise StoreError(f"{source.name}, snapshot {snapshot.sequence}: {error}") from None
    bandit._snapshot = snapshot.sequence, snapshot.time
    if source.beside is not None:
        bandit.beside = source.beside(content.get("beside"), snapshot.sequence)
    return bandit


def _decisions_of(plain: Plain, source: Source) -> tuple[dict[str, Decision], dict[str, int]]:
    """Return the decisions that a packed bandit waits for, without arrays beyond its memory, and the sizes of these."""
    found: dict[str, Decision] = {}
    left: dict[str, int] = {}
    total, most = 0, None if source.memory is None else source.memory()
    for one in source.decisions(ids_in(plain)):
        size = size_of(one)
        total += size
        if most is not None and total > most:
            one.arms = one.probabilities = one.features = one.offered = one.named = None
            left[one.event_id] = size
        found[one.event_id] = one
    return found, left


def caught_up(bandit: "Bandit | None", source: Source) -> "Bandit":
    """Return a bandit that has replayed its whole log: a new one, or the existing one if it can continue."""
    fresh = bandit is None
    if bandit is None:
        bandit = _begun(source)
    for group in events.grouped(source.store.read(source.row.id, after=bandit._sequence)):
        if _gone(group) and not fresh:
            return caught_up(None, source)  # what it would need to go on is gone: a snapshot has it
        take(bandit, group, source)
    return bandit


def _gone(group: Sequence[Event]) -> Event | None:
    """Return the first of these events that cannot be replayed because decisions were erased."""
    return next((event for event in group if event.kind in (ERASED, DELETION)), None)


def _begun(source: Source) -> "Bandit":
    """Return the bandit from its newest usable snapshot, or from nothing: the log contains everything in a snapshot."""
    until = None
    while True:
        snapshot = source.store.snapshot(source.row.id, until)
        try:
            return loaded(source, snapshot)
        except StoreError as error:
            if snapshot is None:
                raise
            logger.warning("%s; an earlier one is used", error)
            until = snapshot.sequence - 1


def weighed_of(bandit: "Bandit") -> Weighed:
    """What a bandit that was read from its log remembers."""
    assert isinstance(bandit._remembered, Weighed)
    return bandit._remembered


def take(bandit: "Bandit", group: Sequence[Event], source: Source) -> None:
    """Take in an event of the log, or a batch of decisions; a ReplayDiverged where what follows from the log is not
    what it says.
    """
    history = bandit._history
    bandit._history = History()  # the log has it
    try:
        _make_whole(bandit, group[0], source)
        words = _applied(bandit, group)
    except (ValueError, KeyError, TypeError, IndexError) as error:  # what a damaged row may lead to
        raise _diverged(source, group[0], str(error)) from None
    finally:
        bandit._history = history
    if words is not None:
        raise _diverged(source, group[0], words)
    if source.memory is not None and weighed_of(bandit).shed(source.memory()):
        bandit._forgetful = True


def _make_whole(bandit: "Bandit", event: Event, source: Source) -> None:
    """Read again what memory has left to the log of the decision that gets its outcome."""
    known = bandit._remembered.find(event.event_id or "")
    if known is not None and known.arms is None:
        bandit._remembered.restored({one.event_id: one for one in source.decisions([known.event_id])})


def _applied(bandit: "Bandit", group: Sequence[Event]) -> str | None:
    for number, event in enumerate(group, bandit._sequence + 1):
        if event.sequence != number:
            return f"event {number} is missing"
        if not events.is_sound(event):
            return "the event is not what was written: its digest differs"
        if event.kind in DECIDED and bandit._remembered.find(event.event_id or "") is not None:
            return f"event_id {event.event_id!r} was decided before"
    event = group[0]
    if event.kind == DECISION:
        logged = [events.decision_in(one) for one in group if one.kind == DECISION]
        if [one.batch or (0, 1) for one in logged] != [(place, len(group)) for place in range(len(group))]:
            return "the decisions that were made with it are not those after it"
        pairs = zip(bandit._decide_again(logged), logged, strict=True)
        return next((words for pair in pairs if (words := _difference(*pair)) is not None), None)
    if event.kind == ADOPTED:
        bandit._adopt(events.decision_in(event))
        return None
    if event.kind == ARMS:
        bandit._change_arms(json.loads(event.body), event.time)
        return None
    known = bandit._remembered.find(event.event_id or "")
    if event.kind not in (REWARD, EXPIRY):
        return "the events before it cannot be replayed without the snapshot after it"
    if known is None or known.status != OPEN:
        return f"event_id {event.event_id!r} is not open"
    status = LEARNED if event.kind == REWARD else EXPIRED
    bandit._close(known, status, events.reward_in(event), event.time)
    return None


def _difference(found: Decision, logged: Decision) -> str | None:
    assert logged.probabilities is not None  # it is of an event
    assert found.probabilities is not None
    if found.sequence != logged.sequence:
        return "another decision leaves the window first"
    if found.place != logged.place:
        return f"arm {found.arm!r} is chosen, the log says {logged.arm!r}"
    if found.probabilities.tobytes() != logged.probabilities.tobytes():
        return "the probabilities differ"
    if found.explored != logged.explored:
        return f"the arm {'explores' if found.explored else 'does not explore'}, the log says otherwise"
    if _learnt(found.version) != _learnt(logged.version):
        return f"the state is {found.version}, the log says {logged.version}"
    return None


def _learnt(version: str) -> str:
    """Return the part of a version that counts rewards; code may have another version and the same results."""
    return version.rpartition("/")[2]


def check(source: Source) -> str:
    """Replay a log, compare each decision and each snapshot with it, and describe how much was compared.

    It begins at the origin: the snapshot that was taken with the last deletion, or the first event. Where a deletion
    moves the origin while it runs, it starts over there; the events passed over are not counted.
    """
    counts: Counter[str] = Counter()
    spans: list[tuple[int, int]] = []
    for _ in range(MOST_STARTS):
        last = _replayed(source, counts, spans)
        if last is not None:
            break
    else:
        raise StoreError(
            f"{source.name}: events were deleted during each of {MOST_STARTS} attempts to replay it; try again"
        )
    if not spans:
        learnt = f"all {last:,} events were learnt from, some are erased, and the snapshot after them is all there is"
        return f"{source.name}: nothing to replay; {learnt if last else 'it has no events'}"
    words = [
        f"{counts[kind]:,} {word}{'' if counts[kind] == 1 else 's'}"
        for kind, word in COUNTED
        if counts[kind] or kind in (DECISION, REWARD)
    ]
    where = " and ".join(f"{first:,} to {end:,}" for first, end in spans)
    whole = spans == [(1, last)]
    others = "" if whole else "; the others were learnt from and partly erased"
    return f"{source.name}: {', '.join(words)} compared (events {where}), identical{others}"


def _replayed(source: Source, counts: Counter[str], spans: list[tuple[int, int]]) -> int | None:
    """Replay from the origin to the last event, and count what was compared.

    Returns:
        The number of the last event; None where a deletion has moved the origin meanwhile.
    """
    store, model = source.store, source.row.id
    stored = store.snapshots(model)
    last = store.last(model)  # asked after the snapshots: in a sound log none of them is beyond it
    newest = max((sequence for sequence, _, _ in stored), default=0)
    if newest > last:
        raise ReplayDiverged(source.name, f"{_missing(last + 1, newest)}: a snapshot at {newest} exists")
    start = _origin(stored)
    if start and next(store.read(model, after=start - 1, until=start), None) is None:
        raise ReplayDiverged(source.name, f"{_missing(start, start)}: a snapshot at {start} exists")
    try:
        bandit = loaded(source, store.snapshot(model, until=start))
    except StoreError:  # the snapshot is damaged, or an open decision of it was erased meanwhile
        if _origin(store.snapshots(model)) == start:
            raise
        return None
    if bandit._sequence != start:
        return None
    marks = {sequence for sequence, _, _ in stored}
    for group in events.grouped(store.read(model, after=start, until=last)):
        gone = _gone(group)
        if gone is not None and _origin(store.snapshots(model)) >= gone.sequence:
            break
        take(bandit, group, source)
        event = group[-1]
        counts[event.kind] += len(group)
        counts["snapshot"] += event.sequence in marks and _same_state(bandit, event, source)
    if bandit._sequence > start:
        spans.append((start + 1, bandit._sequence))
    if bandit._sequence == last:
        return last
    if _origin(store.snapshots(model)) == start:
        raise ReplayDiverged(source.name, _missing(bandit._sequence + 1, last))
    return None


def _origin(stored: list[tuple[int, int, bool]]) -> int:
    """Return the number of the event from which a log with these snapshots can be replayed; 0 is its beginning."""
    return max((sequence for sequence, _, origin in stored if origin), default=0)


def _same_state(bandit: "Bandit", event: Event, source: Source) -> bool:
    """Compare the snapshot after an event, a ReplayDiverged if it differs; False if newer ones have replaced it."""
    kept = source.store.snapshot(source.row.id, until=event.sequence)
    if kept is None or kept.sequence != event.sequence:
        return False
    try:
        same = opened(kept.content)["bandit"] == opened(sealed(packed(bandit)))
    except (ValueError, KeyError) as error:
        raise _diverged(source, event, str(error)) from None
    if not same:
        raise _diverged(source, event, "the snapshot after it is another state")
    return True


def _missing(first: int, last: int) -> str:
    return f"event {first} is missing" if first == last else f"events {first} to {last} are missing"


def new_from_spec(row: ModelRow, name: str, own: Policy | None) -> "Bandit":
    """Return the bandit of a store before its first event, from its settings, which outlive the formats of
    snapshots.
    """
    from solid_bandits.live.bandit import Bandit

    try:
        settings = json.loads(row.spec)["settings"]
        policy = policy_from_plain(settings.pop("policy"), own)
        if settings["features"] is not None:
            settings["features"] = Features.from_plain(settings["features"])
        return Bandit(policy, **settings, log=False)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{name}: {error}") from None
