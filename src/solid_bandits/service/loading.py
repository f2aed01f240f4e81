"""Models from the store: snapshot and replay."""

import logging
from collections.abc import Callable

from solid_bandits.live.packing import Logged, open_ids, unpacked
from solid_bandits.service import events
from solid_bandits.service.model import Model, new_bandit
from solid_bandits.service.schemas import ModelSpec
from solid_bandits.service.snapshots import opened
from solid_bandits.service.stats import Stats
from solid_bandits.service.store import (
    DECISION,
    DELETION,
    ERASED,
    EXPIRY,
    REWARD,
    Event,
    ModelRow,
    Snapshot,
    Store,
    StoreError,
)

logger = logging.getLogger("solid_bandits.service")


class PartedError(Exception):
    """What follows from a log is not what it says."""

    def __init__(self, name: str, event: Event, words: str) -> None:
        super().__init__(f"model {name!r}, event {event.sequence} ({event.kind}): {words}")
        self.sequence = event.sequence


def loaded(row: ModelRow, store: Store, snapshot: Snapshot | None) -> Model:
    """A model as a snapshot has it, a StoreError where that cannot be used; None is one before its first event."""
    spec = ModelSpec.model_validate_json(row.spec)
    if snapshot is None:
        return Model(row, store, new_bandit(spec), Stats(spec.dim))
    try:
        content = opened(snapshot.content)
        found = store.find(row.id, open_ids(content["bandit"]))
        logged = [_logged(event) for event in found if event.kind == DECISION]
        bandit = unpacked(content["bandit"], logged)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise StoreError(f"model {row.name!r}, snapshot {snapshot.sequence}: {error}") from None
    try:
        stats = Stats.restored(content["stats"])
    except (ValueError, KeyError):  # of a release that counted otherwise
        stats = counted(row, store, spec, snapshot.sequence)
    model = Model(row, store, bandit, stats)
    model.sequence, model.time = snapshot.sequence, snapshot.time
    model.snapshot = (snapshot.sequence, snapshot.time)
    model.forgetful = True
    if model.spec.wait is not None:
        model.waiting.extend((one.time, one.event_id) for one in logged)
    return model


def counted(row: ModelRow, store: Store, spec: ModelSpec, until: int) -> Stats:
    """The numbers of a model's page from its log alone; nothing is decided again. Erased events are not in them."""
    stats = Stats(spec.dim)
    open_: dict[str, events.Decided] = {}
    for event in store.read(row.id, until=until):
        if event.kind == DECISION:
            decided = events.decided_in(event)
            stats.decided(event.time, decided.arms, decided.place)
            open_[event.event_id or ""] = decided
            if len(open_) > spec.window:
                del open_[next(iter(open_))]
        elif event.kind in (REWARD, EXPIRY) and event.event_id in open_:
            one = open_.pop(event.event_id)
            stats.settled(
                event.time,
                one.arms,
                one.place,
                one.probabilities,
                one.features,
                events.reward_in(event),
                event.kind == EXPIRY,
            )
    return stats


def caught_up(model: Model | None, row: ModelRow, store: Store) -> Model:
    """A model that has taken in its log to the end: a new one, or the one that is there where it can go on."""
    fresh = model is None
    if model is None:
        model = _begun(row, store)
    for event in store.read(row.id, after=model.sequence):
        if (
            event.kind in (ERASED, DELETION) and not fresh
        ):  # what it would need to go on is gone: a snapshot has it
            return caught_up(None, row, store)
        take(model, event)
    return model


def _begun(row: ModelRow, store: Store) -> Model:
    """The model from its newest snapshot that can be used, or from nothing: its log has all that a snapshot has."""
    until = None
    while True:
        snapshot = store.snapshot(row.id, until)
        try:
            return loaded(row, store, snapshot)
        except StoreError as error:
            if snapshot is None:
                raise
            logger.warning("%s; an earlier one is used", error)
            until = snapshot.sequence - 1


def take(model: Model, event: Event) -> None:
    """Apply one event."""
    try:
        words = model.apply(event)
    except (ValueError, KeyError, TypeError, IndexError) as error:  # what a damaged row may lead to
        raise PartedError(model.row.name, event, str(error)) from None
    if words is not None:
        raise PartedError(model.row.name, event, words)


def check(row: ModelRow, store: Store, said: Callable[[int], object] = lambda count: None) -> str:
    """Replay a log from its beginning, and compare each decision and each snapshot; what was found, in words.

    Where events were erased it begins at the snapshot that was taken then.
    """
    stored = store.snapshots(row.id)
    start = next((sequence for sequence, _, origin in reversed(stored) if origin), 0)
    model = loaded(row, store, store.snapshot(row.id, until=start) if start else None)
    last = store.last(row.id)
    marks = {sequence for sequence, _, _ in stored if sequence > start}
    for event in store.read(row.id, after=start, until=last):
        take(model, event)
        if event.sequence in marks:
            kept = store.snapshot(row.id, until=event.sequence)
            if kept is None or kept.sequence != event.sequence:  # newer ones have taken its place meanwhile
                continue
            try:
                same = opened(kept.content)["bandit"] == opened(model.pack(model.time).content)["bandit"]
            except (ValueError, KeyError) as error:
                raise PartedError(row.name, event, str(error)) from None
            if not same:
                raise PartedError(row.name, event, "the snapshot after it is another state")
        if event.sequence % 10_000 == 0:
            said(event.sequence)
    if model.sequence != last:
        raise StoreError(f"model {row.name!r}: event {model.sequence + 1} is missing")
    if start and start == last:
        return (
            f"model {row.name!r}: nothing to replay; all {last:,} events were learnt from, some are erased, and the "
            "snapshot after them is all there is"
        )
    begun = f"events {start + 1:,} to {last:,}" if start else f"{last:,} events"
    erased = f"; the first {start:,} were learnt from and partly erased" if start else ""
    marked = f", {len(marks)} snapshot{'s' if len(marks) > 1 else ''}" if marks else ""
    return f"model {row.name!r}: {begun} replayed{marked}, identical{erased}"


def _logged(event: Event) -> Logged:
    decided = events.decided_in(event)
    assert event.event_id is not None  # it is a decision
    return Logged(
        event.event_id,
        event.time,
        decided.arms,
        decided.place,
        decided.probabilities,
        decided.explored,
        decided.version,
        decided.features,
    )
