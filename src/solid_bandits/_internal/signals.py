"""Temporary signal handlers; only the main thread is interrupted, and in other threads nothing changes."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def handled(by: Callable[[int, Any], object] | signal.Handlers, *numbers: int) -> Iterator[None]:
    """Handle these signals by a function, or ignore them, and restore the previous handlers afterwards."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in before:
            signal.signal(number, by)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def deferred() -> Iterator[None]:
    """Defer SIGINT and SIGTERM within a critical section."""
    waiting: list[int] = []
    try:
        with handled(lambda number, _: waiting.append(number), signal.SIGINT, signal.SIGTERM):
            yield
    finally:
        for number in waiting[:1]:
            signal.raise_signal(number)
