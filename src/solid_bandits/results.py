"""The table of a simulation and its manifest: load, save, summarise."""

import io
import json
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from solid_bandits import _check
from solid_bandits._types import Plain

TABLE_FILE = "results.parquet"
INSIDES_FILE = "insides.parquet"
MANIFEST_FILE = "manifest.json"
FORMAT = 1

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
        insides: what policies showed of themselves, one row per policy, run and checkpoint, where asked for: for
            SOLID multiplier, phase, normalisation, explored, statistic, threshold, and omega as a list of
            contexts * arms probabilities. Columns of other policies are null.

    """

    table: pl.DataFrame
    manifest: Plain
    insides: pl.DataFrame | None = None

    @property
    def policies(self) -> list[str]:
        """The policies' labels, in the order in which they were given."""
        return list(self.manifest["configuration"]["policies"])

    def summary(self, confidence: float = 0.95) -> pl.DataFrame:
        """Mean regret over runs at each checkpoint with Student's t interval: policy, step, mean, low, high, runs.

        With a single run the interval is unknown: low and high are null.
        """
        from scipy.stats import t as student

        level = _check.number("confidence", confidence, above=0)
        if level >= 1:
            raise ValueError(f"confidence is {confidence!r}; give a number in (0, 1), such as 0.95")
        grouped = self.table.group_by("policy", "step", maintain_order=True).agg(
            pl.col("regret").mean().alias("mean"),
            pl.col("regret").std().alias("std"),
            pl.len().cast(pl.Int64).alias("runs"),
        )
        quantile = {
            runs: float(student.ppf(0.5 + level / 2, runs - 1))
            for runs in grouped["runs"].unique().to_list()
            if runs > 1
        }
        half = (
            pl.col("runs").replace_strict(quantile, default=None, return_dtype=pl.Float64)
            * pl.col("std")
            / pl.col("runs").sqrt()
        )
        return grouped.select(
            "policy",
            "step",
            "mean",
            (pl.col("mean") - half).alias("low"),
            (pl.col("mean") + half).alias("high"),
            "runs",
        )

    def final(self, confidence: float = 0.95) -> pl.DataFrame:
        """The summary at the last step, one row per policy, with the mean number of exploring rounds."""
        last = self.table["step"].max()
        explored = (
            self.table.filter(pl.col("step") == last)
            .group_by("policy", maintain_order=True)
            .agg(pl.col("explored").mean())
        )
        return (
            self.summary(confidence)
            .filter(pl.col("step") == last)
            .join(explored, on="policy", maintain_order="left")
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write results.parquet and manifest.json into the directory `path`, made if it is not there.

        Results of another configuration are never overwritten. Each file appears whole or not at all, the
        manifest last: a directory with a manifest is complete.
        """
        directory = Path(path)
        check_free(directory, self.manifest["configuration"])
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(directory / TABLE_FILE, lambda file: file.write_bytes(_parquet(self.table)))
        insides = self.insides
        if insides is not None:
            write_whole(directory / INSIDES_FILE, lambda file: file.write_bytes(_parquet(insides)))
        text = json.dumps(self.manifest, indent=2, ensure_ascii=False) + "\n"
        write_whole(directory / MANIFEST_FILE, lambda file: file.write_text(text, encoding="utf-8"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Read a directory that `save` wrote."""
        directory = Path(path)
        manifest = _read_manifest(directory)
        if manifest is None:
            raise ValueError(
                f"path is {os.fspath(path)!r}, which holds no {MANIFEST_FILE}; give a saved results directory"
            )
        table = _read_table(directory / TABLE_FILE)
        if dict(table.schema) != COLUMNS:
            raise ValueError(
                f"{TABLE_FILE} in {os.fspath(path)!r} has columns {table.columns}; expected {list(COLUMNS)}"
            )
        recorded = manifest["configuration"].get("insides", False)
        return cls(table, manifest, _read_table(directory / INSIDES_FILE) if recorded else None)


def check_free(directory: Path, configuration: Plain) -> None:
    """Raise a ValueError unless results of `configuration` may be written into `directory`."""
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"path is {os.fspath(directory)!r}, which is a file; give a directory")
    manifest = _read_manifest(directory)
    if manifest is not None and manifest["configuration"] != json.loads(json.dumps(configuration)):
        raise ValueError(
            f"path is {os.fspath(directory)!r}, which already holds other results; give a new directory or remove it"
        )
    if manifest is None and (directory / TABLE_FILE).exists():
        raise ValueError(
            f"path is {os.fspath(directory)!r}, which holds a {TABLE_FILE} without a manifest; give a new directory"
        )


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it, so that `path` is never half-written."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{path.suffix}")
    try:
        write(temporary)
        # On the disk before it has its name: not even a power cut leaves half a file under it.
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _parquet(table: pl.DataFrame) -> bytes:
    """The table as Parquet: equal tables give equal bytes, and a full disk is left to plain writing to notice."""
    content = io.BytesIO()
    table.rechunk().write_parquet(content)
    return content.getvalue()


def _read_table(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ValueError(
            f"{path.name} in {os.fspath(path.parent)!r} cannot be read ({_one_line(error)})"
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
            f"path is {os.fspath(directory)!r}, whose {MANIFEST_FILE} this version cannot read; give another directory"
        ) from None
    return manifest


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
