"""A bandit as one file: an archive of its agent in JSON, and its memory and log as Parquet. Nothing in it is run."""

import io
import json
import os
import zipfile
import zlib
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits import _check
from solid_bandits._files import LARGEST_FILE, first_line, path_of, read_bytes, read_member, write_bytes
from solid_bandits._types import Plain
from solid_bandits.agent_file import AgentFile, agent_from_plain, agent_to_plain
from solid_bandits.live.arguments import FIRST_TIME, LAST_TIME, checked_id, is_name, names_of
from solid_bandits.live.journal import DIRECTORY, MEMORY, NONE
from solid_bandits.live.memory import EXPIRED, LEARNED, OPEN, Arm, Record
from solid_bandits.logs.schema import check_log
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.state import LARGEST_COUNT
from solid_bandits.setting import LARGEST_FEATURE, LARGEST_REWARD, check_features

KIND = "solid-bandits bandit"
VERSION = 2
"""Of the format: raised when a file of before would be read wrongly."""
MAIN, RECALLED, LOG = "bandit.json", "memory.parquet", "log.parquet"
FIELDS = ("file", "version", "agent", "seed", "counters", "window", "log", "written", "witness", "limit")
CLOSE = 1e-5
"""By which probabilities may miss 1 in sum: more than in a log, so that a bandit made from one can be loaded."""

RECORDS: dict[str, Any] = {
    "event_id": pl.String,
    "number": pl.Int64,
    "policy_number": pl.Int64,
    "sequence": pl.Int64,
    "time": pl.Int64,
    "arms": pl.List(pl.String),
    "whole": pl.List(pl.Boolean),
    "place": pl.Int64,
    "probabilities": pl.List(pl.Float64),
    "explored": pl.Boolean,
    "version": pl.String,
    "features": pl.List(pl.List(pl.Float64)),
    "status": pl.String,
    "reward": pl.Float64,
}
"""Columns of the memory; `whole` says which arms are named by whole numbers."""


class BanditFile(NamedTuple):
    """What the file says."""

    agent: AgentFile
    seed: int
    counters: tuple[int, int, int]
    """Decisions, events and rewards so far."""
    window: int
    log: str
    """Where the log was: in a directory, in memory or nowhere. Which directory is for whoever loads the file to say."""
    written: int
    """Rows of it that are in the directory."""
    witness: str
    """The event of one of them; empty if there is none."""
    limit: tuple[int, list[int]] | None
    """Events, and decisions that were open, after which the directory's rows are of another history; None: after this
    file."""
    records: list[Record]
    rows: pl.DataFrame | None
    """Of the log, those that are in memory."""


def write(path: str | os.PathLike[str], content: BanditFile) -> None:
    """Write the file, whole or not at all."""
    target = path_of("path", path)
    main = {
        "file": KIND,
        "version": VERSION,
        "agent": agent_to_plain(content.agent),
        "seed": content.seed,
        "counters": list(content.counters),
        "window": content.window,
        "log": content.log,
        "written": content.written,
        "witness": content.witness,
        "limit": None if content.limit is None else [content.limit[0], *content.limit[1]],
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        # A fixed date: the same bandit gives the same bytes.
        out.writestr(zipfile.ZipInfo(MAIN), json.dumps(main, allow_nan=False))
        out.writestr(zipfile.ZipInfo(RECALLED), _parquet(_table(content.records)))
        if content.rows is not None:
            out.writestr(zipfile.ZipInfo(LOG), _parquet(content.rows))
    try:
        write_bytes(target, archive.getvalue())
    except OSError as error:
        raise ValueError(
            f"bandit file {os.fspath(target)!r} cannot be written ({error.strerror or error})"
        ) from None


def read(path: str | os.PathLike[str], own: Policy | None = None) -> BanditFile:
    """Read the file; a ValueError says what is wrong with it."""
    source = path_of("path", path)
    name = f"bandit file {os.fspath(source)!r}"
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(source))) as archive:
            members = {one.filename: one for one in archive.infolist()}
            if not {MAIN, RECALLED} <= set(members) <= {MAIN, RECALLED, LOG}:
                raise ValueError("it is not a file that Bandit.save wrote")
            contents = {one: read_member(archive, members[one], LARGEST_FILE) for one in members}
        main = json.loads(contents[MAIN])
        if not isinstance(main, dict) or main.get("file") != KIND:
            raise ValueError("it is not a file that Bandit.save wrote")
        version = main.get("version")
        if type(version) is not int or version != VERSION:
            raise ValueError(
                f"it must be of version {VERSION} of this format, got {_check.short(version)}: it was written by "
                "another version of this package"
            )
        records = _records(pl.read_parquet(io.BytesIO(contents[RECALLED])))
        rows = check_log(pl.read_parquet(io.BytesIO(contents[LOG]))) if LOG in contents else None
    except (
        OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error,
        pl.exceptions.PolarsError, pl.exceptions.PanicException,
    ) as error:  # fmt: skip
        raise ValueError(f"{name} cannot be read ({first_line(error)})") from None
    agent = agent_from_plain(main.get("agent"), name, own)
    try:
        return _checked(main, agent, records, rows)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} cannot be used: {first_line(error)}") from None


