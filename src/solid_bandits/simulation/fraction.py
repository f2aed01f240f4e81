"""Progress as one number: the fraction of the runs that are done."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from solid_bandits._internal import waiting
from solid_bandits._internal.bar import Bar, in_notebook
from solid_bandits._internal.checks import short
from solid_bandits._internal.waiting import said_if_long
from solid_bandits._internal.wording import count
from solid_bandits.simulation.playing import Work

Told = Callable[[float], None] | bool | None
"""Progress option: a function of the fraction; True shows a bar, False nothing, None a bar in notebooks."""


class Fraction:
    """Report the fraction of the runs that are done, and announce long compilations.

    Args:
        runs: the total number, including runs kept from before.
        told: the progress option.

    """

    def __init__(self, runs: int, told: Told) -> None:
        if told is not None and not isinstance(told, bool) and not callable(told):
            raise ValueError(
                f"progress must be a function of a fraction, True, False or None, got {short(told)}"
            )
        self.runs, self.done = runs, 0
        self.began = time.monotonic()
        self.waiting = ExitStack()
        self.report: Callable[[float], None] = told if callable(told) else lambda fraction: None
        if told is True or (told is None and in_notebook()):
            self.report = Bar()

    def begin(self, tasks: Sequence[Work], kept: int) -> None:
        """Register the tasks to be done; `kept` others are kept from before."""
        self.done = self.runs - sum(task.runs for task in tasks)
        self.report(self.done / self.runs)

    def compiling(self, done: int, total: int) -> None:
        """Report how many loops are compiled."""
        if done == 0:
            self.waiting.enter_context(said_if_long(f"compiling {count(total, 'policy', 'policies')}"))
        elif total > 1 and time.monotonic() - self.began > waiting.PATIENCE:
            print(f"compiled: {done} of {total}", file=sys.stderr, flush=True)

    def start(self) -> None:
        """Note that everything is compiled."""
        self.waiting.close()
        if self.done == 0:
            self.report(0.0)  # a bar starts its clock

    def advance(self, task: Work) -> None:
        """Count a finished task."""
        self.done += task.runs
        self.report(self.done / self.runs)
