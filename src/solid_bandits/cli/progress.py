"""Progress display: one live display on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from solid_bandits._internal.wording import count, duration, fixed

if TYPE_CHECKING:
    from solid_bandits.simulation.playing import Work

SECONDS_BETWEEN_LINES = 10.0


def _estimated(seconds: float, about: str = "about ") -> str:
    """Return an estimated time, without digits where nobody has to wait."""
    return "less than a second" if seconds < 1 else f"{about}{duration(seconds)}"


class Display:
    """Live display of tasks done, steps per second, and time left.

    The time left is the estimate for the remaining tasks, corrected by the actual times of the finished ones.
    """

    def __init__(self, workers: int, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.workers = workers
        self.live = self.console.is_terminal
        self.tasks = self.done = self.steps = 0
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

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def begin(self, tasks: "Sequence[Work]", kept: int) -> None:
        """Announce the tasks to be done; `kept` others are kept from before."""
        self.tasks, self.done = kept + len(tasks), kept
        self.estimated = sum(task.seconds for task in tasks)
        if kept:
            self.say(f"{kept:,} of {self.tasks:,} tasks are already done")
        if tasks:
            self.say(
                f"{count(len(tasks), 'task')} to do, {_estimated(self.estimated / self.workers)} on "
                f"{count(self.workers, 'worker')} (estimate; compiling comes on top the first time)"
            )
            self.bar.start()
            self.task = self.bar.add_task("compiling", total=self.tasks, completed=kept, speed="", left="")

    def compiling(self, done: int, total: int) -> None:
        """Report how many of the required loops are compiled, or were found compiled."""
        if self.live:
            self.bar.update(self.task, description=f"compiling, {done} of {total}")
        elif done == 0 or time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self.say(f"compiling what is not compiled yet: {done} of {total}")

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def start(self) -> None:
        """Note that compiling is over; speeds are measured from here."""
        self.clock = self.last_line = time.monotonic()

    def advance(self, task: "Work") -> None:
        """Count a finished task."""
        now = time.monotonic()
        self.done += 1
        self.steps += task.steps
        self.estimate_done += task.seconds
        elapsed = max(now - self.clock, 1e-3)
        speed = f"{fixed(self.steps / elapsed, 0)} steps/s"
        pace = elapsed / self.estimate_done if self.estimate_done > 0 else 1.0 / self.workers
        left = max(self.estimated - self.estimate_done, 0.0) * pace
        words = "" if self.done == self.tasks else f"{_estimated(left, about='')} left"
        if self.live:
            self.bar.update(self.task, completed=self.done, description=task.label, speed=speed, left=words)
        elif now - self.last_line >= SECONDS_BETWEEN_LINES or self.done == self.tasks:
            self.last_line = now
            self.say(
                ", ".join(
                    filter(None, [f"{self.done:,}/{self.tasks:,} tasks", speed, words, f"last: {task.label}"])
                )
            )
