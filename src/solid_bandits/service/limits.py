"""How much one caller may ask for: bytes of a body, requests and bytes per second, calls and memory at once."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from solid_bandits.service.budgets import Budgets
from solid_bandits.service.errors import RefusedError, error_response, unavailable

VALUE_BYTES = 32
"""Bytes of memory of one number of a body, as a number of Python in a list."""
PAUSE = 1.0
"""Seconds before a large body is refused with 429. Its call waits with the beginning of it."""


class Rate:
    """So much per second and key: a bucket that fills at that rate, and holds as much as one second brings."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str, amount: float = 1) -> float:
        """Take so much, all that it holds where that is less; seconds to wait where there is not enough, else 0."""
        moment = time.monotonic()
        level, before = self._buckets.get(key, (self._rate, moment))
        level = min(self._rate, level + (moment - before) * self._rate)
        needed = min(amount, self._rate)
        if level < needed:
            self._buckets[key] = (level, moment)
            return (needed - level) / self._rate
        self._buckets[key] = (level - amount, moment)
        return 0.0


class Admission:
    """Memory that the calls of each key, and all of them, hold until they are answered."""

    def __init__(self, budgets: Budgets) -> None:
        self.calls: Counter[str] = Counter()
        self.memory: Counter[str] = Counter()
        """Bytes, about."""
        self._pausing: Counter[str] = Counter()
        self._budgets = budgets
        self._requests = Rate(budgets.rate)
        self._bytes = Rate(budgets.key_bytes)

    @property
    def memory_in_all(self) -> int:
        """Bytes of memory that calls hold, about."""
        return self.memory.total()

    def request(self, key: str) -> None:
        """Count a request of a key; a refusal where there were too many."""
        _wait(self._requests.take(key), f"{self._budgets.rate:g} requests per second")

    @contextmanager
    def call(self, key: str, body: int) -> Iterator["Held"]:
        """Count a key's call with a body of this size while the block runs; refuse it if there is too much."""
        budgets = self._budgets
        if self.calls[key] >= budgets.key_calls:
            _wait(1.0, f"{budgets.key_calls:,} calls at once")
        held = Held(self, key)
        self.calls[key] += 1
        try:
            held.take(body)
            _wait(self._bytes.take(key, body), f"bodies of {budgets.key_bytes:,.0f} bytes per second")
            yield held
        finally:
            self.calls[key] -= 1
            held.give_back()
            for counter in (self.calls, self.memory):
                if not counter[key]:
                    del counter[key]

    async def pause(self, key: str) -> None:
        """Wait before a large body is refused: whoever sends the next one at once would else keep the service busy with
        refusals. As many calls of a key wait as may be at work.
        """
        if self._pausing[key] >= self._budgets.key_calls:
            return
        self._pausing[key] += 1
        try:
            await asyncio.sleep(PAUSE)
        finally:
            self._pausing[key] -= 1
            if not self._pausing[key]:
                del self._pausing[key]

    def hold(self, key: str, count: int) -> None:
        """Let a key have so many bytes more; a refusal where it may not."""
        if self.memory[key] + count > self._budgets.key_memory:
            _wait(1.0, f"calls of {self._budgets.key_memory:,} bytes at once")
        if self.memory_in_all + count > self._budgets.calls_memory:
            raise unavailable("too many calls are waiting; try again")
        self.memory[key] += count


class Held:
    """The memory of one call."""

    def __init__(self, admission: Admission, key: str) -> None:
        self._admission, self._key, self._count = admission, key, 0

    def take(self, count: int) -> None:
        """Hold so many bytes more."""
        self._admission.hold(self._key, count)
        self._count += count

    def body(self, content: bytes, most: int) -> None:
        """Count the values of a body before they are read; a refusal where there are too many."""
        values = content.count(b",") + 1
        if values > most:
            raise RefusedError(413, f"the body must have at most {most:,} values, got {values:,}")
        self.take(values * VALUE_BYTES)

    def give_back(self) -> None:
        """Hold nothing any more."""
        self._admission.memory[self._key] -= self._count
        self._count = 0


def _wait(seconds: float, most: str) -> None:
    if seconds > 0:
        raise RefusedError(429, f"this key may make {most}", retry_after=math.ceil(seconds))


class BodyLimit:
    """Bodies over a number of bytes are answered with 413 before they are read to their end."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if said.isdigit() and int(said) > self._most:
            await self._refuse(scope, receive, send)
            return
        seen = 0
        begun = over = False

        async def counted() -> Message:
            nonlocal seen, over
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:  # of one that came in pieces, without a length
                over = True
                return {"type": "http.disconnect"}
            return message

        async def watched(message: Message) -> None:
            nonlocal begun
            if over and not begun:
                return
            begun = True
            await send(message)

        try:
            await self._app(scope, counted, watched)
        except Exception:
            if not over:
                raise
        if over and not begun:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = error_response(413, f"the body must be at most {self._most:,} bytes")
        answer.headers["connection"] = "close"
        await answer(scope, receive, send)
