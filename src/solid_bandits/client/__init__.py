"""Clients of a decision service, without a compiler: `Client`, `AsyncClient` and the error that both raise."""

from typing import TYPE_CHECKING

from solid_bandits._internal.lazy import lazy

if TYPE_CHECKING:
    from solid_bandits.client.calls import ServiceError as ServiceError
    from solid_bandits.client.http import AsyncClient as AsyncClient
    from solid_bandits.client.http import Client as Client

_HOMES = {"AsyncClient": "client.http", "Client": "client.http", "ServiceError": "client.calls"}
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
