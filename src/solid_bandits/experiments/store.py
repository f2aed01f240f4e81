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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from solid_bandits._types import Plain
from solid_bandits.loop import Trace
from solid_bandits.results import MANIFEST_FILE, TABLE_FILE, Results, write_whole
from solid_bandits.simulation import Block, Plan, Played, put_together, seconds_by_policy
from solid_bandits.workers import identity

CONFIGURATION_FILE = "configuration.json"
TASKS = "tasks"
LOCK_FILE = ".lock"


class StoreError(ValueError):
    """A directory cannot be used: it is in use, may not be written to, or holds something else."""


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold `out` for this process; a StoreError if another does. The lock ends with the process, however that ends."""
    from filelock import FileLock, Timeout

    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = FileLock(out / LOCK_FILE)
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreError(
            f"{os.fspath(out)!r} is in use by another process; wait for it to end, or give another directory"
        ) from None
    except OSError as error:
        raise StoreError(
            f"{os.fspath(out)!r} may not be written to ({error.strerror or error}); give another directory"
        ) from None
    try:
        yield
    finally:
        lock.release()


class Store:
    """The directory of one part: what is done of its plan.

    Raises a StoreError if the directory holds anything of another plan, or of other code.
    """

    def __init__(self, directory: Path, plan: Plan) -> None:
        self.directory = directory
        self.plan = plan
        self.configuration = json.loads(json.dumps(plan.configuration()))
        # The same plan may give other results with other versions, if only in the last bit: they do not mix.
        self.made_by = identity()
        known = self._known()
        if known is not None and known != {"configuration": self.configuration, "made_by": self.made_by}:
            what = (
                "configuration" if known.get("configuration") != self.configuration else "version of the code"
            )
            raise StoreError(
                f"{os.fspath(directory)!r} holds results of another {what}; give another directory, or remove it"
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

    def open(self) -> None:
        """Make the directory ready for tasks; what a killed process left half-written goes."""
        tasks = self.directory / TASKS
        tasks.mkdir(parents=True, exist_ok=True)
        for folder in (self.directory, tasks):
            sweep(folder)
        write_json(
            self.directory / CONFIGURATION_FILE,
            {"configuration": self.configuration, "made_by": self.made_by},
        )

    def tidy(self) -> None:
        """Remove the tasks of a complete part, if a process was killed before it could."""
        shutil.rmtree(self.directory / TASKS, ignore_errors=True)
        (self.directory / CONFIGURATION_FILE).unlink(missing_ok=True)

    def done(self) -> set[Block | str]:
        """The blocks that are done, and BOUND if that is."""
        names = {path.name for path in (self.directory / TASKS).glob("*.json")}
        every: list[Block | str] = [*self.plan.blocks(), BOUND]
        return {task for task in every if self._name(task) in names}

    def keep(self, task: Block | str, outcome: Played | Plain) -> None:
        """Write what a task gave."""
        if isinstance(outcome, Played):
            outcome = {
                "seconds": outcome.seconds,
                "regret": [trace.regret.tolist() for trace in outcome.traces],
                "explored": [trace.explored.tolist() for trace in outcome.traces],
                "insides": outcome.insides,
            }
        write_json(self.directory / TASKS / self._name(task), outcome)

    def finish(self, manifest: Plain) -> Results:
        """Put the finished tasks together, write the results, and remove the tasks."""
        played = {block: self._read(block) for block in self.plan.blocks()}
        full: Plain = {
            **manifest,
            "configuration": self.configuration,
            "made_by": self.made_by,
            "seconds": seconds_by_policy(self.plan, played),
            "lower_bound": read_json(self.directory / TASKS / self._name(BOUND)),
        }
        results = put_together(self.plan, played, full)
        # Results.save refuses results without a manifest, which a process killed here would have left.
        if not (self.directory / MANIFEST_FILE).exists():
            (self.directory / TABLE_FILE).unlink(missing_ok=True)
        results.save(self.directory)
        self.tidy()
        return results

    def _name(self, task: Block | str) -> str:
        if isinstance(task, str):
            return f"{task}.json"
        number = list(self.plan.policies).index(task.policy)
        # The block's size is part of the name: should another version cut runs differently, its tasks are others.
        return f"{number:03d}-{task.first:05d}-{task.runs}.json"

    def _read(self, block: Block) -> Played:
        content = read_json(
            self.directory / TASKS / self._name(block), "regret", "explored", "insides", "seconds"
        )
        steps = self.plan.steps
        traces = [
            Trace(steps, np.array(regret), np.array(explored, dtype=np.int64))
            for regret, explored in zip(content["regret"], content["explored"], strict=True)
        ]
        return Played(traces, content["insides"], content["seconds"])


BOUND = "bound"
"""The task that computes v*."""


def write_json(path: Path, content: Plain) -> None:
    """Write plain data, whole or not at all; numbers come back exactly as they were."""
    text = json.dumps(content, ensure_ascii=False, indent=None if "regret" in content else 2) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write_text(text, encoding="utf-8"))


def read_json(path: Path, *keys: str) -> Plain:
    """Read what `write_json` wrote; a StoreError unless it is a table with these keys."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not set(keys) <= set(content):
            raise ValueError(f"it lacks {', '.join(keys) or 'its fields'}")
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{os.fspath(path)!r} cannot be read ({str(error).splitlines()[0]}); remove it and run again"
        ) from None
    return content


def sweep(folder: Path) -> None:
    """Remove what a killed process left half-written; its names begin with a dot."""
    for unfinished in folder.glob(".*.????????.*"):
        unfinished.unlink(missing_ok=True)
