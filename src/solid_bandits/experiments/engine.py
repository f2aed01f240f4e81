"""Play experiments: every finished task is kept, what is kept is not played again."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from solid_bandits._types import Plain
from solid_bandits.bounds.record import bound_record
from solid_bandits.experiments.claims import judge
from solid_bandits.experiments.estimate import plan_seconds
from solid_bandits.experiments.experiment import NAMES, Experiment, Part
from solid_bandits.experiments.outcome import Claim, Outcome
from solid_bandits.experiments.store import BOUND, Store, locked, read_json, write_json
from solid_bandits.results import FORMAT, Results
from solid_bandits.simulation import Block, block_task, compile_tasks, versions
from solid_bandits.workers import Task, Workers


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
    with locked(out):
        stores = [[Store(_home(out, one, part), part.plan) for part in one.parts] for one in experiments]
        for one in experiments:
            write_json(out / one.name / "experiment.json", _about(one))
        _play(experiments, stores, out, workers, progress)


def _play(
    experiments: Sequence[Experiment],
    stores: list[list[Store]],
    out: Path,
    workers: Workers,
    progress: Progress,
) -> None:
    started, clock = datetime.now(UTC), time.perf_counter()
    tasks: list[Task] = []
    cost: dict[_Key, tuple[int, float]] = {}
    left: dict[tuple[int, int], int] = {}
    kept = 0
    waiting = []
    for i, (experiment, row) in enumerate(zip(experiments, stores, strict=True)):
        for j, (part, store) in enumerate(zip(experiment.parts, row, strict=True)):
            plan = part.plan
            every: list[Block | str] = [BOUND, *plan.blocks()]
            if store.complete:
                store.tidy()
                kept += len(every)
                continue
            store.open()
            done = store.done()
            kept += len(done)
            left[i, j] = len(every) - len(done)
            seconds = plan_seconds(plan)
            waiting += [part] if left[i, j] else []
            for task in every:
                if task in done:
                    continue
                key = _Key(i, j, task)
                if isinstance(task, str):
                    tasks.append(Task(key, bound_record, (plan.problem, plan.runs)))
                    cost[key] = (0, 0.01 * (1 if plan.fixed else plan.runs))
                else:
                    tasks.append(block_task(plan, task, key))
                    cost[key] = (plan.horizon * task.runs, seconds[task.policy] * task.runs)
    progress.begin(kept + len(tasks), kept, sum(seconds for _, seconds in cost.values()))
    for (i, j), count in left.items():
        if count == 0:
            stores[i][j].finish(_manifest(workers))
    if tasks and workers.share_compiled_code and workers.count > 1:
        progress.say("compiling what is not compiled yet (once per installation)")
        for _ in workers.do(_compile_ahead(waiting)):
            pass
    played = 0
    progress.start()
    try:
        for done_key, result in workers.do(tasks):
            assert isinstance(done_key, _Key)  # the keys given above
            i, j, task = done_key
            stores[i][j].keep(task, result)
            played += 1
            left[i, j] -= 1
            if left[i, j] == 0:
                stores[i][j].finish(_manifest(workers))
            progress.advance(f"{experiments[i].name}, {experiments[i].parts[j].label}", *cost[done_key])
    finally:
        if played:
            _add_sitting(out, started, time.perf_counter() - clock, played, workers)


def _compile_ahead(parts: list[Part]) -> list[Task]:
    """One task for each compiled loop, and one for the lower bound, which takes longest: it comes first."""
    problem = parts[0].plan.problem_of(0)
    return [Task("bound", bound_record, (problem,)), *compile_tasks(part.plan for part in parts)]


def _manifest(workers: Workers) -> Plain:
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return {"format": FORMAT, "versions": versions(), "finished": finished, "jobs": workers.count}


def _add_sitting(out: Path, started: datetime, seconds: float, tasks: int, workers: Workers) -> None:
    """Keep, over interruptions, how long the work in this directory took."""
    path = out / "sittings.json"
    sittings = read_json(path)["sittings"] if path.exists() else []
    sitting = {
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(seconds, 1),
        "tasks": tasks,
        "workers": workers.count,
        "on": type(workers).__name__,
    }
    write_json(path, {"sittings": [*sittings, sitting]})


def _home(out: Path, experiment: Experiment, part: Part) -> Path:
    return out / experiment.name / part.slug


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
        about = read_json(path)
        homes = {label: path.parent / slug for label, slug in about["parts"].items()}
        if not all((home / "manifest.json").exists() for home in homes.values()):
            continue
        parts = {label: Results.load(home) for label, home in homes.items()}
        verdicts = tuple(judge(Claim.from_plain(claim), parts) for claim in about["claims"])
        found.append(Outcome(about["name"], about["title"], about["about"], about["scale"], parts, verdicts))
    order = {name: place for place, name in enumerate(NAMES)}
    return sorted(found, key=lambda one: (order.get(one.name, len(order)), one.name))
