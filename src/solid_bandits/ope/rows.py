"""A log as arrays, a block of rows at a time, so that memory does not grow with the features of a log."""

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits import logs
from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.files import first_line
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.features.columns import Column
from solid_bandits.features.design import Design
from solid_bandits.features.spec import Features
from solid_bandits.live.tables import features_of, is_store, read_log
from solid_bandits.logs.files import DSJSON, GROUP
from solid_bandits.logs.foreign import from_table
from solid_bandits.logs.named import Raw, declared, named_rows, taken, told
from solid_bandits.logs.schema import COLUMNS, check_one_run, check_rows, is_simulated, typed

BLOCK = GROUP
NEEDED = [
    "event_id",
    "sequence",
    "arms",
    "features",
    "context",
    "arm_features",
    "probabilities",
    "arm",
    "probability",
    "reward",
]


class Rows(NamedTuple):
    """Decisions with their rewards. Places beyond a row's own arms are empty: False, 0 or -1."""

    where: Ints
    """Their row numbers in the input, whatever order they are read in, shape (rows,)."""
    names: list[str]
    """All arms of the log so far, by their codes."""
    codes: Ints
    """Codes of the arms on offer, shape (rows, arms)."""
    counts: Ints
    """Numbers of arms on offer, shape (rows,)."""
    mask: Bools
    """Shape (rows, arms)."""
    place: Ints
    """Places of the chosen arms among those on offer, shape (rows,)."""
    propensity: Floats
    """Probabilities of the chosen arms, shape (rows,); nan where unknown."""
    probabilities: Floats | None
    """Probabilities of all arms, shape (rows, arms), if they are known in every row."""
    reward: Floats
    """Shape (rows,)."""
    features: Floats | None
    """Features of the arms, shape (rows, arms, dim)."""
    context: Floats | None
    """Contexts that the arms share, shape (rows, dim)."""
    events: pl.Series | None = None
    """Ids of the rows' events."""
    named: list[Raw] | None = None
    """Named values, if the log has them."""

    def shown(self, row: int) -> Any:
        """Return the input of functions for a row: the features of the arms on offer, the context by names, or None."""
        if self.features is not None:
            return self.features[row, : self.counts[row]]
        return None if self.named is None else self.named[row][0]


def no_features(rows: Rows, what: str) -> ArgumentError:
    """Return the error for a log without features where they are needed to do something."""
    hint = "; sb.logs.with_features(log) makes them of its named values" if rows.named is not None else ""
    return ArgumentError("log", f"must have features to {what}{hint}")


