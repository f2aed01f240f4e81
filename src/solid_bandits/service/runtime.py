"""All that a running service holds, from its start to its end."""

import asyncio
import gc
import logging
import math
import secrets
from contextlib import suppress
from dataclasses import dataclass

from solid_bandits.live.arguments import now
from solid_bandits.service import keys
from solid_bandits.service.keys import Keyring, Role
from solid_bandits.service.limits import Rate
from solid_bandits.service.metrics import Metrics
from solid_bandits.service.refusals import RefusedError, wrong
from solid_bandits.service.schemas import ModelFacts, ModelSpec
from solid_bandits.service.store import DuplicateError, KeyRow, ModelRow, Nodes, Store, StoreError
from solid_bandits.service.trial import tried
from solid_bandits.service.writer import Writer

TICK = 1.0
"""Seconds between two looks for decisions that have waited long enough."""
logger = logging.getLogger("solid_bandits.service")


@dataclass(frozen=True)
class Settings:
    """What whoever starts a service may choose."""

    largest_body: int = 4 << 20
    """Bytes."""
    rate: float = 1_000.0
    """Requests per second and key."""
    frozen: bool = False
    """Whether what is there once the service listens, and once a model was made, is left out of the search for garbage
    from then on: the compiler's objects, which are many and stay. Each full search among them would take a tenth of a
    second, in which nobody is answered. For a process that does nothing else."""


class Service:
    """A store, the models in memory, keys and counters."""

    def __init__(self, store: Store, nodes: Nodes, settings: Settings) -> None:
        self.store = store
        self.nodes = nodes
        self.settings = settings
        self.metrics = Metrics()
        self.writer = Writer(store, nodes, self.metrics)
        self.reading = asyncio.Semaphore(1)
        """Held by whoever reads a whole log: one at a time, so that decisions have the machine."""
        self._keyring = Keyring(store)
        self._rate = Rate(settings.rate)
        self._rows: dict[str, ModelRow] = {}
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read keys and models, and begin."""
        self._keyring.refresh()
        rows = self.store.models()
        self._rows = {row.name: row for row in rows}
        self.writer.start(rows)
        self.nodes.start()  # after the models: loading them keeps the loop from answering, and so from leading
        self._ticking = asyncio.create_task(self._tick())
        if self.settings.frozen:
            gc.collect()
        self.freeze()

    async def stop(self) -> None:
        """Finish what was begun, take snapshots, let go."""
        if self._ticking is not None:
            self._ticking.cancel()
        await self.writer.stop()
        await asyncio.to_thread(self.nodes.stop)

    def freeze(self) -> None:
        """Leave out what is there (`Settings.frozen`); takes no time."""
        if self.settings.frozen:
            gc.freeze()

    async def _tick(self) -> None:
        """Rewards that never come: their defaults are events too, so they are the writer's.

        Models that others lead are followed, so that what is read here is new, and a takeover has little to replay.
        """
        while True:
            await asyncio.sleep(TICK)
            with suppress(StoreError):  # the next tick tries again
                await self.rows()
            for row in list(self._rows.values()):
                with suppress(RefusedError):
                    if self.nodes.leader(row.id) is not None:
                        await self.writer.do(row, lambda model, moment: None, reading=True)
                    elif ModelSpec.model_validate_json(row.spec).wait is not None:
                        while await self.writer.do(row, lambda model, moment: model.expire(moment)):
                            pass  # some at a time, so that calls are served in between

    async def admitted(self, key: str | None, role: Role) -> KeyRow:
        """Whose key this is; a refusal where it is none, too small, or used too often."""
        row = None if key is None else await self._keyring.known(key)
        if row is None:
            known = "a key must be given" if key is None else "the key is not known, or was revoked"
            raise RefusedError(401, f"{known}: Authorization: Bearer KEY")
        seconds = self._rate.take(row.id)
        if seconds > 0:
            most = f"{self.settings.rate:g} requests per second"
            raise RefusedError(429, f"this key may make {most}", retry_after=math.ceil(seconds))
        if not keys.may(row, role):
            raise RefusedError(403, f"this takes the role {role}, and the key has {row.role}")
        return row

    async def row(self, name: str) -> ModelRow:
        """The model of this name."""
        found = self._rows.get(name)
        if found is None:
            await self.rows()
            found = self._rows.get(name)
        if found is None:
            raise RefusedError(404, f"there is no model {name!r}")
        return found

    async def rows(self) -> list[ModelRow]:
        """All models, also those that another node has made."""
        rows = await asyncio.to_thread(self.store.models)
        self._rows = {row.name: row for row in rows}
        return rows

    async def create(self, spec: ModelSpec) -> ModelRow:
        """Make a model; asked for again with the same settings, it is the one there is."""
        asked = spec
        if spec.seed is None:
            spec = spec.model_copy(update={"seed": secrets.randbits(32)})
        try:
            await asyncio.to_thread(tried, spec)
        except (ValueError, TypeError, OverflowError) as error:
            raise wrong(str(error)) from None
        self.freeze()
        try:
            row = await asyncio.to_thread(self.store.add_model, spec.name, spec.model_dump_json(), now())
        except DuplicateError:
            row = await self.row(spec.name)
            if not _same(asked, ModelSpec.model_validate_json(row.spec)):
                message = f"there is a model {spec.name!r} with other settings; give another name"
                raise RefusedError(409, message) from None
        self._rows[row.name] = row
        return row


def _same(asked: ModelSpec, there: ModelSpec) -> bool:
    """Whether a model is what was asked for, by a call whose answer may have been lost; any seed will do for none."""
    return there.model_copy(update={"seed": asked.seed}) == asked if asked.seed is None else there == asked


def facts(row: ModelRow) -> ModelFacts:
    """A model as it was asked for."""
    spec = ModelSpec.model_validate_json(row.spec)
    return ModelFacts(created=row.created / 1e6, **spec.model_dump())
