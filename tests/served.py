"""A service for tests: in this process with a client, or as a process of its own that can be killed.

Nothing here waits without an end: what hangs is a failed test that says where, not a suite that stands still.
"""

import os
import queue
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import Alone
from solid_bandits.service import keys, writer
from solid_bandits.service.app import make_app
from solid_bandits.service.open_store import FILE
from solid_bandits.service.runtime import Settings
from solid_bandits.service.server import Server

PATIENCE = 400.0
"""Seconds for anything: the machine may be busy, and nothing compiled. Below the limit of a whole test."""
SETTINGS = {"stats_seconds": 0, "report_seconds": PATIENCE, "group_seconds": PATIENCE}
"""Statistics are never old; no report is ended, and no group cut, because the machine is slow."""
writer.LONGEST_CALL = PATIENCE
TWO = [[1.0, 0.0, 0.5], [0.0, 1.0, 0.2]]
SPEC = {"name": "news", "policy": "randucb", "dim": 3, "noise_std": 0.5, "floor": 0.1, "seed": 7}


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def joined(*threads, seconds=PATIENCE):
    """Wait for threads; where one does not end, say what all of this process are doing."""
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
        if thread.is_alive():
            names = {one.ident: one.name for one in threading.enumerate()}
            frames = sys._current_frames().items()
            stacks = [f"{names.get(one)}:\n{''.join(traceback.format_stack(at))}" for one, at in frames]
            raise TimeoutError(f"{thread.name} did not end within {seconds:g} s\n\n" + "\n".join(stacks))


def until(met, words, seconds=PATIENCE, pause=0.02):
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {words}")
        time.sleep(pause)


def ended(process, seconds=PATIENCE):
    """End a process: in order, so that it can end its own, or where it does not come to that, at once.

    What it wrote to pipes is not read to its end here: a process that it has left behind may hold them open for ever.
    """
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait(PATIENCE)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


@contextmanager
def running(app, bounds=None):
    """An application in a thread of this process: its address, and the server."""
    said = queue.Queue()
    server = Server(app, "127.0.0.1", 0, said.put, bounds)
    thread = threading.Thread(target=server.run, name="service", daemon=True)
    thread.start()
    try:
        try:
            url = said.get(timeout=PATIENCE)
        except queue.Empty:
            raise TimeoutError(f"the service did not listen within {PATIENCE:g} s") from None
        yield url, server
    finally:
        server.should_exit = True
        joined(thread)


@contextmanager
def service(store, nodes=None, settings=None, bounds=None):
    """A client with an admin key to a service in a thread of this process."""
    key, _ = keys.create(store, "admin", "test")
    app = make_app(store, nodes or Alone(), settings or Settings(**SETTINGS))
    with (
        running(app, bounds) as (url, _),
        httpx.Client(base_url=url, headers=bearer(key), timeout=PATIENCE) as client,
    ):
        yield client


@contextmanager
def stored(directory, **settings):
    """The same, with a store in a directory."""
    store = SqliteStore(directory / FILE, create=True)
    try:
        with service(store, settings=Settings(**SETTINGS | settings)) as client:
            yield client
    finally:
        store.close()


@dataclass
class Process:
    """A server, and a client of it."""

    process: subprocess.Popen
    folder: Path
    url: str = ""
    key: str | None = None
    client: httpx.Client | None = None

    @property
    def printed(self):
        """To its standard output, so far."""
        return (self.folder / "out.txt").read_text()

    @property
    def complained(self):
        """To its standard error, so far; that it compiles is no complaint."""
        lines = (self.folder / "err.txt").read_text().splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("compiling "))

    def wait(self):
        """Until it listens; where and with which key is noted."""

        def listens():
            if self.process.poll() is not None:
                raise RuntimeError(f"a server did not start: {self.printed}{self.complained}")
            return "listening on" in self.printed and self.printed.endswith("\n")

        until(listens, f"the server listens; it said {self.printed!r} {self.complained!r}")
        *first, said = self.printed.splitlines()
        self.url = said.split()[-1]
        if first:
            self.key = Path(first[0].removeprefix("admin key in ")).read_text().strip()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def process(directory, *options, key=None, cli="solid_bandits"):
    """A server as a process; the key is the one it prints the first time, or the one given.

    It writes to files: a pipe that nobody reads would stop it once it is full.
    """
    command = [sys.executable, "-m", cli, "serve", "--data", os.fspath(directory), "--port", "0", *options]
    with tempfile.TemporaryDirectory(prefix="served-") as folder:
        with (Path(folder) / "out.txt").open("w") as out, (Path(folder) / "err.txt").open("w") as err:
            running = Process(subprocess.Popen(command, stdout=out, stderr=err), Path(folder), key=key)
        try:
            running.wait()
            with httpx.Client(base_url=running.url, headers=bearer(running.key), timeout=PATIENCE) as client:
                running.client = client
                yield running
        finally:
            if running.process.poll() is None:
                running.process.kill()
            running.process.wait(PATIENCE)


@contextmanager
def tampering(directory):
    """A connection to a store's file, past the store: committed where all went well, and closed in any case."""
    with closing(sqlite3.connect(Path(directory) / FILE)) as connection, connection:
        yield connection


def replayed(directory):
    """Status and words of `solid-bandits replay`."""
    ended = subprocess.run(
        [sys.executable, "-m", "solid_bandits", "replay", os.fspath(directory)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return ended.returncode, ended.stdout + ended.stderr
