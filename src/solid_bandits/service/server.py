"""The service as a process: uvicorn, signals, and what it prints."""

import signal
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
            timeout_graceful_shutdown=10,
            backlog=2048,
        )
        super().__init__(config)
        self._said = said

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Listen, and say so."""
        await super().startup(sockets)  # type: ignore[arg-type]
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


def serve(app: ASGIApp, host: str, port: int, said: Callable[[str], object]) -> bool:
    """Serve until a signal; whether it ever listened."""
    sys.setswitchinterval(TURN)
    server = Server(app, host, port, said)
    server.run()
    return server.started
