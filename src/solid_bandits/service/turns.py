"""Calls that wait for the writer: models take turns, and within a model its keys do."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    """A waiting call."""

    @property
    def model(self) -> int:
        """The model that it is for."""

    @property
    def key(self) -> str:
        """The key that sent it."""


C = TypeVar("C", bound=Waiting)


class Turns(Generic[C]):
    """A queue of calls, from which calls of one model are taken together.

    A sender of many calls waits only for his own: models take turns, and within a model one call of each key after the
    other.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, dict[str, deque[C]]] = {}
        self._turns: deque[int] = deque()
        """Models with calls, the next one first."""
        self._held: set[int] = set()
        self._count = 0
        self._ended = False
        self._changed = threading.Condition()

    def qsize(self) -> int:
        """Return the number of waiting calls."""
        return self._count

    def put(self, call: C | None) -> None:
        """Add a call; None marks the end, after those that wait."""
        with self._changed:
            if call is None:
                self._ended = True
            else:
                self._add(call)
            self._changed.notify()

    def _add(self, call: C, *, first: bool = False) -> None:
        keys = self._waiting.get(call.model)
        if keys is None:
            keys = self._waiting[call.model] = {}
            self._turns.append(call.model)
        calls = keys.setdefault(call.key, deque())
        if first:
            calls.appendleft(call)
        else:
            calls.append(call)
        self._count += 1

    def put_back(self, calls: Sequence[C]) -> None:
        """Put back calls that were taken, before the others of their keys, whose turns come as they would have."""
        with self._changed:
            for call in reversed(calls):
                self._add(call, first=True)
            for model in {call.model for call in calls}:
                keys = self._waiting[model]
                order = dict.fromkeys(call.key for call in calls if call.model == model)
                self._waiting[model] = {key: keys[key] for key in dict.fromkeys([*order, *keys])}
            self._changed.notify()

    def hold(self, model: int) -> None:
        """Give a model no turns until it is released."""
        with self._changed:
            self._held.add(model)

    def release(self, model: int) -> None:
        """Give a model turns again."""
        with self._changed:
            self._held.discard(model)
            self._changed.notify()

    def take(self, most: int) -> list[C]:
        """Wait for calls and take at most `most` of the next model; an empty list is the end."""
        with self._changed:
            while True:
                for _ in range(len(self._turns)):
                    model = self._turns.popleft()
                    if model not in self._held:
                        return self._taken(model, most)
                    self._turns.append(model)
                if self._ended:
                    return []
                self._changed.wait()  # without a timeout, as there may be nothing to do for days

    def _taken(self, model: int, most: int) -> list[C]:
        keys = self._waiting.pop(model)
        found: list[C] = []
        while keys and len(found) < most:
            key = next(iter(keys))
            calls = keys.pop(key)
            found.append(calls.popleft())
            if calls:
                keys[key] = calls  # behind the others
        if keys:
            self._waiting[model] = keys
            self._turns.append(model)
        self._count -= len(found)
        return found

    def drain(self) -> list[C]:
        """Take all calls of all models, held ones too."""
        with self._changed:
            found = [call for keys in self._waiting.values() for calls in keys.values() for call in calls]
            self._waiting.clear()
            self._turns.clear()
            self._count = 0
            return found
