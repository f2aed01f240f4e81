"""Bounds on what a connection may hold of the server; its client needs no key for that.

A head is limited in bytes, lines and seconds, a body in seconds for its length; requests sent ahead of answers stay
unread, and answers that nobody reads are dropped. If all connections are in use, a new one replaces the one that has
been idle longest, unless all of them have requests in progress.
"""

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, Literal

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from solid_bandits.service.middleware import HEADERS

SLICE = 4096
"""Bytes parsed between two checks of the bounds, so a head may exceed its bound by twice this."""
AHEAD = 64 << 10
"""Bytes of further requests that are kept while one is answered; a client that sends more gets only these answers."""
BODY_RATE = 64 << 10
"""Least bytes per second of a body, after its first seconds."""
LINGER = 1.0
"""Seconds in which data that arrives after a refusal is discarded: if closed at once, a connection could lose the
refusal."""


@dataclass(frozen=True)
class Bounds:
    """Limits on what connections may hold."""

    connections: int = 1_000
    """Largest number of open connections."""
    head_bytes: int = 64 << 10
    head_lines: int = 100
    seconds: float = 10.0
    """Seconds for a head; for a body, besides those for its bytes; and for a part of an answer to be read."""


class _TooManyLinesError(Exception):
    """Raised if a head has too many lines."""


