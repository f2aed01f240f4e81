"""Recorded decisions: one row of a Parquet file for each, for off-policy evaluation to read.

docs/streams.md has the columns in words.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits import _check
from solid_bandits._files import StoreError, write_whole
from solid_bandits._types import Bools, Floats, Ints
from solid_bandits.streams.rounds import Rounds

SCHEMA: dict[str, Any] = {
    "policy": pl.String,
    "run": pl.Int64,
    "step": pl.Int64,
    "event_id": pl.String,
    "arm": pl.Int64,
    "n_arms": pl.Int64,
    "available": pl.List(pl.Boolean),
    "probability": pl.Float64,
    "probabilities": pl.List(pl.Float64),
    "explored": pl.Boolean,
    "reward": pl.Float64,
    "predicted": pl.Float64,
    "means": pl.List(pl.Float64),
    "features": pl.List(pl.List(pl.Float64)),
}
"""Columns of the file, in order."""

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
        frame = pl.concat(self.waiting)
        write_whole(self.record.parts / name, lambda file: frame.write_parquet(file))
        self.waiting = []
        self.rows = self.numbers = 0
        self.written += 1


def decisions_frame(
    policy: str, run: int, first_step: int, rounds: Rounds, log: DecisionLog, features: bool
) -> pl.DataFrame:
    """The decisions of one block as rows of the file."""
    arrays = rounds.arrays
    count = len(rounds)
    steps = np.arange(first_step, first_step + count)
    return pl.DataFrame(
        {
            "policy": pl.repeat(policy, count, eager=True, dtype=pl.String),
            "run": pl.repeat(run, count, eager=True, dtype=pl.Int64),
            "step": steps,
            "event_id": pl.Series(steps if rounds.event_ids is None else rounds.event_ids).cast(pl.String),
            "arm": log.arms,
            "n_arms": arrays.counts,
            "available": _masks(arrays.available, arrays.counts),
            "probability": _known(log.probability),
            "probabilities": _distributions(log.probabilities, arrays.counts),
            "explored": log.explored,
            "reward": log.rewards,
            "predicted": _known(log.predicted),
            "means": _lists(arrays.means, arrays.counts),
            "features": _matrices(arrays.features, arrays.counts) if features else None,
        },
        schema=SCHEMA,
    )


def _known(values: Floats) -> pl.Series:
    """Numbers, null where they are NaN."""
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)


def _lists(values: Floats, counts: Ints) -> pl.Series:
    """The first `counts` entries of each row as a list."""
    whole = pl.Series(values, dtype=pl.Array(pl.Float64, values.shape[1])).arr.to_list()
    return whole if int(counts.min()) == values.shape[1] else _cut(whole, counts)


def _cut(lists: pl.Series, counts: Ints) -> pl.Series:
    frame = pl.DataFrame({"values": lists, "count": counts})
    return frame.select(pl.col("values").list.head(pl.col("count")))["values"]


def _masks(available: Bools, counts: Ints) -> pl.Series:
    """The mask of each round as a list, null where every arm is available."""
    whole = pl.Series(available, dtype=pl.Array(pl.Boolean, available.shape[1])).arr.to_list()
    frame = pl.DataFrame({"mask": _cut(whole, counts)})
    return frame.select(pl.when(~pl.col("mask").list.all()).then("mask"))["mask"]


def _distributions(values: Floats, counts: Ints) -> pl.Series | None:
    """The probabilities of each round as a list, null where they are not known or not kept."""
    if values.shape[1] == 0:
        return None
    frame = pl.DataFrame({"shares": _lists(values, counts)})
    known = ~pl.col("shares").list.first().is_nan()
    return frame.select(pl.when(known).then("shares"))["shares"]


def _matrices(values: Floats, counts: Ints) -> pl.Series:
    rounds, arms, dim = values.shape
    flat = pl.Series(values.reshape(-1, dim), dtype=pl.Array(pl.Float64, dim)).arr.to_list()
    nested = pl.DataFrame({"round": np.repeat(np.arange(rounds), arms), "rows": flat})
    whole = nested.group_by("round", maintain_order=True).agg("rows")["rows"]
    return _cut(whole, counts)


def make_record(record: str | Record | None, path: str | os.PathLike[str]) -> Record | None:
    """What `simulate` is asked to record."""
    if record is None:
        return None
    if isinstance(record, str):
        _check.choice("record", record, ("decisions",))
        record = Record(os.fspath(path))
    if not isinstance(record, Record):
        raise _check.ArgumentError(
            "record", f"must be 'decisions' or sb.streams.Record(path), got {record!r}"
        )
    if Path(record.path).suffix != ".parquet":
        raise _check.ArgumentError("record", f"must go to a file ending in .parquet, got {record.path!r}")
    if Path(record.path).exists():
        raise _check.ArgumentError("record", f"must go to a new file, got {record.path!r}, which is there")
    return record


def begin_parts(record: Record) -> None:
    """Make the folder of the parts, empty."""
    try:
        record.parts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{record.path!r} cannot be written to ({error.strerror or error})") from None
    remove_parts(record, folder=False)


def assemble_parts(record: Record) -> None:
    """Make one file of the parts, without taking them all into memory, and remove them."""
    parts = sorted(record.parts.glob("[0-9]*.parquet"))
    write_whole(
        Path(record.path),
        lambda file: pl.scan_parquet(parts).sink_parquet(file, maintain_order=True),
    )
    remove_parts(record)


def remove_parts(record: Record, folder: bool = True) -> None:
    """Remove the parts, and their folder."""
    for part in record.parts.glob("*"):
        part.unlink()
    if folder and record.parts.exists():
        record.parts.rmdir()
