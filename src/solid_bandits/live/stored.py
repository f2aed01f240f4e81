"""A bandit's history in a store: each call is events, and what returned is on the disk."""

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from solid_bandits._internal.files import path_of
from solid_bandits.core.decision import Decision
from solid_bandits.live import events
from solid_bandits.live.arguments import now
from solid_bandits.live.events import DECIDED, DECISION, Event
from solid_bandits.live.history import History
from solid_bandits.live.recovery import FEW, Source, caught_up, new_from_spec
from solid_bandits.live.snapshots import packed, sealed
from solid_bandits.live.sql import END
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import ModelRow, Snapshot, StoreError
from solid_bandits.live.tables import NAME, table_of, the_model
from solid_bandits.policies.contract import Policy

if TYPE_CHECKING:
    import polars as pl

    from solid_bandits.live.bandit import Bandit

PathLike = str | os.PathLike[str]
SNAPSHOT_EVERY = 10_000
"""Events: so many are replayed at a start, at most."""


class StoredHistory(History):
    """Events of a bandit that wait for their commit, and the store that they go to. It is the lock of the bandit, too:
    each call is a turn.

    The bandit is never ahead of its log when a call returns. Where a commit fails, or a call fails halfway, the bandit
    is read again from the log before the next call.

    Args:
        bandit: as its log has it.
        source: the log.
        commit_every: calls in a group that is committed together; 0 leaves commits to whoever calls `commit`.
        fence: to write with; None where another node leads the bandit.
    """

    known = "the decisions in its log"

    def __init__(self, bandit: "Bandit", source: Source, commit_every: int, fence: int | None) -> None:
        self.source = source
        self.fence = fence
        self.commit_every = commit_every
        self.fresh: list[Event] = []
        self._bandit = bandit
        self._erased: set[int] = set()
        """Sequence numbers of events to be erased."""
        self._noted: dict[str, list[Event]] = {}
        """Fresh events by their ids: the store does not have them yet."""
        self._lock = threading.RLock()
        self._calls = 0
        self._mark = 0
        """Fresh events when the turn began."""
        self.broken = self._closed = False
        """Whether the bandit is not what its log says."""
        self._failed = False
        """Whether the last commit failed: until one succeeds each call is committed."""
        self._process = os.getpid()
        bandit._history = bandit._turn = self

    def __enter__(self) -> None:
        if os.getpid() != self._process:  # first: another thread of the parent may have held the lock
            raise StoreError(
                f"{self.source.name} was opened by process {self._process}, of which this one is a fork; open it after "
                "the fork, in one process"
            )
        self._lock.acquire()
        try:
            if self._closed:
                raise StoreError(f"{self.source.name} is closed")
            if self.broken:
                self._bandit._become(caught_up(None, self.source))
                self._forget_fresh()
                self.broken = False
            self._mark = len(self.fresh)
            self._bandit._changing = False
        except BaseException:
            self._lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None and self._bandit._changing:
                # The calls before this one were answered: they are written.
                del self.fresh[self._mark :]
                self._erased, self.broken = set(), True
                if self.commit_every and self.fresh:
                    self._write(False)
            elif kind is None and self.commit_every and len(self.fresh) > self._mark:
                self._calls += 1
                if self._calls >= self.commit_every or self._erased or self._failed:
                    self.commit()
        finally:
            self._lock.release()

    def made(self, decision: Decision, kind: str = DECISION) -> None:
        """See `History`."""
        self._note(events.decided(decision, kind))

    def closed(self, decision: Decision) -> None:
        """See `History`."""
        self._note(events.closed(decision))
        decision.offered = None

    def changed(self, sequence: int, time: int, change: Mapping[str, Any]) -> None:
        """See `History`."""
        self._note(events.of_arms(sequence, time, change))

    def _note(self, event: Event) -> None:
        self.fresh.append(event)
        if event.event_id is not None:
            self._noted.setdefault(event.event_id, []).append(event)

    def _events(self, event_ids: Sequence[str]) -> list[Event]:
        """Return the events with these ids in the log and among the new ones, without those about to be erased."""
        found = self.source.store.find(self.source.row.id, event_ids)
        found += [event for one in dict.fromkeys(event_ids) for event in self._noted.get(one, ())]
        return [event for event in found if event.sequence not in self._erased]

    def find(self, event_ids: Sequence[str]) -> dict[str, Decision]:
        """See `History`."""
        bandit = self._bandit
        if not event_ids or not (bandit._forgetful or bandit._decisions > bandit._remembered.window):
            return {}  # the store need not be asked
        found: dict[str, Decision] = {}
        for start in range(0, len(event_ids), FEW):
            for event in self._events(event_ids[start : start + FEW]):
                assert event.event_id is not None  # it was found by it
                if event.kind in DECIDED:
                    found[event.event_id] = events.decision_in(event)
                else:
                    events.close_by(found[event.event_id], event)
                    found[event.event_id].offered = None  # nothing is learnt from it again
        return found

    def _places(self, event_ids: Sequence[str]) -> list[tuple[int, str, str]]:
        """Return their sequence numbers, kinds and ids, without loading their contents."""
        found = self.source.store.places(self.source.row.id, event_ids)
        fresh = (event for one in dict.fromkeys(event_ids) for event in self._noted.get(one, ()))
        found += [(event.sequence, event.kind, event.event_id or "") for event in fresh]
        return [place for place in found if place[0] not in self._erased]

    def words(self, event_ids: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the ids of decisions of these ids, and what they say besides numbers: features stay where they are."""
        for start in range(0, len(event_ids), FEW):
            some = event_ids[start : start + FEW]
            bodies = self.source.store.bodies(self.source.row.id, some)
            fresh = [event for one in some for event in self._noted.get(one, ()) if event.kind in DECIDED]
            bodies += [(event.event_id or "", event.body) for event in fresh]
            yield from ((event_id, json.loads(body)) for event_id, body in bodies)

    def select(
        self, event_ids: Sequence[str] | None, before: int | None, subject: str | None, most: int = END
    ) -> dict[str, None]:
        """See `History`; at most about so many."""
        if self._erased:  # in this group: the store has it still
            self.commit()
        store, model = self.source.store, self.source.row.id
        fresh = [event for event in self.fresh if event.kind in DECIDED]
        if subject is not None:
            ids = store.of_subject(model, subject, most)
            fresh = [event for event in fresh if event.subject == subject]
        elif before is not None:
            ids = store.before(model, before, most)
            fresh = [event for event in fresh if event.time < before]
        else:
            places = self._places(list(event_ids or ()))
            return dict.fromkeys(event_id for _, kind, event_id in places if kind in DECIDED)
        return dict.fromkeys([*ids, *(event.event_id or "" for event in fresh)])

    def erase(self, event_ids: Sequence[str], sequence: int, time: int) -> None:
        """See `History`."""
        gone = {sequence for sequence, _, _ in self._places(event_ids)}
        self.fresh = [
            events.erased(event.sequence, time) if event.sequence in gone else event for event in self.fresh
        ]
        for event_id in event_ids:
            self._noted.pop(event_id, None)
        self._erased |= gone
        self._note(events.deletion(sequence, time, len(event_ids)))

    def table(self, opened: Sequence[Decision], policy: str) -> "pl.DataFrame":
        """See `History`."""
        self.commit()
        store, model = self.source.store, self.source.row.id
        return table_of(store, model, policy, 0, store.last(model))

    def pack(self) -> Snapshot:
        """Return a snapshot of the bandit and of its derived data."""
        bandit = self._bandit
        content = {"bandit": packed(bandit)}
        if bandit.beside is not None:
            content["beside"] = bandit.beside.state()
        return Snapshot(bandit._sequence, max(now(), bandit._time), sealed(content))

    def commit(self, check: bool = False) -> None:
        """Write the fresh events; a StoreError where that fails. With `check` also nothing is written: whoever does not
        lead any more is told so.
        """
        if self.fence is None or not (check or self.fresh):
            return
        behind = self._bandit._sequence - self._bandit._snapshot[0]
        self._write(bool(self._erased) or behind >= SNAPSHOT_EVERY)

    def _write(self, packing: bool) -> None:
        """Write the fresh events, and with them a snapshot or none."""
        assert self.fence is not None  # this node leads
        store, model = self.source.store, self.source.row.id
        try:
            snapshot = self.pack() if packing else None
            store.append(model, self.fence, self.fresh, snapshot, sorted(self._erased))
        except BaseException as error:
            self.broken = self._failed = True
            if isinstance(error, StoreError) and self._calls > 1:
                words = f"{error}; the last {self._calls} calls may not be on the disk, each that follows is committed"
                raise type(error)(words) from None
            raise
        self._failed = False
        self._forget_fresh()
        if snapshot is not None:
            self._bandit._snapshot = snapshot.sequence, snapshot.time

    def _forget_fresh(self) -> None:
        self.fresh, self._erased, self._noted, self._calls = [], set(), {}, 0

    def last_snapshot(self) -> None:
        """Take a last snapshot, so that the next start replays nothing, with whatever version of the code."""
        new = self._bandit._sequence > self._bandit._snapshot[0]
        if self.fence is not None and not self.broken and new:
            self._write(True)

    def close(self) -> None:
        """Write what waits and a last snapshot, and let go of the store."""
        if self._closed or os.getpid() != self._process:
            return
        with self._lock:
            try:
                self.last_snapshot()
            finally:
                self._closed = True
                self.source.store.close()


def create(bandit: "Bandit", store: PathLike, commit_every: int) -> None:
    """Keep a new bandit in a new file."""
    path = path_of("store", store)
    held = SqliteStore(path, create=True, write=True)
    try:
        if held.models():
            raise ValueError(
                f"store must be a new file, got {os.fspath(path)!r}, which has a bandit; go on with Bandit.open"
            )
        packed(bandit)  # a ValueError where it cannot be
        agent = bandit.agent
        settings = {
            "policy": agent.policy.describe(),
            "dim": None if bandit.design is not None else agent.dim,
            "features": None if bandit.design is None else bandit.design.features.to_plain(),
            "noise_std": agent._setting.noise_std or None,
            "theta_bound": agent._setting.theta_bound or None,
            "floor": agent.floor,
            "seed": bandit._seed,
            "window": bandit._remembered.window,
        }
        spec = {"policy": bandit._policy, "settings": settings}
        row = held.add_model(NAME, json.dumps(spec), now())
        StoredHistory(bandit, _source(held, row, bandit.agent.policy), commit_every, held.fence)
    except BaseException:
        held.close()
        raise


def reopen(store: PathLike, policy: Policy | None, commit_every: int) -> "Bandit":
    """Return the bandit of a file from its log."""
    path = path_of("store", store)
    held = SqliteStore(path, write=True)
    try:
        source = source_of(held, policy)
        bandit = caught_up(None, source)
        StoredHistory(bandit, source, commit_every, held.fence)
        return bandit
    except BaseException:
        held.close()
        raise


def source_of(store: SqliteStore, policy: Policy | None = None) -> Source:
    """Return the source of the only bandit of a file."""
    return _source(store, the_model(store), policy)


def _source(store: SqliteStore, row: ModelRow, policy: Policy | None) -> Source:
    name = repr(str(store.path))
    return Source(store, row, name, lambda: new_from_spec(row, name, policy), policy)
