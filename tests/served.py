"""A service for tests: in this process with a client, or as a process of its own that can be killed."""

import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from solid_bandits.service import keys
from solid_bandits.service.app import make_app
from solid_bandits.service.runtime import Settings
from solid_bandits.service.server import Server
from solid_bandits.service.sqlite import SqliteStore
from solid_bandits.service.store import Alone

TWO = [[1.0, 0.0, 0.5], [0.0, 1.0, 0.2]]
SPEC = {"name": "news", "policy": "randucb", "dim": 3, "noise_std": 0.5, "floor": 0.1, "seed": 7}


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


@contextmanager
def service(store, nodes=None, settings=None):
    """A client with an admin key to a service in a thread of this process."""
    key, _ = keys.create(store, "admin", "test")
    said = queue.Queue()
    server = Server(make_app(store, nodes or Alone(), settings or Settings()), "127.0.0.1", 0, said.put)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with httpx.Client(base_url=said.get(timeout=60), headers=bearer(key), timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def stored(directory, **settings):
    """The same, with a store in a directory."""
    store = SqliteStore(directory, create=True)
    try:
        with service(store, settings=Settings(**settings)) as client:
            yield client
    finally:
        store.close()


@dataclass
class Process:
    """A server, and a client of it."""

    process: subprocess.Popen
    url: str
    key: str
    client: httpx.Client

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@contextmanager
def process(directory, *options, key=None, cli="solid_bandits"):
    """A server as a process; the key is the one it prints the first time, or the one given."""
    command = [sys.executable, "-m", cli, "serve", "--data", os.fspath(directory), "--port", "0", *options]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = running.stdout.readline()
        if said.startswith("admin key"):
            key, said = said.split()[-1], running.stdout.readline()
        assert said.startswith("listening on"), (said, running.stderr.read())
        url = said.split()[-1]
        with httpx.Client(base_url=url, headers=bearer(key), timeout=60) as client:
            yield Process(running, url, key, client)
    finally:
        if running.poll() is None:
            running.kill()
        running.wait()
        running.stdout.close()
        running.stderr.close()


def replayed(directory):
    """Status and words of `solid-bandits replay`."""
    ended = subprocess.run(
        [sys.executable, "-m", "solid_bandits", "replay", os.fspath(directory)],
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout + ended.stderr