class Connection(HttpToolsProtocol):
    """One connection within bounds."""

    bounds: ClassVar[Bounds]
    idle: ClassVar[dict["Connection", None]]
    """Connections that may be closed if room is needed, longest idle first: those without a request in progress, and
    those whose answer is not read.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reading: Literal["nothing", "head", "body"] = "nothing"
        self._since: float | None = None
        """Time at which the awaited head or body began; None if nothing is awaited."""
        self._overdue: float | None = None
        """The `_since` that was found to be too long ago at the last check."""
        self._begun = False
        """Whether a message began in the slice being parsed."""
        self._body_bytes = 0
        self._body_left = 0
        """Bytes of the body that are still to come, where its head says how many; else 0."""
        self._other_bytes = 0
        """Bytes of the message besides its body: its head, the lengths of chunks, trailers."""
        self._rest = b""
        """Unparsed bytes that came ahead of answers."""
        self._deaf = False
        """Whether parsing has stopped and further data is discarded."""
        self._refused: float | None = None
        """Time at which the connection got its last answer, a refusal."""
        self._unsent = 0
        self._unsent_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self.idle[self] = None
        if len(self.connections) > self.bounds.connections:
            oldest = next(iter(self.idle))
            if oldest is self:
                self._write(503, f"there are {self.bounds.connections:,} connections already; try again")
                self._leave()
                self.transport.close()
            else:
                oldest._drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        if self._rest or self.pipeline:
            self._keep(data)
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        view, start = memoryview(data), 0
        while start < len(data):
            if self.pipeline:  # else as many requests would be begun as fit into the data
                self._keep(data[start:])
                return
            end = start + max(SLICE, self._body_left)  # the rest of a body at once: nothing else is in it
            self._parse_slice(view[start:end])
            if self._deaf or self.transport.is_closing():
                return
            start = end

    def _parse_slice(self, part: memoryview) -> None:
        if self._since is None:
            self._since = self.loop.time()
        self._begun, before = False, self._body_bytes
        try:
            self.parser.feed_data(part)
        except httptools.HttpParserUpgrade as error:  # to an unsupported protocol; continue as before
            if error.args[0] < len(part):
                self._parse_slice(part[error.args[0] :])
            return
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, _TooManyLinesError):
                self._refuse_head()
            else:
                self._refuse(400, "this is no HTTP request")
            return
        if self._begun:  # the new message's share of the slice is unknown
            return
        self._other_bytes += len(part) - (self._body_bytes - before)
        if self._reading == "body":
            if self._other_bytes > self.bounds.head_bytes + self._body_bytes:
                self._refuse(400, "the chunks of a body must be longer than what is around them")
        elif self._other_bytes > self.bounds.head_bytes:
            self._refuse_head()

    def _keep(self, data: bytes) -> None:
        self.flow.pause_reading()
        self._rest += data
        if len(self._rest) > AHEAD:
            self._end_after_answers()

    def on_message_begin(self) -> None:
        """Handle the beginning of a head."""
        super().on_message_begin()
        self._reading, self._since, self._begun = "head", self.loop.time(), True
        self._body_bytes = self._body_left = self._other_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a line of the head, or a trailer, which is ignored."""
        if self._reading != "head":
            return
        if len(self.headers) >= self.bounds.head_lines:
            raise _TooManyLinesError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Handle a complete head, with which its request begins."""
        super().on_headers_complete()
        self._reading, self._since = "body", self.loop.time()
        self._body_left = next(
            (int(value) for name, value in self.headers if name == b"content-length" and value.isdigit()), 0
        )
        self.idle.pop(self, None)

    def on_body(self, body: bytes) -> None:
        """Handle a part of a body."""
        self._body_bytes += len(body)
        self._body_left -= min(len(body), self._body_left)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is complete."""
        self._reading, self._since, self._body_left = "nothing", None, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Handle a written answer: continue with the data that came ahead of it."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.pipeline or self._deaf:
            self.flow.pause_reading()
        elif self._rest:
            rest, self._rest = self._rest, b""
            self._unset_keepalive_if_required()
            self._parse(rest)
        if not self._answering():
            self.idle[self] = None

    def pause_writing(self) -> None:
        """Note that an answer is read more slowly than it is written."""
        super().pause_writing()
        self.idle[self] = None

    def resume_writing(self) -> None:
        """Note that an answer is read again."""
        super().resume_writing()
        if self._answering():
            self.idle.pop(self, None)

    def look(self, now: float) -> None:
        """End whatever has taken too long; called every fraction of a second, with the time of the loop."""
        if self._is_stuck(now) or (self._refused is not None and now - self._refused > LINGER):
            self._drop()
            return
        if self._since is None or self._deaf or self.transport.is_closing():
            return
        if self.flow.read_paused or (self._reading != "body" and self._answering()):
            self._since = now  # the server itself is slow
            return
        seconds = self.bounds.seconds
        if self._reading == "body" and not self.cycle.response_complete:
            seconds += self._body_bytes / BODY_RATE
        if now - self._since <= seconds:
            return
        if self._overdue != self._since:  # if the loop was busy for long, data may have arrived unread
            self._overdue = self._since
        elif self._reading == "nothing":
            self._drop()  # no request was begun
        else:
            self._refuse(408, f"the {self._reading} of the request must come within {seconds:,.0f} seconds")

    def _is_stuck(self, now: float) -> bool:
        """Return whether written data has not been read for too long, not even a part of it."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent or not self._unsent:
            self._unsent_since = now
        self._unsent = unsent
        return now - self._unsent_since > self.bounds.seconds

    def _answering(self) -> bool:
        """Return whether a request has begun and its answer is not complete."""
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    def _refuse_head(self) -> None:
        most = f"{self.bounds.head_bytes:,} bytes and {self.bounds.head_lines:,} lines"
        self._refuse(431, f"the head of the request must have at most {most}")

    def _refuse(self, status: int, message: str) -> None:
        """End the connection after an answer to the message being read, if it can have one."""
        if self._reading != "body":
            if self._answering():  # earlier requests are answered first
                self._end_after_answers()
                return
        elif self.pipeline or (self.cycle.response_started and not self.cycle.response_complete):
            self._drop()
            return
        self._deaf, self._rest = True, b""
        if self._reading != "body" or not self.cycle.response_complete:
            self._write(status, message)
        if self._reading == "body":
            self.cycle.disconnected = True  # the application's answer to it is not sent
            self.cycle.message_event.set()
        self.transport.write_eof()
        self.flow.resume_reading()
        self._refused = self.loop.time()
        self.idle[self] = None

    def _end_after_answers(self) -> None:
        self._deaf, self._rest = True, b""
        self.cycle.keep_alive = False
        self.flow.pause_reading()

    def _write(self, status: int, message: str) -> None:
        body = json.dumps({"error": message}).encode()
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(),
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
            *(b"%s: %s" % pair for pair in HEADERS),
            *([b"retry-after: 1"] if status == 503 else []),
        ]
        self.transport.write(b"\r\n".join([*lines, b"", body]))

    def _drop(self) -> None:
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        """Stop counting this connection; its file will be free in a moment."""
        self._deaf, self._rest = True, b""
        self.connections.discard(self)
        self.idle.pop(self, None)


def within(bounds: Bounds) -> type[Connection]:
    """Return the protocol of one server, which counts its connections together."""

    class Bounded(Connection):
        idle: ClassVar[dict[Connection, None]] = {}

    Bounded.bounds = bounds
    return Bounded
