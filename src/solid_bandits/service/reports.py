"""Evaluations and logs, one at a time in another process, which can be ended and takes no time from decisions."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
from contextlib import suppress

from solid_bandits._internal.types import Plain
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import Store
from solid_bandits.service.budgets import Budgets
from solid_bandits.service.errors import RefusedError, invalid, unavailable
from solid_bandits.service.helpers import environment

IDLE = 60.0
"""Seconds without a request after which the process is ended to free its memory."""
logger = logging.getLogger("solid_bandits.service")


class Reports:
    """Requests to a separate process, which is started when needed, and ended if it takes too long."""

    def __init__(self, store: Store, budgets: Budgets) -> None:
        self.waiting = 0
        """Requests, including the one in progress."""
        self._budgets = budgets
        self._store = store
        self._one = asyncio.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._ended = self._busy = False

    @property
    def _bounds(self) -> Plain:
        budgets = self._budgets
        return {
            "newest": budgets.report_newest,
            "events": budgets.report_events,
            "bytes": budgets.report_bytes,
        }

    async def ask(self, request: Plain) -> str:
        """Return the answer to a request; raise a RefusedError if there is none in time."""
        if self.waiting > self._budgets.reports_waiting:
            raise RefusedError(503, "too many evaluations and logs are waiting; try again", retry_after=10)
        self.waiting += 1
        try:
            async with self._one:
                return await self._asked(json.dumps(request | _place(self._store) | self._bounds))
        finally:
            self.waiting -= 1

    async def _asked(self, line: str) -> str:
        loop = asyncio.get_running_loop()
        if self._idle is not None:
            self._idle.cancel()
        working = asyncio.ensure_future(asyncio.to_thread(self._line, line))
        try:
            done, _ = await asyncio.wait({working}, timeout=self._budgets.report_seconds)
        finally:
            if not working.done():  # it takes too long, or nobody waits any more
                self.end()
        self._idle = loop.call_later(IDLE, self.end)
        if not done:
            await working
            seconds = self._budgets.report_seconds
            raise RefusedError(503, f"it took more than {seconds:g} s; ask for fewer events", retry_after=60)
        return _judged(working.result())

    def _line(self, line: str) -> str:
        """Return the answer line; empty if the process has ended."""
        with self._lock:
            if self._ended:
                return ""
            if self._process is None or self._process.poll() is not None:
                command = [sys.executable, "-m", "solid_bandits.service.reading"]
                self._process = subprocess.Popen(
                    command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
                )
            process, self._busy = self._process, True
        assert process.stdin is not None
        assert process.stdout is not None
        found: str = ""
        with suppress(OSError):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            found = process.stdout.readline()
        with self._lock:
            self._busy = False
            if self._process is not process:  # it has been ended meanwhile
                _close(process)
        return found

    def end(self) -> None:
        """End the process, whatever it is doing."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                process.wait()
                if not self._busy:  # otherwise its reader closes it
                    _close(process)

    def stop(self) -> None:
        """End it for good."""
        self._ended = True
        if self._idle is not None:
            self._idle.cancel()
        self.end()


def _close(process: "subprocess.Popen[str]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # data that can no longer be sent
                pipe.close()


def _place(store: Store) -> Plain:
    if isinstance(store, SqliteStore):
        return {"data": str(store.path.parent), "database": None}
    return {"data": None, "database": getattr(store, "url", None)}


def _judged(line: str) -> str:
    if not line.endswith("\n"):
        logger.error("the process of evaluations and logs has ended by itself; its memory may have")
        raise unavailable("the evaluation was broken off; ask for fewer events")
    found = json.loads(line)
    if "invalid" in found:
        raise invalid(found["invalid"])
    if "unavailable" in found:
        raise unavailable(found["unavailable"])
    if "fault" in found:
        logger.error("evaluations and logs: %s", found["fault"])
        raise RefusedError(500, "this is a fault of the service; its log says more")
    return str(found.get("answer", ""))
