"""`solid-bandits serve`, `keys` and `replay`: the decision service."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from solid_bandits.cli.messages import bad_arguments

EXTRA = "the service needs pip install 'solid-bandits[service]'"
DIVERGED = 1
"""Exit status where a replay diverges from the log."""

Data = Annotated[Path | None, typer.Option(help="Directory of the log, in SQLite.")]
Database = Annotated[
    str | None, typer.Option(help="Address of the log, postgresql://..., instead of a directory.")
]

keys = typer.Typer(help="Keys of the decision service: create, list and revoke them.", no_args_is_help=True)


@contextmanager
def _service() -> Iterator[None]:
    """Import what the service needs inside the context, and turn errors of its store into one line."""
    try:
        import fastapi  # noqa: F401
        import httptools  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise typer.TyperException(EXTRA) from None
    with bad_arguments():
        yield


def serve(
    data: Data = None,
    database: Database = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; the default is reached from this machine only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen at; 0 takes a free one.", min=0, max=65535)
    ] = 8080,
    advertise: Annotated[
        str | None,
        typer.Option(help="Where other nodes reach this one, http://HOST:PORT (with --database)."),
    ] = None,
    lease: Annotated[
        float,
        typer.Option(
            help="Seconds of silence after which others take over from a node (with --database).", min=0.1
        ),
    ] = 5.0,
    rate: Annotated[float, typer.Option(help="Requests per second and key.", min=1)] = 1000,
    key_bytes: Annotated[float, typer.Option(help="Bytes of bodies per second and key.", min=1024)] = 8 << 20,
    largest_body: Annotated[
        int, typer.Option(help="Largest size of a request's body in bytes.", min=1024)
    ] = 4 << 20,
    connections: Annotated[
        int,
        typer.Option(
            help="Connections open at once; beyond, idle ones are closed or new ones refused.", min=1
        ),
    ] = 1000,
    key_file: Annotated[
        Path | None,
        typer.Option(
            help="Where the first admin key is written, a new file; admin.key in --data DIR, or here."
        ),
    ] = None,
) -> None:
    """Serve decisions over HTTP; the log in --data DIR is the truth. Prints the address, and which file the first
    admin key is in.
    """
    with _service():
        from solid_bandits.service import keys as keyring
        from solid_bandits.service.app import make_app
        from solid_bandits.service.connections import Bounds
        from solid_bandits.service.open_store import nodes_of, open_store
        from solid_bandits.service.runtime import Settings
        from solid_bandits.service.server import held, make_room
        from solid_bandits.service.server import serve as run

        if (
            database is not None
            and data is None
            and advertise is None
            and host in ("127.0.0.1", "::1", "localhost")
        ):
            typer.echo(
                f"other nodes cannot reach this one at {host}: give --advertise where there are any", err=True
            )
        with ExitStack() as stack:
            # Errors must come before a key is made and shown for nothing.
            make_room(connections)
            sockets = held(host, port)
            for one in sockets:
                stack.callback(one.close)
            store = open_store(data, database, create=True)
            stack.callback(store.close)
            nodes = nodes_of(store, advertise or f"http://{host}:{port}", lease)
            if not store.keys():
                path = key_file or (data or Path()) / keyring.FIRST_KEY
                keyring.create_in_file(store, path)
                print(f"admin key in {path}", flush=True)
            settings = Settings(largest_body=largest_body, rate=rate, key_bytes=key_bytes, frozen=True)
            app = make_app(store, nodes, settings)
            listened = run(
                app,
                host,
                port,
                lambda url: print(f"listening on {url}", flush=True),
                sockets,
                Bounds(connections=connections),
                settings.end_seconds,
            )
        if not listened:
            raise typer.Exit(3)


@keys.command("create")
def create(
    role: Annotated[str, typer.Argument(help="reader, writer or admin.")],
    name: Annotated[str, typer.Option(help="Name of the owner, for the list.")] = "unnamed",
    data: Data = None,
    database: Database = None,
) -> None:
    """Make a key and print it, once."""
    with _service():
        from solid_bandits.service import keys as keyring
        from solid_bandits.service.open_store import open_store

        store = open_store(data, database)
        try:
            key, row = keyring.create(store, role, name)
        finally:
            store.close()
        print(f"{row.role} key {row.id} (shown once): {key}")


@keys.command("list")
def listed(data: Data = None, database: Database = None) -> None:
    """List keys: id, role, name, when they were made and revoked."""
    with _service():
        from datetime import UTC, datetime

        from rich.table import Table

        from solid_bandits.cli.messages import show
        from solid_bandits.service.open_store import open_store

        store = open_store(data, database)
        try:
            rows = store.keys()
        finally:
            store.close()
        table = Table("id", "role", "name", "created", "revoked")
        for row in rows:
            times = [
                "" if one is None else datetime.fromtimestamp(one / 1e6, UTC).isoformat(" ", "seconds")
                for one in (row.created, row.revoked)
            ]
            table.add_row(row.id, row.role, row.name, *times)
        show(table)


@keys.command("revoke")
def revoke(
    id: Annotated[str, typer.Argument(help="Id of the key, from `keys list`.")],
    data: Data = None,
    database: Database = None,
) -> None:
    """Revoke a key; a running service refuses it within a second."""
    with _service():
        from solid_bandits.live.arguments import now
        from solid_bandits.service.open_store import open_store

        store = open_store(data, database)
        try:
            if not store.revoke_key(id, now()):
                raise ValueError(f"id must be that of a key that is not revoked, got {id!r}")
        finally:
            store.close()
        print(f"key {id} is revoked")


def replay(
    data: Annotated[Path | None, typer.Argument(help="Directory of a service, or store of a bandit.")] = None,
    database: Database = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this one; repeat for several.")] = None,
) -> None:
    """Replay the log of a service or a bandit, compare all that is in it, and say where they differ (exit status 1)."""
    with _service():
        from solid_bandits._internal import checks
        from solid_bandits.live import stored
        from solid_bandits.live.recovery import ReplayDiverged, check
        from solid_bandits.live.sqlite import SqliteStore
        from solid_bandits.service.model import source_of
        from solid_bandits.service.open_store import open_store

        if data is not None and not data.exists():
            raise ValueError(
                f"{str(data)!r} must be the directory of a service or the store of a bandit; it is missing"
            )
        bandit = SqliteStore(data) if data is not None and data.is_file() else None
        store = bandit or open_store(data, database)
        diverged = False
        try:
            rows = store.models()
            for name in model or []:
                checks.choice("model", name, [row.name for row in rows])
            for row in rows:
                if model and row.name not in model:
                    continue
                try:
                    source = source_of(row, store) if bandit is None else stored.source_of(bandit)
                    print(check(source), flush=True)
                except ReplayDiverged as error:
                    print(f"{error}", flush=True)
                    diverged = True
        finally:
            store.close()
        if diverged:
            raise typer.Exit(DIVERGED)


def vacuum(data: Data = None, database: Database = None) -> None:
    """Write the files of a log anew, so that nothing of what was deleted is in them. Stop the service on --data DIR
    first; with --database, calls wait meanwhile.
    """
    with _service():
        from solid_bandits.live.sqlite import SqliteStore
        from solid_bandits.service.open_store import FILE, open_store

        store = open_store(data, database)
        if data is not None:
            store.close()
            store = SqliteStore(data / FILE, write=True)
        try:
            store.vacuum()
        finally:
            store.close()
        print("the files were written anew")
