"""A model in memory: a bandit and its statistics, which follow from the events of its log, one by one."""

import secrets
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._types import Floats, Plain
from solid_bandits.live.arguments import checked_id, names_of
from solid_bandits.live.bandit import Bandit
from solid_bandits.live.memory import LEARNED, OPEN, Arm, Record
from solid_bandits.live.packing import packed
from solid_bandits.offer import as_arms, as_mask
from solid_bandits.policies.naming import find
from solid_bandits.service import events
from solid_bandits.service.events import Decided
from solid_bandits.service.refusals import RefusedError, unavailable, wrong
from solid_bandits.service.schemas import (
    DecisionAsked,
    DecisionMade,
    DeletionAsked,
    ModelSpec,
    RewardGiven,
    RewardReceipt,
)
from solid_bandits.service.snapshots import sealed
from solid_bandits.service.stats import Stats
from solid_bandits.service.store import DECISION, EXPIRY, REWARD, Event, ModelRow, Snapshot, Store

SNAPSHOT_EVERY = 10_000
"""Events: so many are replayed at a start, at most."""
EXPIRED_AT_ONCE = 1_000


class Offer(NamedTuple):
    """What is decided about, checked."""

    event_id: str
    given: bool
    """Whether the caller gave the id."""
    arms: tuple[Arm, ...]
    features: Floats
    subject: str | None


