"""Recorded decisions: a log in a Parquet file, for off-policy evaluation to read; docs/streams.md has the columns."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from solid_bandits._internal import checks, tables
from solid_bandits._internal.files import StoreError, write_whole
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.streams.rounds import Rounds

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_ONCE = 50_000
"""Decisions that a part of the file holds, at most."""
NUMBERS_AT_ONCE = 4_000_000
"""Numbers in them, at most: means, probabilities, features."""


class Record(NamedTuple):
    """What is to be recorded, and where.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import polars as pl
        >>> import solid_bandits as sb
        >>> stream = sb.streams.gaussian(n_arms=3, dim=2)
        >>> with TemporaryDirectory() as folder:
        ...     record = sb.streams.Record(f"{folder}/log.parquet", probabilities=True)
        ...     _ = sb.simulate(stream, {"RandUCB": sb.RandUCB()}, horizon=20, runs=1, jobs=1, record=record)
        ...     pl.read_parquet(record.path).height
        20
    """

    path: str
    """The Parquet file."""
    probabilities: bool = False
    """Whether those of all arms are kept, where they are known."""
    features: bool = False
    """Whether the features of all arms on offer are kept."""

    @property
    def parts(self) -> Path:
        """The folder of the parts that the file is assembled from."""
        path = Path(self.path)
        return path.with_name(f".{path.name}.parts")


class DecisionLog(NamedTuple):
    """The decisions of one block of rounds, as compiled code writes them."""

    arms: Ints
    explored: Bools
    rewards: Floats
    predicted: Floats
    """NaN where it is not known."""
    probability: Floats
    """NaN where it is not known."""
    probabilities: Floats
    """Shape (rounds, arms), or (rounds, 0) where they are not kept."""
    shares: Floats
    """Scratch: the probabilities of one decision, shape (arms,)."""


def make_log(rounds: int, n_arms: int, probabilities: bool) -> DecisionLog:
    """Room for so many decisions."""
    return DecisionLog(
        arms=np.zeros(rounds, dtype=np.int64),
        explored=np.zeros(rounds, dtype=np.bool_),
        rewards=np.zeros(rounds),
        predicted=np.zeros(rounds),
        probability=np.zeros(rounds),
        probabilities=np.full((rounds, n_arms if probabilities else 0), np.nan),
        shares=np.zeros(n_arms),
    )


class DecisionWriter:
    """Writes the decisions of some runs of one policy, part by part.

    Args:
        record: what is kept, and where.
        policy: its label.
        place: its place among the policies, which orders the parts.

    """

    def __init__(self, record: Record, policy: str, place: int) -> None:
        self.record = record
        self.probabilities = record.probabilities
        self.policy = policy
        self.place = place
        self.waiting: list[pl.DataFrame] = []
        self.rows = self.numbers = self.written = 0
        self.run = -1

    def write(self, run: int, first_step: int, rounds: Rounds, log: DecisionLog) -> None:
        """Take in a block of decisions."""
        if run != self.run:
            self.flush()
            self.run, self.written = run, 0
        from solid_bandits.streams.decision_table import decisions_frame

        frame = decisions_frame(self.policy, run, first_step, rounds, log, self.record.features)
        self.waiting.append(frame)
        _, n_arms, dim = rounds.arrays.features.shape
        self.rows += frame.height
        self.numbers += frame.height * n_arms * (2 + (dim if self.record.features else 0))
        if self.rows >= ROWS_AT_ONCE or self.numbers >= NUMBERS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting; a part that is written again, after a worker died, is the same."""
        if not self.waiting:
            return
        name = f"{self.place:04d}-{self.run:08d}-{self.written:08d}.parquet"
        frame: pl.DataFrame = tables.concat(self.waiting)
        write_whole(self.record.parts / name, lambda file: frame.write_parquet(file))
        self.waiting = []
        self.rows = self.numbers = 0
        self.written += 1


def make_record(record: str | Record | None, path: str | os.PathLike[str]) -> Record | None:
    """What `simulate` is asked to record."""
    if record is None:
        return None
    if isinstance(record, str):
        checks.choice("record", record, ("decisions",))
        record = Record(os.fspath(path))
    if not isinstance(record, Record):
        raise checks.ArgumentError(
            "record", f"must be 'decisions' or sb.streams.Record(path), got {record!r}"
        )
    if Path(record.path).suffix != ".parquet":
        raise checks.ArgumentError("record", f"must go to a file ending in .parquet, got {record.path!r}")
    if Path(record.path).exists():
        raise checks.ArgumentError("record", f"must go to a new file, got {record.path!r}, which is there")
    return record


@contextmanager
def recorded(record: Record | None) -> Iterator[None]:
    """Gather the parts that are written within in a folder, and make one file of them at the end."""
    if record is None:
        yield
        return
    try:
        shutil.rmtree(record.parts, ignore_errors=True)  # of a process that was killed
        record.parts.mkdir(parents=True)
    except OSError as error:
        raise StoreError(f"{record.path!r} cannot be written to ({error.strerror or error})") from None
    try:
        yield
        parts = sorted(record.parts.glob("[0-9]*.parquet"))
        write_whole(
            Path(record.path),
            lambda file: tables.scan_parquet(parts).sink_parquet(file, maintain_order=True),
        )
    finally:
        shutil.rmtree(record.parts, ignore_errors=True)
