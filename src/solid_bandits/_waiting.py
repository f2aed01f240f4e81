"""A line for whoever waits for the compiler: said when it takes long, and only then."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0
"""Seconds after which a wait wants a word; what is found on disk takes less."""


@contextmanager
def said_if_long(text: str) -> Iterator[None]:
    """Print `text` to the standard error if what is inside is not done soon."""
    timer = threading.Timer(PATIENCE, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
