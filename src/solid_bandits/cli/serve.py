"""`solid-bandits serve`, `keys` and `replay`: the decision service."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from solid_bandits.cli.errors import bad_arguments

EXTRA = "the service needs pip install 'solid-bandits[service]'"
PARTED = 1
"""Exit status where a log and its models part."""

Data = Annotated[Path | None, typer.Option(help="Directory of the log, in SQLite.")]
Database = Annotated[
    str | None, typer.Option(help="Address of the log, postgresql://..., instead of a directory.")
]

keys = typer.Typer(help="Keys of the decision service: create, list and revoke them.", no_args_is_help=True)


@contextmanager
def _service() -> Iterator[None]:
    """Within, what the service needs can be imported, and what goes wrong with its store is one line."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise typer.TyperException(EXTRA) from None
    from solid_bandits.service.store import StoreError

    try:
        with bad_arguments():
            yield
    except StoreError as error:
        raise typer.TyperException(str(error)) from None


@contextmanager
def _held(data: Path) -> Iterator[None]:
    """A directory for this process alone: made if missing, the owner's alone, and gone again if nothing was kept."""
    from solid_bandits._files import locked

    made = False
    with suppress(OSError):  # it is there, or what follows says why not
        data.mkdir(mode=0o700, parents=True)
        made = True
    try:
        with locked(data):
            yield
    finally:
        if made:
            with suppress(OSError):  # it is not empty
                data.rmdir()


def serve(
    data: Data = None,
    database: Database = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; the default is reached from this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 8080,
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
    largest_body: Annotated[int, typer.Option(help="Bytes of a request's body.", min=1024)] = 4 << 20,
) -> None:
    """Serve decisions over HTTP; the log in --data DIR is the truth. Prints the address, and the first admin key."""
    with _service():
        from solid_bandits.service import keys as keyring
        from solid_bandits.service.app import make_app
        from solid_bandits.service.opening import nodes_of, open_store
        from solid_bandits.service.runtime import Settings
        from solid_bandits.service.server import held
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
            if data is not None:
                stack.enter_context(_held(data))
            # What may not be had is found out before a key is made and shown in vain.
            sockets = held(host, port)
            for one in sockets:
                stack.callback(one.close)
            store = open_store(data, database, create=True)
            stack.callback(store.close)
            nodes = nodes_of(store, advertise or f"http://{host}:{port}", lease)
            if not store.keys():
                key, _ = keyring.create(store, "admin", "first")
                print(f"admin key (shown once): {key}", flush=True)
            app = make_app(store, nodes, Settings(largest_body=largest_body, rate=rate, frozen=True))
            listened = run(app, host, port, lambda url: print(f"listening on {url}", flush=True), sockets)
        if not listened:
            raise typer.Exit(3)


@keys.command("create")
def create(
    role: Annotated[str, typer.Argument(help="reader, writer or admin.")],
    name: Annotated[str, typer.Option(help="Whose it is, for the list.")] = "unnamed",
    data: Data = None,
    database: Database = None,
) -> None:
    """Make a key and print it, once."""
    with _service():
        from solid_bandits.service import keys as keyring
        from solid_bandits.service.opening import open_store

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

        from solid_bandits.cli.errors import plain_console
        from solid_bandits.service.opening import open_store

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
        plain_console().print(table)


@keys.command("revoke")
def revoke(
    id: Annotated[str, typer.Argument(help="Of the key, as `keys list` has it.")],
    data: Data = None,
    database: Database = None,
) -> None:
    """Revoke a key; a running service refuses it within a second."""
    with _service():
        from solid_bandits.live.arguments import now
        from solid_bandits.service.opening import open_store

        store = open_store(data, database)
        try:
            if not store.revoke_key(id, now()):
                raise ValueError(f"id must be that of a key that is not revoked, got {id!r}")
        finally:
            store.close()
        print(f"key {id} is revoked")


def replay(
    data: Annotated[Path | None, typer.Argument(help="Directory of a service.")] = None,
    database: Database = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this one; repeat for several.")] = None,
) -> None:
    """Replay the log of a service and compare every decision and snapshot; say where they part (exit status 1)."""
    with _service():
        from solid_bandits import _check
        from solid_bandits.service.loading import PartedError, check
        from solid_bandits.service.opening import open_store

        store = open_store(data, database)
        parted = False
        try:
            rows = store.models()
            for name in model or []:
                _check.choice("model", name, [row.name for row in rows])
            for row in rows:
                if model and row.name not in model:
                    continue
                try:
                    print(check(row, store), flush=True)
                except PartedError as error:
                    print(f"{error}", flush=True)
                    parted = True
        finally:
            store.close()
        if parted:
            raise typer.Exit(PARTED)
