"""The service as a process: uvicorn, signals, and what it prints."""

import errno
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

TURN = 0.0005
"""Seconds after which one thread lets another go on, where both compute: those of requests and the writer's. Python's
own are ten times as long, and would be seen in the time to an answer."""


class Server(uvicorn.Server):
    """Says where it listens once it does, and ends in order at SIGTERM and Ctrl-C."""

    def __init__(self, app: ASGIApp, host: str, port: int, said: Callable[[str], object]) -> None:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nothing here depends on who is behind a proxy
            timeout_graceful_shutdown=10,
            backlog=2048,
        )
        super().__init__(config)
        self._said = said

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._said(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Both signals end the server in order, and are not raised again afterwards: it has ended as it was asked."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def end(number: int, frame: FrameType | None) -> None:
            self.handle_exit(number, frame)

        before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def held(host: str, port: int) -> list[socket.socket]:
    """Sockets for an address that nobody else has; a ValueError where there are none.

    Taken before anything is made: a service that cannot listen leaves nothing, and shows no key.
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
            if os.name == "posix":  # a port whose last connections are still being closed may be had
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


def serve(
    app: ASGIApp, host: str, port: int, said: Callable[[str], object], sockets: list[socket.socket]
) -> bool:
    """Serve at the sockets that `held` gave until a signal; whether it ever listened."""
    sys.setswitchinterval(TURN)
    server = Server(app, host, port, said)
    server.run(sockets)
    return server.started
