"""What a bandit is made of: an agent, the decisions that it remembers, and how they change, event by event.

Nothing here takes a turn or checks whose: `Bandit` does, before it calls these.
"""

import hashlib
import json
import threading
from collections.abc import Container, Mapping, Sequence
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import ndarray
from numpy.typing import ArrayLike

from solid_bandits import __version__
from solid_bandits._internal.checks import short
from solid_bandits._internal.types import Floats
from solid_bandits.core.agent import Agent
from solid_bandits.core.decision import (
    AGAIN,
    CONFLICT,
    EXPIRED,
    KNOWN,
    LATE,
    LEARNED,
    LEARNT,
    NOTHING,
    OFFER,
    OPEN,
    UNKNOWN,
    Arm,
    Decision,
    Receipt,
)
from solid_bandits.core.offer import FLOAT, as_arms, as_mask, listed
from solid_bandits.core.setting import check_features
from solid_bandits.features.design import Design, Growth, Named
from solid_bandits.live import named
from solid_bandits.live.arguments import checked_id, names_of
from solid_bandits.live.events import ADOPTED
from solid_bandits.live.history import History
from solid_bandits.live.remembered import Remembered

if TYPE_CHECKING:
    from solid_bandits.live.recovery import Beside


class ConflictError(ValueError):
    """An id was used for a decision among other arms.

    Example:
        >>> import solid_bandits as sb
        >>> bandit = sb.Bandit(sb.LinTS(), dim=1, noise_std=0.5)
        >>> decision = bandit.decide([[1.0], [2.0]], event_id="visit-1")
        >>> try:
        ...     bandit.decide([[1.0]], event_id="visit-1")
        ... except sb.errors.ConflictError as error:
        ...     print(error)
        event_id 'visit-1' was decided among other arms, (0, 1), got (0,)
    """


class Offer(NamedTuple):
    """An offer to decide about, checked."""

    features: Floats | None
    """Features of the arms; None if they follow from named values."""
    arms: tuple[Arm, ...]
    event_id: str | None
    subject: str | None
    said: Mapping[str, str]
    named: Named | None = None
    every: bool = False
    """Whether the arms are all that are there: an id that is asked again may have been decided among others then."""


_new = tuple.__new__
"""A named tuple's own way to be made takes twice as long."""