class Reader:
    """Reads a log, block by block, in the order of its decisions.

    Rows keep the numbers that they have in what was given: columns of probabilities and predictions are found by them.
    A Parquet file of a log that is in order is read in blocks; one that is not is read whole, to be sorted.

    Args:
        source: a log as a table, a file of one, the store of a bandit, or a `Bandit`; or a table from elsewhere.
        columns: see `logs.from_table`.
        context: see `logs.from_table`.
        missing_reward: what a decision without a reward is taken to have earned; None leaves it out.
        features: types, interactions and limit of the log's named values; None is the declaration of the bandit or
            store, if it is one. A log on its own has values alone.
    """

    def __init__(
        self,
        source: Any,
        columns: Mapping[str, str] | None = None,
        context: Sequence[str] | Mapping[str, str | None] = (),
        missing_reward: float | None = None,
        features: Features | None = None,
    ) -> None:
        self.missing_reward = missing_reward
        self.left_out = 0
        """Rows without a reward, so far."""
        self._codes: dict[str, int] = {}
        self._path: Path | None = None
        self._table: pl.DataFrame | None = None
        self._numbers: Ints | None = None
        design = getattr(source, "design", None)
        if features is None and design is not None:
            features = design.features
        if isinstance(source, str | os.PathLike):
            features = features_of(Path(source)) if features is None else features
            self._open(Path(source), columns, context)
        elif isinstance(source, pl.Series | np.ndarray):  # they have a logarithm of this name
            raise ArgumentError("log", f"must be a log, a table or a file, got {checks.short(source)}")
        elif hasattr(source, "log") and callable(source.log):
            self._table = logs.schema.check_log(source.log())
        else:
            self._table = from_table(source, columns, context)
        if self._table is not None:
            self._sort(self._table)
        self._design = self._named_design(features)
        """Of a log that has names instead of features, in the coordinates after its last row."""

    @property
    def named(self) -> bool:
        """Whether the log has named values instead of features."""
        return self._design is not None

    @property
    def features(self) -> Features | None:
        """The declaration of the log's named values; None where it has features instead."""
        return None if self._design is None else self._design.features

    def _named_design(self, told: Features | None) -> Design | None:
        """Return the design of a log whose first row has names and no features; None of any other.

        Types and interactions are what is told; arms that came later are added to those told.
        """
        if not self.height:
            return None
        lazy = pl.scan_parquet(self._path) if self._table is None else self._table.lazy()  # type: ignore[arg-type]
        features, *names = lazy.select("features", "context", "arm_features").head(1).collect().row(0)
        if features is not None or names == [None, None]:
            return None

        def rows() -> Iterator[Raw]:
            for start in range(0, self.height, BLOCK):
                part = self._slice(start)
                if part["context"].null_count() and part["arm_features"].null_count():
                    raise ArgumentError("log", "must have a context in every row, or in none")
                yield from named_rows(part, start)

        if told is None:
            features = declared(rows())
        else:
            late = (arm for _, offered, _ in rows() for arm in offered or ())
            arms = None if told.arms is None else list(dict.fromkeys([*told.arms, *late]))
            features = Features(told.context, arms, told.arm_features, told.interactions, told.categories)
        return taken(rows(), features)

    def _sort(self, table: pl.DataFrame) -> None:
        self.height = table.height
        """Rows of the log, with rewards or without."""
        self._table = table
        if table["sequence"].is_sorted(nulls_last=True):
            return
        numbered = table.with_row_index("__row").sort("sequence", nulls_last=True, maintain_order=True)
        self._numbers = numbered["__row"].to_numpy().astype(np.int64)
        self._table = numbered.drop("__row")

    def _open(
        self, path: Path, columns: Mapping[str, str] | None, context: Sequence[str] | Mapping[str, str | None]
    ) -> None:
        if path.suffix.lower() in DSJSON or is_store(path):
            self._table = read_log(path)
            return
        table: pl.DataFrame | None = None
        with _readable(path):
            if path.suffix.lower() == ".csv":
                table = read_table(path)
            elif not set(names := pl.scan_parquet(path).collect_schema()) >= set(COLUMNS) or columns:
                table = pl.read_parquet(path)
            else:
                if is_simulated(names):
                    check_one_run(pl.scan_parquet(path).select("policy", "run").unique().collect())
                order = pl.scan_parquet(path).select("sequence").collect()["sequence"]
                if not order.is_sorted(nulls_last=True):
                    table = pl.read_parquet(path)
                self._path, self.height = path, len(order)
        if table is not None:
            self._path, self._table = None, from_table(table, columns, context)

    def table(self) -> pl.DataFrame:
        """Return the whole log, in the order of its decisions, caching it."""
        if self._table is None:
            assert self._path is not None
            self._table = logs.read(self._path)
        return self._table

    def as_given(self) -> pl.DataFrame:
        """Return the whole log, in the order in which its rows are numbered."""
        table = self.table()
        return table if self._numbers is None else table[np.argsort(self._numbers)]

    def part(self, start: int, length: int, missing_reward: float | None = None) -> "Reader":
        """A reader of some of the rows, which are not checked again; they are numbered from 0."""
        found = copy.copy(self)
        found._table, found._numbers, found._codes = self.table().slice(start, length), None, {}
        found.height, found.left_out, found.missing_reward = found._table.height, 0, missing_reward
        return found

    def contexts(self, rows: Rows) -> tuple[list[Column], Floats] | None:
        """Return the columns of the named contexts and their values, shape (rows, columns); None if there are none.

        Numbers are as given, not standardised; a missing one is the mean.
        """
        if self._design is None or rows.named is None or not self._design.features.context:
            return None
        own = self._design.context
        found = np.array([own.raw(told(self._design, row).context) for row in rows.named])
        for measure in own.measures:
            column = found[:, measure.place]
            column[np.isnan(column)] = measure.mean
        return own.columns[1:], found[:, 1:]

    def blocks(self) -> Iterator[Rows]:
        """Yield blocks of at most `BLOCK` rows with rewards."""
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
        features: Floats | None = None
        context: Floats | None = None
        named = None
        described = _described(table["features"])
        if self._design is not None or not table["context"].null_count():
            named = list(named_rows(table))
        if self._design is not None:
            rows = [self._design.encode(told(self._design, row)) for row in named or ()]
            if self._design.blocked:  # models have a constant of their own
                context = np.array([one[0, 2:] for one in rows])
            else:
                described = np.concatenate(rows)
        if described is not None:
            features = np.zeros((*mask.shape, described.shape[1]))
            features[mask] = described
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
            context=context,
            events=table["event_id"],
            named=named,
        )


def opened(path: Path) -> pl.DataFrame:
    """Return a table unchanged, or a log, with the rows and in the order in which `Reader` numbers them."""
    return read_log(path) if path.suffix.lower() in DSJSON or is_store(path) else read_table(path)


def read_table(path: Path) -> pl.DataFrame:
    """Return a CSV or Parquet file unchanged."""
    with _readable(path):
        return pl.read_csv(path) if path.suffix.lower() == ".csv" else pl.read_parquet(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ArgumentError(
            "log", f"must be a file that can be read, got {str(path)!r} ({first_line(error)})"
        ) from None


def _padded(lists: pl.Series, mask: Bools) -> Floats | None:
    """Return lists, one per row, as an array padded with zeros; None if one is missing."""
    if lists.null_count():
        return None
    values = np.zeros(mask.shape)
    values[mask] = lists.explode().to_numpy()
    return values


def _described(lists: pl.Series) -> Floats | None:
    """Return features of the arms of each row as an array, shape (arms of all rows, dim); None if there are none."""
    missing = lists.null_count()
    if missing:
        if missing < len(lists):
            raise ArgumentError("log", "must have features in every row, or in none")
        return None
    rows = lists.explode()
    widths = rows.list.len().unique().to_list()
    if len(widths) != 1 or not widths[0]:
        raise ArgumentError("log", f"must have features of one dimension, got {widths}")
    found: Floats = rows.explode().to_numpy().reshape(-1, widths[0])
    return found
