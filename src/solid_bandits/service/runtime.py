"""All that a running service holds, from its start to its end."""

import asyncio
import gc
import json
import logging
import math
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from solid_bandits.live.arguments import now
from solid_bandits.live.recovery import weighed_of
from solid_bandits.live.store import DuplicateError, KeyRow, ModelRow, Nodes, Store, StoreError
from solid_bandits.policies.naming import find
from solid_bandits.service import keys
from solid_bandits.service.budgets import Budgets
from solid_bandits.service.errors import RefusedError, invalid, unavailable
from solid_bandits.service.keys import Keyring, Role
from solid_bandits.service.limits import Admission
from solid_bandits.service.metrics import Metrics
from solid_bandits.service.parameters import check_parameters
from solid_bandits.service.parsing import Parser
from solid_bandits.service.reports import Reports
from solid_bandits.service.schemas import ModelFacts, ModelSpec
from solid_bandits.service.warm_up import warm_up
from solid_bandits.service.writer import GONE, Writer

TICK = 1.0
"""Seconds between two looks for decisions that have waited long enough."""
ERASING = 5.0
"""Seconds that the answer to a deletion waits for files to be cleaned."""
logger = logging.getLogger("solid_bandits.service")


@dataclass(frozen=True)
class Settings(Budgets):
    """Options of a service."""

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
        self.writer = Writer(store, nodes, self.metrics, settings)
        self.reports = Reports(store, settings)
        self.admission = Admission(settings)
        self.parser = Parser()
        self._keyring = Keyring(store)
        self._stats: dict[int, tuple[float, bytes]] = {}
        """Answers, and when they were made."""
        self._asking: dict[int, asyncio.Lock] = {}
        self._ticks: dict[int, asyncio.Task[None]] = {}
        self._rows: dict[str, ModelRow] = {}
        self._ticking: asyncio.Task[None] | None = None
        self.metrics.watch(settings, self.used)

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
        for task in self._ticks.values():
            task.cancel()
        self.reports.stop()
        self.parser.stop()
        await self.writer.stop()
        await asyncio.to_thread(self.nodes.stop)

    def freeze(self) -> None:
        """Leave out what is there (`Settings.frozen`); takes no time."""
        if self.settings.frozen:
            gc.freeze()

    async def _tick(self) -> None:
        """Expire rewards that never come; their defaults are events, which only the writer may write.

        Models that others lead are followed, so that what is read here is new, and a takeover has little to replay.
        """
        while True:
            await asyncio.sleep(TICK)
            with suppress(StoreError):  # the next tick tries again
                await self.rows()
            await asyncio.to_thread(self.writer.probe)
            self._ticks = {model: task for model, task in self._ticks.items() if not task.done()}
            for row in self._rows.values():
                if row.id not in self._ticks:  # one that takes long keeps no other from its tick
                    self._ticks[row.id] = asyncio.create_task(self._tick_of(row))

    async def _tick_of(self, row: ModelRow) -> None:
        with suppress(RefusedError):
            if self.nodes.leader(row.id) is not None:
                await self.writer.do(row, lambda model, moment: None, reading=True)
            elif ModelSpec.model_validate_json(row.spec).wait is not None:
                while await self.writer.do(row, lambda model, moment: model.expire(moment)):
                    pass  # some at a time, so that calls are served in between

    async def stats(self, row: ModelRow) -> bytes:
        """Return the numbers of a model as JSON, at most a second old, however often they are requested."""
        if not self.writer.alive:
            raise unavailable(GONE)
        asking = self._asking.setdefault(row.id, asyncio.Lock())
        async with asking:
            made, found = self._stats.get(row.id, (-math.inf, b""))
            if time.monotonic() - made < self.settings.stats_seconds:
                return found
            moment, model = now(), self.writer.models.get(row.id)
            if model is None or not self.nodes.leads(row.id):
                # Read first, or followed to the end of its log, by the writer.
                model = await self.writer.do(row, lambda model, moment: model, reading=True)
            facts = model.facts(moment)
            answer = facts | await asyncio.to_thread(model.stats.answer, moment)
            found = json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()
            self._stats[row.id] = time.monotonic(), found
            return found

    def used(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield how much of the budgets is used, and the state of the service."""
        writer, models = self.writer, list(self.writer.models.values())
        yield "alive", {}, writer.alive
        yield "writing", {}, writer.unwritten is None
        yield "commit_age_seconds", {}, time.monotonic() - writer.committed
        yield "models", {}, len(models)
        yield "leading", {}, self.leading
        for failure in list(writer.loading.failures.values()):
            yield "failed_model", {"model": failure.name}, max(failure.until - time.monotonic(), 0.0)
        yield "waiting_calls", {}, writer.waiting
        yield "calls_memory_bytes", {}, self.admission.memory_in_all
        yield "decisions_memory_bytes", {}, sum(weighed_of(one.bandit).bytes for one in models)
        yield "open_decisions", {}, sum(one.bandit.waiting for one in models)
        yield "windows", {}, self.windows
        yield "reports_waiting", {}, self.reports.waiting
        yield "erasing", {}, self.store.erasing is not None

    @property
    def models(self) -> list[ModelRow]:
        """All of them, as they were known last."""
        return list(self._rows.values())

    @property
    def leading(self) -> int:
        """Return the number of models that this node leads."""
        return sum(self.nodes.leads(row.id) for row in self._rows.values())

    @property
    def windows(self) -> int:
        """Return the total over all models."""
        return sum(ModelSpec.model_validate_json(row.spec).window for row in self._rows.values())

    async def erased(self) -> str | None:
        """Return why files may still contain erased data, after a few seconds of grace; None if they do not."""
        until = time.monotonic() + ERASING
        while self.store.erasing is not None and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return self.store.erasing

    async def admitted(self, key: str | None, role: Role) -> KeyRow:
        """Return the row of a key; refuse one that is unknown, insufficient, or used too often."""
        row = None if key is None else await self._keyring.known(key)
        if row is None:
            known = "a key must be given" if key is None else "the key is not known, or was revoked"
            raise RefusedError(401, f"{known}: Authorization: Bearer KEY")
        self.admission.request(row.id)
        if not keys.may(row, role):
            raise RefusedError(403, f"this takes the role {role}, and the key has {row.role}")
        return row

    async def row(self, name: str) -> ModelRow:
        """Return the model with this name."""
        found = self._rows.get(name)
        if found is None:
            await self.rows()
            found = self._rows.get(name)
        if found is None:
            raise RefusedError(404, f"there is no model {name!r}")
        return found

    async def rows(self) -> list[ModelRow]:
        """Return all models, including those that another node has made."""
        rows = await asyncio.to_thread(self.store.models)
        self._rows = {row.name: row for row in rows}
        return rows

    async def create(self, spec: ModelSpec) -> ModelRow:
        """Make a model; asked for again with the same settings, it is the one there is."""
        asked = spec
        if spec.seed is None:
            spec = spec.model_copy(update={"seed": secrets.randbits(32)})
        try:
            await asyncio.to_thread(_try, spec)
        except (ValueError, TypeError, OverflowError) as error:
            raise invalid(str(error)) from None
        self.freeze()
        if spec.name not in self._rows and self.windows + spec.window > self.settings.windows:
            left = max(self.settings.windows - self.windows, 0)
            words = f"window must be at most {left:,}, what other models leave of {self.settings.windows:,}"
            raise RefusedError(507, f"{words}; got {spec.window:,}")
        try:
            row = await asyncio.to_thread(self.store.add_model, spec.name, spec.model_dump_json(), now())
        except DuplicateError:
            row = await self.row(spec.name)
            if not _same(asked, ModelSpec.model_validate_json(row.spec)):
                message = f"there is a model {spec.name!r} with other settings; give another name"
                raise RefusedError(409, message) from None
        self._rows[row.name] = row
        return row


def _try(spec: ModelSpec) -> None:
    check_parameters(find("policy", spec.policy).build("random", 2, spec.parameters))
    warm_up(spec)


def _same(asked: ModelSpec, there: ModelSpec) -> bool:
    """Return whether a model matches a request whose answer may have been lost; without a seed any will do."""
    return there.model_copy(update={"seed": asked.seed}) == asked if asked.seed is None else there == asked


def facts(row: ModelRow) -> ModelFacts:
    """Return a model's facts as requested."""
    spec = ModelSpec.model_validate_json(row.spec)
    return ModelFacts(created=row.created / 1e6, **spec.model_dump())
