"""Hostile connections to a decision service, without a key: they must not exhaust its memory or its files.

A server as a process that may open 1,024 files initially, and one client that keeps asking `/health`. Floods: 60 MiB
of each of ten kinds (header lines of ordinary length and as short as possible; one value, name or address; trailers,
one trailer, a chunk extension; blank lines; requests ahead of answers that are not read). Then half-sent requests, more
than it may have connections, held for as long as the server lets them. An attack succeeds if the server's memory grows
by more than 16 MiB, if the other client is refused or waits for longer than five seconds, or if half-sent requests are
open after a minute.

    python attacks/service_connections.py --mib 60 --half 1100
"""

import argparse
import re
import signal
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
from counted import show

from service import Attacked, FoundError

MIB = 1 << 20
MOST_GROWTH = 16.0
LONGEST = 5.0
FILES = 1_024
"""Number of open files, as many as many systems allow a process initially."""
BEGUN = b"GET /health HTTP/1.1\r\nhost: here\r\n"
CHUNKED = b"POST /health HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
FLOODS = {
    "header lines": (BEGUN, b"abcdefghijkl: " + b"x" * 50 + b"\r\n"),
    "header lines of four bytes": (BEGUN, b"a:\r\n"),
    "one value": (BEGUN + b"a: ", b"x" * 64),
    "one name": (BEGUN, b"x" * 64),
    "one address": (b"GET /", b"x" * 64),
    "trailers": (CHUNKED + b"0\r\n", b"abcdefghijkl: " + b"x" * 50 + b"\r\n"),
    "one trailer": (CHUNKED + b"0\r\na: ", b"x" * 64),
    "a chunk extension": (CHUNKED + b"1;", b"x" * 64),
    "blank lines": (b"", b"\r\n" * 32),
    "requests ahead of answers": (b"", b"GET /health HTTP/1.1\r\n\r\n"),
}


class Other:
    """A client that asks repeatedly, on a new connection each time; it records the answers and the slowest one."""

    def __init__(self, url: str) -> None:
        self.failed = self.asked = 0
        self.slowest = 0.0
        self._url = url
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> "Other":
        self._thread.start()
        self._wait(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self.asked + 2)  # the first of these may already have been in progress
        self._ended.set()
        self._thread.join()

    def _wait(self, count: int) -> None:
        deadline = time.monotonic() + 200
        while self.asked < count and time.monotonic() < deadline:
            time.sleep(0.01)

    def _ask(self) -> None:
        with httpx.Client(limits=httpx.Limits(max_keepalive_connections=0), timeout=60) as client:
            while not self._ended.wait(0.02):
                began = time.monotonic()
                try:
                    self.failed += client.get(f"{self._url}/health").status_code != 200
                except httpx.HTTPError:
                    self.failed += 1
                self.asked += 1
                self.slowest = max(self.slowest, time.monotonic() - began)


def peak(server: Attacked) -> float:
    """Return the server's peak memory since the last call, in MiB."""
    assert server.process is not None
    home = Path(f"/proc/{server.process.pid}")
    found = re.search(r"VmHWM:\s+(\d+)", (home / "status").read_text())
    assert found is not None
    (home / "clear_refs").write_text("5")  # resets the peak
    return int(found[1]) / 1024


def files(server: Attacked) -> int:
    """Return the number of files that the server has open."""
    assert server.process is not None
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def at_rest(server: Attacked) -> float:
    """Return the server's current memory in MiB."""
    peak(server)
    return peak(server)


def connected(server: Attacked) -> socket.socket:
    """Return a connection to the server."""
    place = httpx.URL(server.url)
    return socket.create_connection((place.host, place.port or 80), timeout=60)


def flood(server: Attacked, begin: bytes, line: bytes, mib: int) -> float:
    """Send this much, or until the server closes or stops reading for two seconds; return the MiB sent."""
    sent, block = 0, line * (MIB // len(line))
    with connected(server) as connection, suppress(OSError):
        connection.settimeout(2.0)
        connection.sendall(begin)
        for _ in range(mib):
            connection.sendall(block)
            sent += len(block)
    return sent / MIB


def half_sent(server: Attacked, count: int) -> int:
    """Begin `count` requests, and wait until the server has closed them; return the number still open after a
    minute.
    """
    held = []
    try:
        for _ in range(count):
            held.append(connected(server))
            with suppress(OSError):  # the first are closed if there are too many
                held[-1].sendall(BEGUN)
        print(f"  {count:,} half-sent requests: {files(server):,} files are open", flush=True)
        left, deadline = 0, time.monotonic() + 60
        for one in held:
            one.settimeout(max(deadline - time.monotonic(), 0.01))
            try:
                while one.recv(MIB):
                    pass
            except TimeoutError:
                left += 1
            except OSError:
                pass
        return left
    finally:
        for one in held:
            one.close()


def main() -> None:
    """Attack, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=60, help="Size of each flood in MiB.")
    parser.add_argument("--half", type=int, default=1_100, help="Number of half-sent requests.")
    arguments = parser.parse_args()
    if not Path("/proc/self/status").is_file():
        print("not played: memory and files of a process are read from /proc, which is not here")
        return
    import resource

    _, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    began, failed = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        server = Attacked(Path(folder) / "service")
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, highest))
        server.start()
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, highest))
        try:
            httpx.get(f"{server.url}/health", timeout=60).raise_for_status()
            for name, (begin, line) in FLOODS.items():
                before = at_rest(server)
                with Other(server.url) as other:
                    sent = flood(server, begin, line, arguments.mib)
                failed += reported(f"{name}, {sent:.0f} MiB sent", peak(server) - before, other)
            before = at_rest(server)
            with Other(server.url) as other:
                left = half_sent(server, arguments.half)
            failed += (
                reported(f"half-sent requests, {left} left open", peak(server) - before, other) or left > 0
            )
            server.end(signal.SIGTERM)
        finally:
            if server.process is not None and server.process.poll() is None:
                server.process.kill()
                server.process.wait()
    show("hostile connections to the service, without a key", len(FLOODS) + arguments.half, failed, 0, began)
    if failed:
        raise FoundError(f"{failed} of them failed")


def reported(name: str, growth: float, other: Other) -> bool:
    """Print the effect of one attack; return whether it succeeded."""
    print(
        f"  {name}: {growth:,.1f} MiB more memory; the other client asked {other.asked:,} times, was refused "
        f"{other.failed:,}, waited {other.slowest:.2f} s at most",
        flush=True,
    )
    return growth > MOST_GROWTH or other.failed > 0 or other.slowest > LONGEST


if __name__ == "__main__":
    main()
