"""Columns for named values: they are added as values come, and numbers are standardised."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from solid_bandits._internal import checks
from solid_bandits._internal.types import Plain
from solid_bandits.core.setting import LARGEST_FEATURE
from solid_bandits.features.values import (
    BOOLEAN,
    CATEGORY,
    DATE,
    MEASURED,
    NUMBER,
    TYPES,
    checked,
    days_of,
    is_missing,
    plain,
    type_of,
    unknown_name,
    words_of,
)

Row = Mapping[str, Any]
"""Values by their names; a missing one is None or absent."""
VALUE, MISSING, OTHER, IS = "value", "missing", "other", "is"
"""Meaning of a column for its name: the number or truth value itself; that it is missing; that it is one of the
categories beyond the limit; that it is a certain category.
"""
FARTHEST = 1e6
"""Number of spreads from the mean in force beyond which a value renews the coordinates at once."""
ROUNDING = 1e-12
"""Ratio of spread to the largest size of a column below which the spread is rounding, and the column constant."""


class Column(NamedTuple):
    """Meaning of one column."""

    name: str
    says: str
    word: str = ""
    """The category."""

    def label(self) -> str:
        """Return the column in words: `age`, `device=ios`, `age missing`."""
        if self.says == VALUE:
            return self.name
        return f"{self.name}={self.word}" if self.says == IS else f"{self.name} {self.says}"


class Move(NamedTuple):
    """The new coordinate of a column of numbers: z' = factor · z + shift · (1 - missing)."""

    factor: float
    shift: float
    absent: int
    """Index of the column that says that the number is missing; 0 for none."""


Moves = dict[int, Move]
"""Moves by the indices of the columns."""


class Measure:
    """A column of numbers: statistics of its values, and the coordinate in force, z = (x - center) · scale."""

    __slots__ = ("absent", "center", "count", "mean", "place", "scale", "size", "squares")

    def __init__(self, place: int, absent: int) -> None:
        self.place = place
        self.absent = absent
        """Index of the column that says that the number is missing; 0 for none so far."""
        self.count = 0
        self.mean = self.squares = self.size = 0.0
        """The mean, the sum of squared differences from it, and the largest size."""
        self.center = self.scale = 0.0
        """The scale is 0 as long as all values equal the center."""

    def spread(self) -> float:
        """Return the standard deviation of the values so far; 0 if it is rounding."""
        found = math.sqrt(self.squares / self.count) if self.count else 0.0
        return found if found > ROUNDING * self.size else 0.0

    def take(self, value: float) -> bool:
        """Add one value; return whether it is so far out that the coordinate must be renewed."""
        self.count += 1
        difference = value - self.mean
        self.mean += difference / self.count
        self.squares += difference * (value - self.mean)
        self.size = max(self.size, abs(value))
        if self.scale:
            return abs(value - self.center) * self.scale > FARTHEST
        if self.count == 1:
            self.center = self.mean = value
        elif (spread := self.spread()) > 0.0:
            # All earlier rows had the value of the center: they stay at z = 0, whatever the scale.
            self.scale = 1.0 / spread
        return False

    def renew(self) -> tuple[float, float] | None:
        """Standardise by the values so far; return factor and shift of the new coordinate, z' = factor · z + shift."""
        spread = self.spread()
        if not (self.scale and spread):
            return None
        unit = 1.0 / spread
        found = unit / self.scale, (self.center - self.mean) * unit
        self.center, self.scale = self.mean, unit
        return found

    def numbers(self) -> list[float]:
        """Return everything except the indices."""
        return [self.count, self.mean, self.squares, self.size, self.center, self.scale]


