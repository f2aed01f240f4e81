"""Records of the invocations that worked in a directory; a killed process loses only its last seconds."""

import os
import platform
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from solid_bandits._internal.decoding import Content, Count, NotNegative
from solid_bandits._internal.files import INVOCATIONS_FILE, read_json, write_json

if TYPE_CHECKING:
    from solid_bandits.simulation.workers import Workers

SECONDS_BETWEEN_WRITES = 10.0


class InvocationRecord(Content, kw_only=True):
    """Record of one invocation."""

    started: str = ""
    workers: Count = 0
    on: str = ""
    machine: str = ""
    cores: Count | None = None
    wall_seconds: NotNegative
    tasks: Count = 0


class Invocations(Content):
    """Contents of INVOCATIONS_FILE."""

    invocations: list[InvocationRecord]


def past_invocations(out: Path) -> list[InvocationRecord]:
    """Return the invocations that worked in a directory, oldest first."""
    path = out / INVOCATIONS_FILE
    return read_json(path, Invocations).invocations if path.exists() else []


class Invocation:
    """Context manager that counts the tasks of this invocation, next to the earlier ones of the directory."""

    def __init__(self, out: Path, workers: "Workers") -> None:
        self.path = out / INVOCATIONS_FILE
        self.before = past_invocations(out)
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.workers = workers
        self.tasks = 0
        self.clock = self.written = time.perf_counter()

    def __enter__(self) -> "Invocation":
        return self

    def __exit__(self, *error: object) -> None:
        if self.tasks:
            with suppress(OSError):  # on a full disk the first error is the one to report
                self._write()

    def count(self) -> None:
        """Count one more finished task."""
        self.tasks += 1
        if time.perf_counter() - self.written > SECONDS_BETWEEN_WRITES:
            self._write()

    def _write(self) -> None:
        self.written = time.perf_counter()
        this = InvocationRecord(
            started=self.started,
            workers=self.workers.count,
            on=type(self.workers).__name__,
            machine=processor(),
            cores=os.cpu_count(),
            wall_seconds=round(self.written - self.clock, 1),
            tasks=self.tasks,
        )
        write_json(self.path, Invocations([*self.before, this]))


def processor() -> str:
    """Return the processor's name, where the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