class Model:
    """One model. Its methods change it and leave the events to be written in `fresh`."""

    def __init__(self, row: ModelRow, store: Store, bandit: Bandit, stats: Stats) -> None:
        self.row = row
        self.spec = ModelSpec.model_validate_json(row.spec)
        self.bandit = bandit
        self.stats = stats
        self.sequence = 0
        """Of the last event that it has taken in."""
        self.time = 0
        """Of that event, or later: time does not go back in a log."""
        self.fence: int | None = None
        """The number that it writes with; None while it only follows the log."""
        self.fresh: list[Event] = []
        self.erased: dict[int, str] = {}
        """Sequence numbers of events to be erased, with their ids."""
        self._noted: dict[str, list[Event]] = {}
        """Fresh events by their ids: the store does not have them yet."""
        self.snapshot: tuple[int, int] | None = None
        """Sequence number and time of the last one."""
        self.waiting: deque[tuple[int, str]] = deque()
        """Time and id of decisions that expire one day."""
        self.forgetful = False
        """Whether it began from a snapshot, which has no closed decisions: the log alone knows these."""
        self._store = store

    def decide(self, asked: Sequence[DecisionAsked], now: int) -> list[DecisionMade]:
        """Decide in this order; known ids get what was decided then. All are checked before the first is decided."""
        offers = []
        for place, one in enumerate(asked):
            try:
                offers.append(self._offer(one))
            except ValueError as error:
                raise wrong(
                    f"decision {place} of {len(asked)}: {error}" if len(asked) > 1 else str(error)
                ) from None
        logged = self._logged(offers)
        # Looked up before the first is decided: with a short window the others forget some of them.
        made = {one: _made(one, event.time, events.decided_in(event)) for one, event in logged.items()}
        planned: dict[str, tuple[Arm, ...]] = {}
        for offer in offers:
            known = self.bandit.recall(offer.event_id)
            if known is not None:
                made[offer.event_id] = _made(offer.event_id, known.time, _decided_of(known))
            earlier = made.get(offer.event_id)
            planned.setdefault(offer.event_id, offer.arms if earlier is None else tuple(earlier.arms))
            if planned[offer.event_id] != offer.arms:
                raise RefusedError(
                    409,
                    f"event_id {offer.event_id!r} was decided among other arms, "
                    f"{_check.short(planned[offer.event_id])}",
                )
        answers = []
        for offer in offers:
            earlier = made.get(offer.event_id)
            if earlier is None:
                answers.append(self._decided(offer, now))
                made[offer.event_id] = answers[-1].model_copy(update={"again": True})
            else:
                answers.append(earlier)
        return answers

    def _offer(self, asked: DecisionAsked) -> Offer:
        dim = self.spec.dim
        width = next((len(row) for row in asked.features if len(row) != dim), dim)
        if width != dim:
            raise ValueError(f"features must have {dim} numbers for each arm, got {width}")
        rows = as_arms(np.array(asked.features), dim)
        names = names_of(asked.arms, rows.shape[0])
        if asked.available is not None:
            mask = as_mask(asked.available, rows.shape[0])
            rows = np.ascontiguousarray(rows[mask])
            names = tuple(name for name, there in zip(names, asked.available, strict=True) if there)
        event_id = secrets.token_hex(16) if asked.event_id is None else checked_id(asked.event_id)
        return Offer(event_id, asked.event_id is not None, names, rows, asked.subject)

    def _logged(self, offers: Sequence[Offer]) -> dict[str, Event]:
        """Decisions that are remembered no more."""
        found = self._forgotten([one.event_id for one in offers if one.given])
        ids = set(self.erased.values())
        again = next((one.event_id for one in offers if one.event_id in ids), None)
        if again is not None:  # the log has the id until the deletion is committed
            raise unavailable(f"event_id {again!r} is being deleted; try again")
        return {event.event_id: event for event in found if event.kind == DECISION and event.event_id}

    def _forgotten(self, ids: Sequence[str]) -> list[Event]:
        """Events of those of these ids that are remembered no more, from the log."""
        if not self.forgetful and self.bandit.decisions <= self.spec.window:  # the store need not be asked
            return []
        lost = [one for one in ids if self.bandit.recall(one) is None]
        return self._events(lost) if lost else []

    def _events(self, ids: Sequence[str]) -> list[Event]:
        """Events of these ids in the log and among the fresh ones, without those about to be erased."""
        found = self._store.find(self.row.id, ids)
        found += [event for one in dict.fromkeys(ids) for event in self._noted.get(one, ())]
        return [event for event in found if event.sequence not in self.erased]

    def _decided(self, offer: Offer, now: int) -> DecisionMade:
        record = self._act(offer.event_id, offer.arms, offer.features, self._moment(now))
        decided = _decided_of(record)
        self._note(events.decision(self.sequence + 1, offer.event_id, record.time, decided, offer.subject))
        return _made(offer.event_id, record.time, decided, again=False)

    def _act(self, event_id: str, arms: tuple[Arm, ...], features: Floats, time: int) -> Record:
        self.bandit.decide(features, arms, event_id, time / 1e6)
        record = self.bandit.recall(event_id)
        assert record is not None  # just decided
        self.stats.decided(time, record.arms, record.place)
        if self.spec.wait is not None:
            self.waiting.append((record.time, event_id))
            while self._waiter(*self.waiting[0]) is None:  # it has its reward, say
                self.waiting.popleft()
        return record

    def _waiter(self, time: int, event_id: str) -> Record | None:
        """The decision of an entry of `waiting`, if it is open; one decided anew has its own."""
        record = self.bandit.recall(event_id)
        return None if record is None or record.status != OPEN or record.time != time else record

    def learn(self, given: Sequence[RewardGiven], now: int) -> list[RewardReceipt]:
        """Take in rewards in this order; each has its own receipt."""
        logged: dict[str, list[Event]] = {}
        for event in self._forgotten([one.event_id for one in given]):
            logged.setdefault(event.event_id or "", []).append(event)
        return [self._learned(one, logged.get(one.event_id, []), now) for one in given]

    def _learned(self, given: RewardGiven, logged: Sequence[Event], now: int) -> RewardReceipt:
        record = self.bandit.recall(given.event_id)
        if record is not None and record.status == OPEN:
            event = events.reward(self.sequence + 1, given.event_id, self._moment(now), given.reward)
            self._settle(record, given.reward, event.time, expired=False)
            self._note(event)
            return _receipt(given, "learned", given.reward, f"learned {given.reward:g}")
        if record is None and not logged:
            return _receipt(given, "unknown", None, "is of no decision")
        if record is not None:
            learned, value = record.status == LEARNED, record.reward
        else:
            closing = [event for event in logged if event.kind != DECISION]
            learned = any(event.kind == REWARD for event in closing)
            value = events.reward_in(closing[0]) if closing else None
        if not learned:
            had = "without a reward" if value is None else f"with reward {value:g}"
            return _receipt(given, "late", value, f"had expired {had}; {given.reward:g} was not taken in")
        if value == given.reward:
            return _receipt(given, "again", value, f"had learned {value:g} before")
        return _receipt(given, "conflict", value, f"had learned {value:g}; {given.reward:g} was not taken in")

    def _settle(self, record: Record, reward: float | None, time: int, *, expired: bool) -> None:
        features = record.features
        assert features is not None  # it is open
        if not expired and reward is not None:
            self.bandit.learn(record.event_id, reward, time / 1e6)
        else:
            self.bandit.expire(reward=reward, time=time / 1e6, event_id=record.event_id)
        self.stats.settled(time, record.arms, record.place, record.probabilities, features, reward, expired)

    def expire(self, now: int) -> int:
        """Close decisions that have waited long enough, with the default reward if there is one; how many."""
        if self.spec.wait is None:
            return 0
        limit, count = now - round(self.spec.wait * 1e6), 0
        while self.waiting and self.waiting[0][0] <= limit and count < EXPIRED_AT_ONCE:
            time, event_id = self.waiting.popleft()
            record = self._waiter(time, event_id)
            if record is None:
                continue
            value = self.spec.default_reward
            event = events.expiry(self.sequence + 1, event_id, self._moment(now), value)
            self._settle(record, value, event.time, expired=True)
            self._note(event)
            count += 1
        return count

    def delete(self, asked: DeletionAsked, now: int) -> int:
        """Erase events from memory and log; how many decisions there were."""
        fresh = [event for event in self.fresh if event.kind == DECISION]
        if asked.subject is not None:
            ids = self._store.of_subject(self.row.id, asked.subject)
            ids += [event.event_id or "" for event in fresh if event.subject == asked.subject]
        elif asked.before is not None:
            limit = round(asked.before * 1e6)
            ids = self._store.before(self.row.id, limit)
            ids += [event.event_id or "" for event in fresh if event.time < limit]
        else:
            ids = list(dict.fromkeys(asked.event_ids or ()))
        found = self._events(ids)
        count = sum(event.kind == DECISION for event in found)
        if not found:
            return 0
        for event_id in ids:
            self.bandit.delete(event_id)
        self.erased |= {event.sequence: event.event_id or "" for event in found}
        self._note(events.deletion(self.sequence + 1, self._moment(now), count))
        return count

    def apply(self, event: Event) -> str | None:
        """Take in an event of the log; in words, where what follows from the log parts from what it says."""
        if event.sequence != self.sequence + 1:
            return f"event {self.sequence + 1} is missing"
        if not events.is_sound(event):
            return "the event is not what was written: its digest differs"
        parted = None
        if event.kind == DECISION:
            parted = self._redecide(event)
        elif event.kind not in (REWARD, EXPIRY):
            return "the events before it cannot be replayed without the snapshot after it"
        else:
            record = self.bandit.recall(event.event_id or "")
            if record is None or record.status != OPEN:
                return f"event_id {event.event_id!r} is not open"
            self._settle(record, events.reward_in(event), event.time, expired=event.kind != REWARD)
        self.sequence, self.time = event.sequence, event.time
        return parted

    def _redecide(self, event: Event) -> str | None:
        logged = events.decided_in(event)
        assert event.event_id is not None  # it is a decision
        if self.bandit.recall(event.event_id) is not None:
            return f"event_id {event.event_id!r} was decided before"
        found = _decided_of(self._act(event.event_id, logged.arms, logged.features, event.time))
        if found.place != logged.place:
            return f"arm {logged.arms[found.place]!r} is chosen, the log says {logged.arms[logged.place]!r}"
        if found.probabilities.tobytes() != logged.probabilities.tobytes():
            return "the probabilities differ"
        if found.explored != logged.explored:
            return f"the arm {'explores' if found.explored else 'does not explore'}, the log says otherwise"
        if _state(found.version) != _state(logged.version):
            return f"the state is {found.version}, the log says {logged.version}"
        return None

    def due(self) -> bool:
        """Whether it is time for a snapshot."""
        before = 0 if self.snapshot is None else self.snapshot[0]
        return bool(self.erased) or self.sequence - before >= SNAPSHOT_EVERY

    def pack(self, now: int) -> Snapshot:
        """A snapshot of it as it is."""
        content = sealed({"bandit": packed(self.bandit), "stats": self.stats.state()})
        return Snapshot(self.sequence, self._moment(now), content)

    def facts(self, now: int) -> Plain:
        """Numbers of the moment."""
        spec = self.spec.model_dump(exclude={"parameters", "seed", "window", "noise_std", "theta_bound"})
        age = None if self.snapshot is None else max(now - self.snapshot[1], 0) / 1e6
        return spec | {
            "policy": self.bandit.agent.policy.name,
            "created": self.row.created / 1e6,
            "open": self.bandit.waiting,
            "snapshot_age": age,
            "last_sequence": self.sequence,
            "leader": self.fence is not None,
        }

    def _moment(self, now: int) -> int:
        return max(now, self.time)

    def written(self) -> None:
        """Take note that the log has the fresh events, and no more those to be erased."""
        self.fresh, self.erased, self._noted = [], {}, {}

    def _note(self, event: Event) -> None:
        self.fresh.append(event)
        if event.event_id is not None:
            self._noted.setdefault(event.event_id, []).append(event)
        self.sequence, self.time = event.sequence, event.time


