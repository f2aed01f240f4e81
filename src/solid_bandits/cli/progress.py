"""How the work goes: one live display on a terminal, plain lines elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from solid_bandits._words import count, duration, fixed

SECONDS_BETWEEN_LINES = 10.0


def _estimated(seconds: float, about: str = "about ") -> str:
    """A time that is a guess: no figures of one that nobody waits for."""
    return "less than a second" if seconds < 1 else f"{about}{duration(seconds)}"


class Display:
    """Tasks done, steps per second, time left.

    The time left is what the remaining tasks were estimated to take, corrected by how the finished ones turned out.
    """

    def __init__(self, workers: int, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.workers = workers
        self.live = self.console.is_terminal
        self.tasks = self.done = self.steps = self.kept = 0
        self.estimated = self.estimate_done = 0.0
        self.clock = self.last_line = time.monotonic()
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("tasks, {task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            disable=not self.live,
        )

    def __enter__(self) -> "Display":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def begin(self, tasks: int, kept: int, seconds: float) -> None:
        """Start: so many tasks, so many of them kept from before, so many CPU seconds estimated for the rest."""
        self.tasks, self.kept, self.done, self.estimated = tasks, kept, kept, seconds
        if kept:
            self.say(f"{kept:,} of {tasks:,} tasks are already done")
        if kept < tasks:
            self.say(
                f"{count(tasks - kept, 'task')} to do, {_estimated(seconds / self.workers)} on "
                f"{count(self.workers, 'worker')} (estimate; compiling comes on top the first time)"
            )
            self.bar.start()
            self.task = self.bar.add_task("compiling", total=tasks, completed=kept, speed="", left="")

    def compiling(self, done: int, total: int) -> None:
        """So many of the loops that the tasks need are compiled, or were found compiled."""
        if self.live:
            self.bar.update(self.task, description=f"compiling, {done} of {total}")
        elif done == 0 or time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self.say(f"compiling what is not compiled yet: {done} of {total}")

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def start(self) -> None:
        """Compiling is over: speeds are measured from here."""
        self.clock = self.last_line = time.monotonic()

    def advance(self, what: str, steps: int, seconds: float) -> None:
        """One more task is done."""
        now = time.monotonic()
        self.done += 1
        self.steps += steps
        self.estimate_done += seconds
        elapsed = max(now - self.clock, 1e-3)
        speed = f"{fixed(self.steps / elapsed, 0)} steps/s"
        pace = elapsed / self.estimate_done if self.estimate_done > 0 else 1.0 / self.workers
        left = max(self.estimated - self.estimate_done, 0.0) * pace
        words = "" if self.done == self.tasks else f"{_estimated(left, about='')} left"
        if self.live:
            self.bar.update(self.task, completed=self.done, description=what, speed=speed, left=words)
        elif now - self.last_line >= SECONDS_BETWEEN_LINES or self.done == self.tasks:
            self.last_line = now
            self.say(
                ", ".join(
                    filter(None, [f"{self.done:,}/{self.tasks:,} tasks", speed, words, f"last: {what}"])
                )
            )
