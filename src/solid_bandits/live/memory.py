"""The decisions that a bandit remembers: those that wait for their rewards, and those whose ids may come again."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from solid_bandits._types import Floats

Arm = str | int
"""What a caller names an arm by."""

OPEN, LEARNED, EXPIRED = "open", "learned", "expired"
"""What a decision may be: it waits for its reward, has it, or will never have one (or has the default)."""


class Record:
    """A decision that is remembered. Features are kept while it is open: the log has them afterwards."""

    __slots__ = (
        "arms",
        "event_id",
        "explored",
        "features",
        "number",
        "place",
        "policy_number",
        "probabilities",
        "reward",
        "sequence",
        "status",
        "time",
        "version",
    )

    def __init__(
        self,
        *,
        event_id: str,
        number: int,
        policy_number: int | None,
        sequence: int,
        time: int,
        arms: tuple[Arm, ...],
        place: int,
        probabilities: Floats,
        explored: bool,
        version: str,
        features: Floats | None,
        status: str = OPEN,
        reward: float | None = None,
    ) -> None:
        self.event_id = event_id
        self.number = number
        """Which decision of the bandit this was, counted from 1."""
        self.policy_number = policy_number
        """Which decision of the agent, where that matters to it."""
        self.sequence = sequence
        self.time = time
        """Microseconds since 1970."""
        self.arms = arms
        self.place = place
        """Of the chosen arm among them."""
        self.probabilities = probabilities
        self.explored = explored
        self.version = version
        """Of the model that decided."""
        self.features = features
        """Of all arms, shape (arms, dim), while the decision is open."""
        self.status = status
        self.reward = reward

    @property
    def arm(self) -> Arm:
        """The chosen one."""
        return self.arms[self.place]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class Memory:
    """Records by their ids, those of the last `window` decisions."""

    def __init__(self, window: int) -> None:
        self.window = window
        self._records: dict[str, Record] = {}
        self._order: deque[Record] = deque()  # a dict from whose front much was removed is slow to look into
        self.opened = 0
        """How many are open."""

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        """In the order of the decisions."""
        return iter(self._records.values())

    def find(self, event_id: str) -> Record | None:
        """The record of this id, if it is remembered."""
        return self._records.get(event_id)

    def add(self, record: Record) -> list[Record]:
        """Remember one more; returns those that are forgotten for it."""
        self._records[record.event_id] = record
        self._order.append(record)
        self.opened += record.status == OPEN
        forgotten = []
        while self._order[0].number <= record.number - self.window:
            old = self._order.popleft()
            if self._records.get(old.event_id) is old:  # else it was deleted
                self.drop(old)
                forgotten.append(old)
        return forgotten

    def settle(self, record: Record, status: str, reward: float | None) -> None:
        """Close an open one; its features go."""
        record.status, record.reward, record.features = status, reward, None
        self.opened -= 1

    def drop(self, record: Record) -> None:
        """Forget one."""
        del self._records[record.event_id]
        self.opened -= record.status == OPEN

    def open(self) -> list[Record]:
        """Those that wait for their rewards, in the order of the decisions."""
        return [record for record in self._records.values() if record.status == OPEN]


def row_of(record: Record, features: Floats | None, policy: str) -> dict[str, Any]:
    """A decision as a row of the log while its reward is not known, its arrays as they are."""
    assert features is not None  # it is open, or was so a moment ago
    return {
        "event_id": record.event_id,
        "sequence": record.sequence,
        "time": record.time,
        "arms": [str(arm) for arm in record.arms],
        "features": features,
        "context": None,
        "probabilities": record.probabilities,
        "arm": str(record.arm),
        "probability": record.probabilities[record.place].item(),
        "explored": record.explored,
        "reward": None,
        "defaulted": None,
        "reward_sequence": None,
        "reward_time": None,
        "policy": policy,
        "model_version": record.version,
    }