def new_bandit(spec: ModelSpec) -> Bandit:
    """A bandit as a model is specified; a ValueError says what cannot be."""
    policy = find("policy", spec.policy).build("random", 2, spec.parameters)
    return Bandit(
        policy,
        dim=spec.dim,
        noise_std=spec.noise_std,
        floor=spec.floor,
        half_life=spec.half_life,
        theta_bound=spec.theta_bound,
        seed=spec.seed or 0,
        window=spec.window,
        log=False,
    )


def _decided_of(record: Record) -> Decided:
    features = record.features if record.features is not None else np.zeros((len(record.arms), 0))
    return Decided(record.arms, record.place, record.probabilities, features, record.explored, record.version)


def _state(version: str) -> str:
    """How much had been learnt: code may have another version and the same results."""
    return version.rpartition("/")[2]


def _made(event_id: str, time: int, decided: Decided, *, again: bool = True) -> DecisionMade:
    return DecisionMade.model_construct(
        event_id=event_id,
        arm=decided.arms[decided.place],
        probability=float(decided.probabilities[decided.place]),
        arms=list(decided.arms),
        probabilities=decided.probabilities.tolist(),
        explored=decided.explored,
        again=again,
        time=time / 1e6,
        version=decided.version,
    )


def _receipt(given: RewardGiven, status: str, reward: float | None, words: str) -> RewardReceipt:
    return RewardReceipt.model_construct(
        event_id=given.event_id,
        status=status,
        counted=status == "learned",
        reward=reward,
        message=f"event_id {given.event_id!r} {words}",
    )
