"""The only way of playing: workers do the tasks of plans, and sinks take the results."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from solid_bandits.gpu.device import gpu_name
from solid_bandits.simulation.block import Block, block_task, blocks, compile_tasks, task_seconds
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.workers import Processes, Task, Workers


class Sink:
    """Receiver of the finished tasks of one plan, in memory or in a directory.

    A task is a block of runs, or the name of an extra.
    """

    def open(self) -> set[Block | str]:
        """Prepare the sink and return the tasks that are already done."""
        return set()

    def keep(self, task: Block | str, outcome: Any) -> None:
        """Store the result of a task."""
        raise NotImplementedError

    def finish(self) -> None:
        """Close the sink after all tasks are done."""


@dataclass(frozen=True)
class Extra:
    """An extra task to compute next to the runs of a plan.

    Args:
        name: name of the task.
        function: function that computes it.
        arguments: arguments of the function.

    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Game:
    """A plan, the sink of its finished tasks, and its extra tasks."""

    plan: Plan
    sink: Sink
    extras: tuple[Extra, ...] = ()
    label: str = ""
    """Name under which its tasks are shown while they are played; if empty, they are shown under their policies'
    names."""

    def tasks(self) -> list[Block | str]:
        """Return all tasks, extras first."""
        return [*(extra.name for extra in self.extras), *blocks(self.plan)]


class Key(NamedTuple):
    """Key of a task among those of all games."""

    game: int
    task: Block | str


class Work(NamedTuple):
    """Description of a task for a progress display."""

    label: str
    runs: int
    """Number of runs; 0 for an extra."""
    steps: int
    """Number of steps of all its runs together."""
    seconds: float
    """Estimated CPU seconds."""


class Progress(Protocol):
    """Receiver of progress reports."""

    def begin(self, tasks: Sequence[Work], kept: int) -> None:
        """Announce the tasks to be done; `kept` others are kept from before."""

    def compiling(self, done: int, total: int) -> None:
        """Report how many of the required compiled loops are available, whether compiled now or found."""

    def start(self) -> None:
        """Note that compiling is over and the first task is about to begin."""

    def advance(self, task: Work) -> None:
        """Note that a task is done and kept."""


def play(games: Sequence[Game], workers: Workers, progress: Progress) -> None:
    """Play the unfinished tasks of the games. Each result goes to its sink as soon as it is done."""
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
