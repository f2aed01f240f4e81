"""The one thread that changes models and writes the log: calls that wait are served as one group with one commit."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from solid_bandits.live.arguments import now
from solid_bandits.service.loading import PartedError, caught_up
from solid_bandits.service.metrics import Metrics
from solid_bandits.service.model import Model
from solid_bandits.service.refusals import RefusedError, unavailable
from solid_bandits.service.schemas import ModelSpec
from solid_bandits.service.store import FencedError, FullError, ModelRow, Nodes, Store, StoreError
from solid_bandits.service.trial import alike, tried

LARGEST_GROUP = 256
"""Calls that share a commit."""
MOST_WAITING = 4_096
"""Calls; more are sent away."""
LONGEST_CALL = 120.0
"""Seconds that a call may wait for its commit, where the disk or the database hangs. What becomes of it is unknown
then: it is repeated with the same ids, as after a lost answer."""
LONGEST_END = 60.0
"""Seconds for what waits and for the last snapshots. Longer would be a disk or a database that hangs: the log has all
that was acknowledged, and the next start replays it."""
GONE = "the writer of the log has ended; the service must be started again"
T = TypeVar("T")
logger = logging.getLogger("solid_bandits.service")


class _Call(NamedTuple):
    row: ModelRow
    work: Callable[[Model, int], Any]
    reading: bool
    future: "asyncio.Future[Any]"


class Writer:
    """Models in memory, and a thread to which they belong.

    A model is never ahead of its log when a call is answered: the answer comes after the commit, and where that fails
    the model is dropped, to be read from the log again.
    """

    def __init__(self, store: Store, nodes: Nodes, metrics: Metrics) -> None:
        self._store = store
        self._nodes = nodes
        self._metrics = metrics
        self._models: dict[int, Model] = {}
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False
        self._in_hand: list[_Call] = []

    @property
    def alive(self) -> bool:
        """Whether calls are served: from the start until the thread ends, however it does."""
        return self._thread.is_alive() and not self._ended

    def start(self, rows: list[ModelRow]) -> None:
        """Try and read all models, then begin to serve; called on the event loop's thread."""
        self._loop = asyncio.get_running_loop()
        seen: set[str] = set()
        for row in rows:
            try:
                spec = ModelSpec.model_validate_json(row.spec)
                if alike(spec) not in seen:
                    tried(spec)
                    seen.add(alike(spec))
                self._models[row.id] = caught_up(None, row, self._store)
            except (PartedError, StoreError, ValueError) as error:  # the others can go on
                logger.error("model %r cannot be loaded: %s", row.name, error)
            except Exception:  # a fault of the service: who calls this model is told so, each time
                logger.exception("model %r cannot be loaded", row.name)
        self._thread.start()

    async def stop(self) -> None:
        """Serve what waits, take snapshots, and end."""
        if self._thread.is_alive():
            self._calls.put(None)
            await asyncio.to_thread(self._thread.join, LONGEST_END)
            if self._thread.is_alive():
                logger.error("the writer did not end within %g s; it is left behind", LONGEST_END)

    async def do(self, row: ModelRow, work: Callable[[Model, int], T], *, reading: bool = False) -> T:
        """Let `work` change a model, or read from it; returns when what it did is on the disk."""
        assert self._loop is not None  # it was started
        if self._calls.qsize() >= MOST_WAITING:
            raise unavailable("too many calls are waiting; try again")
        future: asyncio.Future[T] = self._loop.create_future()
        self._calls.put(_Call(row, work, reading, future))
        if not self.alive:  # asked after the call was put, so one that the thread never saw is not waited for
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
        except BaseException:  # not of a call: those are answered
            logger.exception(GONE)
        finally:
            self._ended = True
            self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """Nobody would answer them any more."""
        calls = [*self._in_hand]
        with suppress(queue.Empty):
            while True:
                call = self._calls.get_nowait()
                calls += [] if call is None else [call]
        assert self._loop is not None  # it was started
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            self._loop.call_soon_threadsafe(_answer, [(call.future, unavailable(GONE)) for call in calls])

    def _serve_all(self) -> None:
        ended = False
        while not ended:
            # Without an end: there may be nothing to do for days, and `stop` puts None.
            group = [self._calls.get()]
            while len(group) < LARGEST_GROUP:
                try:
                    group.append(self._calls.get_nowait())
                except queue.Empty:
                    break
            ended = None in group
            self._in_hand = [call for call in group if call is not None]
            outcomes = self._serve(self._in_hand)
            assert self._loop is not None  # it was started
            try:
                self._loop.call_soon_threadsafe(_answer, outcomes)
            except RuntimeError:  # the loop has ended: nobody waits for these
                break
            self._in_hand = []
        for model in list(self._models.values()):
            self._last_snapshot(model)

    def _serve(self, calls: list[_Call]) -> list[tuple["asyncio.Future[Any]", Any]]:
        outcomes: list[tuple[asyncio.Future[Any], Any]] = []
        for row in {call.row.id: call.row for call in calls}.values():
            mine = [call for call in calls if call.row.id == row.id]
            begun = time.perf_counter()
            try:
                answers = self._serve_model(row, mine)
            except RefusedError as error:
                answers = [error] * len(mine)
            self._metrics.group(len(mine), time.perf_counter() - begun)
            outcomes += zip([call.future for call in mine], answers, strict=True)
        return outcomes

    def _serve_model(self, row: ModelRow, calls: list[_Call]) -> list[Any]:
        """Answers, in order; a RefusedError where it is none's turn. Whatever fails, the model is dropped first."""
        answers: list[Any] = []
        at_work = False
        try:
            fence = self._nodes.fence(row.id)
            model = self._ready(row, fence)
            at_work = True
            for call in calls:
                answers.append(self._worked(model, call, fence))  # noqa: PERF401 (their number says which failed)
            at_work = False
            if fence is not None and not all(call.reading for call in calls):
                self._commit(model, fence)
            return answers
        except FencedError:
            self._drop(row)
            raise unavailable(f"model {row.name!r} is led by another node now; try again") from None
        except FullError as error:
            self._drop(row)
            logger.error("%s", error)
            raise RefusedError(507, "the disk is full; nothing was changed", retry_after=10) from None
        except StoreError as error:
            self._drop(row)
            logger.error("%s", error)
            raise unavailable("the log cannot be written or read now; try again") from None
        except PartedError as error:
            self._drop(row)
            logger.error("%s", error)
            raise unavailable(
                f"model {row.name!r} does not follow from its log; see the server's log"
            ) from None
        except Exception:
            self._drop(row)
            logger.exception("model %r", row.name)
            fault = RefusedError(500, "this is a fault of the service; its log says more")
            if not at_work:
                raise fault from None
            others = unavailable("a call that shared the commit failed; try again")
            return [fault if place == len(answers) else others for place in range(len(calls))]

    def _ready(self, row: ModelRow, fence: int | None) -> Model:
        """The model, with all events of its log; while it is led here nobody else adds any."""
        model = self._models.get(row.id)
        if model is None or fence is None or model.fence != fence:
            model = self._models[row.id] = caught_up(model, row, self._store)
            model.fence = fence
        return model

    def _worked(self, model: Model, call: _Call, fence: int | None) -> Any:
        if fence is None and not call.reading:
            return unavailable(f"model {model.row.name!r} is led by another node; try again")
        try:
            return call.work(model, now())
        except RefusedError as error:
            return error

    def _commit(self, model: Model, fence: int) -> None:
        snapshot = model.pack(now()) if model.due() else None
        self._store.append(model.row.id, fence, model.fresh, snapshot, list(model.erased))
        self._metrics.committed(model.fresh)
        model.written()
        if snapshot is not None:
            model.snapshot = (snapshot.sequence, snapshot.time)

    def _drop(self, row: ModelRow) -> None:
        self._models.pop(row.id, None)

    def _last_snapshot(self, model: Model) -> None:
        """So that the next start replays nothing, with whatever version of the code."""
        before = 0 if model.snapshot is None else model.snapshot[0]
        if model.fence is None or model.sequence == before:
            return
        try:
            self._store.append(model.row.id, model.fence, [], model.pack(now()))
        except StoreError as error:
            logger.error("no snapshot of model %r: %s", model.row.name, error)


def _give_up(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        words = f"the log was not written within {LONGEST_CALL:g} s; try again with the same event_id"
        future.set_exception(unavailable(words))


def _answer(outcomes: list[tuple["asyncio.Future[Any]", Any]]) -> None:
    for future, outcome in outcomes:
        if future.done():  # whoever asked has gone
            continue
        if isinstance(outcome, RefusedError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
