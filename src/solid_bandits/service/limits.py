"""How much one caller may ask for: bytes of a body, and requests per second."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from solid_bandits.service.answers import failed


class Rate:
    """Requests per second and key: a bucket that fills at that rate, and holds as many as one second brings."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> float:
        """Take one; seconds to wait where there is none, else 0."""
        moment = time.monotonic()
        level, before = self._buckets.get(key, (self._rate, moment))
        level = min(self._rate, level + (moment - before) * self._rate)
        if level < 1:
            self._buckets[key] = (level, moment)
            return (1 - level) / self._rate
        self._buckets[key] = (level - 1, moment)
        return 0.0


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
        answer = failed(413, f"the body must be at most {self._most:,} bytes")
        answer.headers["connection"] = "close"
        await answer(scope, receive, send)
