"""A real PostgreSQL of its own, where the machine has one: in a new directory, on a Unix socket, gone afterwards."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

USER = "postgres"
"""Debian's package makes it. Root may not run PostgreSQL, so it starts as this one."""
PATIENCE = 400.0
"""Seconds for initdb or pg_ctl: the machine may be busy."""


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl, the newest version's; None where there is none."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(re.sub(r"\D", "", str(path)))
    )
    if found:
        return found[-1].parent
    path = shutil.which("initdb")
    return None if path is None else Path(path).parent


class Cluster:
    """A running PostgreSQL.

    Without `fsync` it stands any end of a process, its own included, but no end of the machine: tests end processes.
    """

    def __init__(self, folder: Path, programs: Path, fsync: bool, network: str | None = None) -> None:
        self._folder = folder
        self._programs = programs
        self._fsync = fsync
        self._network = network
        self._names = count(1)
        # Root hands the directory over; anybody else runs the programs as themselves.
        self._as = {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
        if self._as:
            shutil.chown(folder, USER, USER)
        self._call("initdb", "-D", "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        if network is not None:
            with (folder / "data" / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {network} trust\n")
        self.start()

    def _call(self, program: str, *arguments: str) -> None:
        with (self._folder / "out.txt").open("ab") as out:  # a pipe would be held open by the server
            done = subprocess.run(
                [str(self._programs / program), *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=PATIENCE,
                **self._as,
            )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(self._folder / 'out.txt').read_text()[-2000:]}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # After a crash, files are synced one by one unless told otherwise: seconds.
        synced = "-c fsync=on -c recovery_init_sync_method=syncfs" if self._fsync else "-c fsync=off"
        addresses = "" if self._network is None else "*"
        options = f"-c listen_addresses='{addresses}' -c unix_socket_directories={self._folder} {synced}"
        self._call("pg_ctl", "-D", "data", "-w", "-t", "300", "-l", "log.txt", "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        """Stop it; "immediate" is a crash, after which the log is replayed."""
        self._call("pg_ctl", "-D", "data", "-w", "-t", "300", "-m", how, "stop")

    def database(self) -> str:
        """The address of a new, empty database."""
        import psycopg

        name = f"case_{next(self._names)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def address(self, name: str) -> str:
        """Of a database."""
        return f"postgresql://{USER}@/{name}?host={self._folder}"


def memory() -> str | None:
    """A folder in memory with room for some hundred databases: each is a thousand files, slow to remove from a disk.

    Short, as a socket's path may have 107 signs. None where there is none: then any folder for temporary files.
    """
    folder = "/dev/shm"
    if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 4 << 30:
        return folder
    return None


@contextmanager
def cluster(fsync: bool = False, network: str | None = None) -> Iterator[Cluster]:
    """A PostgreSQL with nothing in it; a FileNotFoundError where it is not installed.

    Args:
        fsync: whether it stands an end of the machine.
        network: from where it may be reached besides its socket, as 10.0.0.0/8.
    """
    programs = binaries()
    if programs is None:
        raise FileNotFoundError("PostgreSQL is not installed: looked for initdb")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=None if fsync else memory()))
    try:
        running = Cluster(folder, programs, fsync, network)
        try:
            yield running
        finally:
            running.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