def _checked(main: Plain, agent: AgentFile, records: list[Record], rows: pl.DataFrame | None) -> BanditFile:
    if set(main) != set(FIELDS):
        raise ValueError(f"it must have the fields {', '.join(FIELDS)}, got {', '.join(main)}")
    counters = main["counters"]
    if not isinstance(counters, list) or len(counters) != 3:
        raise ValueError("counters must be three whole numbers")
    decisions, sequence, learned = (
        _check.integer("counters", one, least=0, most=LARGEST_COUNT) for one in counters
    )
    if decisions + learned > sequence:
        raise ValueError(f"counters must have decisions and rewards among their events, got {counters}")
    seed = _check.integer("seed", main["seed"], least=0)
    window = _check.integer("window", main["window"], least=1)
    log = _check.choice("log", main["log"], (DIRECTORY, MEMORY, NONE))
    if (rows is None) != (log == NONE):
        raise ValueError(f"log must be {NONE!r} without rows, and only then, got {log!r}")
    written = _check.integer("written", main["written"], least=0)
    witness, limit = main["witness"], main["limit"]
    if not isinstance(witness, str) or (witness and not is_name(witness)):
        raise ValueError(f"witness must be an event_id, got {_check.short(witness)}")
    if limit is not None:
        if not isinstance(limit, list) or not limit:
            raise ValueError(f"limit must be whole numbers, got {_check.short(limit)}")
        limit = [_check.integer("limit", one, least=0, most=sequence) for one in limit]
        limit = limit[0], limit[1:]
    _check_memory(records, decisions, sequence, window)
    for record in records:
        _check_record(record, agent.setting.dim)
    if rows is not None:
        _check_rows(
            rows, agent.setting.dim, sequence, {one.sequence for one in records if one.status == OPEN}
        )
    counted = decisions, sequence, learned
    return BanditFile(agent, seed, counted, window, log, written, witness, limit, records, rows)


def _check_memory(records: list[Record], decisions: int, sequence: int, window: int) -> None:
    for counted, last in (("number", decisions), ("sequence", sequence)):
        numbers = [getattr(record, counted) for record in records]
        first = decisions - window if counted == "number" else 0
        if numbers != sorted(set(numbers)) or (
            numbers and not max(first, 0) < numbers[0] <= numbers[-1] <= last
        ):
            raise ValueError(f"memory must have the last decisions, in order of their {counted}")
    if len({record.event_id for record in records}) < len(records):
        raise ValueError("memory must have each event_id once")


def _check_record(record: Record, dim: int) -> None:
    checked_id(record.event_id)
    where = f"memory of {record.event_id!r}"
    count = len(record.arms)
    names_of(record.arms, count)
    if not 0 <= record.place < count or record.probabilities.shape != (count,):
        raise ValueError(f"{where} must have an arm among its arms, and their probabilities")
    unknown = record.status != OPEN and bool(np.isnan(record.probabilities).all())  # of a log without them
    if not unknown:
        least, total = record.probabilities.min(), record.probabilities.sum()
        if not (least >= 0 and abs(total - 1) <= CLOSE):
            raise ValueError(
                f"{where} must have probabilities >= 0 that sum to 1, got {_check.short(record.probabilities.tolist())}"
            )
    if record.status not in (OPEN, LEARNED, EXPIRED):
        raise ValueError(f"{where} must have a status that can be, got {_check.short(record.status)}")
    if record.status != EXPIRED and (record.status == LEARNED) != (record.reward is not None):
        raise ValueError(f"{where} must have a reward if it was learned, and none while it is open")
    if record.reward is not None and not abs(record.reward) <= LARGEST_REWARD:
        raise ValueError(
            f"{where} must have a reward of at most {LARGEST_REWARD:g} in size, got {record.reward:g}"
        )
    if not FIRST_TIME <= record.time <= LAST_TIME:
        raise ValueError(
            f"{where} must have a time within the years 1 to 9999, got {record.time} microseconds"
        )
    if (record.status == OPEN) != (record.features is not None):
        raise ValueError(f"{where} must have features while it is open, and only then")
    if record.features is not None:
        features = check_features(f"features of {record.event_id!r}", record.features, "arms", "dim")
        if features.shape != (count, dim):
            raise ValueError(f"{where} must have features of dim {dim} for each arm, got {features.shape}")


