"""The decisions that a bandit remembers: those that wait for their rewards, and those whose ids may come again."""

from collections import deque
from collections.abc import Iterator, Mapping

from solid_bandits.core.decision import OPEN, Decision


class Remembered:
    """Decisions by their ids, those of the last `window`."""

    def __init__(self, window: int) -> None:
        self.window = window
        self._all: dict[str, Decision] = {}
        self._open: dict[str, Decision] = {}
        self._order: deque[Decision] = (
            deque()
        )  # a dict from whose front much was removed is slow to look into

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Decision]:
        """Yield the decisions in order."""
        return iter(self._all.values())

    def find(self, event_id: str) -> Decision | None:
        """Return the decision with this id, if it is remembered."""
        return self._all.get(event_id)

    def leaving(self, ordinal: int) -> list[Decision]:
        """Open decisions that will be forgotten when the one of this number is added."""
        found = []
        for one in self._order:
            if one.ordinal > ordinal - self.window:
                break
            if self._open.get(one.event_id) is one:
                found.append(one)
        return found

    def add(self, decision: Decision) -> None:
        """Remember one more, and forget what is too old for it."""
        order, event_id = self._order, decision.event_id
        while order and order[0].ordinal <= decision.ordinal - self.window:
            old = order.popleft()
            if self._all.get(old.event_id) is old:  # else it was deleted
                self.drop(old)
        self._all[event_id] = decision
        order.append(decision)
        if decision.status == OPEN:
            self._open[event_id] = decision

    def close(self, decision: Decision) -> None:
        """Take note that one does not wait any more."""
        self._open.pop(decision.event_id, None)

    def drop(self, decision: Decision) -> None:
        """Forget one."""
        del self._all[decision.event_id]
        self._open.pop(decision.event_id, None)

    def restored(self, logged: Mapping[str, Decision]) -> dict[str, Decision]:
        """Decisions as a log has them; those that wait here are what is remembered of them."""
        found = dict(logged)
        for event_id, one in logged.items():
            known = self._all.get(event_id)
            if (
                known is not None and known.sequence == one.sequence
            ):  # otherwise the id belonged to another decision
                found[event_id] = known
        return found

    @property
    def waiting(self) -> int:
        """Return the number of open decisions."""
        return len(self._open)

    def open(self) -> list[Decision]:
        """Return the decisions that wait for their rewards, in order."""
        return list(self._open.values())
