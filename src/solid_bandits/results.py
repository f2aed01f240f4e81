"""The table of a simulation and its manifest: load, save, summarise."""

import io
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from solid_bandits import _files
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

        Results of another configuration are never overwritten. Each file appears whole or not at all, the
        manifest last: a directory with a manifest is complete.
        """
        directory = Path(path)
        check_free(directory, self.manifest["configuration"])
        directory.mkdir(parents=True, exist_ok=True)
        _write_table(directory / TABLE_FILE, self.table)
        if self.diagnostics is not None:
            _write_table(directory / DIAGNOSTICS_FILE, self.diagnostics)
        _files.write_json(directory / MANIFEST_FILE, self.manifest)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Read a directory that `save` wrote."""
        directory = Path(path)
        manifest = _read_manifest(directory)
        if manifest is None:
            raise ValueError(f"{os.fspath(path)!r} holds no {MANIFEST_FILE}; give a saved results directory")
        table = _read_table(directory / TABLE_FILE)
        if dict(table.schema) != COLUMNS:
            raise ValueError(
                f"{TABLE_FILE} in {os.fspath(path)!r} must have columns {list(COLUMNS)}, got {table.columns}"
            )
        recorded = manifest["configuration"].get("diagnostics", False)
        return cls(table, manifest, _read_table(directory / DIAGNOSTICS_FILE) if recorded else None)


def check_free(directory: Path, configuration: Plain) -> None:
    """Raise a ValueError unless results of `configuration` may be written into `directory`."""
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{os.fspath(directory)!r} is a file; give a directory")
    manifest = _read_manifest(directory)
    if manifest is not None and manifest["configuration"] != json.loads(json.dumps(configuration)):
        raise ValueError(
            f"{os.fspath(directory)!r} already holds other results; give a new directory or remove it"
        )
    if manifest is None and (directory / TABLE_FILE).exists():
        raise ValueError(
            f"{os.fspath(directory)!r} holds a {TABLE_FILE} without a manifest; give a new directory"
        )


def _write_table(path: Path, table: pl.DataFrame) -> None:
    """Write a table as Parquet: equal tables give equal bytes, and a full disk is left to plain writing to notice."""
    content = io.BytesIO()
    table.rechunk().write_parquet(content)
    _files.write_whole(path, lambda file: file.write_bytes(content.getvalue()))


def _read_table(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ValueError(
            f"{path.name} in {os.fspath(path.parent)!r} cannot be read ({_files.first_line(error)})"
        ) from None


def _read_manifest(directory: Path) -> Plain | None:
    path = directory / MANIFEST_FILE
    if not path.exists():
        return None
    try:
        manifest: Plain = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT or "configuration" not in manifest:
            raise KeyError
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(
            f"{MANIFEST_FILE} in {os.fspath(directory)!r} cannot be read by this version; give another directory"
        ) from None
    return manifest
