"""Models read from their logs next to the writer; failures are remembered, and retried later."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from solid_bandits.live.recovery import ReplayDiverged
from solid_bandits.live.store import ModelRow, StoreError
from solid_bandits.service.errors import RefusedError

FIRST_WAIT = 0.5
"""Seconds until a model that could not be loaded is retried; they double each time."""
LONGEST_WAIT = 300.0
LONGEST_WAIT_FOR_STORE = 2.0
"""The same if the store was away, which says nothing about the model."""
logger = logging.getLogger("solid_bandits.service")


class Failure(NamedTuple):
    """Why a model cannot be used now."""

    name: str
    status: int
    words: str
    wait: float
    """Seconds until it is retried, and the time of the retry."""
    until: float
    store: bool
    """Whether the store was away."""

    def refusal(self) -> RefusedError:
        """Return the refusal for callers."""
        return RefusedError(self.status, self.words, retry_after=max(1, round(self.until - time.monotonic())))


class Loading:
    """Loader of models, one at a time, in a thread next to the writer's, so that users of other models do not wait."""

    def __init__(self) -> None:
        self.failures: dict[int, Failure] = {}
        """Failures by the numbers of models."""
        self._jobs: queue.SimpleQueue[tuple[ModelRow, Callable[[], None], Callable[[], None]] | None]
        self._jobs = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="loader", daemon=True)

    def failure(self, row: ModelRow) -> Failure | None:
        """Return why a model is not even tried now; None if it is."""
        found = self.failures.get(row.id)
        return found if found is not None and time.monotonic() < found.until else None

    def begin(self) -> None:
        """Start to take orders."""
        self._thread.start()

    def end(self) -> None:
        """Take no more orders; an ongoing read is abandoned."""
        self._jobs.put(None)

    def order(self, row: ModelRow, read: Callable[[], None], done: Callable[[], None]) -> None:
        """Have a model read; `done` is called afterwards, whatever the result."""
        self._jobs.put((row, read, done))

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            row, read, done = job
            try:
                self.attempt(row, read)
            finally:
                done()

    def attempt(self, row: ModelRow, read: Callable[[], None]) -> None:
        """Read a model; a failure is remembered and logged."""
        try:
            read()
        except Exception as error:
            self.failed(row, error)
        else:
            self.failures.pop(row.id, None)

    def failed(self, row: ModelRow, error: Exception) -> Failure:
        """Remember why a model could not be loaded; with each failure in a row the pause doubles."""
        before = self.failures.get(row.id)
        store = isinstance(error, StoreError)
        most = LONGEST_WAIT_FOR_STORE if store else LONGEST_WAIT
        wait = FIRST_WAIT if before is None or before.store != store else min(2 * before.wait, most)
        status = 503
        if isinstance(error, ReplayDiverged):
            words = f"model {row.name!r} does not follow from its log; see the server's log"
        elif store:
            words = "the log cannot be written or read now; try again"
        else:
            status, words = 500, "this is a fault of the service; its log says more"
        if store or isinstance(error, ReplayDiverged | ValueError):
            logger.error("model %r cannot be loaded: %s", row.name, error)
        else:
            logger.exception("model %r cannot be loaded", row.name, exc_info=error)
        found = Failure(row.name, status, words, wait, time.monotonic() + wait, store)
        self.failures[row.id] = found
        return found
