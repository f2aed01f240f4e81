"""A request that another node must answer, handed on to it."""

import asyncio
from collections.abc import Callable
from urllib.parse import quote

import httpx
from starlette.requests import Request
from starlette.responses import Response

from solid_bandits.service.errors import error_response

HOPS = "x-solid-bandits-hops"
"""Header with the number of nodes that have forwarded a request."""
MOST_HOPS = 2
"""The leader may have changed while it was under way, once; more often it would wander."""
TIMEOUT = httpx.Timeout(30.0, connect=1.0)
LOOK = 0.2
"""Seconds between two looks whether the one that is waited for still leads."""
SENT = ("authorization", "ocp-apim-subscription-key", "content-type", "accept")
RETURNED = ("content-type", "retry-after", "www-authenticate")


async def forward(request: Request, address: str, leader: Callable[[], str | None]) -> Response:
    """Return the answer of the node at an address to a request, which carries the caller's own key.

    Whether a node that does not answer has done what was asked is unknown: the caller repeats it, with the same ids.

    Args:
        request: of the caller.
        address: of the node that leads the model.
        leader: where the leader is now; when that is another place, nobody waits for the former one any longer.
    """
    hops = _hops(request)
    if hops >= MOST_HOPS:
        return error_response(503, "the leader of this model is changing; try again", retry_after=1)
    headers = {name: request.headers[name] for name in SENT if name in request.headers}
    asking = asyncio.create_task(
        _client(request).request(
            request.method,
            # Not `request.url`, which is made from what the caller says of the host.
            address.rstrip("/") + quote(request.scope["path"]),
            content=await request.body(),
            headers=headers | {HOPS: str(hops + 1)},
        )
    )
    try:
        while not (await asyncio.wait({asking}, timeout=LOOK))[0]:
            if leader() != address:
                return error_response(503, "another node leads this model now; try again", retry_after=1)
        answer = asking.result()
    except httpx.HTTPError:
        return error_response(503, "the leader of this model does not answer; try again", retry_after=1)
    finally:
        asking.cancel()
    kept = {name: answer.headers[name] for name in RETURNED if name in answer.headers}
    return Response(answer.content, answer.status_code, kept)


def _hops(request: Request) -> int:
    """Return the number in the header; an invalid one counts as too many."""
    text = request.headers.get(HOPS, "0")
    return int(text) if text.isdecimal() and len(text) < 4 else MOST_HOPS


def _client(request: Request) -> httpx.AsyncClient:
    """Return a client for all requests of an app, which must close it; it keeps connections."""
    state = request.app.state
    if not hasattr(state, "forwarding"):
        state.forwarding = httpx.AsyncClient(timeout=TIMEOUT, trust_env=False)
    found: httpx.AsyncClient = state.forwarding
    return found
