"""Play experiments: every finished task is kept, what is kept is not played again."""

import os
import platform
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from solid_bandits._types import Plain
from solid_bandits.bounds.record import bound_record
from solid_bandits.experiments.claims import judge
from solid_bandits.experiments.estimate import plan_seconds
from solid_bandits.experiments.experiment import NAMES, Experiment
from solid_bandits.experiments.outcome import Claim, Outcome
from solid_bandits.experiments.store import BOUND, Store, StoreError, locked, read_json, sweep, write_json
from solid_bandits.results import FORMAT, Results
from solid_bandits.simulation import Block, Plan, block_task, compile_tasks, versions
from solid_bandits.workers import Task, Workers

SITTINGS_FILE = "sittings.json"
SECONDS_BETWEEN_SITTINGS = 10.0


class Progress(Protocol):
    """Who is told how the work goes."""

    def begin(self, tasks: int, kept: int, seconds: float) -> None:
        """So many tasks in all, so many of them kept from before; an estimate of the CPU seconds to come."""

    def say(self, text: str) -> None:
        """Something worth a line."""

    def start(self) -> None:
        """Everything is compiled; the first task is about to begin."""

    def advance(self, what: str, steps: int, seconds: float) -> None:
        """A task is done: so many steps, and what it had been estimated to take."""


class _Key(NamedTuple):
    """Names a task among those of all experiments."""

    experiment: int
    part: int
    task: Block | str


def play(experiments: Sequence[Experiment], out: Path, workers: Workers, progress: Progress) -> None:
    """Play what is not there yet of the experiments, into the directory `out`.

    Whatever ends this before its time, the same call goes on where it ended and arrives at the same results.
    """
    names = [experiment.name for experiment in experiments]
    for name in names:
        if names.count(name) > 1:
            raise StoreError(
                f"two experiments are called {name!r}, and would share a directory; rename one file"
            )
    with locked(out):
        sweep(out)
        stores = [[Store(out / one.name / part.slug, part.plan) for part in one.parts] for one in experiments]
        for one in experiments:
            write_json(out / one.name / "experiment.json", _about(one))
            sweep(out / one.name)
        _play(experiments, stores, _Sitting(out, workers), workers, progress)


def _play(
    experiments: Sequence[Experiment],
    stores: list[list[Store]],
    sitting: "_Sitting",
    workers: Workers,
    progress: Progress,
) -> None:
    tasks: dict[_Key, Task] = {}
    cost: dict[_Key, tuple[int, float]] = {}
    left: dict[tuple[int, int], int] = {}
    kept = 0
    for i, (experiment, row) in enumerate(zip(experiments, stores, strict=True)):
        for j, (part, store) in enumerate(zip(experiment.parts, row, strict=True)):
            every: list[Block | str] = [BOUND, *part.plan.blocks()]
            if store.complete:
                store.tidy()
                kept += len(every)
                continue
            store.open()
            to_do = [task for task in every if task not in store.done()]
            kept += len(every) - len(to_do)
            left[i, j] = len(to_do)
            for task in to_do:
                key = _Key(i, j, task)
                tasks[key], cost[key] = _task(part.plan, key)
    progress.begin(kept + len(tasks), kept, sum(seconds for _, seconds in cost.values()))
    for (i, j), count in left.items():
        if count == 0:
            stores[i][j].finish(_manifest(workers))
    if tasks and workers.share_compiled_code:
        progress.say("compiling what is not compiled yet (once per installation)")
        plans = [experiments[i].parts[j].plan for i, j in left if left[i, j]]
        with closing(workers.do(_compile_ahead(plans))) as compiled:
            for _ in compiled:
                pass
    progress.start()
    with sitting, closing(workers.do(list(tasks.values()))) as outcomes:
        for done, result in outcomes:
            assert isinstance(done, _Key)  # the keys given above
            i, j, task = done
            stores[i][j].keep(task, result)
            left[i, j] -= 1
            if left[i, j] == 0:
                stores[i][j].finish(_manifest(workers))
            sitting.count()
            progress.advance(f"{experiments[i].name}, {experiments[i].parts[j].label}", *cost[done])


def _task(plan: Plan, key: _Key) -> tuple[Task, tuple[int, float]]:
    """A task, with its steps and the CPU seconds that it may take."""
    if isinstance(key.task, str):
        problems = 1 if plan.fixed else plan.runs
        return Task(key, bound_record, (plan.problem, plan.runs)), (0, 0.01 * problems)
    seconds = plan_seconds(plan)[key.task.policy] * key.task.runs
    return block_task(plan, key.task, key), (plan.horizon * key.task.runs, seconds)


def _compile_ahead(plans: list[Plan]) -> list[Task]:
    """One task for each compiled loop, and one for the lower bound, which takes longest: it comes first."""
    problem = plans[0].problem_of(0)
    return [Task("bound", bound_record, (problem,)), *compile_tasks(plans)]


def _manifest(workers: Workers) -> Plain:
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return {"format": FORMAT, "versions": versions(), "finished": finished, "jobs": workers.count}


class _Sitting:
    """How long the work in a directory takes, kept over interruptions; a killed process loses its last seconds."""

    def __init__(self, out: Path, workers: Workers) -> None:
        self.path = out / SITTINGS_FILE
        self.before = read_json(self.path, "sittings")["sittings"] if self.path.exists() else []
        self.facts: Plain = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "workers": workers.count,
            "on": type(workers).__name__,
            "machine": processor(),
            "cores": os.cpu_count(),
        }
        self.tasks = 0
        self.clock = self.kept = time.perf_counter()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        if self.tasks:
            with suppress(OSError):  # on a full disk the first error is the one to hear of
                self._keep()

    def count(self) -> None:
        self.tasks += 1
        if time.perf_counter() - self.kept > SECONDS_BETWEEN_SITTINGS:
            self._keep()

    def _keep(self) -> None:
        self.kept = time.perf_counter()
        sitting = {**self.facts, "wall_seconds": round(self.kept - self.clock, 1), "tasks": self.tasks}
        write_json(self.path, {"sittings": [*self.before, sitting]})


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _about(experiment: Experiment) -> Plain:
    return {
        "format": FORMAT,
        "name": experiment.name,
        "title": experiment.title,
        "about": experiment.about,
        "scale": experiment.scale,
        "parts": {part.label: part.slug for part in experiment.parts},
        "claims": [asdict(claim) for claim in experiment.claims],
    }


def outcomes(out: Path) -> list[Outcome]:
    """What is complete in a directory that `play` wrote, in the order of the paper, a user's own after them."""
    found = []
    for path in sorted(out.glob("*/experiment.json")):
        about = read_json(path, "name", "title", "about", "scale", "parts", "claims")
        homes = {label: path.parent / slug for label, slug in about["parts"].items()}
        if not all((home / "manifest.json").exists() for home in homes.values()):
            continue
        parts = {label: Results.load(home) for label, home in homes.items()}
        try:
            claims = [Claim.from_plain(claim) for claim in about["claims"]]
        except TypeError:
            raise StoreError(
                f"{os.fspath(path)!r} has claims of another version; run the experiment again"
            ) from None
        verdicts = tuple(judge(claim, parts) for claim in claims)
        found.append(Outcome(about["name"], about["title"], about["about"], about["scale"], parts, verdicts))
    order = {name: place for place, name in enumerate(NAMES)}
    return sorted(found, key=lambda one: (order.get(one.name, len(order)), one.name))
