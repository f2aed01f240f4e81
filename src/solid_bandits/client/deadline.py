"""A deadline for a whole call, since httpx's timeouts never fire for a server that sends a byte now and then."""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx


class Deadline:
    """The time by which the call of this thread must end."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Limit every wait inside the block to `seconds` from now."""
        self._of_thread.until = time.monotonic() + seconds
        try:
            yield
        finally:
            self._of_thread.until = None

    def least(self, timeout: float | None) -> float | None:
        """Return the seconds that may be waited for one operation; raise a timeout if none are left."""
        until = getattr(self._of_thread, "until", None)
        if until is None:
            return timeout
        left = until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the answer did not end in time")
        return left if timeout is None else min(left, timeout)

    def keep(self, client: httpx.Client) -> None:
        """Make the connections of a client respect the deadline.

        httpx has no place for that, so its private ones are used: without them a call is bounded only by httpx's
        timeouts.
        """
        for transport in (client._transport, *client._mounts.values()):
            pool = getattr(transport, "_pool", None)
            backend = getattr(pool, "_network_backend", None)
            if backend is not None:
                pool._network_backend = _Backend(backend, self)  # type: ignore[union-attr]


class _Backend(httpcore.NetworkBackend):
    def __init__(self, inner: httpcore.NetworkBackend, deadline: Deadline) -> None:
        self._inner, self._deadline = inner, deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.least(timeout)
        stream = self._inner.connect_tcp(host, port, left, local_address, socket_options)
        return _Stream(stream, self._deadline)

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        left = self._deadline.least(timeout)
        return _Stream(self._inner.connect_unix_socket(path, left, socket_options), self._deadline)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner, self._deadline = inner, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.least(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.least(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._deadline.least(timeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