class Ledger:
    """The state of a bandit."""

    _history: History

    def _begin(self, agent: Agent, seed: int, window: int, design: Design | None = None) -> None:
        self.agent = agent
        self.design = design
        """Design that turns named values into features; None if decisions bring features."""
        self.beside: Beside | None = None
        """Derived data that is updated with the decisions, such as statistics."""
        self._dim = agent.dim
        self._seed = seed
        self._remembered = Remembered(window)
        self._arms: tuple[Arm, ...] = ()
        """Names of the last offer that had some."""
        self._numbers: tuple[Arm, ...] = ()
        """Those of the last one that had none."""
        self._history = History()
        self._turn: Any = threading.RLock()  # where there is a store, its history
        self._decisions = self._sequence = self._learned = self._time = 0
        self._snapshot = 0, 0
        """The last one that is stored: the number of its event, and its time."""
        self._forgetful = False
        """Whether closed decisions of before are in the log alone."""
        self._changing = False
        """Whether the call at work has changed something."""
        self._policy = f"{agent.policy!r}, floor={agent.floor:g}"
        # All that decisions depend on; a half-life is part of the policy.
        setting = agent._setting._asdict()
        if design is not None:  # its size is that of the agent before its first decision
            setting = {**setting, "dim": 0, "blocks": 0, "features": design.features.to_plain()}
        settings = [agent.policy.describe(), setting, agent.floor, seed]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self._version = f"{__version__}/{digest[:8]}"

    def _become(self, other: "Ledger") -> None:
        """Take the state of another, which is not used again."""
        for name in (
            "agent",
            "design",
            "beside",
            "_remembered",
            "_decisions",
            "_sequence",
            "_learned",
            "_time",
            "_snapshot",
        ):
            setattr(self, name, getattr(other, name))
        self._forgetful = True

    def _offer_in(self, one: Any, growth: Growth | None) -> Offer:
        """Return one of many offers, given as a table; it may fix types for those after it."""
        first = "features" if self.design is None else "context"
        known = {first, *OFFER[1:]}
        if (
            not isinstance(one, Mapping)
            or not set(one) <= known
            or (self.design is None and first not in one)
        ):
            raise ValueError(f"it must be a table of {', '.join((first, *OFFER[1:]))}, got {short(one)}")
        given = dict(one)
        return self._offer(given.pop(first, None), growth=growth, **given)

    def _offer(
        self,
        features: Any,
        arms: Any = None,
        event_id: str | None = None,
        subject: str | None = None,
        available: ArrayLike | None = None,
        growth: Growth | None = None,
        looked_at: bool = False,
        **said: str | None,
    ) -> Offer:
        """What is decided about, checked; `features` are a matrix, or values by names. With `looked_at` the agent is
        asked next, and looks at a matrix itself.
        """
        rows: Floats | None = None
        told: Named | None = None
        if self.design is None:
            rows, names = self._matrix(features, arms, available, looked_at)
        else:
            if available is not None:
                raise ValueError(
                    "available must be left out where arms have names: give those on offer as arms"
                )
            # A repeated call may name arms that were removed since.
            gone = event_id is not None and self.design.names_removed(arms)
            made = gone and self._recalled(checked_id(event_id)) is not None
            told = self.design.check(features, arms, growth, made)
            names = told.arms
        if subject is not None:
            checked_id(subject, "subject")
        words: Mapping[str, str] = NOTHING
        if said:
            words = {name: checked_id(value, name) for name, value in said.items() if value is not None}
        if event_id is not None:
            checked_id(event_id)
        every = told is not None and arms is None
        return _new(Offer, (rows, names, event_id, subject, words, told, every))

    def _matrix(
        self,
        features: ArrayLike,
        arms: Sequence[Arm] | None,
        available: ArrayLike | None,
        looked_at: bool,
    ) -> tuple[Floats, tuple[Arm, ...]]:
        if isinstance(features, Mapping):
            raise ValueError(
                f"features must be a matrix of shape (arms, {self._dim}), got values by names; declare them: "
                "Bandit(context=[...], arms=[...])"
            )
        rows: Floats
        if looked_at and type(features) is ndarray and features.ndim == 2 and features.dtype == FLOAT:
            rows = features
        else:
            rows = as_arms(features, self._dim)
        count = len(rows)
        if arms is None:
            names = self._numbers
            if len(names) != count:
                names = self._numbers = names_of(None, count)
        else:
            names = self._arms
            # The very names of the last offer are checked, and kept once.
            if (
                not isinstance(arms, list | tuple)
                or not len(arms) == len(names) == count
                or not all(map(is_, arms, names))
            ):
                names = self._arms = names_of(arms, count)
        if available is not None:
            mask = as_mask(available, rows.shape[0])
            rows = rows[mask]
            names = tuple(name for name, offered in zip(names, mask, strict=True) if offered)
        return rows, names

    def _offers(self, features: Any, arms: Any, event_ids: Any, subjects: Any, available: Any) -> list[Offer]:
        """Return the checked offers of columns: features (offers, arms, dim), and one value of each other column per
        offer.
        """
        rows = check_features("offers", features, "offers", "arms", "dim")
        names = names_of(arms, rows.shape[1])
        if rows.shape[2] != self._dim:
            raise ValueError(f"offers must have shape (offers, arms, {self._dim}), got {rows.shape}")
        columns = []
        for name, values in (("event_ids", event_ids), ("subjects", subjects), ("available", available)):
            column = [None] * len(rows) if values is None else listed(name, values)
            if len(column) != len(rows):
                raise ValueError(f"{name} must have {len(rows)} entries, one per offer, got {len(column)}")
            columns.append(column)
        offers = []
        for place, (own, event_id, subject, mask) in enumerate(zip(rows, *columns, strict=True)):
            try:
                offers.append(self._offer(own, names, event_id, subject, mask))
            except ValueError as error:
                raise ValueError(f"decision {place} of {len(rows)}: {error}") from None
        return offers

    def _recalled(self, event_id: str) -> Decision | None:
        """The decision of an id, from memory or from the log."""
        found = self._remembered.find(event_id)
        if found is not None and found._arms is not None:
            return found
        logged = self._history.find((event_id,))  # which has the rest of it
        return self._remembered.restored(logged).get(event_id) if logged else None

    def _known(self, event_ids: Sequence[str]) -> dict[str, Decision]:
        """Decisions of these ids, from memory and from the log."""
        remembered = ((one, self._remembered.find(one)) for one in event_ids)
        found = {one: known for one, known in remembered if known is not None and known.arms is not None}
        if len(found) < len(event_ids):
            missing = [one for one in event_ids if one not in found]
            found |= self._remembered.restored(self._history.find(missing))
        return found

    def _unknown(self, event_id: Any) -> ValueError:
        hint = "; give its event_id" if hasattr(event_id, "event_id") else ""
        known = self._history.known.format(window=self._remembered.window)
        return ValueError(f"event_id must be that of one of {known}, got {short(event_id)}{hint}")

    def _new_id(self, taken: Container[str], number: int) -> str:
        while (found := f"decision-{number}") in taken or self._recalled(found) is not None:  # a caller's own
            number += 1
        return found

    def _decide(self, offer: Offer, when: int, taken: Container[str] = ()) -> Decision:
        """Decide; where it has no id it gets one that is not taken."""
        number = self._decisions + 1
        event_id = offer.event_id or self._new_id(taken, number)
        features = offer.features
        if features is None:
            self._changing = True
            features = self._rows_of([offer])[0]
        try:
            decision = self.agent.decide(features)
        except BaseException:
            if not self._changing:
                self.agent._arms(features)  # says what is wrong with them: then nothing has changed
                self._changing = True
            raise
        self._changing = True
        if number > self._remembered.window:
            for late in self._remembered.leaving(number):  # without a reward: the agent does not learn of it
                self._close(late, EXPIRED, None, when)
        self._take_in(decision, offer, event_id, when)
        return decision

    def _rows_of(self, offers: Sequence[Offer]) -> list[Floats]:
        """Return the features of the arms on offer; all named values are added before any is encoded."""
        told = [offer.named for offer in offers if offer.named is not None]
        if self.design is None:
            return [offer.features for offer in offers if offer.features is not None]
        for one in told:
            named.take(self.design, self.agent, one)
        return [self.design.encode(one) for one in told]

    def _decide_together(
        self, offers: Sequence[Offer], when: int, taken: Container[str] = ()
    ) -> list[Decision]:
        """Decide at most `window` offers under what has been learnt so far: none of them expires another one."""
        if len(offers) == 1:
            return [self._decide(offers[0], when, taken)]
        ids: dict[str, None] = {}
        for number, offer in enumerate(offers, self._decisions + 1):
            event_id = offer.event_id
            while event_id is None or (offer.event_id is None and event_id in ids):
                event_id = self._new_id(taken, number)
                number += 1
            ids[event_id] = None
        for late in self._remembered.leaving(self._decisions + len(offers)):
            self._close(late, EXPIRED, None, when)
        self._changing = True
        batch = self.agent.decide_many(self._rows_of(offers))
        made = list(batch)
        for place, (decision, offer, event_id) in enumerate(zip(made, offers, ids, strict=True)):
            self._take_in(decision, offer, event_id, when, (place, len(made)))
        return made

    def _take_in(
        self,
        decision: Decision,
        offer: Offer,
        event_id: str,
        when: int,
        batch: tuple[int, int] | None = None,
    ) -> None:
        """Make a record of what the agent decided."""
        if not decision._bits & KNOWN:
            raise ValueError(f"policy must give its probabilities, got {self.agent.policy!r}")
        decision.event_id = event_id
        decision.time = when
        decision._arms = offer.arms
        decision._version, decision._learnt = self._version, self._learned
        decision.status, decision.batch = OPEN, batch
        decision.subject = offer.subject
        decision.said = offer.said
        decision._offered = None if offer.features is None else offer.features.copy()
        decision.named = offer.named
        if offer.named is not None:
            decision._explained = self._why
        self._enter(decision)
        self._history.made(decision)

    def _decide_again(self, logged: Sequence[Decision]) -> list[Decision]:
        """Decide as a log says it was, one offer or a batch; the caller compares."""
        offers = [
            Offer(one.offered, tuple(one.arms or ()), one.event_id, one.subject, one.said, one.named)
            for one in logged
        ]
        return self._decide_together(offers, logged[0].time)

    def _adopt(
        self, decision: Decision, outcomes: Mapping[str, tuple[str, float | None, int]] = MappingProxyType({})
    ) -> None:
        """Take in a decision that was made elsewhere; those that leave the window get the outcomes that are known."""
        for late in self._remembered.leaving(self._decisions + 1):
            self._close(late, *outcomes.get(late.event_id, (EXPIRED, None, decision.time)))
        self._changing = True
        features = decision.offered
        if self.design is not None:
            named.take(self.design, self.agent, decision.named)
            features = self.design.encode(decision.named)
        decision.number = self.agent.decide(features).number
        self._enter(decision)
        self._history.made(decision, ADOPTED)

    def _enter(self, decision: Decision) -> None:
        self._decisions = decision.ordinal = self._decisions + 1
        self._sequence = decision.sequence = self._sequence + 1
        if decision.time > self._time:
            self._time = decision.time
        self._remembered.add(decision)
        if self.beside is not None:
            self.beside.take(decision)

    def _why(self, decision: Decision) -> Any:
        """Return the contribution of each named feature of a decision."""
        with self._turn:
            if self.design is None or decision.named is None:
                raise ValueError(
                    "why must be asked of a decision whose named values are known, got one that was deleted"
                )
            return named.why(self.design, self.agent, decision)

    def _change_arms(self, change: Mapping[str, Any], when: int) -> None:
        """Add or remove an arm, as an event says."""
        assert self.design is not None  # `Bandit` has asked it
        self._changing = True
        if "add" in change:
            named.add_arm(self.design, self.agent, change["add"], change["like"])
        else:
            self.design.remove_arm(change["remove"])
        self._sequence += 1
        self._time = max(self._time, when)
        self._history.changed(self._sequence, when, change)

    def _learn(self, event_id: str, decision: Decision | None, reward: float, when: int) -> Receipt:
        if decision is None:
            return Receipt(event_id, UNKNOWN, None, reward)
        if decision.status == OPEN:
            self._close(decision, LEARNED, reward, when)
            return _new(Receipt, (event_id, LEARNT, reward, reward))
        counts = decision.reward
        if decision.status == EXPIRED:
            return Receipt(event_id, LATE, counts, reward)
        return Receipt(event_id, AGAIN if counts == reward else CONFLICT, counts, reward)

    def _close(self, decision: Decision, status: str, reward: float | None, when: int) -> None:
        self._changing = True
        if reward is not None:
            if self.design is not None:  # in the coordinates that are in force now
                if self.beside is not None:
                    decision.expected = self.agent.predict(self.design.encode(decision.named))[0]
                decision.features = self.design.encode(named.chosen_of(decision.named, decision.place))[0]
            self.agent.learn(decision, reward)
            self._learned += 1
        self._sequence = decision.reward_sequence = self._sequence + 1
        if when > self._time:
            self._time = when
        decision.status, decision.reward, decision.reward_time = status, reward, when
        self._remembered.close(decision)
        if self.beside is not None:
            self.beside.take(decision)
            decision.expected = None
        self._history.closed(decision)


def check_same(offer: Offer, arms: Sequence[Arm] | None) -> None:
    """Raise a ConflictError unless the arms are those that the id was used for; a log has text alone."""
    if arms is offer.arms or offer.every:
        return
    if [str(arm) for arm in arms or ()] != [str(arm) for arm in offer.arms]:
        raise ConflictError(
            f"event_id {offer.event_id!r} was decided among other arms, {short(tuple(arms or ()))}, got "
            f"{short(offer.arms)}"
        )
