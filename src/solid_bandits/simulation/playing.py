"""The one way of playing: the tasks of plans, given to workers; what they give, handed to sinks."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from solid_bandits.gpu.device import gpu_name
from solid_bandits.simulation.block import Block, block_task, blocks, compile_tasks
from solid_bandits.simulation.plan import Plan
from solid_bandits.workers import Processes, Task, Workers


class Sink(Protocol):
    """Where finished tasks of one plan go: memory, or a directory.

    A task is a block of runs, or the name of an extra.
    """

    def open(self) -> set[Block | str]:
        """Get ready; return the tasks that are done already."""

    def keep(self, task: Block | str, outcome: Any) -> None:
        """Take what a task gave."""

    def finish(self) -> None:
        """All tasks are done."""


@dataclass(frozen=True)
class Extra:
    """Something to compute beside the runs of a plan, as one task more.

    Args:
        name: of the task.
        function: what computes it.
        arguments: of the function.

    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Game:
    """A plan, where its finished tasks go, and what else is computed with it."""

    plan: Plan
    sink: Sink
    extras: tuple[Extra, ...] = ()

    def tasks(self) -> list[Block | str]:
        """Everything to be done, extras first."""
        return [*(extra.name for extra in self.extras), *blocks(self.plan)]


class Key(NamedTuple):
    """Names a task among those of all games."""

    game: int
    task: Block | str


class Progress(Protocol):
    """Who is told how the work goes."""

    def begin(self, tasks: Sequence[Key], kept: int) -> None:
        """These tasks are to be done; so many others are kept from before."""

    def compiling(self, done: int, total: int) -> None:
        """So many of the compiled loops that the tasks need are there, compiled now or found."""

    def start(self) -> None:
        """Everything is compiled; the first task is about to begin."""

    def advance(self, key: Key) -> None:
        """A task is done, and kept."""


def play(games: Sequence[Game], workers: Workers, progress: Progress) -> None:
    """Play what is not done yet of the games. A sink has every task as soon as it is done."""
    left: dict[int, set[Block | str]] = {}
    tasks: list[Task] = []
    kept = 0
    for place, game in enumerate(games):
        every = game.tasks()
        done = game.sink.open()
        to_do = [task for task in every if task not in done]
        kept += len(every) - len(to_do)
        left[place] = set(to_do)
        tasks += [_task(game, Key(place, task)) for task in to_do]
    progress.begin([task.key for task in tasks], kept)  # type: ignore[misc]  # the keys just given
    for place, to_do_here in left.items():
        if not to_do_here:
            games[place].sink.finish()
    if tasks and workers.share_compiled_code:
        loops = compile_tasks(game.plan for place, game in enumerate(games) if left[place])
        progress.compiling(0, len(loops))
        with closing(workers.do(loops)) as outcomes:
            for count, _ in enumerate(outcomes, start=1):
                progress.compiling(count, len(loops))
    progress.start()
    with closing(workers.do(tasks)) as outcomes:
        for key, outcome in outcomes:
            assert isinstance(key, Key)  # the keys given above
            sink = games[key.game].sink
            sink.keep(key.task, outcome)
            left[key.game].remove(key.task)
            if not left[key.game]:
                sink.finish()
            progress.advance(key)


def workers_for(plan: Plan, jobs: int | None) -> Workers:
    """Who plays a plan: processes, or this process where a GPU does the work."""
    return Processes(jobs) if plan.device == "cpu" else Processes(1)


def device_name(plan: Plan) -> str:
    """What plays a plan, by name."""
    return "cpu" if plan.device == "cpu" else gpu_name()


def _task(game: Game, key: Key) -> Task:
    if isinstance(key.task, Block):
        return block_task(game.plan, key.task, key)
    (extra,) = (extra for extra in game.extras if extra.name == key.task)
    return Task(key, extra.function, extra.arguments)
