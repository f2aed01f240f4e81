"""Errors that a bandit with a store, or a service's model, may raise besides a ValueError."""

from typing import TYPE_CHECKING

from solid_bandits._internal.lazy import lazy

if TYPE_CHECKING:
    from solid_bandits.live.ledger import ConflictError as ConflictError
    from solid_bandits.live.recovery import ReplayDiverged as ReplayDiverged
    from solid_bandits.live.store import StoreError as StoreError

_HOMES = {"ConflictError": "live.ledger", "ReplayDiverged": "live.recovery", "StoreError": "live.store"}
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
