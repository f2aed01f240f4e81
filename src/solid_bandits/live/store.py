"""What is asked of the place where logs are kept."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from solid_bandits.live.events import Event


class Snapshot(NamedTuple):
    """A model as it was after an event."""

    sequence: int
    time: int
    content: bytes


class ModelRow(NamedTuple):
    """A model, the bandit of one log, as it was asked for."""

    id: int
    name: str
    spec: str
    """JSON: all that it takes to make it anew."""
    created: int


class KeyRow(NamedTuple):
    """A key; the secret itself is nowhere."""

    id: str
    """Public: the part of the key that finds its row."""
    name: str
    role: str
    digest: bytes
    """SHA-256 of the whole key."""
    created: int
    revoked: int | None


class StoreError(RuntimeError):
    """The log could not be written or read: whether the group was committed is unknown.

    Example:
        >>> import solid_bandits as sb
        >>> try:
        ...     sb.Bandit.open("nowhere.db")
        ... except sb.errors.StoreError as error:
        ...     print(error)
        '...nowhere.db' must be a store, but there is no such file
    """


class FullError(StoreError):
    """There is no room; nothing was written."""


class FencedError(StoreError):
    """Another node leads this model now; nothing was written."""


class DuplicateError(StoreError):
    """A name, or an event id of this kind, is there already; nothing was written."""


class Store(Protocol):
    """A log of events per model, its snapshots, and keys.

    `append` is called by one thread at a time; everything else by any thread. What goes wrong is a `StoreError`.
    """

    @property
    def erasing(self) -> str | None:
        """Why what was erased may be in the files still, though it is in no table; None where it is not. It is tried
        again by itself.
        """

    def append(
        self,
        model: int,
        fence: int,
        events: Sequence[Event],
        snapshot: Snapshot | None = None,
        erased: Sequence[int] = (),
    ) -> None:
        """Write one group in one transaction; it is on the disk when this returns.

        A `FencedError` unless `fence` is the newest of the model (also without events: a leader of the past must not
        answer from its memory); a `DuplicateError` for a sequence number or an event id that is there. Of snapshots the
        newest two stay, and the origin. Events at the sequence numbers `erased` first become `events.erased(sequence,
        time)` with the snapshot's time, all earlier snapshots go, nothing of these stays in the files, and the snapshot
        that comes with them is the new origin: no log can be replayed from before it.
        """

    def read(self, model: int, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events in order, from the one after `after` to `until` or the end, a bounded number in memory at a time."""

    def find(self, model: int, event_ids: Sequence[str]) -> list[Event]:
        """The decisions, rewards and expiries of these ids, in order."""

    def places(self, model: int, event_ids: Sequence[str]) -> list[tuple[int, str, str]]:
        """Sequence numbers, kinds and ids of the same, without what they say: for ids of any number."""

    def bodies(self, model: int, event_ids: Sequence[str]) -> list[tuple[str, str]]:
        """The ids of decisions of some ids, and what these say besides numbers, in order."""

    def of_subject(self, model: int, subject: str, most: int = ...) -> list[str]:
        """The ids of the decisions about someone, the first so many."""

    def before(self, model: int, time: int, most: int = ...) -> list[str]:
        """The ids of the decisions before a time, the first so many."""

    def probe(self) -> None:
        """Write something that changes nothing; a `StoreError` where nothing can be written."""

    def last(self, model: int) -> int:
        """The sequence number of the last event; 0 where there is none."""

    def snapshot(self, model: int, until: int | None = None) -> Snapshot | None:
        """The newest, or the newest that is not after an event."""

    def snapshots(self, model: int) -> list[tuple[int, int, bool]]:
        """Sequence number, time, and whether it is the origin, of each, oldest first."""

    def add_model(self, name: str, spec: str, created: int) -> ModelRow:
        """A new model; a `DuplicateError` where the name is taken."""

    def models(self) -> list[ModelRow]:
        """All of them, in the order in which they were made."""

    def add_key(self, key: KeyRow) -> None:
        """A new key."""

    def keys(self) -> list[KeyRow]:
        """All of them, the revoked ones included."""

    def revoke_key(self, id: str, time: int) -> bool:
        """Revoke one; whether there was such a key, not revoked before."""

    def vacuum(self) -> None:
        """Write the files anew, so that nothing of what was deleted is in them; nobody else may write meanwhile."""

    def close(self) -> None:
        """Let go of the files."""


class Nodes(Protocol):
    """Who leads a model, where several nodes share a store."""

    def leader(self, model: int) -> str | None:
        """The address of the node to which a request must go; None is this one. Quick: asked for every request."""

    def leads(self, model: int) -> bool:
        """Whether this node leads a model, as far as it knows; quick."""

    def fence(self, model: int) -> int | None:
        """The number to write with; None where this node does not lead the model (it tries to, where nobody does).

        Called by the writer's thread before each group; may ask the store.
        """

    def start(self) -> None:
        """Begin to renew what is led; called once, before the first request."""

    def stop(self) -> None:
        """Give everything up, so that others may lead at once."""


class Alone:
    """One node, whose store nobody else writes to.

    Args:
        fence: what the store takes from its one writer.
    """

    def __init__(self, fence: int = 1) -> None:
        self._fence = fence

    def leader(self, model: int) -> str | None:
        """This one."""
        return None

    def leads(self, model: int) -> bool:
        """Always."""
        return True

    def fence(self, model: int) -> int | None:
        """Always the same."""
        return self._fence

    def start(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to do."""
