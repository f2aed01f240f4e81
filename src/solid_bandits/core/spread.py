"""An early warning if columns of features differ among the arms on offer by very different amounts.

A policy that keeps a linear estimate has one ridge for all columns. If one column is in euros and another is a share,
the ridge suits the first, and the coefficient of the second is held near 0 for long (docs/scaling.md).

The spread of a column is its largest difference between two arms of one decision, over the first decisions. Columns in
which the arms are equal, such as a shared intercept, have none. It is the largest difference and not a mean square,
because a column that is rarely nonzero, such as the block of a rare arm, is not small for that reason.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from solid_bandits._internal import wording
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.policies.contract import CompiledAgent

FACTOR = 100.0
"""Ratio of spreads from which a warning is given."""
DECISIONS = 128
"""Number of first decisions that are examined; a power of two."""
LEAST = 8
"""Decisions in which the arms must differ in a column before it counts: in a few, the largest difference may be small
by chance."""
ROUNDING = 1e-12
"""Relative difference below which arms count as equal up to rounding."""
NAMED = 3
"""Largest number of columns of small spread that are named."""


class Spread:
    """The spread of each column, over the decisions seen so far.

    Args:
        dim: number of columns.
        names: names of the columns, if any; columns with the same name, such as blocks of joint features, are one.
    """

    def __init__(self, dim: int, names: Sequence[str] | None = None) -> None:
        self._names = [f"column {place}" for place in range(dim)] if names is None else list(map(repr, names))
        self._widest = np.zeros(dim)
        self._times: Ints = np.zeros(dim, dtype=np.int64)
        self.decisions = 0

    def add(self, arms: Floats, available: Bools) -> None:
        """Add the arms of a decision."""
        offered = arms if available.all() else arms[available]
        low, high = offered.min(axis=0), offered.max(axis=0)
        apart = high - low
        apart[apart <= ROUNDING * np.maximum(high, -low)] = 0.0
        self._times += apart > 0.0
        np.maximum(self._widest, apart, out=self._widest)
        self.decisions += 1

    def finding(self, least: int = LEAST) -> str | None:
        """Describe columns that differ by very different amounts; None if there are none.

        Args:
            least: number of decisions in which the arms must differ in a column before it counts.
        """
        spreads: dict[str, float] = {}
        for name, widest, times in zip(self._names, self._widest.tolist(), self._times.tolist(), strict=True):
            if times >= least:
                spreads[name] = max(widest, spreads.get(name, 0.0))
        if not spreads:
            return None
        ordered = sorted(spreads, key=lambda name: spreads[name])
        wide = ordered[-1]
        narrow = [name for name in ordered if FACTOR * spreads[name] < spreads[wide]]
        if not narrow:
            return None
        said = [f"{name} by up to {wording.number(spreads[name])}" for name in narrow[:NAMED]]
        if len(narrow) > NAMED:
            said.append(f"{wording.count(len(narrow) - NAMED, 'other column')} by little")
        return (
            f"features are of very different spread: arms on offer differ in {wide} by up to "
            f"{wording.number(spreads[wide])}, and in {', in '.join(said)}. One ridge serves all columns, so the "
            "policy may learn little from those of small spread: standardise each column, or divide it by a typical "
            "value (docs/scaling.md)"
        )


def finding_of_rounds(
    dim: int, names: Sequence[str] | None, offers: Iterable[tuple[Floats, Bools]]
) -> str | None:
    """Describe the problem with the first rounds of a stream, given the features and the mask of each; None if there is
    none.
    """
    spread = Spread(dim, names)
    for arms, available in offers:
        spread.add(arms, available)
        if spread.decisions == DECISIONS:
            break
    return spread.finding()


def depends_on_units(agent: CompiledAgent) -> bool:
    """Return whether a policy's behaviour depends on the units of single columns: it keeps a regression with a ridge.

    If features may change their coordinates, the code that changes them takes care of their units.
    """
    setting = getattr(agent, "setting", None)
    known = setting is not None and (setting.grows or setting.blocks > 0)
    return getattr(agent.state, "regression", None) is not None and not known


class Watch:
    """Watcher of the first decisions of an agent, which warns once.

    Args:
        agent: agent at work; one whose decisions do not depend on units is not watched.
        dim: the number of columns.
        table: features of all contexts, shape (contexts, arms, dim), if known: they are then examined immediately.
    """

    def __init__(self, agent: CompiledAgent, dim: int, table: Floats | None) -> None:
        self.warn: Callable[[str], None] = warn
        """Receiver of the warning; callers with a better channel than Python's warnings may replace it."""
        self.looking = False
        """Whether `look` must still be called before each decision."""
        self._spread = Spread(dim)
        self._lock = threading.Lock()
        if not depends_on_units(agent):
            return
        if table is None:
            self.looking = True
            return
        everything = np.ones(table.shape[1], dtype=np.bool_)
        for arms in table:
            self._spread.add(arms, everything)
        self._say(self._spread.finding(least=1))  # no further arms will be offered

    def look(self, arms: Floats, available: Bools) -> None:
        """Add the arms of a decision, and judge whenever the number of decisions has doubled.

        A warning may be turned into an error, so this is called before the decision, which can then be repeated.
        """
        with self._lock:
            if not self.looking:  # another thread was faster
                return
            self._spread.add(arms, available)
            count = self._spread.decisions
            words = self._spread.finding() if count >= LEAST and count & (count - 1) == 0 else None
            self.looking = words is None and count < DECISIONS
        self._say(words)

    def _say(self, words: str | None) -> None:
        if words is not None:
            self.warn(words)


def warn(words: str) -> None:
    """Warn the caller of this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(words, UserWarning, stacklevel=level)


_PACKAGE = __name__.split(".")[0]
