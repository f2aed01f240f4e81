"""Progress bar: HTML in a notebook, one line on a terminal; silent for short jobs."""

import sys
import time
from importlib import import_module
from typing import Any

from solid_bandits._internal import waiting, wording

BETWEEN_LINES = 10.0
"""Seconds between two lines where a line cannot overwrite the last one, as in a file."""


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, which shows HTML."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class Bar:
    """A progress callback: call it with the fraction of the work that is done, from 0 to 1."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.handle: Any = None
        self.notebook = in_notebook()

    def __call__(self, fraction: float) -> None:
        """Show the fraction done and the time left, once the work has taken long enough."""
        now = time.monotonic()
        if fraction <= 0:
            self.began = self.last = now  # compiling ends here and does not predict the time left
            return
        elapsed = now - self.began
        if elapsed < waiting.PATIENCE:
            return
        if fraction >= 1:
            text = f"played in {wording.duration(elapsed)}"
        else:
            text = f"{fraction:4.0%}, {wording.duration(elapsed * (1 / fraction - 1))} left"
        if self.notebook:
            self._html(fraction, text)
        elif sys.stderr.isatty():
            print(f"\r{text:<40}", end="\n" if fraction >= 1 else "", file=sys.stderr, flush=True)
        elif fraction >= 1 or now - self.last >= BETWEEN_LINES:
            self.last = now
            print(text.strip(), file=sys.stderr, flush=True)

    def _html(self, fraction: float, text: str) -> None:
        page: Any = import_module("IPython.display")  # available, since this is a notebook
        bar = "" if fraction >= 1 else f'<progress value="{fraction:.3f}" max="1"></progress> '
        if self.handle is None:
            self.handle = page.display(page.HTML(bar + text), display_id=True)
        else:
            self.handle.update(page.HTML(bar + text))
