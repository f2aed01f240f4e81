"""Play experiments into a directory: every finished task is kept, and kept tasks are not played again."""

from collections.abc import Sequence
from pathlib import Path

from solid_bandits._internal.files import EXPERIMENT_FILE, StoreError, remove_unfinished, write_json
from solid_bandits.bounds.record import bound_record
from solid_bandits.paper.experiment import Experiment, Part
from solid_bandits.paper.invocations import Invocation
from solid_bandits.paper.loading import description
from solid_bandits.paper.store import BOUND, Store, locked
from solid_bandits.simulation.playing import Extra, Game, Progress, Work
from solid_bandits.simulation.playing import play as play_games
from solid_bandits.simulation.workers import Workers


def play(experiments: Sequence[Experiment], out: Path, workers: Workers, progress: Progress) -> None:
    """Play the missing parts of the experiments into the directory `out`.

    If this is interrupted, the same call continues from there and arrives at the same results.
    """
    names = [experiment.name for experiment in experiments]
    for name in names:
        if names.count(name) > 1:
            raise StoreError(
                f"two experiments are called {name!r}, and would share a directory; rename one file"
            )
    with locked(out):
        remove_unfinished(out)
        games = [_game(one, part, out, workers) for one in experiments for part in one.parts]
        for one in experiments:
            write_json(out / one.name / EXPERIMENT_FILE, description(one))
            remove_unfinished(out / one.name)
        with Invocation(out, workers) as invocation:
            play_games(games, workers, _Counted(progress, invocation))


def _game(experiment: Experiment, part: Part, out: Path, workers: Workers) -> Game:
    plan = part.plan
    bound = Extra(BOUND, bound_record, (plan.problem, plan.runs))
    if plan.on_stream:
        bound = Extra(BOUND, dict, ({"reason": "a stream has no table of contexts"},))
    store = Store(out / experiment.name / part.slug, plan, workers.count)
    return Game(plan, store, (bound,), f"{experiment.name}, {part.label}")


class _Counted:
    """Progress that also counts the finished tasks in the directory."""

    def __init__(self, progress: Progress, invocation: Invocation) -> None:
        self.begin, self.compiling, self.start = progress.begin, progress.compiling, progress.start
        self.progress, self.invocation = progress, invocation

    def advance(self, task: Work) -> None:
        """Count a finished task."""
        self.invocation.count()
        self.progress.advance(task)
