"""Segments of the rows of a log: by columns, by labels, or by a small tree found in the log itself."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.features.columns import VALUE, Column
from solid_bandits.logs.named import values
from solid_bandits.logs.schema import COLUMNS
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Reader, Rows, opened

TREE = "tree"
MOST = 20
"""Largest number of segments: each has its own intervals, which widens all."""
FEW = 8
"""Number of different values above which a column of numbers is cut at its median."""
DEPTH = 2
SMALLEST = 50
SHARE = 0.05
"""Least number, and least share, of the rows of the first half that a leaf of the tree needs."""
CUTS = 16
"""Number of thresholds of a feature that are tried."""

Segments = tuple[list[str], Ints]


def as_segments(given: Any, reader: Reader, log: Any) -> Segments | None:
    """Return the labels of the segments, and the segment of each row of the log, -1 for none."""
    if given is None:
        return None
    if isinstance(given, str) and given == TREE:
        return _tree(reader)
    if isinstance(given, str):
        given = [given]
    table = None
    if isinstance(given, list | tuple) and given and all(isinstance(one, str) for one in given):
        table = _raw(log)
        if len(given) != reader.height or set(given) <= set(table.columns):
            return _labelled(by_columns(table, given), reader.height)
    labels = given if isinstance(given, pl.Series) else pl.Series([str(one) for one in given])
    return _labelled(labels.cast(pl.String), reader.height)


def _labelled(labels: pl.Series, rows: int) -> Segments:
    if len(labels) != rows:
        raise ArgumentError("segments", f"must have one label for each of {rows:,} rows, got {len(labels):,}")
    names = sorted(labels.drop_nulls().unique().to_list())
    if not 1 <= len(names) <= MOST:
        raise ArgumentError("segments", f"must make 1 to {MOST} segments, got {len(names):,}")
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places.get(one, -1) for one in labels.to_list()], dtype=np.int64)


def _raw(log: Any) -> pl.DataFrame:
    if isinstance(log, Reader):
        found = log.as_given()
    elif isinstance(log, str | Path):
        found = opened(Path(log))
    elif hasattr(log, "log") and callable(log.log):
        found = log.log()
    else:
        found = log if isinstance(log, pl.DataFrame) else pl.DataFrame(dict(log))
    return with_names(found)


def with_names(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with a column for each name of its context, if it is a log with named values."""
    if not set(COLUMNS) <= set(table.columns) or not table["context"].count():
        return table
    known = values(table.select(*COLUMNS))
    return table.hstack(known.select(name for name in known.columns if name not in table.columns))


