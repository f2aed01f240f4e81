"""Metrics and security headers."""

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from solid_bandits.service.errors import error_response
from solid_bandits.service.metrics import Metrics

HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class Middleware:
    """Middleware that counts by the pattern of a path, so that names of models do not become names of series."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, begun_to_answer = time.perf_counter(), 500, False

        async def noted(message: Message) -> None:
            nonlocal status, begun_to_answer
            if message["type"] == "http.response.start":
                begun_to_answer = True
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in HEADERS if pair[0] not in present),
                ]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:  # by the end of the service, which has waited long enough
            if begun_to_answer:
                raise
            await error_response(503, "the service ends; try again", retry_after=1)(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            if status in (413, 429, 503, 507):
                self._metrics.refused(status)
            self._metrics.request(scope["method"], route, status, time.perf_counter() - begun)
