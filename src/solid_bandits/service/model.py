"""A model of the service: a bandit in a store, its statistics, and what it was asked for."""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from solid_bandits._internal.types import Plain
from solid_bandits.core.decision import Decision
from solid_bandits.live import events
from solid_bandits.live.bandit import Bandit
from solid_bandits.live.events import DECIDED
from solid_bandits.live.ledger import ConflictError
from solid_bandits.live.recovery import Source, caught_up, weighed_of
from solid_bandits.live.store import ModelRow, Store
from solid_bandits.live.stored import StoredHistory
from solid_bandits.policies.naming import find
from solid_bandits.service.errors import RefusedError, invalid
from solid_bandits.service.named import check_size
from solid_bandits.service.schemas import (
    ArmsChanged,
    ArmsNow,
    DecisionAsked,
    DecisionMade,
    DeletionAsked,
    ModelSpec,
    RewardGiven,
    RewardReceipt,
)
from solid_bandits.service.stats import Stats

EXPIRED_AT_ONCE = 1_000
DELETED_AT_ONCE = 1_000
"""Decisions that are deleted with one commit and its snapshot; calls are served in between."""
GRACE = 60_000_000
"""Microseconds for which a model that was just loaded, or is led here since now, lets decisions wait at least, unless
they may not wait that long: rewards that were given meanwhile are on their way."""
WHOLE_BYTES = 16 << 20
"""Bytes of decisions that are read from the log again, together."""
logger = logging.getLogger("solid_bandits.service")


