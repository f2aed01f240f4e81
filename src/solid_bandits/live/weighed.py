"""Remembered decisions whose bytes are counted, so that memory can be limited where a log has all of them.

Of the oldest, closed ones are forgotten, and of open ones only ids, numbers and times stay; features and names are read
from the log again when their rewards come.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from solid_bandits.core.decision import Arm, Decision
from solid_bandits.live.remembered import Remembered

RECORD = 1_000
"""Bytes of a decision besides arrays and names, about: an object, its ids and its places here."""
NAME = 60
"""Bytes of an arm's name besides its letters, about."""


def size_of(decision: Decision) -> int:
    """Return the bytes of memory that a decision takes, about."""
    return size_without_names(decision) + size_of_names(decision.arms)


def size_without_names(decision: Decision) -> int:
    """Return the bytes of memory that a decision takes besides its arms' names, about."""
    arrays = (decision._offered, decision._kept, decision._features, decision._probabilities)
    size = RECORD + sum([8 * one.size for one in arrays if one is not None])
    return size if decision.named is None else size + decision.named.size


def size_of_names(arms: Sequence[Arm] | None) -> int:
    """Return the bytes of memory that names of arms take, about."""
    return 0 if arms is None or isinstance(arms, range) else sum([NAME + len(str(one)) for one in arms])


class Weighed(Remembered):
    """What was remembered before, and is weighed from now on.

    Args:
        before: not used again.
        left: bytes of those open decisions of which the log alone has the rest.
    """

    def __init__(self, before: Remembered, left: Mapping[str, int]) -> None:
        super().__init__(before.window)
        self.bytes = 0
        """Of memory that decisions take, about; those of which little stays are not counted."""
        self._names: Sequence[Arm] | None = None
        self._names_size = 0
        self._sizes: dict[str, int] = {}
        self._left = dict(left)
        self._whole: deque[Decision] = deque()
        """Decisions that may have their arrays, in the order in which they got them."""
        for one in before:
            self.add(one)

    def add(self, decision: Decision) -> None:
        """See `Remembered`."""
        super().add(decision)
        if decision.arms is not None:
            self._hold(decision)

    def close(self, decision: Decision) -> None:
        """See `Remembered`."""
        super().close(decision)
        if decision.arms is None and self._all.get(decision.event_id) is decision:
            self.drop(decision)  # only the log can say what it was
        elif decision._offered is not None and decision.event_id in self._sizes:
            self.bytes -= 8 * decision._offered.size  # they go once they are logged
            self._sizes[decision.event_id] -= 8 * decision._offered.size

    def drop(self, decision: Decision) -> None:
        """See `Remembered`."""
        super().drop(decision)
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

    def size_if_left(self, event_id: str) -> int:
        """Return the bytes that an open decision takes where it is read from the log again; 0 where it need not be."""
        return self._left.get(event_id, 0)

    def restored(self, logged: Mapping[str, Decision]) -> dict[str, Decision]:
        """See `Remembered`; those that wait here are whole again."""
        found = super().restored(logged)
        for event_id, known in found.items():
            one = logged[event_id]
            if known is not one and known.arms is None:
                known.arms, known.probabilities = one.arms, one.probabilities
                known.features, known.offered, known.named = one.features, one.offered, one.named
                self._left.pop(event_id, None)
                self._hold(known)
        return found
