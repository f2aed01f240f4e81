"""A log as arrays, a block of rows at a time, so that memory does not grow with the features of a log."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits import _check, logs
from solid_bandits._check import ArgumentError
from solid_bandits._files import first_line
from solid_bandits._types import Bools, Floats, Ints
from solid_bandits.logs.files import DSJSON, GROUP
from solid_bandits.logs.foreign import as_log
from solid_bandits.logs.schema import COLUMNS, check_rows, typed

BLOCK = GROUP
NEEDED = [
    "event_id",
    "sequence",
    "arms",
    "features",
    "context",
    "probabilities",
    "arm",
    "probability",
    "reward",
]


class Rows(NamedTuple):
    """Decisions with their rewards. Places beyond a row's own arms are empty: False, 0 or -1."""

    where: Ints
    """Their row numbers in what was given, whatever order they are read in, shape (rows,)."""
    names: list[str]
    """All arms of the log so far, by their codes."""
    codes: Ints
    """Of the arms on offer, shape (rows, arms)."""
    counts: Ints
    """How many are on offer, shape (rows,)."""
    mask: Bools
    """Shape (rows, arms)."""
    place: Ints
    """Of the chosen arm, shape (rows,)."""
    propensity: Floats
    """Its probability, shape (rows,); nan where it is unknown."""
    probabilities: Floats | None
    """Of all arms, shape (rows, arms), where they are known in every row."""
    reward: Floats
    """Shape (rows,)."""
    features: Floats | None
    """Of the arms, shape (rows, arms, dim)."""
    context: Floats | None
    """Shared by the arms, shape (rows, dim)."""


class Reader:
    """Reads a log, block by block, in the order of its decisions.

    Rows keep the numbers that they have in what was given: columns of probabilities and predictions are found by them.
    A Parquet file of a log that is in order is read in blocks; one that is not is read whole, to be sorted.

    Args:
        source: a log as a table, a file or directory of one, or a `Bandit`; or a table from elsewhere.
        columns: see `logs.from_table`.
        context: see `logs.from_table`.
        missing_reward: what a decision without a reward is taken to have earned; None leaves it out.
    """

    def __init__(
        self,
        source: Any,
        columns: Mapping[str, str] | None = None,
        context: Sequence[str] = (),
        missing_reward: float | None = None,
    ) -> None:
        self.missing_reward = missing_reward
        self.left_out = 0
        """Rows without a reward, so far."""
        self._codes: dict[str, int] = {}
        self._path: Path | None = None
        self._table: pl.DataFrame | None = None
        self._numbers: Ints | None = None
        if isinstance(source, str | os.PathLike):
            self._open(Path(source), columns, context)
        elif isinstance(source, pl.Series | np.ndarray):  # they have a logarithm of this name
            raise ArgumentError("log", f"must be a log, a table or a file, got {_check.short(source)}")
        elif hasattr(source, "log") and callable(source.log):
            self._table = logs.schema.check_log(source.log())
        else:
            self._table = _as_log(source, columns, context)
        if self._table is not None:
            self._sort(self._table)

    def _sort(self, table: pl.DataFrame) -> None:
        self.height = table.height
        """Rows of the log, with rewards or without."""
        self._table = table
        if table["sequence"].is_sorted(nulls_last=True):
            return
        numbered = table.with_row_index("__row").sort("sequence", nulls_last=True, maintain_order=True)
        self._numbers = numbered["__row"].to_numpy().astype(np.int64)
        self._table = numbered.drop("__row")

    def _open(self, path: Path, columns: Mapping[str, str] | None, context: Sequence[str]) -> None:
        if path.is_dir() or path.suffix in DSJSON:
            self._table = logs.read(path)
            return
        table: pl.DataFrame | None = None
        with _readable(path):
            if path.suffix == ".csv":
                table = pl.read_csv(path)
            elif set(pl.scan_parquet(path).collect_schema()) != set(COLUMNS) or columns:
                table = pl.read_parquet(path)
            else:
                order = pl.scan_parquet(path).select("sequence").collect()["sequence"]
                if not order.is_sorted(nulls_last=True):
                    table = pl.read_parquet(path)
                self._path, self.height = path, len(order)
        if table is not None:
            self._path, self._table = None, _as_log(table, columns, context)

    def table(self) -> pl.DataFrame:
        """The whole log, in the order of its decisions."""
        if self._table is not None:
            return self._table
        assert self._path is not None
        return logs.read(self._path)

    def numbers(self) -> Ints:
        """The row numbers of `table`, in what was given."""
        return np.arange(self.height) if self._numbers is None else self._numbers

    def rewarded(self) -> pl.Series:
        """The event ids of the rows with rewards."""
        if self._table is not None:
            return self._table.filter(pl.col("reward").is_not_null())["event_id"]
        assert self._path is not None
        with _readable(self._path):
            found = pl.scan_parquet(self._path).filter(pl.col("reward").is_not_null()).select("event_id")
            return found.collect()["event_id"]

    def blocks(self) -> Iterator[Rows]:
        """Blocks of at most `BLOCK` rows with rewards."""
        for start in range(0, self.height, BLOCK):
            table = self._slice(start)
            index = np.arange(start, start + table.height)
            index = index if self._numbers is None else self._numbers[index]
            known = table["reward"].is_not_null().to_numpy()
            if self.missing_reward is not None:
                table = table.with_columns(pl.col("reward").fill_null(self.missing_reward))
            else:
                self.left_out += int((~known).sum())
                table, index = table.filter(known), index[known]
            if table.height:
                yield self._rows(table, index)

    def _slice(self, start: int) -> pl.DataFrame:
        if self._table is not None:
            return self._table.slice(start, BLOCK).select(NEEDED)
        assert self._path is not None
        with _readable(self._path):
            table = pl.scan_parquet(self._path).select(NEEDED).slice(start, BLOCK).collect()
        table = typed(table, first=start)
        check_rows(table, first=start)
        return table

    def _rows(self, table: pl.DataFrame, index: Ints) -> Rows:
        arms = table["arms"]
        if arms.null_count():
            row = index[arms.is_null().to_numpy()][0]
            raise ArgumentError(
                "log", f"must say which arms were on offer in every row, got none in row {row}"
            )
        counts = arms.list.len().to_numpy().astype(np.int64)
        flat = arms.list.explode() if hasattr(arms.list, "explode") else arms.explode()
        for name in flat.unique(maintain_order=True).to_list():
            self._codes.setdefault(name, len(self._codes))
        mask = np.arange(counts.max()) < counts[:, None]
        codes = np.full(mask.shape, -1)
        codes[mask] = flat.replace_strict(self._codes, return_dtype=pl.Int64).to_numpy()
        chosen = table["arm"].replace_strict(self._codes, return_dtype=pl.Int64).to_numpy()
        probabilities = _padded(table["probabilities"], mask)
        propensity = table["probability"].fill_null(np.nan).to_numpy()
        place = (codes == chosen[:, None]).argmax(axis=1)
        if probabilities is not None:
            propensity = np.where(
                np.isnan(propensity), probabilities[np.arange(len(place)), place], propensity
            )
        features = _cube(table["features"], mask)
        return Rows(
            where=index,
            names=list(self._codes),
            codes=codes,
            counts=counts,
            mask=mask,
            place=place,
            propensity=propensity,
            probabilities=probabilities,
            reward=table["reward"].to_numpy(),
            features=features,
            context=_matrix(table["context"], features is None),
        )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ArgumentError(
            "log", f"must be a file that can be read, got {str(path)!r} ({first_line(error)})"
        ) from None