class Model:
    """One model. Its methods change the bandit; `history` has the events to be written."""

    def __init__(self, source: Source, bandit: Bandit) -> None:
        self.row = source.row
        self.spec = ModelSpec.model_validate_json(source.row.spec)
        self.bandit = bandit
        self.history = StoredHistory(bandit, source, commit_every=0, fence=None)
        self._shift = 0
        """Shift of the clock that decisions were made by."""
        self._shifts: list[tuple[int, int]] = []
        """Sequence numbers, and what is to be added to the times of decisions up to each."""
        self._begun = self._graced = 0
        """When they began to wait here, and until when those of before wait at least."""
        bandit.agent.watch.warn = partial(logger.warning, "%s: %s", source.name)  # callers cannot help it

    @property
    def stats(self) -> Stats:
        """The numbers of its page."""
        assert isinstance(self.bandit.beside, Stats)
        return self.bandit.beside

    def decide(self, asked: Sequence[DecisionAsked], now: int) -> list[DecisionMade]:
        """Decide in this order; known ids get what was decided then. All are checked before the first is decided."""
        offers = []
        for place, one in enumerate(asked):
            try:
                offers.append(self._offer(one))
            except ValueError as error:
                where = f"decision {place} of {len(asked)}: " if len(asked) > 1 else ""
                raise invalid(f"{where}{error}") from None
        self._check_left(asked)
        try:
            return [_made(one) for one in self.bandit.decide_many(offers, now / 1e6)]
        except ConflictError as error:
            raise RefusedError(409, str(error)) from None
        except ValueError as error:
            raise invalid(str(error)) from None

    def _offer(self, one: DecisionAsked) -> dict[str, Any]:
        """An offer as the bandit takes it; a ValueError where it is of the other kind."""
        offer = dict(one) | {"event_id": one.event_id or secrets.token_hex(16)}
        if self.spec.dim is None:
            if offer.pop("features") is not None:
                raise ValueError("features must be left out, as they have names here: give context and arms")
            return offer
        if offer.pop("context") is not None:
            raise ValueError("context must be left out, as features have no names here: give features")
        if one.features is None:
            raise ValueError("features must be given")
        width = next((len(row) for row in one.features if len(row) != self.spec.dim), None)
        if width is not None:
            raise ValueError(f"features must have {self.spec.dim} numbers for each arm, got {width}")
        return offer | {"features": np.array(one.features)}

    def arms(self) -> ArmsNow:
        """The arms that are on offer where a decision does not say which."""
        design = self.bandit.design
        return ArmsNow(arms=[] if design is None else design.offered(), changed=False)

    def change_arms(self, asked: ArmsChanged, now: int) -> ArmsNow:
        """Add or remove an arm; where it is as asked already, nothing changes."""
        design = self.bandit.design
        if design is None or design.features.arms is None:
            raise invalid("arms must be declared to be changed by name: make the model with arms")
        there = design.offered()
        try:
            if asked.add is not None:
                changed = asked.add not in there
                if changed:
                    check_size(design.features, len({*design.arms, asked.add}))
                    self.bandit.add_arm(asked.add, asked.like, now / 1e6)
            else:
                arm = asked.remove or ""
                changed = arm in there
                if not changed and arm not in design.arms:
                    raise RefusedError(404, f"there is no arm {arm!r}")
                if changed:
                    self.bandit.remove_arm(arm, now / 1e6)
        except ValueError as error:
            raise invalid(str(error)) from None
        return ArmsNow(arms=design.offered(), changed=changed)

    def _check_left(self, asked: Sequence[DecisionAsked]) -> None:
        """Calls that are repeated have as many arms as before, so their decisions may be read from the log together."""
        sizes = weighed_of(self.bandit).size_if_left
        counts = {
            one.event_id: len(one.features) if one.available is None else sum(one.available)
            for one in asked
            if one.features is not None and one.event_id is not None and sizes(one.event_id)
        }
        for event_id, said in self.history.words(list(counts)):
            if len(said["arms"]) != counts[event_id]:
                raise RefusedError(
                    409,
                    f"event_id {event_id!r} was decided among other arms, {len(said['arms'])} of them, "
                    f"got {counts[event_id]}",
                )

    def learn(self, given: Sequence[RewardGiven], now: int) -> list[RewardReceipt]:
        """Take in rewards in this order; each has its own receipt."""
        receipts: list[RewardReceipt] = []
        for some in self._parts([one.event_id for one in given]):
            rewards = [(one.event_id, one.reward) for one in given[len(receipts) : len(receipts) + len(some)]]
            found = self.bandit.learn_many(rewards, now / 1e6, strict=False)
            receipts += [
                RewardReceipt.model_construct(
                    counted=one.counted,
                    event_id=one.event_id,
                    status=one.status,
                    reward=one.reward,
                    message=one.message,
                )
                for one in found
            ]
        return receipts

    def _parts(self, event_ids: Sequence[str]) -> Iterator[Sequence[str]]:
        """Parts of ids whose decisions fit into memory, should they be read from the log again."""
        start = size = 0
        for place, event_id in enumerate(event_ids):
            size += weighed_of(self.bandit).size_if_left(event_id)
            if size > WHOLE_BYTES and place > start:
                yield event_ids[start:place]
                start, size = place, weighed_of(self.bandit).size_if_left(event_id)
        yield event_ids[start:]

    def begin_to_wait(self, now: int, shift: int) -> None:
        """Nobody could give rewards from the last event until now, as far as is known: that time does not count.

        Args:
            now: by a clock.
            shift: by which this clock has been set, in all.
        """
        self._shift = shift
        store, last = self.history.source.store, self.bandit._sequence
        event = next(store.read(self.row.id, after=last - 1), None) if last else None
        ended = self.bandit._time if event is None else event.time
        self._shifts = [(last, now - ended)]
        self._begun = now
        self._graced = 0 if self.spec.wait is None else now + min(round(self.spec.wait * 1e6), GRACE)

    def set_clock(self, shift: int) -> None:
        """Correct waits by the total shift of the clock in microseconds, so that they become neither shorter nor
        longer.
        """
        if shift != self._shift:
            self._shifts.append((self.bandit._sequence, shift - self._shift))
            self._begun += shift - self._shift
            self._graced += shift - self._shift
            self._shift = shift

    def expire(self, now: int) -> int:
        """Close decisions that have waited long enough, with the default reward if there is one; how many."""
        if self.spec.wait is None:
            return 0
        wait = round(self.spec.wait * 1e6)
        late: list[str] = []
        for one in self.bandit._remembered.open():  # none before another that has waited for longer
            since = one.time + sum(by for last, by in self._shifts if one.sequence <= last)
            due = since + wait
            if self._shifts and one.sequence <= self._shifts[0][0]:
                due = max(min(since, self._begun) + wait, self._graced)
            if due > now or len(late) >= EXPIRED_AT_ONCE:
                break
            late.append(one.event_id)
        if late:
            late = list(next(self._parts(late)))
            self.bandit.expire(reward=self.spec.default_reward, time=now / 1e6, event_ids=late)
        return len(late)

    def delete(self, asked: DeletionAsked, now: int, most: int = DELETED_AT_ONCE) -> int:
        """Erase events from memory and log; how many decisions there were, at most so many and then more are left."""
        before = None if asked.before is None else round(asked.before * 1e6)
        ids = list(self.history.select(asked.event_ids, before, asked.subject, most))[:most]
        if not ids:
            return 0
        self.stats.forget(str(said["arms"][said["place"]]) for _, said in self.history.words(ids))
        return self.bandit.delete(event_id=ids)

    def shed(self, most: int) -> None:
        """Leave the oldest decisions to the log, beyond so many bytes; called when all of them are in it."""
        if weighed_of(self.bandit).shed(most):
            self.bandit._forgetful = True

    def facts(self, now: int) -> Plain:
        """Numbers of the moment."""
        spec = self.spec.model_dump(exclude={"parameters", "seed", "window", "noise_std", "theta_bound"})
        sequence, time = self.bandit._snapshot
        return spec | {
            "policy": self.bandit.agent.policy.name,
            "created": self.row.created / 1e6,
            "open": self.bandit.waiting,
            "snapshot_age": max(now - time, 0) / 1e6 if sequence else None,
            "last_sequence": self.bandit._sequence,
            "leader": self.history.fence is not None,
        }


