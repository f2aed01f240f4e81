"""The only thread that changes models and writes the log; waiting calls are served as one group with one commit."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from solid_bandits.live.recovery import ReplayDiverged
from solid_bandits.live.store import FencedError, FullError, ModelRow, Nodes, Store, StoreError
from solid_bandits.service.budgets import Budgets
from solid_bandits.service.clock import Clock
from solid_bandits.service.errors import RefusedError, unavailable
from solid_bandits.service.loading import Loading
from solid_bandits.service.metrics import Metrics
from solid_bandits.service.model import Model, caught_up_model
from solid_bandits.service.schemas import ModelSpec
from solid_bandits.service.turns import Turns
from solid_bandits.service.warm_up import warm_up, warmed_by

LONGEST_CALL = 120.0
"""Seconds that a call may wait for its commit, if the disk or the database hangs. Its outcome is unknown then, so it is
repeated with the same ids, as after a lost answer.
"""
LONGEST_END = 60.0
"""Seconds for waiting calls and the last snapshots. Longer means a hanging disk or database: the log has everything
that was acknowledged, and the next start replays it.
"""
GONE = "the writer of the log has ended; the service must be started again"
T = TypeVar("T")
logger = logging.getLogger("solid_bandits.service")


class _Call(NamedTuple):
    row: ModelRow
    key: str
    work: Callable[[Model, int], Any]
    reading: bool
    future: "asyncio.Future[Any]"

    @property
    def model(self) -> int:
        return self.row.id


class Writer:
    """Models in memory, and the thread that owns them.

    A model is never ahead of its log when a call is answered: the answer comes after the commit, and if the commit
    fails the model is dropped, to be read from the log again.
    """

    def __init__(self, store: Store, nodes: Nodes, metrics: Metrics, budgets: Budgets) -> None:
        self.models: dict[int, Model] = {}
        """Models in memory; only the writer's thread changes them."""
        self.loading = Loading()
        self.unwritten: str | None = None
        """Why the last commit failed; None if it did not."""
        self.committed = time.monotonic()
        """Time of the last commit."""
        self._store = store
        self._nodes = nodes
        self._metrics = metrics
        self._budgets = budgets
        self._clock = Clock()
        self._calls: Turns[_Call] = Turns()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False
        self._in_hand: list[_Call] = []

    @property
    def alive(self) -> bool:
        """Whether calls are served: from the start until the thread ends, for whatever reason."""
        return self._thread.is_alive() and not self._ended

    @property
    def waiting(self) -> int:
        """Number of waiting calls."""
        return self._calls.qsize()

    def start(self, rows: list[ModelRow]) -> None:
        """Try to read all models, then begin to serve; called on the event loop's thread."""
        self._loop = asyncio.get_running_loop()
        seen: set[str] = set()

        def read(row: ModelRow) -> None:
            spec = ModelSpec.model_validate_json(row.spec)
            if warmed_by(spec) not in seen:
                warm_up(spec)
                seen.add(warmed_by(spec))
            self._load(row, len(rows))

        for row in rows:  # if one cannot be loaded, the others still work
            self.loading.attempt(row, lambda row=row: read(row))  # type: ignore[misc]
        self.loading.begin()
        self._thread.start()

    def _load(self, row: ModelRow, models: int = 1) -> None:
        """Read a model from its log, in no more memory than it may use while it runs."""
        self.models[row.id] = caught_up_model(None, row, self._store, lambda: self._share(models))

    def _share(self, least: int = 1) -> int:
        """Return the bytes of memory for the decisions of each model."""
        return self._budgets.decisions_memory // max(len(self.models), least, 1)

    async def stop(self) -> None:
        """Serve waiting calls, take snapshots, and end."""
        self.loading.end()
        if self._thread.is_alive():
            self._calls.put(None)
            await asyncio.to_thread(self._thread.join, LONGEST_END)
            if self._thread.is_alive():
                logger.error("the writer did not end within %g s; it is left behind", LONGEST_END)

    async def do(
        self, row: ModelRow, work: Callable[[Model, int], T], *, key: str = "", reading: bool = False
    ) -> T:
        """Let `work` change a model, or read from it; returns when its effects are on the disk."""
        assert self._loop is not None  # the writer was started
        if self.waiting >= self._budgets.waiting_calls:
            raise unavailable("too many calls are waiting; try again")
        future: asyncio.Future[T] = self._loop.create_future()
        self._calls.put(_Call(row, key, work, reading, future))
        if not self.alive:  # checked after queueing, so that a call that the thread never saw is not awaited
            future.cancel()
            raise unavailable(GONE)
        late = self._loop.call_later(LONGEST_CALL, _give_up, future)  # lighter than `asyncio.timeout`
        try:
            return await future
        finally:
            late.cancel()

    def _run(self) -> None:
        try:
            self._serve_all()
        except BaseException:  # not an error of a call, which would be answered
            logger.exception(GONE)
        finally:
            self._ended = True
            calls = [*self._in_hand, *self._calls.drain()]  # otherwise nobody would answer them
            self._answer([(call.future, unavailable(GONE)) for call in calls])

    def _answer(self, outcomes: list[tuple["asyncio.Future[Any]", Any]]) -> None:
        assert self._loop is not None  # the writer was started
        with suppress(RuntimeError):  # the loop has ended, so nobody waits for these
            self._loop.call_soon_threadsafe(_answer, outcomes)

    def _serve_all(self) -> None:
        while group := self._calls.take(self._budgets.group_calls):
            self._in_hand = group
            row, begun = group[0].row, time.perf_counter()
            if self._may_be_served(row, group):
                try:
                    answers = self._serve_model(row, group)
                except RefusedError as error:
                    answers = [error] * len(group)
                self._calls.put_back(group[len(answers) :])
                self._metrics.group(len(answers), time.perf_counter() - begun)
                self._answer(list(zip([call.future for call in group], answers, strict=False)))
            self._in_hand = []
        for model in list(self.models.values()):
            self._last_snapshot(model)

    def _may_be_served(self, row: ModelRow, group: list[_Call]) -> bool:
        """Return whether the model is in memory; if not, it is read while its calls wait, or they are refused."""
        if row.id in self.models:
            return True
        failure = self.loading.failure(row)
        if failure is None:
            self._calls.hold(row.id)
            self._calls.put_back(group)
            self.loading.order(row, lambda: self._load(row), lambda: self._release(row))
        else:
            self._answer([(call.future, failure.refusal()) for call in group])
        return False

    def _release(self, row: ModelRow) -> None:
        self._calls.release(row.id)

    def _serve_model(self, row: ModelRow, calls: list[_Call]) -> list[Any]:
        """Return answers to the first calls, in order, as many as time allows; a RefusedError for calls that had no
        turn.

        If anything fails, the model is dropped first.
        """
        answers: list[Any] = []
        at_work = False
        until = time.perf_counter() + self._budgets.group_seconds
        try:
            fence = self._nodes.fence(row.id)
            model = self._ready(row, fence)
            at_work = True
            for call in calls:
                answers.append(self._worked(model, call, fence))
                if time.perf_counter() > until:
                    break
            at_work = False
            if fence is not None and not all(call.reading for call in calls[: len(answers)]):
                fresh = model.history.fresh
                model.history.commit(check=True)
                if fresh:
                    self.unwritten, self.committed = None, time.monotonic()
                self._metrics.committed(fresh)
            model.shed(self._share())
            return answers
        except FencedError:
            self._drop(row)
            raise unavailable(f"model {row.name!r} is led by another node now; try again") from None
        except FullError as error:
            self._drop(row)
            self.unwritten = "the disk is full"
            logger.error("%s", error)
            raise RefusedError(507, "the disk is full; nothing was changed", retry_after=10) from None
        except StoreError as error:
            self._drop(row)
            self.unwritten = "the log cannot be written"
            logger.error("%s", error)
            raise unavailable("the log cannot be written or read now; try again") from None
        except ReplayDiverged as error:
            self._drop(row)
            raise self.loading.failed(row, error).refusal() from None
        except Exception:
            self._drop(row)
            logger.exception("model %r", row.name)
            fault = RefusedError(500, "this is a fault of the service; its log says more")
            if not at_work:
                raise fault from None
            others = unavailable("a call that shared the commit failed; try again")
            return [fault if place == len(answers) else others for place in range(len(calls))]

    def _ready(self, row: ModelRow, fence: int | None) -> Model:
        """Return the model, with all events of its log; while it is led here nobody else adds any."""
        model = self.models[row.id]
        if fence is None or model.history.fence != fence:
            model = self.models[row.id] = caught_up_model(model, row, self._store, self._share)
            model.history.fence = fence
            if fence is not None:
                model.begin_to_wait(self._clock.now(), self._clock.shift)
        return model

    def _worked(self, model: Model, call: _Call, fence: int | None) -> Any:
        if fence is None and not call.reading:
            return unavailable(f"model {model.row.name!r} is led by another node; try again")
        try:
            moment = self._clock.now()
            model.set_clock(self._clock.shift)
            return call.work(model, moment)
        except RefusedError as error:
            if model.history.broken:  # halfway, so the effects of earlier calls cannot be written without it
                raise RuntimeError("a call was refused after it had changed the model") from error
            return error

    def probe(self) -> None:
        """After a failed commit, find out whether the store can be written to again; may wait for it."""
        if self.unwritten is None:
            return
        try:
            self._store.probe()
        except StoreError:
            return
        self.unwritten = None

    def _drop(self, row: ModelRow) -> None:
        self.models.pop(row.id, None)

    def _last_snapshot(self, model: Model) -> None:
        """Take a snapshot, so that the next start replays nothing, with whatever version of the code."""
        try:
            model.history.last_snapshot()
        except StoreError as error:
            logger.error("no snapshot of model %r: %s", model.row.name, error)


def _give_up(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        words = f"the log was not written within {LONGEST_CALL:g} s; try again with the same event_id"
        future.set_exception(unavailable(words))


def _answer(outcomes: list[tuple["asyncio.Future[Any]", Any]]) -> None:
    for future, outcome in outcomes:
        if future.done():  # the caller has gone
            continue
        if isinstance(outcome, RefusedError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
