"""How long the work in a directory took, invocation by invocation; a killed process loses its last seconds."""

import os
import platform
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from solid_bandits._files import INVOCATIONS_FILE, read_json, write_json
from solid_bandits._types import Plain
from solid_bandits.workers import Workers

SECONDS_BETWEEN_WRITES = 10.0


class Invocation:
    """This invocation, among those that worked in the directory before: a context that counts tasks."""

    def __init__(self, out: Path, workers: Workers) -> None:
        self.path = out / INVOCATIONS_FILE
        self.before = read_json(self.path, "invocations")["invocations"] if self.path.exists() else []
        self.facts: Plain = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "workers": workers.count,
            "on": type(workers).__name__,
            "machine": processor(),
            "cores": os.cpu_count(),
        }
        self.tasks = 0
        self.clock = self.written = time.perf_counter()

    def __enter__(self) -> "Invocation":
        return self

    def __exit__(self, *error: object) -> None:
        if self.tasks:
            with suppress(OSError):  # on a full disk the first error is the one to hear of
                self._write()

    def count(self) -> None:
        """One more task is done."""
        self.tasks += 1
        if time.perf_counter() - self.written > SECONDS_BETWEEN_WRITES:
            self._write()

    def _write(self) -> None:
        self.written = time.perf_counter()
        this = {**self.facts, "wall_seconds": round(self.written - self.clock, 1), "tasks": self.tasks}
        write_json(self.path, {"invocations": [*self.before, this]})


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
