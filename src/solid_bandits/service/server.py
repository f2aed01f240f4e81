"""The service as a process: uvicorn, signals, files, and output."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from solid_bandits._internal.signals import handled
from solid_bandits.service.connections import Bounds, Connection, within

TURN = 0.0005
"""Seconds after which one computing thread yields to another: those of requests and the writer's. Python's own interval
is ten times as long, and would be visible in answer times.
"""
BACKLOG = 256
"""Length of the accept queue. All connections may arrive at once, before the first is counted: each needs a file."""
OTHER_FILES = 100
"""Files of a service besides its connections: the log, for each thread that reads it, libraries and pipes."""
LOOK_EVERY = 5
"""Ticks of uvicorn, each a tenth of a second, between two checks of all connections."""
ENDED_AT_ONCE = 5
"""Exit status of a service that did not end in time."""
logger = logging.getLogger("solid_bandits.service")


class Server(uvicorn.Server):
    """A server that announces its address once it listens, and shuts down cleanly at SIGTERM and Ctrl-C."""

    def __init__(
        self, app: ASGIApp, host: str, port: int, said: Callable[[str], object], bounds: Bounds | None = None
    ) -> None:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nothing here depends on who is behind a proxy
            timeout_graceful_shutdown=10,
            backlog=BACKLOG,
            http=within(bounds or Bounds()),
            ws="none",
        )
        super().__init__(config)
        self._said = said
        self.end_seconds: float | None = None
        """Seconds after a signal in which the process ends, whatever hangs; None waits forever."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and announce it."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._said(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def on_tick(self, counter: int) -> bool:
        """Check the open connections, as uvicorn checks the clock."""
        if counter % LOOK_EVERY == 0:
            now = asyncio.get_running_loop().time()
            for one in list(self.server_state.connections):
                assert isinstance(one, Connection)
                one.look(now)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down cleanly and in time."""
        if self.end_seconds is not None and not self.should_exit:
            late = threading.Timer(self.end_seconds, _end_at_once, (self.end_seconds,))
            late.daemon = True
            late.start()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let both signals end the server cleanly, without raising them again afterwards."""
        with handled(self.handle_exit, signal.SIGINT, signal.SIGTERM):
            yield


def _end_at_once(seconds: float) -> None:
    """End at once: what was acknowledged is in the log, and a hanging process would block the next start."""
    logger.error("the service did not end within %g s of its signal: what hangs is left", seconds)
    logging.shutdown()
    os._exit(ENDED_AT_ONCE)


def held(host: str, port: int) -> list[socket.socket]:
    """Return sockets for an address that nobody else uses; raise a ValueError if there are none.

    Called before anything is created, so that a service that cannot listen leaves nothing and shows no key.
    """
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise ValueError(f"host must be a name or an address of this machine, got {host!r}") from None
    taken: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            taken.append(one)
            if os.name == "posix":  # a port whose last connections are still closing may be reused
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
    except OSError as error:
        for one in taken:
            one.close()
        if error.errno == errno.EADDRINUSE:
            raise ValueError(f"port must be free, got {port}: address already in use") from None
        words = os.strerror(error.errno).lower() if error.errno else str(error)
        raise ValueError(
            f"host and port must be where this machine can listen, got {host}:{port} ({words})"
        ) from None
    return taken


def make_room(connections: int) -> None:
    """Raise the limit of open files for so many connections; raise a ValueError if that is not allowed."""
    if sys.platform == "win32":  # where a connection is not a file
        return
    import resource

    needed = connections + BACKLOG + OTHER_FILES
    most, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= needed:
        return
    if highest != resource.RLIM_INFINITY and highest < needed:
        room = max(highest - BACKLOG - OTHER_FILES, 0)
        raise ValueError(
            f"connections must be at most {room:,} where a process may open {highest:,} files (ulimit -Hn), "
            f"got {connections:,}"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, highest))


def serve(
    app: ASGIApp,
    host: str,
    port: int,
    said: Callable[[str], object],
    sockets: list[socket.socket],
    bounds: Bounds,
    end_seconds: float,
) -> bool:
    """Serve at the sockets from `held` until a signal; return whether the server ever listened."""
    sys.setswitchinterval(TURN)
    server = Server(app, host, port, said, bounds)
    server.end_seconds = end_seconds
    server.run(sockets)
    return server.started