class Columns:
    """The columns of one side's names (the context, or the arms' own features) and statistics of their values.

    Column 0 is the constant 1; others are added in the order in which values need them, and never removed.

    Args:
        kinds: the names, each with its type; None is fixed by the first value that is not missing.
        most: number of categories of a name that have their own column; others share one.
        what: whose features these are, for messages.
    """

    def __init__(self, kinds: Mapping[str, str | None], most: int, what: str) -> None:
        self.kinds: dict[str, str | None] = dict(kinds)
        self.names = list(self.kinds)
        self.most = most
        self.what = what
        self.room = most
        """Number of categories that may still get a column in the next row, since all features together have a limit,
        too."""
        self.columns: list[Column] = [Column("", VALUE)]
        self.places: dict[str, dict[str, int]] = {name: {} for name in self.names}
        """Name -> meaning of a column, or its category -> its index. A category is under `=category`."""
        self.measures: list[Measure] = []
        """Statistics of the columns of numbers, in order."""
        self._plan()

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def _plan(self) -> None:
        """Build the table that `quick` reads: name, type and columns, for each name."""
        self.steps: list[tuple[str, str | None, int, dict[str, int], int]] = [
            (name, kind, own.get(VALUE, 0), own, own.get(MISSING, 0))
            for (name, kind), own in zip(self.kinds.items(), self.places.values(), strict=True)
        ]

    # -- values --

    def check(self, row: Row, kinds: dict[str, str | None]) -> tuple[dict[str, Any], list[float] | None]:
        """Return the values as a log stores them, without missing ones, and the row's columns if all exist.

        Changes nothing except `kinds`.

        Args:
            row: row as the caller gave it.
            kinds: types by names, including those fixed by earlier rows; this row may fix more.
        """
        if not isinstance(row, Mapping):
            raise checks.ArgumentError(
                self.what, f"must be a table of values by their names, got {checks.short(row)}"
            )
        raw = self.quick(row)
        if raw is not None:
            return {name: value for name, value in row.items() if value is not None}, raw
        found: dict[str, Any] = {}
        left = len(row)
        for name in self.names:
            if name not in row:
                continue
            left -= 1
            value = plain(row[name])
            if is_missing(value):
                continue
            kind = kinds[name]
            if kind is None:
                kind = type_of(name, value)
                found[name] = checked(name, kind, value)
                kinds[name] = kind
            else:
                found[name] = checked(name, kind, value)
        if left:
            raise unknown_name(self.what, next(name for name in row if name not in self.places), self.names)
        return found, None

    def learn_columns(self, row: Mapping[str, Any]) -> None:
        """Fix the types and add the columns that a checked row needs."""
        before = len(self.columns)
        typed = False
        for name in self.names:
            value = row.get(name)
            if value is None:
                self._add(name, MISSING, MISSING)
                continue
            kind = self.kinds[name]
            if kind is None:
                self.kinds[name] = kind = type_of(name, value)
                typed = True
            if kind in MEASURED or kind == BOOLEAN:
                self._add(name, VALUE, VALUE)
            else:
                for word in words_of(kind, value):
                    self._add_word(name, word)
        if typed or len(self.columns) > before:
            self._plan()

    def mark(self) -> tuple[int, dict[str, str | None], int]:
        """Return what `go_back` needs to drop the columns and types that come after."""
        return len(self.columns), dict(self.kinds), self.room

    def go_back(self, mark: tuple[int, dict[str, str | None], int]) -> None:
        """Drop the columns and types that have come since; no row with them was absorbed."""
        width, kinds, self.room = mark
        self.kinds.update(kinds)
        del self.columns[width:]
        for name, own in self.places.items():
            self.places[name] = {key: place for key, place in own.items() if place < width}
        self.measures = [one for one in self.measures if one.place < width]
        for measure in self.measures:
            if measure.absent >= width:
                measure.absent = 0
        self._plan()

    def _add_word(self, name: str, word: str) -> None:
        own = self.places[name]
        if f"={word}" in own:
            return
        if self.room > 0 and sum(one.startswith("=") for one in own) < self.most:
            self.room -= 1
            self._add(name, f"={word}", IS, word)
        else:
            self._add(name, OTHER, OTHER)

    def _add(self, name: str, key: str, says: str, word: str = "") -> None:
        own = self.places[name]
        if key in own:
            return
        own[key] = place = len(self.columns)
        self.columns.append(Column(name, says, word))
        if says == VALUE and self.kinds[name] in MEASURED:
            self.measures.append(Measure(place, own.get(MISSING, 0)))
        elif says == MISSING:
            for measure in self.measures:
                if measure.place == own.get(VALUE):
                    measure.absent = place

    def quick(self, row: Row) -> list[float] | None:
        """Return the columns of a row of plain values if all columns exist; None if more work is needed.

        Numbers are as given, NaN where missing. `check`, `learn_columns` and `raw` give the same.
        """
        raw = [0.0] * len(self.columns)
        raw[0] = 1.0
        left = len(row)
        for name, kind, place, own, missing in self.steps:
            value = row.get(name)
            if value is None:
                if not missing:
                    return None
                raw[missing] = 1.0
                if place and kind in MEASURED:
                    raw[place] = math.nan
                left -= name in row
                continue
            left -= 1
            taken = type(value)
            if kind == NUMBER:
                if (taken is not float and taken is not int) or not place:
                    return None
                if not -LARGEST_FEATURE <= value <= LARGEST_FEATURE:
                    return None
                raw[place] = float(value)
            elif kind == CATEGORY:
                if taken is not str:
                    return None
                at = own.get("=" + value)
                if at is None:
                    return None
                raw[at] = 1.0
            elif kind == BOOLEAN:
                if taken is not bool or not place:
                    return None
                raw[place] = float(value)
            else:
                return None
        return raw if left == 0 else None

    def raw(self, row: Mapping[str, Any]) -> list[float]:
        """Return the columns of a checked row; numbers as given, NaN where missing."""
        raw = [0.0] * len(self.columns)
        raw[0] = 1.0
        for name, kind, place, own, missing in self.steps:
            value = row.get(name)
            if value is None:
                if missing:
                    raw[missing] = 1.0
                if kind in MEASURED and place:
                    raw[place] = math.nan
            elif kind in (NUMBER, BOOLEAN, DATE):
                if place:
                    raw[place] = days_of(value) if kind == DATE else float(value)
            elif kind is not None:
                for word in words_of(kind, value):
                    raw[own.get(f"={word}", own.get(OTHER, 0))] = 1.0
        return raw

    def placed(self, row: Row, raw: list[float] | None, grow: bool = False) -> list[float]:
        """Return the columns of a checked row again: those found when it was checked, if they still apply."""
        if raw is not None and len(raw) == len(self.columns):
            return raw.copy()
        raw = self.quick(row)
        if raw is None:
            if grow:
                self.learn_columns(row)
            raw = self.raw(row)
        return raw

    # -- scales --

    def absorb(self, raw: list[float]) -> bool:
        """Add raw columns to means and spreads; return whether the coordinates must be renewed at once."""
        far = False
        for measure in self.measures:
            value = raw[measure.place]
            if value == value and measure.take(value):
                far = True
        return far

    def renew(self) -> Moves:
        """Standardise by all values so far; return the moves."""
        return {
            one.place: Move(*move, one.absent) for one in self.measures if (move := one.renew()) is not None
        }

    def scaled(self, raw: list[float]) -> list[float]:
        """Convert raw columns to the coordinates in force, in place; a missing number is 0."""
        for measure in self.measures:
            value = raw[measure.place]
            raw[measure.place] = (value - measure.center) * measure.scale if value == value else 0.0
        return raw

    # -- state --

    def state(self) -> Plain:
        """Return types, columns and scales as plain data."""
        return {
            "types": [self.kinds[name] for name in self.names],
            "columns": [list(one) for one in self.columns[1:]],
            "measures": [one.numbers() for one in self.measures],
        }

    def restore(self, state: Plain) -> None:
        """Restore a state from `state`; raise a ValueError if it does not belong to these names."""
        if len(state["types"]) != len(self.names):
            raise ValueError(f"{self.what} must have {len(self.names)} types, got {len(state['types'])}")
        for name, kind in zip(self.names, state["types"], strict=True):
            if kind is not None:
                checks.choice("type", kind, TYPES)
            if self.kinds[name] not in (None, kind):
                raise ValueError(f"{name} must have type {self.kinds[name]}, got {kind}")
            self.kinds[name] = kind
        for name, says, word in state["columns"]:
            checks.choice("says", says, (VALUE, MISSING, OTHER, IS))
            self._add(name, f"={word}" if says == IS else says, says, word)
        if len(self.columns) != len(state["columns"]) + 1:
            raise ValueError(f"{self.what} must have each column once")
        if len(state["measures"]) != len(self.measures):
            raise ValueError(f"measures must be {len(self.measures)}, got {len(state['measures'])}")
        for measure, (count, *numbers) in zip(self.measures, state["measures"], strict=True):
            measure.count = checks.integer("count", count, least=0)
            measure.mean, measure.squares, measure.size, measure.center, measure.scale = (
                checks.number("measure", one) for one in numbers
            )
        self._plan()
