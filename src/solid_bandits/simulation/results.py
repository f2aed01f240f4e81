"""Results of a simulation, as a table and its manifest: load, save, summarise, plot."""

import hashlib
import io
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from solid_bandits._internal import checks, extras, files, wording
from solid_bandits._internal.decoding import convert, decode, encode
from solid_bandits._internal.files import FORMAT, MANIFEST_FILE, TABLE_FILE
from solid_bandits._internal.signals import deferred
from solid_bandits._internal.types import Plain
from solid_bandits.simulation.results_format import FIELDS, Manifest, SavedTable
from solid_bandits.simulation.table_format import check_table
from solid_bandits.statistics import comparison, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TABLES = ("table", "summary", "final", "diagnostics", "arms", "calibration")
"""Names of the tables that `Results.to_pandas` returns."""


@dataclass(frozen=True, repr=False)
class Results:
    """The results of a simulation.

    Args:
        table: one row per policy, run and checkpoint: policy, run, step, regret (cumulative expected regret up
            to this step), explored (exploring rounds so far).
        manifest: plain data: `configuration` (the arguments), `versions`, `started`, `wall_seconds`.
        diagnostics: internal quantities recorded by the policies, one row per policy, run and checkpoint, if requested:
            for SOLID multiplier, phase, normalisation, explored, statistic, threshold, and omega as a list of
            contexts * arms probabilities; for every policy pulls, a list of counts of the arms for each context, where
            these were requested. Columns of other policies are null.
        arms: on a stream, pulls of each arm up to each checkpoint, summed over runs; empty where there are many arms.
        calibration: on a stream, predicted and received reward of the arm pulled, of a sample of rounds.

    On a stream the table also has reward (received up to this step) and ridge_regret (regret against the greedy policy
    of a ridge fit to all known rewards; null where mean rewards are linear by construction).

    Example:
        >>> import solid_bandits as sb
        >>> policies = {"RandUCB": sb.RandUCB(), "LinTS": sb.LinTS()}
        >>> results = sb.simulate(sb.problems.toy(), policies, horizon=200, runs=4, jobs=1)
        >>> results.final().columns
        ['policy', 'step', 'mean', 'low', 'high', 'runs', 'explored']
        >>> results.table.height  # policies x runs x checkpoints
        1072
        >>> len(results.to_pandas()) == results.table.height
        True
        >>> results.summary()["step"].max()
        200
        >>> results.plot(log=True).get_xscale()
        'log'
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results.report(f"{folder}/page.html")
        ...     results.save(f"{folder}/results")
        ...     same = sb.Results.load(f"{folder}/results")
        >>> same.policies
        ['RandUCB', 'LinTS']
    """

    table: pl.DataFrame
    manifest: Plain
    diagnostics: pl.DataFrame | None = None
    arms: pl.DataFrame | None = None
    calibration: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        for name in ("table", *FIELDS.values()):
            value = getattr(self, name)
            if not isinstance(value, pl.DataFrame) and (name == "table" or value is not None):
                raise ValueError(f"{name} must be a polars DataFrame, got {checks.short(value)}")
        if not isinstance(self.manifest, dict):
            raise ValueError(f"manifest must be a dict, got {checks.short(self.manifest)}")

    @property
    def policies(self) -> list[str]:
        """The labels of the policies, in the order given."""
        return list(self.manifest["configuration"]["policies"])

    @property
    def horizon(self) -> int:
        """n, the number of steps of each run."""
        return int(self.manifest["configuration"]["horizon"])

    @property
    def runs(self) -> int:
        """Number of independent repetitions."""
        return int(self.manifest["configuration"]["runs"])

    @property
    def seconds(self) -> dict[str, float]:
        """CPU seconds of each policy, where they were measured."""
        return self.manifest.get("seconds") or {}

    @property
    def lower_bound(self) -> Plain:
        """The regret lower bound, as far as it is known: value, lower, upper and allocation, or the reason why there is
        none.
        """
        return self.manifest.get("lower_bound") or {}

    @property
    def bound(self) -> float | None:
        """v*, the constant of the regret lower bound; None if unknown."""
        value = self.lower_bound.get("value")
        return float(value) if value is not None and math.isfinite(value) else None

    def summary(self, confidence: float = 0.95) -> pl.DataFrame:
        """The columns are policy, step, mean, low, high and runs. With a single run, low and high are null.

        With a single run the interval is unknown: low and high are null.
        """
        return summary.summarise(self.table, "regret", confidence)

    def final(self, confidence: float = 0.95) -> pl.DataFrame:
        """Return the summary at the last step, one row per policy, with the mean number of exploring rounds."""
        return summary.final(self.table, confidence)

    def compare(
        self, first: str, second: str, measure: str = "regret", confidence: float = 0.95
    ) -> comparison.Comparison:
        """Return the difference between two policies at the last step, run by run, with Student's interval.

        Args:
            first: label of a policy.
            second: label of the other.
            measure: a column of the table: regret, explored; on a stream also reward, ridge_regret.
            confidence: level of the interval.

        Example:
            >>> import solid_bandits as sb
            >>> policies = [sb.RandUCB(), sb.LinUCB(radius="paper")]
            >>> results = sb.simulate(sb.problems.toy(), policies, horizon=1000, runs=10)
            >>> results.compare("RandUCB", "LinUCB").better
            'RandUCB'
        """
        return comparison.compare(self.table, first, second, measure, confidence)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        axes: "Axes | None" = None,
        log: bool = False,
        bands: bool = True,
        bound: float | None = None,
        title: str = "",
    ) -> "Axes":
        """Draw mean cumulative regret against time, with 95% Student bands; needs the extra `plot`.

        Without a path the figure belongs to pyplot: a notebook shows it, and so does `matplotlib.pyplot.show()`.

        Args:
            path: a .png, .pdf or .svg file to write.
            axes: axes to draw into, instead of a new figure.
            log: whether the time axis is logarithmic: there, regret that grows like log t is a straight line.
            bands: whether the intervals are drawn.
            bound: v*, for the dashed line v* log t, such as `sb.bounds.lower_bound(problem).value`; None uses the one
                stored with these results, if any. The bound is asymptotic: at a finite step policies may lie below it.
            title: the title above the panel.

        Returns:
            The axes; `.figure` is their figure.

        """
        for name, value in (("log", log), ("bands", bands)):
            checks.switch(name, value)
        if not isinstance(title, str):
            raise checks.ArgumentError("title", f"must be text, got {checks.short(title)}")
        to = None if path is None else files.path_of("path", path)
        drawing = extras.load("solid_bandits.report.plot", "results.plot")
        panel: Axes = drawing.plot_regret(self, to, axes, log, bands, self._bound(bound), title)
        return panel

    def report(self, path: str | os.PathLike[str], bound: float | None = None) -> None:
        """Write one HTML page: curves, final regret run by run, standings, configuration; needs the extra `report`.

        Args:
            path: the file to write.
            bound: v*, as in `plot`.

        """
        to = files.path_of("path", path)
        page = extras.load("solid_bandits.report.page", "results.report")
        page.write_page(self, to, self._bound(bound))

    def to_pandas(self, what: str = "table") -> Any:
        """Return a table as a pandas data frame; needs the extra `pandas`. Nulls become NaN.

        Args:
            what: `table`, `summary`, `final`; or `diagnostics`, `arms`, `calibration`, where they exist.

        """
        checks.choice("what", what, TABLES)
        found = getattr(self, what)
        frame: pl.DataFrame | None = found() if callable(found) else found
        if frame is None:
            raise ValueError(
                f"what must be a table that these results have, got {what!r}, which was not recorded"
            )
        pandas = extras.load("pandas", "results.to_pandas")
        # Column by column, because polars' own conversion needs pyarrow, which is larger than pandas.
        return pandas.DataFrame(
            {
                column.name: column.to_numpy() if column.dtype.is_numeric() else column.to_list()
                for column in frame
            }
        )

    def __repr__(self) -> str:
        labels = self.table["policy"].unique(maintain_order=True).to_list()
        finals = {row["policy"]: row["mean"] for row in self.final().iter_rows(named=True)}
        words = ", ".join(f"{label} {wording.number(finals[label])}" for label in labels)
        runs, steps = self.table["run"].n_unique(), int(self.table["step"].max() or 0)  # type: ignore[arg-type]
        return (
            f"Results({wording.count(runs, 'run')} of {wording.count(steps, 'step')}; mean regret: {words})"
        )

    def _repr_html_(self) -> str:
        html: str = extras.load("solid_bandits.report.notebook", "results").html(self)
        return html

    def _bound(self, given: float | None) -> float | None:
        return self.bound if given is None else checks.not_negative("bound", given)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write results.parquet and manifest.json into the directory `path`, created if needed.

        Only one process writes at a time, and results of another configuration are never overwritten. The results
        appear completely or not at all, because the manifest, which holds the hash of every table, is written last.
        """
        with claim(files.path_of("path", path), self.manifest["configuration"]) as write:
            write(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Read a directory that `save` wrote; raise a ValueError unless tables and manifest match."""
        directory = files.path_of("path", path)
        found = _read_manifest(directory)
        if found is None:
            raise ValueError(f"{os.fspath(path)!r} holds no {MANIFEST_FILE}; give a saved results directory")
        plain, manifest = found
        del plain["tables"]
        tables = {name: _read_table(directory / name, record) for name, record in manifest.tables.items()}
        try:
            check_table(tables[TABLE_FILE], manifest.configuration)
        except ValueError as error:
            raise ValueError(f"{TABLE_FILE} in {os.fspath(path)!r} {error}") from None
        named = {field: tables.get(name) for name, field in FIELDS.items()}
        return cls(tables[TABLE_FILE], plain, **named)


