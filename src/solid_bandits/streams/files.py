"""A CSV or Parquet file as a stream: read in pieces, in order, each time it is played."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import polars as pl

from solid_bandits._internal import checks
from solid_bandits._internal.files import first_line, path_of
from solid_bandits._internal.types import Plain
from solid_bandits.streams.base import Stream
from solid_bandits.streams.columns import Cells, Columns, order_names
from solid_bandits.streams.encoding import Encoder, Piece
from solid_bandits.streams.named import Naming, Told, values_needed
from solid_bandits.streams.pieces import read_piece, round_starts
from solid_bandits.streams.ridge import fit_rounds
from solid_bandits.streams.rounds import Rounds

SUFFIXES = (".csv", ".parquet")
CELLS_AT_ONCE = 2**20
"""Approximate number of cells in a piece: 8 MiB."""


class FileStream(Stream):
    """Rounds of a file, in its order.

    The whole file is read once when the stream is made, to check it, count its rounds and fit the ridge model.
    """

    linear = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Columns,
        named: Told | None = None,
        noise_std: float | None = None,
        ridge: float = 1.0,
    ) -> None:
        self.path = path_of("path", path)
        self.columns = columns
        self.noise_std = None if noise_std is None else checks.positive("noise_std", noise_std)
        self.ridge = checks.positive("ridge", ridge)
        self.text = self.path.suffix.lower() == ".csv"
        if self.path.suffix.lower() not in SUFFIXES:
            raise checks.ArgumentError("path", f"must end in .csv or .parquet, got {os.fspath(path)!r}")
        if not self.path.is_file():
            raise checks.ArgumentError("path", f"must be a file, got {os.fspath(path)!r}, which is none")
        with self._explained():
            present = self._scan().collect_schema().names()
            self.arms: tuple[str, ...] = ()
            if not columns.long and columns.label is None:
                self.arms = columns.arms_among(present)
            columns.check_present(present, self.arms)
            self.values = [] if named is None else values_needed(named, columns, self.arms, present)
            self.n_arms = self._count_arms()
            self.naming: Naming | None = None
            if named is not None:
                self.naming = Naming(named, columns, self.arms)
                self.arms = self.naming.arms
                for cells in self._cells():
                    self.naming.take(cells, self.n_arms)
            self.layout = columns.layout(self.n_arms) if self.naming is None else self.naming.layout
            self.arm_names = list(self.arms) or None
            self.dim = self.layout.dim
            self.feature_names = self.layout.names(columns.features, columns.context)
            if self.naming is not None:
                self.feature_names = self.naming.feature_names
            self.length = 0
            self.fit = fit_rounds(self._counted(), self.dim, self.n_arms, self.ridge)
            self._check_order()
        if self.length == 0:
            raise checks.ArgumentError("path", f"must have rows, got {os.fspath(path)!r}, which has none")
        with self.path.open("rb") as file:
            self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()[:16]

    def _check_order(self) -> None:
        """Raise an error if the rows of a round are not contiguous, since each piece would count as a round."""
        if self.columns.round is not None and self.rounds != self.length:
            raise ValueError(
                f"rows of a round must follow each other, got {self.rounds} values of {self.columns.round!r} in "
                f"{self.length} places; sort the file by it"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Prefix errors of the file with its name."""
        try:
            yield
        except checks.ArgumentError:
            raise
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise ValueError(f"{self.path.name!r} cannot be read ({first_line(error)})") from None
        except ValueError as error:
            raise ValueError(f"{self.path.name!r}: {error}") from None

    def _scan(self) -> pl.LazyFrame:
        if self.text:
            return pl.scan_csv(self.path, infer_schema=False)
        return pl.scan_parquet(self.path)

    def _read(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the columns of these names, some rows at a time."""
        rows = max(1, CELLS_AT_ONCE // len(names))
        return iter(
            self._scan().select(names).collect_batches(chunk_size=min(rows, 2**16), maintain_order=True)
        )

    def _count_arms(self) -> int:
        """Return the largest number of arms in a round, and record their names if they have any."""
        columns = self.columns
        with_arms = columns.arm or columns.label
        if with_arms is not None:
            found: set[str] = set()
            first = 0
            for frame in self._read([with_arms]):
                found |= set(Cells(frame, np.arange(first, first + frame.height), self.text).words(with_arms))
                first += frame.height
            self.arms = order_names(found)
        if columns.round is None:
            return max(len(self.arms), 1)
        sizes = (
            self._scan().group_by(columns.round).len().select(pl.len().alias("rounds"), pl.col("len").max())
        )
        self.rounds, largest = sizes.collect(engine="streaming").row(0)
        return max(len(self.arms) if with_arms is not None else largest or 0, 1)

    def _pieces(self) -> Iterator[Piece]:
        for cells in self._cells():
            if self.naming is None:
                yield read_piece(self.columns, self.arms, self.n_arms, cells)
            else:
                yield self.naming.piece(cells)

    def _cells(self) -> Iterator[Cells]:
        """The rows, some at a time; those of a round are together."""
        columns, first = self.columns, 0
        waiting: pl.DataFrame | None = None
        for batch in self._read(list(dict.fromkeys([*columns.needed(self.arms), *self.values]))):
            frame = batch if waiting is None else pl.concat([waiting, batch])
            if columns.round is not None:
                # The last round may continue in the next rows.
                starts = round_starts(frame[columns.round])
                if len(starts) < 2:
                    waiting = frame
                    continue
                waiting, frame = frame[int(starts[-1]) :], frame[: int(starts[-1])]
            if frame.height:
                yield Cells(frame, np.arange(first, first + frame.height), self.text)
            first += frame.height
        if waiting is not None and waiting.height:
            yield Cells(waiting, np.arange(first, first + waiting.height), self.text)

    def _counted(self) -> Iterator[Rounds]:
        for rounds in self.blocks(0, 0):
            assert self.length is not None
            self.length += len(rounds)
            yield rounds

    def blocks(self, seed: int, run: int) -> Iterator[Rounds]:
        """Yield the rounds in the order of the file, the same in every run."""
        encoder = Encoder(self.layout)
        for piece in self._pieces():
            yield from encoder.encode_all(piece)

    def parameters(self) -> Plain:
        """Return everything that the rounds depend on."""
        told = {name: value for name, value in vars(self.columns).items() if value not in (None, ())}
        found = {"data": self.sha256, "columns": told, "noise_std": self.noise_std, "ridge": self.ridge}
        return found if self.naming is None else found | {"named": self.naming.features.to_plain()}


def from_file(
    path: str | os.PathLike[str],
    *,
    reward: str | None = None,
    label: str | None = None,
    round: str | None = None,  # named like the column
    arm: str | None = None,
    features: str | Sequence[str] = (),
    context: str | Sequence[str] = (),
    available: str | None = None,
    event_id: str | None = None,
    intercept: bool = True,
    named: Told | None = None,
    noise_std: float | None = None,
    ridge: float = 1.0,
) -> FileStream:
    """Return the rounds of a CSV or Parquet file in its order, without ever loading it as a whole.

    The arguments are those of `from_frame`. Where a row is an arm of a round, the rows of a round follow each other.
    With `named`, a CSV file's cells are numbers, true or false, or words by the first of their column that is not
    empty, unless types are declared; tags are separated by `|`. Values are read anew in each run, which takes some ten
    microseconds a round: play a frame where that is much.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import polars as pl
        >>> import solid_bandits as sb
        >>> data = pl.DataFrame({"age": [34, 51], "reward_a": [1.0, 0.0], "reward_b": [0.0, 1.0]})
        >>> with TemporaryDirectory() as folder:
        ...     data.write_csv(f"{folder}/data.csv")
        ...     stream = sb.streams.from_file(f"{folder}/data.csv", reward="reward_{arm}", context=["age"])
        ...     stream.arm_names, stream.dim
        (['a', 'b'], 4)
    """
    columns = Columns(reward, label, round, arm, features, context, available, event_id, intercept)  # type: ignore[arg-type]
    return FileStream(path, columns, named, noise_std, ridge)
