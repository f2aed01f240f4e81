"""The table of a simulation and its manifest: load, save, summarise."""

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from solid_bandits import _check, _files
from solid_bandits._files import DIAGNOSTICS_FILE, FORMAT, MANIFEST_FILE, TABLE_FILE
from solid_bandits._types import Plain
from solid_bandits.statistics import summary

COLUMNS = {
    "policy": pl.String,
    "run": pl.Int64,
    "step": pl.Int64,
    "regret": pl.Float64,
    "explored": pl.Int64,
}


@dataclass(frozen=True)
class Results:
    """What a simulation gave.

    Args:
        table: one row per policy, run and checkpoint: policy, run, step, regret (cumulative expected regret up
            to this step), explored (exploring rounds so far).
        manifest: plain data: `configuration` (what was asked), `versions`, `started`, `wall_seconds`.
        diagnostics: what policies recorded of themselves, one row per policy, run and checkpoint, where asked for:
            for SOLID multiplier, phase, normalisation, explored, statistic, threshold, and omega as a list of
            contexts * arms probabilities. Columns of other policies are null.

    """

    table: pl.DataFrame
    manifest: Plain
    diagnostics: pl.DataFrame | None = None

    @property
    def policies(self) -> list[str]:
        """The policies' labels, in the order in which they were given."""
        return list(self.manifest["configuration"]["policies"])

    @property
    def horizon(self) -> int:
        """n, the steps of each run."""
        return int(self.manifest["configuration"]["horizon"])

    @property
    def runs(self) -> int:
        """Independent repetitions."""
        return int(self.manifest["configuration"]["runs"])

    @property
    def seconds(self) -> dict[str, float]:
        """CPU seconds of each policy, where they were taken."""
        return self.manifest.get("seconds") or {}

    @property
    def lower_bound(self) -> Plain:
        """What is known of the regret lower bound: value, lower, upper and allocation, or the reason for none."""
        return self.manifest.get("lower_bound") or {}

    @property
    def bound(self) -> float | None:
        """v*, the constant of the regret lower bound; None where it is not known."""
        value = self.lower_bound.get("value")
        return float(value) if value is not None and math.isfinite(value) else None

    def summary(self, confidence: float = 0.95) -> pl.DataFrame:
        """Mean regret over runs at each checkpoint with Student's t interval: policy, step, mean, low, high, runs.

        With a single run the interval is unknown: low and high are null.
        """
        return summary.summarise(self.table, "regret", confidence)

    def final(self, confidence: float = 0.95) -> pl.DataFrame:
        """The summary at the last step, one row per policy, with the mean number of exploring rounds."""
        return summary.final(self.table, confidence)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write results.parquet and manifest.json into the directory `path`, made if it is not there.

        One process at a time writes, and results of another configuration are never overwritten. The results appear
        whole or not at all: the manifest, which has the hash of every table, comes last.
        """
        with claim(Path(path), self.manifest["configuration"]) as write:
            write(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Read a directory that `save` wrote; a ValueError unless tables and manifest are what was written."""
        directory = Path(path)
        manifest = _read_manifest(directory)
        if manifest is None:
            raise ValueError(f"{os.fspath(path)!r} holds no {MANIFEST_FILE}; give a saved results directory")
        tables = {
            name: _read_table(directory / name, record) for name, record in manifest.pop("tables").items()
        }
        try:
            _check_table(tables[TABLE_FILE], manifest["configuration"])
        except ValueError as error:
            raise ValueError(f"{TABLE_FILE} in {os.fspath(path)!r} {error}") from None
        return cls(tables[TABLE_FILE], manifest, tables.get(DIAGNOSTICS_FILE))


@contextmanager
def claim(directory: Path, configuration: Plain) -> Iterator[Callable[[Results], None]]:
    """Hold `directory` for results of `configuration`, as long as it takes: gives the function that writes them.

    Raises a ValueError if another process holds it, or if it holds anything else. What a killed process left there
    unfinished is put in order.
    """
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{os.fspath(directory)!r} is a file; give a directory")
    with _files.locked(directory):
        recover(directory)
        manifest = _read_manifest(directory)
        if manifest is not None and manifest["configuration"] != json.loads(json.dumps(configuration)):
            raise ValueError(
                f"{os.fspath(directory)!r} already holds other results; give a new directory or remove it"
            )
        for name in _TABLES:
            if manifest is None and (directory / name).exists():
                raise ValueError(
                    f"{os.fspath(directory)!r} holds a {name} without a manifest; give a new directory"
                )

        def write(results: Results) -> None:
            with _files.undisturbed():
                _write(results, directory)

        yield write


_TABLES = (TABLE_FILE, DIAGNOSTICS_FILE)

_PENDING_FILE = ".manifest.json.new"
"""The manifest, before the tables that it describes have their names."""

_SHAPED = {
    "format": int,
    "configuration": {
        "policies": {"*": dict},
        "horizon": int,
        "runs": int,
        "seed": int,
        "diagnostics?": bool,
        "problem?": {"name?": str, "description?": str, "fingerprint?": str},
    },
    "tables": {"*": {"sha256": str, "rows": int}},
    "versions?": {"*": str},
    "started?": str,
    "finished?": str,
    "wall_seconds?": float,
    "seconds?": {"*": float},
    "jobs?": int,
    "made_by?": {"*": str},
    "lower_bound?": {
        "value?": (float, None),
        "lower?": (float, None),
        "upper?": (float, None),
        "allocation?": [[float]],
        "problems?": int,
        "reason?": str,
    },
    "targets?": {
        "context_probs": [float],
        "n_arms": int,
        "at": [
            {
                "z": float,
                "omega": ([[float]], None),
                "multiplier": (float, None),
                "value": (float, None),
            }
        ],
    },
}
"""What a manifest holds."""


