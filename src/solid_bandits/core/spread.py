"""One warning, early, where columns of features differ among the arms on offer by very different amounts.

A policy that keeps a linear estimate has one ridge for all columns. Where one of them is in euros and another a share,
the ridge suits the first, and the coefficient of the second is held near 0 for long (docs/scaling.md).

The spread of a column is its largest difference between two arms of one decision, over the first decisions. Columns in
which the arms are equal, such as a shared intercept, have none. It is the largest difference and not a mean square, as
a column that is seldom different from 0, such as the block of a rare arm, is not small for that.
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
"""Spreads that differ by more are worth a warning."""
DECISIONS = 128
"""The first ones, which are looked at; a power of two."""
LEAST = 8
"""Decisions in which the arms differ in a column, before it counts: of few, the largest difference may be small by
chance."""
ROUNDING = 1e-12
"""A difference of so little, relative to the entries, is none: the arms are equal but for rounding."""
NAMED = 3
"""Columns of small spread that are named, at most."""


class Spread:
    """The spread of each column, over the decisions seen so far.

    Args:
        dim: the number of columns.
        names: of the columns, if they have any; columns of one name, such as the blocks of joint features, are one.
    """

    def __init__(self, dim: int, names: Sequence[str] | None = None) -> None:
        self._names = [f"column {place}" for place in range(dim)] if names is None else list(map(repr, names))
        self._widest = np.zeros(dim)
        self._times: Ints = np.zeros(dim, dtype=np.int64)
        self.decisions = 0

    def add(self, arms: Floats, available: Bools) -> None:
        """Take in the arms of a decision."""
        offered = arms if available.all() else arms[available]
        low, high = offered.min(axis=0), offered.max(axis=0)
        apart = high - low
        apart[apart <= ROUNDING * np.maximum(high, -low)] = 0.0
        self._times += apart > 0.0
        np.maximum(self._widest, apart, out=self._widest)
        self.decisions += 1

    def finding(self, least: int = LEAST) -> str | None:
        """Say which columns differ by very different amounts; None if they do not.

        Args:
            least: decisions in which the arms differ in a column, before it counts.
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
    """Say what is wrong with the first rounds of a stream: the features and the mask of each."""
    spread = Spread(dim, names)
    for arms, available in offers:
        spread.add(arms, available)
        if spread.decisions == DECISIONS:
            break
    return spread.finding()


def depends_on_units(agent: CompiledAgent) -> bool:
    """Whether what a policy does depends on the units of single columns: it keeps a regression, with a ridge.

    Where features may change their coordinates, whoever changes them sees to their units.
    """
    setting = getattr(agent, "setting", None)
    known = setting is not None and (setting.grows or setting.blocks > 0)
    return getattr(agent.state, "regression", None) is not None and not known


class Watch:
    """Looks at the first decisions of an agent, and warns once.

    Args:
        agent: at work; one whose decisions do not depend on units is not watched.
        dim: the number of columns.
        table: features of all contexts, shape (contexts, arms, dim), if they are known: then they are looked at now.
    """

    def __init__(self, agent: CompiledAgent, dim: int, table: Floats | None) -> None:
        self.warn: Callable[[str], None] = warn
        """Who is told; whoever knows better than Python's warnings may replace it."""
        self.looking = False
        """Whether `look` is still to be called before each decision."""
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
        self._say(self._spread.finding(least=1))  # more will never be on offer

    def look(self, arms: Floats, available: Bools) -> None:
        """Take in the arms of a decision, and judge each time the number of decisions has doubled.

        A warning may be turned into an error, so this comes before the decision, which can then be asked for again.
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
    """Warn whoever called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(words, UserWarning, stacklevel=level)


_PACKAGE = __name__.split(".")[0]