def caught_up_model(
    model: Model | None, row: ModelRow, store: Store, memory: Callable[[], int] | None = None
) -> Model:
    """Return a model with all events of its log: a new one, or the existing one if it can continue.

    Beyond so many bytes of memory its oldest decisions are left to the log, while it is read, too.
    """
    source = source_of(row, store, memory)
    bandit = caught_up(None if model is None else model.bandit, source)
    return model if model is not None and bandit is model.bandit else Model(source, bandit)


def source_of(row: ModelRow, store: Store, memory: Callable[[], int] | None = None) -> Source:
    """Return the source of a model's log, with the initial state of its bandit and its statistics."""
    spec = ModelSpec.model_validate_json(row.spec)

    def statistics(plain: Plain | None, sequence: int) -> Stats:
        if sequence == 0:
            return Stats(spec.dim)
        try:
            return Stats.restored(plain or {})
        except ValueError:  # of a release that counted otherwise
            if spec.dim is None:  # what was expected of arms with names is not in the log
                return Stats(None)
            return counted(row, store, spec, sequence)

    return Source(store, row, f"model {row.name!r}", lambda: new_bandit(spec), None, statistics, memory)


def new_bandit(spec: ModelSpec) -> Bandit:
    """A bandit as a model is specified; a ValueError says what cannot be."""
    return Bandit(
        find("policy", spec.policy).build("random", 2, spec.parameters),
        dim=spec.dim,
        features=spec.features,
        noise_std=spec.noise_std,
        floor=spec.floor,
        half_life=spec.half_life,
        theta_bound=spec.theta_bound,
        seed=spec.seed or 0,
        window=spec.window,
        log=False,
    )


def counted(row: ModelRow, store: Store, spec: ModelSpec, until: int) -> Stats:
    """Return the numbers of a model's page from its log alone, without deciding again or erased events."""
    stats = Stats(spec.dim)
    waiting: dict[str, Decision] = {}
    for event in store.read(row.id, until=until):
        if event.kind in DECIDED:
            decision = events.decision_in(event)
            stats.take(decision)
            waiting[decision.event_id] = decision
        elif event.event_id in waiting:
            decision = waiting.pop(event.event_id)
            events.close_by(decision, event)
            stats.take(decision)
    return stats


def _made(decision: Decision) -> DecisionMade:
    """Return a decision for JSON."""
    assert decision.probabilities is not None  # a bandit's are known
    return DecisionMade.model_construct(
        event_id=decision.event_id,
        arm=decision.arm,
        probability=decision.probability,
        arms=list(decision.arms or ()),
        probabilities=decision.probabilities.tolist(),
        explored=decision.explored,
        again=decision.again,
        time=decision.time / 1e6,
        version=decision.version,
    )
