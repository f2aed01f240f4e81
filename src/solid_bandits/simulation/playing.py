"""The one way of playing: the tasks of plans, given to workers; what they give, handed to sinks."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from solid_bandits.gpu.device import gpu_name
from solid_bandits.simulation.block import Block, block_task, blocks, compile_tasks, task_seconds
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.workers import Processes, Task, Workers


class Sink:
    """Takes the finished tasks of one plan, into memory or into a directory.

    A task is a block of runs, or the name of an extra.
    """

    def open(self) -> set[Block | str]:
        """Get ready; return the tasks that are done already."""
        return set()

    def keep(self, task: Block | str, outcome: Any) -> None:
        """Take what a task gave."""
        raise NotImplementedError

    def finish(self) -> None:
        """End, after all tasks are done."""


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
    label: str = ""
    """The name of its tasks while they are played; where it is empty, they have their policies' names."""

    def tasks(self) -> list[Block | str]:
        """Return all tasks, extras first."""
        return [*(extra.name for extra in self.extras), *blocks(self.plan)]


class Key(NamedTuple):
    """Names a task among those of all games."""

    game: int
    task: Block | str


class Work(NamedTuple):
    """The description of a task that progress shows."""

    label: str
    runs: int
    """0 of an extra."""
    steps: int
    """The steps of all its runs together."""
    seconds: float
    """Estimated CPU seconds."""


class Progress(Protocol):
    """Is told how the work goes."""

    def begin(self, tasks: Sequence[Work], kept: int) -> None:
        """These tasks are to be done; so many others are kept from before."""

    def compiling(self, done: int, total: int) -> None:
        """So many of the compiled loops that the tasks need are there, compiled now or found."""

    def start(self) -> None:
        """Compiling is over; the first task is about to begin."""

    def advance(self, task: Work) -> None:
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
    work = {task.key: _work(games, task.key) for task in tasks}
    progress.begin([*work.values()], kept)
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
            sink = games[key.game].sink
            sink.keep(key.task, outcome)
            left[key.game].remove(key.task)
            if not left[key.game]:
                sink.finish()
            progress.advance(work[key])


def workers_for(plan: Plan, jobs: int | None) -> Workers:
    """Return the workers that play a plan: processes, or this process where a GPU does the work."""
    return Processes(jobs) if plan.device == "cpu" else Processes(1)


def device_name(plan: Plan) -> str:
    """Return the name of the device that plays a plan."""
    return "cpu" if plan.device == "cpu" else gpu_name()


def _work(games: Sequence[Game], key: Key) -> Work:
    game, task = games[key.game], key.task
    policy, runs = (task.policy, task.runs) if isinstance(task, Block) else (task, 0)
    return Work(game.label or policy, runs, game.plan.horizon * runs, task_seconds(game.plan, task))


def _task(game: Game, key: Key) -> Task:
    if isinstance(key.task, Block):
        return block_task(game.plan, key.task, key)
    (extra,) = (extra for extra in game.extras if extra.name == key.task)
    return Task(key, extra.function, extra.arguments)