@contextmanager
def claim(directory: Path, configuration: Plain) -> Iterator[Callable[[Results], None]]:
    """Lock `directory` for results of `configuration`, and yield the function that writes them.

    Raises a ValueError if another process holds it, or if it contains anything else. Files that a killed process left
    unfinished are completed or removed.
    """
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{os.fspath(directory)!r} is a file; give a directory")
    with files.locked(directory):
        recover(directory)
        found = _read_manifest(directory)
        if found is not None and found.plain["configuration"] != decode(encode(configuration)):
            raise ValueError(
                f"{os.fspath(directory)!r} already holds other results; give a new directory or remove it"
            )
        for name in (TABLE_FILE, *FIELDS):
            if found is None and (directory / name).exists():
                raise ValueError(
                    f"{os.fspath(directory)!r} holds a {name} without a manifest; give a new directory"
                )

        def write(results: Results) -> None:
            with deferred():
                _write(results, directory)

        yield write


_PENDING_FILE = ".manifest.json.new"
"""Name of the manifest before the tables that it describes have their final names."""


def _write(results: Results, directory: Path) -> None:
    """Write tables and manifest so that `recover` can repair whatever a process killed at any point leaves."""
    every = {TABLE_FILE: results.table, **{name: getattr(results, field) for name, field in FIELDS.items()}}
    frames = {name: table for name, table in every.items() if table is not None}
    contents = {name: _parquet(frame) for name, frame in frames.items()}
    records = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "rows": frames[name].height}
        for name, content in contents.items()
    }
    content = {**results.manifest, "format": FORMAT, "tables": records}
    try:
        manifest = convert(decode(encode(content)), Manifest)
        check_table(results.table, manifest.configuration)
    except ValueError as error:
        raise ValueError(f"these results cannot be saved: {error}") from None
    files.write_json(directory / _PENDING_FILE, content)
    for name, record in manifest.tables.items():
        if not _is_there(directory / name, record):
            files.write_bytes(directory / name, contents[name])
    files.write_json(directory / MANIFEST_FILE, content)
    (directory / _PENDING_FILE).unlink()


