"""A notice for users who wait for the compiler, printed only when it takes long."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0
"""Seconds before a notice is printed; loading compiled code from disk takes less."""


@contextmanager
def said_if_long(text: str) -> Iterator[None]:
    """Print `text` to standard error if the block inside takes longer than `PATIENCE`."""
    timer = threading.Timer(PATIENCE, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
