"""Decisions that are made together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal.checks import short
from solid_bandits.core.decision import Arm, Decision
from solid_bandits.core.offer import listed
from solid_bandits.live.arguments import Time, moment
from solid_bandits.live.ledger import Ledger, Offer, check_same


class Batches(Ledger):
    """The call of a bandit that decides many offers."""

    def decide_many(
        self,
        offers: ArrayLike | Iterable[Mapping[str, Any]],
        time: Time | None = None,
        *,
        arms: Sequence[Arm] | None = None,
        event_ids: Sequence[str] | None = None,
        subjects: Sequence[str | None] | None = None,
        available: ArrayLike | None = None,
    ) -> list[Decision]:
        """Decide many offers together, with the current knowledge; all are checked before the first is decided.

        They form one batch of `Agent.decide_many`, also in the log, where it is replayed as one; a short `window`
        limits the size of batches. If an id occurs twice, the first offer is decided, and the others get its decision.

        Args:
            offers: a list with a table for each, of `context` (or `features`, a matrix) and, if wanted, `arms`,
                `event_id`,
                `subject` and `available`; or the features of all, shape (offers, arms, dim).
            time: time of all decisions.
            arms: with the features of all, the names of the arms, the same in each offer.
            event_ids: with the features of all, the id of each.
            subjects: with the features of all, the person that each is about.
            available: with the features of all, mask of the arms that may be chosen, shape (offers, arms).
        """
        columns = {"arms": arms, "event_ids": event_ids, "subjects": subjects, "available": available}
        tables: list[Any] | None = None
        if not isinstance(offers, np.ndarray):
            for name, value in columns.items():
                if value is not None:
                    raise ValueError(
                        f"{name} must be said in each table of offers, got {short(value)}; they go with an array of "
                        "features"
                    )
            tables = listed("offers", cast(Iterable[Any], offers))
        when = moment("time", time)
        with self._turn:
            checked = self._offers(offers, **columns) if tables is None else self._tables(tables)
            # Found before the first is decided, because with a short window the other offers may expire some of them.
            known = self._known([one.event_id for one in checked if one.event_id is not None])
            planned = {name: decision.arms for name, decision in known.items()}
            fresh = []
            for offer in checked:
                new = offer.event_id is None or offer.event_id not in planned
                if offer.event_id is not None:
                    check_same(offer, planned.setdefault(offer.event_id, offer.arms))
                if new:
                    fresh.append(offer)
            earlier = [known.get(offer.event_id or "") for offer in checked]
            found = [one if one is None else self._repeated(one) for one in earlier]
            size = self._remembered.window
            decided = [
                decision
                for start in range(0, len(fresh), size)
                for decision in self._decide_together(fresh[start : start + size], when, planned)
            ]
            of_id = {decision.event_id: decision for decision in decided}
            queue = iter(decided)
            first: set[str] = set()
            made = []
            for offer, before in zip(checked, found, strict=True):
                if before is not None:
                    made.append(before)
                elif offer.event_id is not None and offer.event_id in first:
                    made.append(self._repeated(of_id[offer.event_id]))
                else:
                    made.append(next(queue))
                    first.add(made[-1].event_id)
            return made

    def _repeated(self, known: Decision) -> Decision:
        """Return the earlier decision; raise a ValueError if its probabilities are unknown."""
        if known.probabilities is None or np.isnan(known.probabilities).any():
            raise ValueError(f"event_id {known.event_id!r} is of a log without probabilities; give another")
        return self._explained(known.replace(again=True))

    def _explained(self, decision: Decision) -> Decision:
        """Return the decision, whose `why` this bandit answers if features have names."""
        decision._explained = None if self.design is None else self._why
        return decision

    def _tables(self, given: Sequence[Any]) -> list[Offer]:
        """Return the checked offers of some tables."""
        checked = []
        growth = None if self.design is None else self.design.begin_check()
        for place, one in enumerate(given):
            try:
                checked.append(self._offer_in(one, growth))
            except ValueError as error:
                words = f"decision {place} of {len(given)}: {error}" if len(given) > 1 else str(error)
                raise ValueError(words) from None
        return checked
