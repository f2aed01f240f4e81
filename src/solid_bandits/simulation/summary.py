"""Summary statistics of many runs of many policies: means, quantiles and the worst runs; one file of numbers."""

import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from solid_bandits._internal import checks, files, tables
from solid_bandits._internal.decoding import Content, Count, NotNegative, convert, decode
from solid_bandits._internal.types import Floats, Ints, Plain
from solid_bandits.statistics.estimate import UNKNOWN, Estimate
from solid_bandits.statistics.intervals import CONFIDENCE, share
from solid_bandits.statistics.sketch import Moments, Sketch

if TYPE_CHECKING:
    import polars as pl

FORMAT = 2
SHARES = (0.5, 0.95, 0.99, 0.999)


class PolicySummary(Content, omit_defaults=False):
    """Summary of the runs of one policy at every checkpoint."""

    steps: Ints
    regret: Moments
    explored: Moments
    sketches: list[Sketch]
    """Sketches of the regret, one for each checkpoint."""
    worst: list[tuple[float, Count]]
    """Final regret and number of the runs with the largest regret, worst first."""
    seconds: NotNegative = 0.0
    """CPU or GPU seconds."""

    def __post_init__(self) -> None:
        moments = [self.regret, self.explored]
        numbers = [column for one in moments for column in (one.mean, one.squares)]
        lengths = {len(self.sketches), *map(len, numbers)}
        if not len(self.steps) or lengths != {len(self.steps)}:
            raise ValueError("every column must have one entry for each of steps")
        if not all((column >= 0).all() for column in numbers):
            raise ValueError("mean and squares must be >= 0")
        if any(one.count != self.runs for one in moments) or any(
            one.size != self.runs or (one.counts < 0).any() for one in self.sketches
        ):
            raise ValueError("counts must sum to runs at every checkpoint")

    @classmethod
    def none(cls, steps: Ints) -> "PolicySummary":
        """Return the summary of no runs."""
        columns = len(steps)
        return cls(steps, Moments.none(columns), Moments.none(columns), [Sketch() for _ in steps], [])

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.regret.count

    def add(self, first: int, regret: Floats, explored: Ints, seconds: float, keep: int) -> None:
        """Add runs `first`, `first + 1`, ..., shape (runs, checkpoints), and keep at most `keep` of the worst."""
        self.regret.add(regret)
        self.explored.add(np.asarray(explored, dtype=np.float64))
        for sketch, column in zip(self.sketches, regret.T, strict=True):
            sketch.add(column)
        last = regret[:, -1]
        largest = np.argsort(-last, kind="stable")[:keep]
        ranked = self.worst + [(float(last[place]), first + int(place)) for place in largest]
        self.worst = sorted(ranked, key=lambda one: (-one[0], one[1]))[:keep]
        self.seconds += seconds

    def quantile(self, of: float, place: int = -1, level: float = CONFIDENCE) -> Estimate:
        """Return a quantile of the regret at a checkpoint with its interval; exact among the worst runs at the end."""
        if not self.runs:
            return UNKNOWN
        found = self.sketches[place].quantile(of, level)
        rank = max(math.ceil(of * self.runs - 1e-9), 1)
        if place in (-1, len(self.steps) - 1) and self.runs - rank < len(self.worst):
            return found._replace(value=self.worst[self.runs - rank][0])
        return found


