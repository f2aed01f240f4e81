"""Play experiments into a directory: every finished task is kept, what is kept is not played again."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from solid_bandits import simulation
from solid_bandits._files import EXPERIMENT_FILE, StoreError, remove_unfinished, write_json
from solid_bandits.bounds.record import bound_record
from solid_bandits.experiments.estimate import task_seconds
from solid_bandits.experiments.experiment import Experiment
from solid_bandits.experiments.invocations import Invocation
from solid_bandits.experiments.outcomes import description
from solid_bandits.experiments.store import BOUND, Store, locked
from solid_bandits.simulation import Block, Extra, Game, Plan
from solid_bandits.simulation.playing import Key
from solid_bandits.workers import Workers


class Progress(Protocol):
    """Who is told how the work goes."""

    def begin(self, tasks: int, kept: int, seconds: float) -> None:
        """So many tasks in all, so many of them kept from before; an estimate of the CPU seconds to come."""

    def compiling(self, done: int, total: int) -> None:
        """So many of the loops that the tasks need are compiled, or were found compiled."""

    def start(self) -> None:
        """Everything is compiled; the first task is about to begin."""

    def advance(self, what: str, steps: int, seconds: float) -> None:
        """A task is done: so many steps, and what it had been estimated to take."""


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
        remove_unfinished(out)
        labelled = [
            _Labelled(f"{one.name}, {part.label}", _game(part.plan, out / one.name / part.slug, workers))
            for one in experiments
            for part in one.parts
        ]
        for one in experiments:
            write_json(out / one.name / EXPERIMENT_FILE, description(one))
            remove_unfinished(out / one.name)
        with Invocation(out, workers) as invocation:
            told = _Told(labelled, invocation, progress)
            simulation.play([game for _, game in labelled], workers, told)


class _Labelled(NamedTuple):
    label: str
    game: Game


def _game(plan: Plan, directory: Path, workers: Workers) -> Game:
    bound = Extra(BOUND, bound_record, (plan.problem, plan.runs))
    if plan.on_stream:
        bound = Extra(BOUND, dict, ({"reason": "a stream has no table of contexts"},))
    return Game(plan, Store(directory, plan, workers.count), (bound,))


class _Told:
    """Passes on how the work goes, with what tasks were estimated to take."""

    def __init__(self, games: Sequence[_Labelled], invocation: Invocation, progress: Progress) -> None:
        self.games = games
        self.invocation = invocation
        self.progress = progress

    def begin(self, tasks: Sequence[Key], kept: int) -> None:
        self.progress.begin(kept + len(tasks), kept, sum(map(self._seconds, tasks)))

    def compiling(self, done: int, total: int) -> None:
        self.progress.compiling(done, total)

    def start(self) -> None:
        self.progress.start()

    def advance(self, key: Key) -> None:
        self.invocation.count()
        label, game = self.games[key.game]
        steps = game.plan.horizon * key.task.runs if isinstance(key.task, Block) else 0
        self.progress.advance(label, steps, self._seconds(key))

    def _seconds(self, key: Key) -> float:
        return task_seconds(self.games[key.game].game.plan, key.task)