def _check_rows(rows: pl.DataFrame, dim: int, sequence: int, opened: set[int]) -> None:
    """Raise a ValueError unless a bandit can have logged these rows; `check_log` has seen them."""
    for name in rows.columns:
        if name not in ("context", "reward", "defaulted", "reward_sequence") and rows[name].null_count():
            raise ValueError(f"log must have {name} in every row")
    if not rows.height:
        return
    by_arm = rows["features"].explode()
    numbers = by_arm.explode()
    last = rows.select(pl.max_horizontal("sequence", "reward_sequence")).to_series()
    names = [*rows["event_id"].unique(), *rows["arms"].explode().unique()]
    times = pl.concat([rows["time"], rows["reward_time"]]).dt.epoch("us")
    sound = {
        f"features of dim {dim}": by_arm.null_count() == 0 and bool((by_arm.list.len() == dim).all()),
        f"features of at most {LARGEST_FEATURE:g} in size": _within(numbers, LARGEST_FEATURE),
        "a number for every probability": _within(rows["probabilities"].explode(), 1 + CLOSE),
        f"rewards of at most {LARGEST_REWARD:g} in size": _within(
            rows["reward"].drop_nulls(), LARGEST_REWARD
        ),
        "ids and arms of 1 to 200 printable signs": all(is_name(name) for name in names),
        "times within the years 1 to 9999": bool(times.is_between(FIRST_TIME, LAST_TIME).all()),
        f"sequence numbers from 1 to {sequence}": bool(
            ((rows["sequence"] >= 1) & (last >= rows["sequence"]) & (last <= sequence)).all()
        ),
        "each decision once": rows["sequence"].n_unique() == rows.height,
        "no row of a decision that is open": not opened.intersection(rows["sequence"]),
    }
    for words, holds in sound.items():
        if not holds:
            raise ValueError(f"log must have {words}")


def _within(numbers: pl.Series, most: float) -> bool:
    return numbers.null_count() == 0 and bool((numbers.is_finite() & (numbers.abs() <= most)).all())


def _parquet(table: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    table.rechunk().write_parquet(content)
    return content.getvalue()


def _table(records: list[Record]) -> pl.DataFrame:
    columns: dict[str, list[Any]] = {name: [] for name in RECORDS}
    for record in records:
        for name in RECORDS:
            if name == "arms":
                columns[name].append([str(arm) for arm in record.arms])
            elif name == "whole":
                columns[name].append([type(arm) is int for arm in record.arms])
            elif name in ("probabilities", "features"):
                value = getattr(record, name)
                columns[name].append(None if value is None else value.tolist())
            else:
                columns[name].append(getattr(record, name))
    return pl.DataFrame(columns, schema=RECORDS)


def _records(table: pl.DataFrame) -> list[Record]:
    if dict(table.schema) != RECORDS:
        raise ValueError(f"memory must have the columns {', '.join(RECORDS)}")
    required = table.select(pl.exclude("policy_number", "features", "reward"))
    if required.null_count().sum_horizontal().sum():
        raise ValueError("memory must have no gaps")
    records = []
    for row in table.iter_rows(named=True):
        whole = row.pop("whole")
        row["arms"] = tuple(_named(arm, number) for arm, number in zip(row["arms"], whole, strict=True))
        row["probabilities"] = np.array(row["probabilities"], dtype=np.float64)
        row["features"] = None if row["features"] is None else np.array(row["features"], dtype=np.float64)
        records.append(Record(**row))
    return records


def _named(arm: str, whole: bool) -> Arm:
    """An arm by the name that the caller gave it."""
    if not whole:
        return arm
    if str(int(arm)) != arm:
        raise ValueError(f"memory must have whole numbers as they are written, got {_check.short(arm)}")
    return int(arm)
