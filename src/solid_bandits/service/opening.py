"""A store by its place: a directory, or the address of a database."""

from pathlib import Path

from solid_bandits.service.sqlite import SqliteStore
from solid_bandits.service.store import Alone, Nodes, Store


def open_store(data: Path | None, database: str | None, *, create: bool = False) -> Store:
    """The store in a directory or in a database; exactly one is given."""
    if (data is None) == (database is None):
        raise ValueError(
            f"data or database must be given, and not both, got {'neither' if data is None else 'both'}"
        )
    if data is not None:
        store = SqliteStore(data, create=create)
        if create:  # by a server, which goes on writing
            store.carry_over()
        return store
    try:
        from solid_bandits.service.postgres import PostgresStore
    except ImportError:
        raise ValueError("database needs pip install 'solid-bandits[service-postgres]'") from None
    assert database is not None  # one of the two was given
    return PostgresStore(database)


def nodes_of(store: Store, address: str, lease: float) -> Nodes:
    """Who leads what in this store; `address` is where others reach this node, `lease` how long it may be silent."""
    if isinstance(store, SqliteStore):
        return Alone()
    from solid_bandits.service.leadership import Leadership
    from solid_bandits.service.postgres import PostgresStore

    assert isinstance(store, PostgresStore)  # there is no other
    return Leadership(store, address, lease)
