"""One player on one shuffle of one set."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

MARKS = (500, 1_000, 2_000)
"""Rounds after which the errors so far are kept besides the last one."""
SHUFFLES = 5


class Contender(NamedTuple):
    """A way of playing: `make` takes the rows and the shuffle, and returns what has `act` and `learn`."""

    library: str
    name: str
    make: Callable[[Any, int], Any]
    takes: Callable[[Any], bool] = lambda rows: True
    """Whether a set is played."""
    shuffles: int = SHUFFLES
    waits: float = 0.0
    """How many shuffles of the others come first."""
    rounds: int | None = None
    """How many rounds it plays; None is all."""

    @property
    def label(self) -> str:
        """What results are kept under."""
        return self.name if self.library == "solid-bandits" else f"{self.library} {self.name}"


def play(player, X, right):
    """Errors at the marks and at the end, and processor seconds a round; making the player is not counted."""
    errors, marks = 0, {}
    began = time.process_time()
    for t in range(len(X)):
        x = X[t]
        arm = player.act(x)
        hit = arm == right[t]
        player.learn(x, arm, 1.0 if hit else 0.0)
        errors += not hit
        if t + 1 in MARKS:
            marks[str(t + 1)] = int(errors)
    seconds = time.process_time() - began
    return {
        "rounds": len(X),
        "loss": errors / len(X),
        "errors": marks,
        "seconds": round(seconds / len(X), 9),
    }