class Summary(Content, omit_defaults=False):
    """The result of `summarise`: for each policy the mean regret, its quantiles and its worst runs.

    Intervals are at 95% unless `confidence` says otherwise. Quantiles come from counts in bins that are at most 1.6%
    wide, and are exact among the worst runs; their intervals hold whatever the distribution of the regret is.

    Example:
        >>> import solid_bandits as sb
        >>> summary = sb.summarise(sb.problems.toy(), {"RandUCB": sb.RandUCB()}, horizon=100, runs=50, jobs=1)
        >>> summary.final().height
        1
    """

    configuration: Plain
    """Arguments of `summarise`."""
    device: str
    """Name of the device that played the runs."""
    policies: dict[str, PolicySummary]
    format: int = FORMAT
    """Format number of the file."""

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format must be {FORMAT}, got {self.format}")

    def table(self, confidence: float = CONFIDENCE) -> "pl.DataFrame":
        """Mean regret at each checkpoint: policy, step, mean, low, high (Student's interval), std, explored, runs."""
        frames = [
            tables.DataFrame(
                {
                    "policy": [label] * len(one.steps),
                    "step": one.steps,
                    "mean": one.regret.mean,
                    "std": np.sqrt(one.regret.variance),
                    "explored": one.explored.mean,
                    "runs": [one.runs] * len(one.steps),
                }
            )
            for label, one in self.policies.items()
        ]
        found: pl.DataFrame = tables.concat(frames).with_columns(tables.col("std").fill_nan(None))
        from solid_bandits.statistics.summary import with_interval

        table = with_interval(found, confidence)
        return table.select("policy", "step", "mean", "low", "high", "std", "explored", "runs")

    def quantiles(self, shares: tuple[float, ...] = SHARES, confidence: float = CONFIDENCE) -> "pl.DataFrame":
        """Quantiles of the regret at the end: policy, share, regret, low, high; null where runs are too few."""
        level = checks.number("confidence", confidence, above=0, below=1)
        if not isinstance(shares, Iterable):
            raise checks.ArgumentError("shares", f"must be a list of numbers, got {checks.short(shares)}")
        wanted = [checks.number("shares", share, above=0, below=1) for share in shares]
        rows = [
            {
                "policy": label,
                "share": of,
                **dict(zip(("regret", "low", "high"), one.quantile(of, -1, level), strict=True)),
            }
            for label, one in self.policies.items()
            for of in wanted
        ]
        return tables.DataFrame(rows, infer_schema_length=None)

    def final(self, confidence: float = CONFIDENCE) -> "pl.DataFrame":
        """One row per policy: mean regret at the end with its interval, deviation, quantiles and the worst run."""
        table = self.table(confidence)
        from solid_bandits.statistics.summary import last_step

        last = last_step(table)
        columns = [
            tables.Series(f"q{of * 100:g}", [one.quantile(of).value for one in self.policies.values()])
            for of in SHARES
        ]
        worst = tables.Series(
            "worst", [one.worst[0][0] if one.worst else None for one in self.policies.values()]
        )
        return last.drop("step").with_columns(*columns, worst)

    @property
    def worst(self) -> "pl.DataFrame":
        """The worst runs, so that any can be played again: policy, run, regret."""
        rows = [
            {"policy": label, "run": run, "regret": regret}
            for label, one in self.policies.items()
            for regret, run in one.worst
        ]
        return tables.DataFrame(
            rows, schema={"policy": tables.String, "run": tables.Int64, "regret": tables.Float64}
        )

    def survival(self, policy: str) -> "pl.DataFrame":
        """Share of the runs whose regret at the end is at least so large: regret, share."""
        edges, above = self._sketch(policy).survival()
        return tables.DataFrame({"regret": edges, "share": above})

    def share_above(self, policy: str, regret: float, confidence: float = CONFIDENCE) -> Estimate:
        """Return the share of the runs whose final regret exceeds `regret`, with Clopper and Pearson's interval.

        Runs are counted from the first bin that lies entirely above `regret`, at most 1.6% above it.
        """
        sketch = self._sketch(policy)
        regret = checks.number("regret", regret)
        edges, above = sketch.survival()
        hits = sketch.size if regret < 0 else 0
        for value, part in zip(edges, above, strict=True):
            if value >= regret >= 0:
                hits = round(part * sketch.size)
                break
        return share(hits, sketch.size, checks.number("confidence", confidence, above=0, below=1))

    def _sketch(self, policy: str) -> Sketch:
        """Return the sketch of a policy's final regret."""
        return self.policies[checks.choice("policy", policy, self.policies)].sketches[-1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the summary as one JSON file, completely or not at all."""
        files.write_json(files.path_of("path", path), self, indent=0)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Summary":
        """Read a file that `save` wrote; raise a ValueError if it is anything else."""
        try:
            return convert(decode(files.read_bytes(files.path_of("path", path))), cls)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{os.fspath(path)!r} is not a summary that can be read ({files.first_line(error)})"
            ) from None
