"""Open the store of a directory or URL."""

from pathlib import Path

from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import Alone, Nodes, Store, StoreError

FILE = "service.db"


def open_store(data: Path | None, database: str | None, *, create: bool = False) -> Store:
    """Return the store in a directory or in a database; exactly one is given."""
    if (data is None) == (database is None):
        raise ValueError(
            f"data or database must be given, and not both, got {'neither' if data is None else 'both'}"
        )
    if data is not None:
        if not create and not (data / FILE).is_file():
            raise StoreError(f"{str(data)!r} must be the directory of a service, but has no {FILE}")
        store = SqliteStore(data / FILE, create=create, write=create)
        if create:  # by a server, which will keep writing
            store.start_checkpointer()
        return store
    try:
        from solid_bandits.live.postgres import PostgresStore
    except ImportError:
        raise ValueError("database needs pip install 'solid-bandits[service-postgres]'") from None
    assert database is not None  # exactly one was given
    return PostgresStore(database)


def nodes_of(store: Store, address: str, lease: float) -> Nodes:
    """Return the leadership for this store; `address` is where others reach this node, `lease` how long it may be
    silent.
    """
    if isinstance(store, SqliteStore):
        return Alone(store.fence)
    from solid_bandits.live.postgres import PostgresStore
    from solid_bandits.service.leadership import Leadership

    assert isinstance(store, PostgresStore)  # there is no other kind
    return Leadership(store, address, lease)
