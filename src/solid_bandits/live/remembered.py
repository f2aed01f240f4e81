"""The decisions that a bandit remembers: those that wait for their rewards, and those whose ids may come again.

Where a log has all of them (`shed`), memory need not: of the oldest, closed ones are forgotten, and of open ones only
ids, numbers and times stay; features and names are read from the log again when their rewards come.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from solid_bandits.core.decision import OPEN, Arm, Decision

RECORD = 1_000
"""Bytes of a decision besides arrays and names, about: an object, its ids and its places here."""
NAME = 60
"""Bytes of an arm's name besides its letters, about."""


def size_of(decision: Decision) -> int:
    """Return the bytes of memory that a decision takes, about."""
    return size_without_names(decision) + size_of_names(decision.arms)


def size_without_names(decision: Decision) -> int:
    """Return the bytes of memory that a decision takes besides its arms' names, about."""
    arrays = (decision.offered, decision._kept, decision._features, decision._probabilities)
    size = RECORD + sum([8 * one.size for one in arrays if one is not None])
    return size if decision.named is None else size + decision.named.size


def size_of_names(arms: Sequence[Arm] | None) -> int:
    """Return the bytes of memory that names of arms take, about."""
    return 0 if arms is None or isinstance(arms, range) else sum([NAME + len(str(one)) for one in arms])


class Remembered:
    """Decisions by their ids, those of the last `window`."""

    def __init__(self, window: int) -> None:
        self.window = window
        self._all: dict[str, Decision] = {}
        self._open: dict[str, Decision] = {}
        self._order: deque[Decision] = (
            deque()
        )  # a dict from whose front much was removed is slow to look into
        self.bytes = 0
        """Of memory that decisions take, about; those of which little stays are not counted."""
        self._names: Sequence[Arm] | None = None
        self._names_size = 0
        self._sizes: dict[str, int] = {}
        self._left: dict[str, int] = {}
        """Sizes of open decisions of which the log has the rest."""
        self._whole: deque[Decision] = deque()
        """Decisions that may have their arrays, in the order in which they got them."""

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
        while self._order and self._order[0].ordinal <= decision.ordinal - self.window:
            old = self._order.popleft()
            if self._all.get(old.event_id) is old:  # else it was deleted
                self.drop(old)
        for array in (decision.offered, decision._features):
            if (
                array is not None
            ):  # callers are given this very record; what an agent wrote is read-only by itself
                array.setflags(write=False)
        self._all[decision.event_id] = decision
        self._order.append(decision)
        if decision.status == OPEN:
            self._open[decision.event_id] = decision
        if decision.arms is not None:
            self._hold(decision)

    def close(self, decision: Decision) -> None:
        """Take note that one does not wait any more."""
        self._open.pop(decision.event_id, None)
        if decision.arms is None and self._all.get(decision.event_id) is decision:
            self.drop(decision)  # only the log can say what it was
        elif decision.offered is not None and decision.event_id in self._sizes:
            self.bytes -= 8 * decision.offered.size  # they go once they are logged
            self._sizes[decision.event_id] -= 8 * decision.offered.size

    def drop(self, decision: Decision) -> None:
        """Forget one."""
        del self._all[decision.event_id]
        self._open.pop(decision.event_id, None)
        self._release(decision)

    def _hold(self, decision: Decision) -> None:
        if decision.arms is not self._names:  # those of the decision before, as a rule
            self._names, self._names_size = decision.arms, size_of_names(decision.arms)
        self._sizes[decision.event_id] = size = size_without_names(decision) + self._names_size
        self.bytes += size
        self._whole.append(decision)

    def _release(self, decision: Decision) -> None:
        self.bytes -= self._sizes.pop(decision.event_id, 0)
        self._left.pop(decision.event_id, None)

    def shed(self, most: int) -> bool:
        """Leave the oldest decisions to the log, until the others take at most so many bytes; whether any were left."""
        left = False
        while self.bytes > most and self._whole:
            one = self._whole.popleft()
            if self._all.get(one.event_id) is not one or one.event_id not in self._sizes:
                continue
            left = True
            if one.event_id in self._open:
                size = self._sizes[one.event_id]
                self._release(one)
                self._left[one.event_id] = size
                one.arms = one.probabilities = one.features = one.offered = one.named = None
            else:
                self.drop(one)
        for queue, most_kept in ((self._order, len(self._all)), (self._whole, len(self._sizes))):
            if len(queue) > 2 * most_kept + 1_000:  # most of it is closed and forgotten
                kept = [one for one in queue if self._all.get(one.event_id) is one]
                queue.clear()
                queue.extend(kept)
        return left

    def note_left(self, sizes: Mapping[str, int]) -> None:
        """Take note of the sizes of open decisions of which the log alone has the rest."""
        self._left.update(sizes)

    def size_if_left(self, event_id: str) -> int:
        """Return the bytes that an open decision takes where it is read from the log again; 0 where it need not be."""
        return self._left.get(event_id, 0)

    def restored(self, logged: Mapping[str, Decision]) -> dict[str, Decision]:
        """Decisions as a log has them; those that wait here are whole again, and are what is remembered of them."""
        found = dict(logged)
        for event_id, one in logged.items():
            known = self._all.get(event_id)
            if known is None or known.sequence != one.sequence:  # else another decision had this id before
                continue
            if known.arms is None:
                known.arms, known.probabilities = one.arms, one.probabilities
                known.features, known.offered, known.named = one.features, one.offered, one.named
                self._left.pop(event_id, None)
                self._hold(known)
            found[event_id] = known
        return found

    @property
    def waiting(self) -> int:
        """Return the number of open decisions."""
        return len(self._open)

    def open(self) -> list[Decision]:
        """Return the decisions that wait for their rewards, in order."""
        return list(self._open.values())
