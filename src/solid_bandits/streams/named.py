"""Columns of named values as rounds: `sb.Features` says what they become, as it does for decisions that are made live.

All rows are read once, in their order, which fixes types, columns and scales; features are written in the coordinates
after the last row, as `logs.with_features` writes them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.types import Ints
from solid_bandits.features.design import Design, Named
from solid_bandits.features.spec import Features
from solid_bandits.features.values import BOOLEAN, NUMBER, TAGS, of_pandas, plain, type_of
from solid_bandits.streams.columns import TRUTHS, Cells, Columns
from solid_bandits.streams.encoding import Layout, Piece
from solid_bandits.streams.pieces import read_piece, round_starts

Told = Features | Mapping[str, str | None] | Sequence[str]
"""All that is declared, or the names of the context alone."""


def values_needed(told: Told, columns: Columns, arms: Sequence[str], present: Sequence[str]) -> list[str]:
    """Return the columns with named values; a ValueError where one is missing.

    An arm's own value is in its row where a row is an arm of a round; else in a column of its own.
    """
    declared = told if isinstance(told, Features) else Features(told, ["it"])
    own = list(declared.arm_features)
    if not columns.long:
        own = [f"{name}_{arm}" for name in own for arm in arms]
    found = list(dict.fromkeys([*declared.context, *own]))
    for name in found:
        if name not in present:
            raise ValueError(f"column {name!r} is missing; there are {', '.join(map(repr, present[:8]))}")
    return found


class Naming:
    """Reads rows of a table as named values.

    Args:
        told: what is declared; arms are those of the data where they are not told.
        columns: what the other columns mean.
        arms: of the data; none where they have no names.
        pandas: whether the rows are of a pandas frame.
    """

    def __init__(self, told: Told, columns: Columns, arms: tuple[str, ...], pandas: bool = False) -> None:
        for name in ("features", "context"):
            if getattr(columns, name):
                raise checks.ArgumentError(name, "must be left out where named is given, which says it")
        if not columns.intercept:
            raise checks.ArgumentError("intercept", "must be True where features have names, got False")
        if not isinstance(told, Features):
            if not arms:
                raise checks.ArgumentError("named", "must be sb.Features(...) where arms have no names")
            told = Features(told, arms)
        if told.arms is not None and set(told.arms) != set(arms):
            raise checks.ArgumentError(
                "named",
                f"must have the arms of the data, {', '.join(arms) or 'none'}, got {', '.join(told.arms)}",
            )
        self.features = told
        self.design = Design(told)
        self._kinds = [dict(side.kinds) for side in self.design.sides]
        """Types by names, of cells that are text; the first of a name that is not empty fixes one."""
        self.arms = told.arms or arms
        self.columns = columns
        self.pandas = pandas

    @property
    def layout(self) -> Layout:
        """Where the features go; those that Piece has are complete. Valid after the last row was taken in."""
        if self.design.blocked:
            return Layout(len(self.arms), 0, self.design.dim, True, False)
        return Layout(self.n_arms, self.design.dim, 0, False, False)

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of the features."""
        return self.design.names() * (len(self.arms) if self.design.blocked else 1)

    def take(self, cells: Cells, n_arms: int) -> list[Named]:
        """Take in rows, and return what they say; a ValueError names the row that will not do."""
        self.n_arms = n_arms
        piece = self._piece(cells, n_arms)
        found = []
        for place, (context, arms, row) in enumerate(self._rounds(cells, piece)):
            try:
                found.append(self.design.check(context, arms))
            except checks.ArgumentError as error:
                raise ValueError(f"row {cells.rows[row]}, round {place}: {error}") from None
            self.design.take(found[-1])
        return found

    def piece(self, cells: Cells, named: Sequence[Named] | None = None) -> Piece:
        """Rows as rounds with their features; `named` is what `take` has returned of them."""
        piece, design = self._piece(cells, self.n_arms), self.design
        if named is None:
            named = [design.check(context, arms) for context, arms, _ in self._rounds(cells, piece)]
        if design.blocked:
            vectors = np.array([design.encode(one)[0, 1:] for one in named]).reshape(len(named), design.dim)
            return piece._replace(context=vectors)
        own = np.zeros((*piece.available.shape, design.dim))
        for place, one in enumerate(named):
            own[place, piece.available[place]] = design.encode(one)
        return piece._replace(own=own)

    def _piece(self, cells: Cells, n_arms: int) -> Piece:
        """Rewards, arms on offer and ids."""
        return read_piece(self.columns, self.arms, n_arms, cells)

    def _rounds(self, cells: Cells, piece: Piece) -> list[tuple[dict[str, Any], Any, int]]:
        """Of each round the context, the arms on offer as `Design.check` takes them, and its first row."""
        count = len(piece.counts)
        first: Ints = np.arange(count)
        sizes = np.ones(count, dtype=np.int64)
        slots: Ints = np.zeros(0, dtype=np.int64)
        if self.columns.round is not None:
            first = round_starts(cells.frame[self.columns.round])
            sizes = np.diff(np.append(first, len(cells.rows)))
            slots = np.arange(len(cells.rows)) - np.repeat(first, sizes)
            if self.columns.arm is not None:
                slots = cells.codes(self.columns.arm, {arm: place for place, arm in enumerate(self.arms)})
        shared = self._values(cells, {name: name for name in self.features.context}, 0)
        names = self.arms or tuple(map(str, range(piece.available.shape[1])))
        offered = [[names[slot] for slot in np.flatnonzero(row)] for row in piece.available]
        contexts = [{name: values[row] for name, values in shared.items()} for row in first]
        if self.columns.round is not None:
            for name, values in shared.items():
                differs = [values[row] != values[start] for start, size in zip(first, sizes, strict=True)
                           for row in range(start, start + size)]  # fmt: skip
                if any(differs):
                    raise cells.bad(name, np.array(differs), "the same value in all rows of a round")
        if not self.features.arm_features:
            return list(zip(contexts, offered, first.tolist(), strict=True))
        own = self._own(cells, first, sizes, slots, names)
        tables = [{arm: brought[arm] for arm in arms} for arms, brought in zip(offered, own, strict=True)]
        return list(zip(contexts, tables, first.tolist(), strict=True))

    def _own(
        self, cells: Cells, first: Ints, sizes: Ints, slots: Ints, names: Sequence[str]
    ) -> list[dict[str, dict[str, Any]]]:
        """The values that the arms of each round bring."""
        told = self.features.arm_features
        if not self.columns.long:
            by_arm = {arm: self._values(cells, {one: f"{one}_{arm}" for one in told}, 1) for arm in names}
            return [
                {arm: {one: column[row] for one, column in values.items()} for arm, values in by_arm.items()}
                for row in first
            ]
        values = self._values(cells, {name: name for name in told}, 1)
        return [
            {
                names[slots[row]]: {one: column[row] for one, column in values.items()}
                for row in range(start, start + size)
            }
            for start, size in zip(first, sizes, strict=True)
        ]

    def _values(self, cells: Cells, where: Mapping[str, str], side: int) -> dict[str, list[Any]]:
        """Values by names, from columns; in a file of text they are read as their types want them."""
        kinds = self._kinds[side]
        found = {}
        for name, column in where.items():
            values = [plain(one) for one in cells.frame[column].to_list()]
            if self.pandas:
                values = list(map(of_pandas, values))
            if cells.text:
                if kinds[name] is None:
                    first = next((one for one in values if one is not None), None)
                    kinds[name] = None if first is None else type_of(name, _read(first, None))
                values = [_read(one, kinds[name]) for one in values]
            found[name] = values
        return found


def _read(text: Any, kind: str | None) -> Any:
    """What a cell of a CSV file stands for: where no type is known yet a number, true or false, or text."""
    if not isinstance(text, str):
        return text
    word = text.strip()
    if kind == TAGS:
        return [one for one in word.split("|") if one]
    if kind in (None, BOOLEAN) and word.lower() in (TRUTHS if kind else ("true", "false")):
        return TRUTHS[word.lower()]
    if kind in (None, NUMBER):
        try:
            return float(word)
        except ValueError:
            return word
    return word
