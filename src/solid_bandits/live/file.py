"""A bandit as one file: an archive of its agent in JSON, and its memory and log as Parquet. Nothing in it is run."""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits import _check
from solid_bandits._files import LARGEST_FILE, first_line, read_bytes, read_member, write_bytes
from solid_bandits._types import Plain
from solid_bandits.agent_file import AgentFile, agent_from_plain, agent_to_plain
from solid_bandits.live.memory import EXPIRED, LEARNED, OPEN, Record
from solid_bandits.logs.schema import check_log
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.state import LARGEST_COUNT

KIND = "solid-bandits bandit"
VERSION = 1
"""Of the format: raised when a file of before would be read wrongly."""
MAIN, MEMORY, LOG = "bandit.json", "memory.parquet", "log.parquet"

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
    counters: tuple[int, int, int]
    """Decisions, events and rewards so far."""
    window: int
    log: str | bool | None
    """The directory of the log; None for one in memory, False for none."""
    records: list[Record]
    rows: pl.DataFrame | None
    """Of the log, those that are in memory."""


def write(path: str | os.PathLike[str], content: BanditFile) -> None:
    """Write the file, whole or not at all."""
    main = {
        "file": KIND,
        "version": VERSION,
        "agent": agent_to_plain(content.agent),
        "counters": list(content.counters),
        "window": content.window,
        "log": content.log,
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        # A fixed date: the same bandit gives the same bytes.
        out.writestr(zipfile.ZipInfo(MAIN), json.dumps(main, allow_nan=False))
        out.writestr(zipfile.ZipInfo(MEMORY), _parquet(_table(content.records)))
        if content.rows is not None:
            out.writestr(zipfile.ZipInfo(LOG), _parquet(content.rows))
    try:
        write_bytes(Path(path), archive.getvalue())
    except OSError as error:
        raise ValueError(
            f"bandit file {os.fspath(path)!r} cannot be written ({error.strerror or error})"
        ) from None


def read(path: str | os.PathLike[str], own: Policy | None = None) -> BanditFile:
    """Read the file; a ValueError says what is wrong with it."""
    name = f"bandit file {os.fspath(path)!r}"
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(Path(path)))) as archive:
            members = {one.filename: one for one in archive.infolist()}
            if not {MAIN, MEMORY} <= set(members) <= {MAIN, MEMORY, LOG}:
                raise ValueError("it is not a file that Bandit.save wrote")
            contents = {one: read_member(archive, members[one], LARGEST_FILE) for one in members}
        main = json.loads(contents[MAIN])
        if not isinstance(main, dict) or main.get("file") != KIND or main.get("version") != VERSION:
            raise ValueError(f"it must be of version {VERSION} of this format")
        records = _records(pl.read_parquet(io.BytesIO(contents[MEMORY])))
        rows = check_log(pl.read_parquet(io.BytesIO(contents[LOG]))) if LOG in contents else None
    except (
        OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile, NotImplementedError,
        pl.exceptions.PolarsError, pl.exceptions.PanicException,
    ) as error:  # fmt: skip
        raise ValueError(f"{name} cannot be read ({first_line(error)})") from None
    agent = agent_from_plain(main.get("agent"), name, own)
    try:
        return _checked(main, agent, records, rows)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} cannot be used: {first_line(error)}") from None


def _checked(main: Plain, agent: AgentFile, records: list[Record], rows: pl.DataFrame | None) -> BanditFile:
    if set(main) != {"file", "version", "agent", "counters", "window", "log"}:
        raise ValueError("it has other fields than it must have")
    counters = main["counters"]
    if not isinstance(counters, list) or len(counters) != 3:
        raise ValueError("counters must be three whole numbers")
    decisions, sequence, learned = (
        _check.integer("counters", one, least=0, most=LARGEST_COUNT) for one in counters
    )
    window = _check.integer("window", main["window"], least=1)
    log = main["log"]
    if log is True or not isinstance(log, bool | str | None) or (rows is None) != (log is False):
        raise ValueError(f"log must be a directory, null or false, got {log!r}")
    numbers = [record.number for record in records]
    if numbers != sorted(set(numbers)) or (
        numbers and not decisions - window < numbers[0] <= numbers[-1] <= decisions
    ):
        raise ValueError("memory must have the last decisions, in order")
    for record in records:
        _check_record(record, agent.setting.dim, sequence)
    return BanditFile(agent, (decisions, sequence, learned), window, log, records, rows)


def _check_record(record: Record, dim: int, sequence: int) -> None:
    where = f"memory of {record.event_id!r}"
    if record.status not in (OPEN, LEARNED, EXPIRED) or not 0 < record.sequence <= sequence:
        raise ValueError(f"{where} must have a status and a sequence number that can be")
    count = len(record.arms)
    if not 0 <= record.place < count or record.probabilities.shape != (count,):
        raise ValueError(f"{where} must have an arm among its arms, and their probabilities")
    if (record.status == OPEN) != (record.features is not None):
        raise ValueError(f"{where} must have features while it is open, and only then")
    if record.features is not None:
        sound = record.features.shape == (count, dim) and bool(np.isfinite(record.features).all())
        if not sound:
            raise ValueError(f"{where} must have finite features of dim {dim} for each arm")
    if record.reward is not None and not np.isfinite(record.reward):
        raise ValueError(f"{where} must have a finite reward")


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
        row["arms"] = tuple(
            int(arm) if number else arm for arm, number in zip(row["arms"], whole, strict=True)
        )
        row["probabilities"] = np.array(row["probabilities"])
        row["features"] = None if row["features"] is None else np.array(row["features"])
        records.append(Record(**row))
    return records