def by_columns(table: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Return one label per row: the values of the columns, with numbers of many values cut at their median."""
    found = []
    for name in names:
        if name not in table.columns or table[name].dtype.is_nested():
            raise ArgumentError(
                "segments",
                f"must be {TREE!r}, labels, or columns among "
                f"{', '.join(one for one in table.columns if not table[one].dtype.is_nested())}, got {short(name)}",
            )
        column = table[name]
        if column.dtype.is_numeric() and column.n_unique() > FEW:
            middle = float(np.median(column.drop_nulls().to_numpy()))
            above = (column > middle).to_list()
            words = {True: f"{name} > {middle:g}", False: f"{name} ≤ {middle:g}", None: None}
            found.append([words[one] for one in above])
        else:
            found.append([None if one is None else f"{name} = {one}" for one in column.to_list()])
    return pl.Series(
        [None if None in row else ", ".join(row) for row in zip(*found, strict=True)], dtype=pl.String
    )


class _Title(NamedTuple):
    """A description of rows in words."""

    name: str
    category: str | None = None
    """The one that a column of 0 and 1 stands for."""

    def side(self, below: bool, cut: float) -> str:
        """Return the words for one side of a cut."""
        if self.category is not None:
            return f"{self.name} {'≠' if below else '='} {self.category}"
        return f"{self.name} {'≤' if below else '>'} {cut:.4g}"


def _titled(column: Column) -> _Title:
    return _Title(column.name) if column.says == VALUE else _Title(column.name, column.word or column.says)


class _Scores(NamedTuple):
    """Doubly robust scores of the arms in the rows that a tree is found on."""

    described: Floats
    """Description of each row, shape (rows, features)."""
    gains: Floats
    """q(a), plus (r - q) / g for the chosen arm, shape (rows, arms)."""


def _tree(reader: Reader) -> Segments:
    """Return the segments of a tree of thresholds, chosen by the leaves' best scores (Athey and Wager 2021).

    It is grown greedily on the first half of the rows; the segments are its leaves in the second half.
    """
    first: list[_Scores] = []
    second: list[tuple[Ints, Floats]] = []
    half = reader.height // 2
    model = as_model("linear")
    titles: list[_Title] = []
    for rows in reader.blocks():
        q = model.predict(rows)
        titles, described = _describing(reader, rows)
        early = rows.where < half if reader._numbers is None else np.isin(rows.where, reader._numbers[:half])
        second.append((rows.where[~early], described[~early]))
        scores = q.copy()
        every = np.arange(len(rows.reward))
        scores[every, rows.place] += (rows.reward - q[every, rows.place]) / rows.propensity
        first.append(_Scores(described[early], scores[early]))
    if len({one.described.shape[1] for one in first}) != 1:
        raise ArgumentError("segments", "must be labels where rows differ in their number of arms")
    found = _Scores(
        np.concatenate([one.described for one in first]), np.concatenate([one.gains for one in first])
    )
    leaves = list(_grown(found, titles, np.ones(len(found.gains), dtype=np.bool_), "", DEPTH))
    where, described = (np.concatenate(parts) for parts in zip(*second, strict=True))
    codes = np.full(reader.height, -1)
    for place, (_, conditions) in enumerate(leaves):
        inside = np.ones(len(where), dtype=bool)
        for feature, cut, below in conditions:
            inside &= (described[:, feature] <= cut) == below
        codes[where[inside]] = place
    return [title for title, _ in leaves], codes


Conditions = tuple[tuple[int, float, bool], ...]


def _grown(
    scores: _Scores, titles: Sequence[_Title], inside: Bools, title: str, depth: int, kept: Conditions = ()
) -> Iterator[tuple[str, Conditions]]:
    least = max(SMALLEST, int(SHARE * len(inside)))
    best, split = scores.gains[inside].sum(axis=0).max(), None
    for feature in range(scores.described.shape[1] if depth else 0):
        values = scores.described[:, feature]
        for cut in np.unique(np.quantile(values[inside], np.linspace(0, 1, CUTS + 2)[1:-1])):
            left = inside & (values <= cut)
            right = inside & ~left
            if min(left.sum(), right.sum()) >= least:
                gain = scores.gains[left].sum(axis=0).max() + scores.gains[right].sum(axis=0).max()
                if gain > best:
                    best, split = gain, (feature, float(cut), left, right)
    if split is None:
        yield title or "all rows of the second half", kept
        return
    feature, cut, left, right = split
    for below, part in ((True, left), (False, right)):
        words = titles[feature].side(below, cut)
        yield from _grown(
            scores,
            titles,
            part,
            f"{title}, {words}" if title else words,
            depth - 1,
            (*kept, (feature, cut, below)),
        )


def _describing(reader: Reader, rows: Rows) -> tuple[list[_Title], Floats]:
    """Return the named context, or else the features of all arms, concatenated; with what the columns are called."""
    named = reader.contexts(rows)
    if named is not None:
        return [_titled(column) for column in named[0]], named[1]
    if rows.features is None:
        raise ArgumentError("segments", f"must not be {TREE!r} where the log has no context and no features")
    if not rows.mask.all():
        raise ArgumentError("segments", f"must not be {TREE!r} where rows differ in their number of arms")
    found = rows.features.reshape(len(rows.reward), -1)
    return [_Title(f"x{place}") for place in range(found.shape[1])], found