def _as_log(source: Any, columns: Mapping[str, str] | None, context: Sequence[str]) -> pl.DataFrame:
    """A log whose rows are those of the source, in its order."""
    if isinstance(source, pl.DataFrame) and set(source.columns) == set(COLUMNS) and not columns:
        return logs.schema.check_log(source)
    return as_log(source, columns, context)[0]


def _padded(lists: pl.Series, mask: Bools) -> Floats | None:
    """Lists, one per row, as an array with zeros beyond their ends; None where one is missing."""
    if lists.null_count():
        return None
    values = np.zeros(mask.shape)
    values[mask] = lists.explode().to_numpy()
    return values


def _cube(lists: pl.Series, mask: Bools) -> Floats | None:
    if lists.null_count():
        if lists.null_count() < len(lists):
            raise ArgumentError("log", "must have features in every row, or in none")
        return None
    rows = lists.explode()
    widths = rows.list.len().unique().to_list()
    if len(widths) != 1 or not widths[0]:
        raise ArgumentError("log", f"must have features of one dimension, got {widths}")
    values = np.zeros((*mask.shape, widths[0]))
    values[mask] = rows.explode().to_numpy().reshape(-1, widths[0])
    return values


def _matrix(lists: pl.Series, needed: bool) -> Floats | None:
    if lists.null_count():
        if needed and lists.null_count() < len(lists):
            raise ArgumentError("log", "must have a context in every row, or in none")
        return None
    widths = lists.list.len().unique().to_list()
    if len(widths) != 1 or not widths[0]:
        raise ArgumentError("log", f"must have contexts of one dimension, got {widths}")
    found: Floats = lists.explode().to_numpy().reshape(-1, widths[0]).astype(np.float64)
    return found
