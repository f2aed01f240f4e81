"""What an experiment leaves on the disk: finished tasks, then results. A killed run loses nothing that was finished.

    OUT/NAME/experiment.json            title, parts and claims: all that a report needs beside the results
    OUT/NAME/PART/configuration.json    what is played there, and by which code: written before the first task
    OUT/NAME/PART/tasks/*.json          one file per finished task, until the part is complete
    OUT/NAME/PART/results.parquet, manifest.json    the complete part, as `Results.load` reads it

Every file appears whole or not at all. Only the process that holds the lock of OUT writes.
"""

import json
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from solid_bandits._files import (
    FORMAT,
    MANIFEST_FILE,
    TABLE_FILE,
    StoreError,
    locked,
    read_json,
    remove_unfinished,
    write_json,
)
from solid_bandits._types import Plain
from solid_bandits.loop import Trace
from solid_bandits.results import recover
from solid_bandits.simulation import Block, Plan, Played
from solid_bandits.simulation.assembly import assemble, seconds_by_policy, versions
from solid_bandits.simulation.block import blocks
from solid_bandits.streams.playing import StreamTrace, stream_trace_from_plain, stream_trace_to_plain
from solid_bandits.workers import identity

CONFIGURATION_FILE = "configuration.json"
TASKS = "tasks"

__all__ = ["BOUND", "CONFIGURATION_FILE", "TASKS", "Store", "locked"]

BOUND = "bound"
"""The task that computes v*."""


class Store:
    """The directory of one part: a sink of its finished tasks.

    Raises a StoreError if the directory holds anything of another plan, or of other code.

    Args:
        directory: of the part.
        plan: what is played.
        jobs: how many workers play it, for the manifest.

    """

    def __init__(self, directory: Path, plan: Plan, jobs: int) -> None:
        self.directory = directory
        self.plan = plan
        self.jobs = jobs
        self.configuration = json.loads(json.dumps(plan.configuration()))
        # The same plan may give other results with other versions, if only in the last bit: they do not mix.
        self.made_by = identity()
        known = self._known()
        if known is not None and known != {"configuration": self.configuration, "made_by": self.made_by}:
            what = (
                "configuration" if known.get("configuration") != self.configuration else "version of the code"
            )
            raise StoreError(
                f"{os.fspath(directory)!r} holds results of another {what}; remove it or give another directory"
            )

    def _known(self) -> Plain | None:
        for name in (MANIFEST_FILE, CONFIGURATION_FILE):
            path = self.directory / name
            if path.exists():
                content = read_json(path)
                return {key: content.get(key) for key in ("configuration", "made_by")}
        return None

    @property
    def complete(self) -> bool:
        """Whether the results are there."""
        return (self.directory / MANIFEST_FILE).exists() and (self.directory / TABLE_FILE).exists()

    def open(self) -> set[Block | str]:
        """Make the directory ready for tasks; return those that are done: all of them where the part is complete."""
        every: list[Block | str] = [*blocks(self.plan), BOUND]
        if self.complete:
            self._tidy()
            return set(every)
        tasks = self.directory / TASKS
        tasks.mkdir(parents=True, exist_ok=True)
        for folder in (self.directory, tasks):
            remove_unfinished(folder)
        write_json(
            self.directory / CONFIGURATION_FILE,
            {"configuration": self.configuration, "made_by": self.made_by},
        )
        names = {path.name for path in tasks.glob("*.json")}
        return {task for task in every if self._name(task) in names}

    def keep(self, task: Block | str, outcome: Played | Plain) -> None:
        """Write what a task gave."""
        if isinstance(outcome, Played):
            outcome = {
                "seconds": outcome.seconds,
                "regret": [trace.regret.tolist() for trace in outcome.traces],
                "explored": [trace.explored.tolist() for trace in outcome.traces],
                "diagnostics": outcome.diagnostics,
                **_stream_fields(outcome.traces),
            }
        write_json(self.directory / TASKS / self._name(task), outcome, indent=None)

    def finish(self) -> None:
        """Assemble the finished tasks, write the results, and remove the tasks."""
        if self.complete:
            return
        played = {block: self._read(block) for block in blocks(self.plan)}
        manifest: Plain = {
            "format": FORMAT,
            "versions": versions(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "jobs": self.jobs,
            "configuration": self.configuration,
            "made_by": self.made_by,
            "seconds": seconds_by_policy(self.plan, played),
            "lower_bound": read_json(self.directory / TASKS / self._name(BOUND)),
        }
        results = assemble(self.plan, played, manifest)
        # Results.save refuses results without a manifest, which a process killed here would have left.
        if not (self.directory / MANIFEST_FILE).exists():
            (self.directory / TABLE_FILE).unlink(missing_ok=True)
        results.save(self.directory)
        self._tidy()

    def _tidy(self) -> None:
        """Remove the tasks of a complete part, also where a process was killed before it could."""
        with locked(self.directory):
            recover(self.directory)
        shutil.rmtree(self.directory / TASKS, ignore_errors=True)
        (self.directory / CONFIGURATION_FILE).unlink(missing_ok=True)

    def _name(self, task: Block | str) -> str:
        if isinstance(task, str):
            return f"{task}.json"
        number = list(self.plan.policies).index(task.policy)
        # The block's size is part of the name: should another version cut runs differently, its tasks are others.
        return f"{number:03d}-{task.first:05d}-{task.runs}.json"

    def _read(self, block: Block) -> Played:
        content = read_json(
            self.directory / TASKS / self._name(block), "regret", "explored", "diagnostics", "seconds"
        )
        steps = self.plan.steps
        traces: list[Any] = [
            Trace(steps, np.array(regret), np.array(explored, dtype=np.int64))
            for regret, explored in zip(content["regret"], content["explored"], strict=True)
        ]
        if "streams" in content:
            traces = [
                stream_trace_from_plain(trace.steps, trace.regret, trace.explored, plain)
                for trace, plain in zip(traces, content["streams"], strict=True)
            ]
        return Played(traces, content["diagnostics"], content["seconds"])


def _stream_fields(traces: Sequence[Trace | StreamTrace]) -> Plain:
    """What traces of streams have beside regret and exploring rounds."""
    found = [stream_trace_to_plain(trace) for trace in traces if isinstance(trace, StreamTrace)]
    return {"streams": found} if found else {}
