"""Every request is counted and timed, and every answer has the same safe headers."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from solid_bandits.service.metrics import Metrics

HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class Watched:
    """Counts by the pattern of a path: names of models do not become names of series."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in HEADERS if pair[0] not in present),
                ]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.request(scope["method"], route, status, time.perf_counter() - begun)
