"""Interface of the place where logs are stored."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from solid_bandits.live.events import Event


class Snapshot(NamedTuple):
    """The state of a model after an event."""

    sequence: int
    time: int
    content: bytes


class ModelRow(NamedTuple):
    """A model, which is the bandit of one log, as requested."""

    id: int
    name: str
    spec: str
    """JSON of everything needed to make it again."""
    created: int


class KeyRow(NamedTuple):
    """A key, without its secret, which is stored nowhere."""

    id: str
    """Public part of the key, by which its row is found."""
    name: str
    role: str
    digest: bytes
    """SHA-256 of the whole key."""
    created: int
    revoked: int | None


class StoreError(RuntimeError):
    """Raised if the log could not be written or read: whether the group was committed is unknown.

    Example:
        >>> import solid_bandits as sb
        >>> try:
        ...     sb.Bandit.open("nowhere.db")
        ... except sb.errors.StoreError as error:
        ...     print(error)
        '...nowhere.db' must be a store, but there is no such file
    """


class FullError(StoreError):
    """Raised if there is no space; nothing was written."""


class FencedError(StoreError):
    """Raised if another node leads this model now; nothing was written."""


class DuplicateError(StoreError):
    """Raised if a name, or an event id of this kind, exists already; nothing was written."""


class Store(Protocol):
    """A log of events per model, its snapshots, and keys.

    `append` is called by one thread at a time; everything else by any thread. Failures raise a `StoreError`.
    """

    @property
    def erasing(self) -> str | None:
        """Why erased data may still be in the files, though in no table; None if it is not. The erasure is retried."""

    def append(
        self,
        model: int,
        fence: int,
        events: Sequence[Event],
        snapshot: Snapshot | None = None,
        erased: Sequence[int] = (),
    ) -> None:
        """Write one group in one transaction; it is on the disk when this returns.

        Raises a `FencedError` unless `fence` is the newest of the model (even without events: a former leader must not
        answer from its memory), and a `DuplicateError` for an existing sequence number or event id. The newest two
        snapshots are kept, and the origin. Events at the sequence numbers `erased` first become
        `events.erased(sequence, time)` with the snapshot's time, all earlier snapshots are removed, nothing of these
        stays in the files, and the snapshot that comes with them is the new origin: no log can be replayed from before
        it.
        """

    def read(self, model: int, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Yield events in order, from the one after `after` to `until` or the end, keeping a bounded number in
        memory.
        """

    def find(self, model: int, event_ids: Sequence[str]) -> list[Event]:
        """Return the decisions, rewards and expiries with these ids, in order."""

    def places(self, model: int, event_ids: Sequence[str]) -> list[tuple[int, str, str]]:
        """Return their sequence numbers, kinds and ids, without contents, for any number of ids."""

    def bodies(self, model: int, event_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return the ids and non-numeric contents of the decisions among these ids, in order."""

    def of_subject(self, model: int, subject: str, most: int = ...) -> list[str]:
        """Return the ids of the first `most` decisions about someone."""

    def before(self, model: int, time: int, most: int = ...) -> list[str]:
        """Return the ids of the first `most` decisions before a time."""

    def probe(self) -> None:
        """Write something that changes nothing; raise a `StoreError` if nothing can be written."""

    def last(self, model: int) -> int:
        """Return the sequence number of the last event; 0 if there is none."""

    def snapshot(self, model: int, until: int | None = None) -> Snapshot | None:
        """Return the newest snapshot, or the newest one not after event `until`."""

    def snapshots(self, model: int) -> list[tuple[int, int, bool]]:
        """Return sequence number, time, and whether it is the origin, of each snapshot, oldest first."""

    def add_model(self, name: str, spec: str, created: int) -> ModelRow:
        """Return a new model; raise a `DuplicateError` if the name is taken."""

    def models(self) -> list[ModelRow]:
        """Return all models, in order of creation."""

    def add_key(self, key: KeyRow) -> None:
        """Add a key."""

    def keys(self) -> list[KeyRow]:
        """Return all keys, including revoked ones."""

    def revoke_key(self, id: str, time: int) -> bool:
        """Revoke a key; return whether there was such a key that was not revoked before."""

    def vacuum(self) -> None:
        """Rewrite the files without any deleted data; nobody else may write meanwhile."""

    def close(self) -> None:
        """Close the files."""


class Nodes(Protocol):
    """Leadership of models, if several nodes share a store."""

    def leader(self, model: int) -> str | None:
        """Return the address of the node to which a request must go; None is this one. Must be quick: called per
        request.
        """

    def leads(self, model: int) -> bool:
        """Return whether this node leads a model, as far as it knows; must be quick."""

    def fence(self, model: int) -> int | None:
        """Return the number to write with; None if this node neither leads the model nor can take the lead.

        Called by the writer's thread before each group; may query the store.
        """

    def start(self) -> None:
        """Start renewing leases; called once, before the first request."""

    def stop(self) -> None:
        """Give up all leads, so that others may take over at once."""


class Alone:
    """A single node, whose store nobody else writes to.

    Args:
        fence: the number that the store accepts from its only writer.
    """

    def __init__(self, fence: int = 1) -> None:
        self._fence = fence

    def leader(self, model: int) -> str | None:
        """Return None: this node."""
        return None

    def leads(self, model: int) -> bool:
        """Return True."""
        return True

    def fence(self, model: int) -> int | None:
        """Return the same fence, always."""
        return self._fence

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""
