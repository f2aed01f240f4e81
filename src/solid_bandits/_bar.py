"""A bar for whoever waits: html in a notebook, one line on a terminal; nothing at all while it has not taken long."""

import sys
import time
from importlib import import_module
from typing import Any

from solid_bandits import _waiting, _words

BETWEEN_LINES = 10.0
"""Seconds between two lines where they cannot be written over each other."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which shows html."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class Bar:
    """Called with the fraction of the work that is done, from 0 to 1."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.handle: Any = None
        self.notebook = in_notebook()

    def __call__(self, fraction: float) -> None:
        """Show the fraction and the time that is left, if it takes long."""
        now = time.monotonic()
        if fraction <= 0:
            self.began = self.last = now  # what was compiled until here says nothing of the time left
            return
        elapsed = now - self.began
        if elapsed < _waiting.PATIENCE:
            return
        if fraction >= 1:
            text = f"played in {_words.duration(elapsed)}"
        else:
            text = f"{fraction:4.0%}, {_words.duration(elapsed * (1 / fraction - 1))} left"
        if self.notebook:
            self._html(fraction, text)
        elif sys.stderr.isatty():
            print(f"\r{text:<40}", end="\n" if fraction >= 1 else "", file=sys.stderr, flush=True)
        elif fraction >= 1 or now - self.last >= BETWEEN_LINES:
            self.last = now
            print(text.strip(), file=sys.stderr, flush=True)

    def _html(self, fraction: float, text: str) -> None:
        page: Any = import_module("IPython.display")  # there, as this is a notebook
        bar = "" if fraction >= 1 else f'<progress value="{fraction:.3f}" max="1"></progress> '
        if self.handle is None:
            self.handle = page.display(page.HTML(bar + text), display_id=True)
        else:
            self.handle.update(page.HTML(bar + text))
