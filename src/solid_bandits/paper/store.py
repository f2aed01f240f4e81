"""Files of an experiment: finished tasks, then results. A killed run loses nothing that was finished.

    OUT/NAME/experiment.json            title, parts and claims: everything a report needs besides the results
    OUT/NAME/PART/configuration.json    what is played there, and by which code; written before the first task
    OUT/NAME/PART/tasks/*.json          one file per finished task, until the part is complete
    OUT/NAME/PART/results.parquet, manifest.json    the complete part, as `Results.load` reads it

Every file appears completely or not at all. Only the process that holds the lock of OUT writes.
"""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from solid_bandits._internal.decoding import Content
from solid_bandits._internal.files import (
    MANIFEST_FILE,
    TABLE_FILE,
    StoreError,
    locked,
    read_json,
    remove_unfinished,
    write_json,
)
from solid_bandits._internal.types import Plain
from solid_bandits.core.loop import Trace
from solid_bandits.simulation.assembly import assemble
from solid_bandits.simulation.block import Block, BlockResult, blocks
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.playing import Sink
from solid_bandits.simulation.results import recover
from solid_bandits.simulation.workers import identity
from solid_bandits.streams.playing import StreamTrace

CONFIGURATION_FILE = "configuration.json"
TASKS = "tasks"

__all__ = ["BOUND", "CONFIGURATION_FILE", "TASKS", "Store", "locked"]

BOUND = "bound"
"""Name of the task that computes v*."""


class PartContent(Content):
    """Contents of CONFIGURATION_FILE."""

    configuration: Plain
    made_by: dict[str, str]


class Store(Sink):
    """The directory of one part: a sink of its finished tasks.

    Raises a StoreError if the directory belongs to another plan or to other code.

    Args:
        directory: directory of the part.
        plan: the plan that is played.
        jobs: number of workers, for the manifest.

    """

    def __init__(self, directory: Path, plan: Plan, jobs: int) -> None:
        self.directory = directory
        self.plan = plan
        self.jobs = jobs
        # With other versions the same plan may give other results, if only in the last bit, so results are not mixed.
        self.played_here = PartContent(plan.configuration(), identity())
        known = self._known()
        if known is not None and known != self.played_here:
            other = known.configuration != self.played_here.configuration
            raise StoreError(
                f"{os.fspath(directory)!r} holds results of another "
                f"{'configuration' if other else 'version of the code'}; remove it or give another directory"
            )

    def _known(self) -> PartContent | None:
        for name in (MANIFEST_FILE, CONFIGURATION_FILE):
            path = self.directory / name
            if path.exists():
                content = read_json(path, Plain)
                return PartContent(content.get("configuration", {}), content.get("made_by", {}))
        return None

    @property
    def complete(self) -> bool:
        """Whether the results are complete."""
        return (self.directory / MANIFEST_FILE).exists() and (self.directory / TABLE_FILE).exists()

    def open(self) -> set[Block | str]:
        """Prepare the directory for tasks and return those that are done, which are all if the part is complete."""
        every: list[Block | str] = [*blocks(self.plan), BOUND]
        if self.complete:
            self._tidy()
            return set(every)
        tasks = self.directory / TASKS
        tasks.mkdir(parents=True, exist_ok=True)
        for folder in (self.directory, tasks):
            remove_unfinished(folder)
        write_json(self.directory / CONFIGURATION_FILE, self.played_here)
        names = {path.name for path in tasks.glob("*.json")}
        return {task for task in every if self._name(task) in names}

    def keep(self, task: Block | str, outcome: BlockResult | Plain) -> None:
        """Write the result of a task."""
        write_json(self.directory / TASKS / self._name(task), outcome, indent=0)

    def finish(self) -> None:
        """Assemble the finished tasks, write the results, and remove the tasks."""
        if self.complete:
            return
        played = {block: self._read(block) for block in blocks(self.plan)}
        facts = {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "jobs": self.jobs,
            "made_by": self.played_here.made_by,
            "lower_bound": read_json(self.directory / TASKS / self._name(BOUND), Plain),
        }
        results = assemble(self.plan, played, facts)
        # Results.save refuses results without a manifest, which a process killed at this point would have left.
        if not (self.directory / MANIFEST_FILE).exists():
            (self.directory / TABLE_FILE).unlink(missing_ok=True)
        results.save(self.directory)
        self._tidy()

    def _tidy(self) -> None:
        """Remove the tasks of a complete part, which a killed process may have left."""
        with locked(self.directory):
            recover(self.directory)
        shutil.rmtree(self.directory / TASKS, ignore_errors=True)
        (self.directory / CONFIGURATION_FILE).unlink(missing_ok=True)

    def _name(self, task: Block | str) -> str:
        if isinstance(task, str):
            return f"{task}.json"
        number = list(self.plan.policies).index(task.policy)
        # The block's size is part of the name, because another version may cut runs into other blocks.
        return f"{number:03d}-{task.first:05d}-{task.runs}.json"

    def _read(self, block: Block) -> BlockResult:
        traces: Any = list[StreamTrace] if self.plan.on_stream else list[Trace]
        kind: Any = tuple[traces, list[Plain], float]
        return BlockResult(*read_json(self.directory / TASKS / self._name(block), kind))