def recover(directory: Path) -> None:
    """Complete or undo the writing that a killed process left; the caller must hold the directory."""
    files.remove_unfinished(directory)
    pending = directory / _PENDING_FILE
    if not pending.exists():
        return
    with suppress(ValueError):
        records = _read_manifest(directory, _PENDING_FILE).checked.tables  # type: ignore[union-attr]  # it is there
        written = [name for name, record in records.items() if _is_there(directory / name, record)]
        if len(written) == len(records):
            pending.replace(directory / MANIFEST_FILE)
            return
        if not (directory / MANIFEST_FILE).exists():
            for name in written:
                (directory / name).unlink()
    pending.unlink()


def _is_there(path: Path, record: SavedTable) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == record.sha256
    except OSError:
        return False


def _parquet(table: pl.DataFrame) -> bytes:
    """Return a table as Parquet; equal tables give equal bytes. Built in memory, so that the plain write reports a full
    disk.
    """
    content = io.BytesIO()
    table.rechunk().write_parquet(content)
    return content.getvalue()


def _read_table(path: Path, record: SavedTable) -> pl.DataFrame:
    where = f"{path.name} in {os.fspath(path.parent)!r}"
    try:
        content = files.read_bytes(path)
        if hashlib.sha256(content).hexdigest() != record.sha256:
            raise ValueError(
                f"{where} is not the table that {MANIFEST_FILE} describes (its hash differs); make the results again"
            )
        # Count the rows before allocating memory for them: a few bytes of Parquet can stand for billions.
        rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
        if rows != record.rows or rows > files.LARGEST_FILE // 8:
            raise ValueError(f"{where} has {rows:,} rows; {MANIFEST_FILE} says {record.rows:,}")
        return pl.read_parquet(io.BytesIO(content))
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(f"{where} cannot be read ({files.first_line(error)})") from None


class _Read(NamedTuple):
    """A manifest, both as read from the file and as checked."""

    plain: Plain
    checked: Manifest


def _read_manifest(directory: Path, name: str = MANIFEST_FILE) -> _Read | None:
    path = directory / name
    if not path.exists():
        return None
    try:
        plain = decode(files.read_bytes(path))
        return _Read(plain, convert(plain, Manifest))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{MANIFEST_FILE} in {os.fspath(directory)!r} cannot be read by this version "
            f"({files.first_line(error)}); give another directory"
        ) from None