def _write(results: Results, directory: Path) -> None:
    """Write tables and manifest so that a process killed anywhere leaves what `recover` can put in order."""
    frames = {TABLE_FILE: results.table}
    if results.diagnostics is not None:
        frames[DIAGNOSTICS_FILE] = results.diagnostics
    contents = {name: _parquet(frame) for name, frame in frames.items()}
    records = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "rows": frames[name].height}
        for name, content in contents.items()
    }
    manifest = json.loads(json.dumps({**results.manifest, "format": FORMAT, "tables": records}))
    try:
        _check_manifest(manifest)
        _check_table(results.table, manifest["configuration"])
    except ValueError as error:
        raise ValueError(f"these results cannot be saved: {error}") from None
    _files.write_json(directory / _PENDING_FILE, manifest)
    for name, content in contents.items():
        if not _is_there(directory / name, records[name]):
            _files.write_bytes(directory / name, content)
    _files.write_json(directory / MANIFEST_FILE, manifest)
    (directory / _PENDING_FILE).unlink()


def recover(directory: Path) -> None:
    """Finish, or undo, what a killed process was writing: whoever calls this holds the directory."""
    _files.remove_unfinished(directory)
    pending = directory / _PENDING_FILE
    if not pending.exists():
        return
    with suppress(ValueError):
        records = _read_manifest(directory, _PENDING_FILE)["tables"]  # type: ignore[index]  # it is there
        written = [name for name, record in records.items() if _is_there(directory / name, record)]
        if len(written) == len(records):
            pending.replace(directory / MANIFEST_FILE)
            return
        if not (directory / MANIFEST_FILE).exists():
            for name in written:
                (directory / name).unlink()
    pending.unlink()


def _is_there(path: Path, record: Plain) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == record["sha256"]
    except OSError:
        return False


def _parquet(table: pl.DataFrame) -> bytes:
    """A table as Parquet: equal tables give equal bytes, and a full disk is left to plain writing to notice."""
    content = io.BytesIO()
    table.rechunk().write_parquet(content)
    return content.getvalue()


def _read_table(path: Path, record: Plain) -> pl.DataFrame:
    where = f"{path.name} in {os.fspath(path.parent)!r}"
    try:
        content = _files.read_bytes(path)
        if hashlib.sha256(content).hexdigest() != record["sha256"]:
            raise ValueError(
                f"{where} is not the table that {MANIFEST_FILE} describes (its hash differs); make the results again"
            )
        # Rows are counted before memory is taken for them: a few bytes of Parquet can stand for billions.
        rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
        if rows != record["rows"] or rows > _files.LARGEST_FILE // 8:
            raise ValueError(f"{where} has {rows:,} rows; {MANIFEST_FILE} says {record['rows']:,}")
        return pl.read_parquet(io.BytesIO(content))
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(f"{where} cannot be read ({_files.first_line(error)})") from None


def _check_table(table: pl.DataFrame, configuration: Plain) -> None:
    """Raise a ValueError unless there is one row per policy, run and checkpoint of what was asked for."""
    if dict(table.schema) != COLUMNS:
        raise ValueError(f"must have columns {list(COLUMNS)}, got {table.columns}")
    keys = table.select("policy", "run", "step")
    policies, runs, steps = (set(keys[name].unique()) for name in keys.columns)
    whole = (
        keys.height > 0
        and keys.null_count().sum_horizontal().item() == 0
        and policies == set(configuration["policies"])
        and (len(runs), min(runs), max(runs)) == (configuration["runs"], 0, configuration["runs"] - 1)
        and max(steps, default=0) == configuration["horizon"]
        and keys.height == len(policies) * len(runs) * len(steps) == keys.n_unique()
    )
    if not whole:
        raise ValueError("must have one row for each policy, run and checkpoint of its configuration")


def _check_manifest(manifest: object) -> None:
    _files.check_fields(manifest, _SHAPED)
    assert isinstance(manifest, dict)
    configuration, tables = manifest["configuration"], manifest["tables"]
    if manifest["format"] != FORMAT:
        raise ValueError(f"format must be {FORMAT}, got {manifest['format']}")
    if not configuration["policies"]:
        raise ValueError("configuration.policies must not be empty")
    for name in ("horizon", "runs"):
        _check.integer(f"configuration.{name}", configuration[name], least=1)
    wanted = _TABLES if configuration.get("diagnostics", False) else _TABLES[:1]
    if set(tables) != set(wanted):
        raise ValueError(f"tables must be {', '.join(wanted)}, got {', '.join(map(repr, tables))}")
    strangers = set(manifest.get("seconds", {})) - set(configuration["policies"])
    if strangers:
        raise ValueError(
            f"seconds must be those of the policies, got {', '.join(sorted(map(repr, strangers)))}"
        )


def _read_manifest(directory: Path, name: str = MANIFEST_FILE) -> Plain | None:
    path = directory / name
    if not path.exists():
        return None
    try:
        manifest: Plain = json.loads(_files.read_bytes(path).decode("utf-8"))
        _check_manifest(manifest)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{MANIFEST_FILE} in {os.fspath(directory)!r} cannot be read by this version "
            f"({_files.first_line(error)}); give another directory"
        ) from None
    return manifest
