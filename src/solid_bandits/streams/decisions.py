"""Recorded decisions: a log in a Parquet file, for off-policy evaluation; docs/streams.md lists the columns."""

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
"""Largest number of decisions in a part of the file."""
NUMBERS_AT_ONCE = 4_000_000
"""Largest number of values in a part: means, probabilities, features."""


class Record(NamedTuple):
    """Decisions to record, and the file to record them in.

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
    """Whether the probabilities of all arms are recorded, where they are known."""
    features: bool = False
    """Whether the features of all arms on offer are recorded."""

    @property
    def parts(self) -> Path:
        """The folder of the parts that the file is assembled from."""
        path = Path(self.path)
        return path.with_name(f".{path.name}.parts")


class DecisionLog(NamedTuple):
    """The decisions of one block of rounds, as written by compiled code."""

    arms: Ints
    explored: Bools
    rewards: Floats
    predicted: Floats
    """Predicted reward of the arm; NaN where unknown."""
    probability: Floats
    """Probability of the arm; NaN where unknown."""
    probabilities: Floats
    """Probabilities of all arms, shape (rounds, arms), or (rounds, 0) if they are not recorded."""
    shares: Floats
    """Scratch: the probabilities of one decision, shape (arms,)."""


def make_log(rounds: int, n_arms: int, probabilities: bool) -> DecisionLog:
    """Return an empty log for `rounds` decisions."""
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
    """Writer of the decisions of some runs of one policy, part by part.

    Args:
        record: what is recorded, and where.
        policy: its label.
        place: its index among the policies, which orders the parts.

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
        """Add a block of decisions."""
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
        """Write the pending decisions; a part that is written again, after a worker died, is identical."""
        if not self.waiting:
            return
        name = f"{self.place:04d}-{self.run:08d}-{self.written:08d}.parquet"
        frame: pl.DataFrame = tables.concat(self.waiting)
        write_whole(self.record.parts / name, lambda file: frame.write_parquet(file))
        self.waiting = []
        self.rows = self.numbers = 0
        self.written += 1


def make_record(record: str | Record | None, path: str | os.PathLike[str]) -> Record | None:
    """Return the record that `simulate` was asked for."""
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
    """Collect the parts that are written inside the context, and assemble the file at the end."""
    if record is None:
        yield
        return
    try:
        shutil.rmtree(record.parts, ignore_errors=True)  # left by a killed process
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
