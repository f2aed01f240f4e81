"""What many runs of many policies sum up to: means, quantiles, the worst runs; as plain numbers in one file."""

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from solid_bandits import _check, _files
from solid_bandits._types import Floats, Ints, Plain
from solid_bandits.statistics.estimate import UNKNOWN, Estimate
from solid_bandits.statistics.intervals import CONFIDENCE, share, student_quantile
from solid_bandits.statistics.moments import Moments
from solid_bandits.statistics.sketch import Sketch

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
SHARES = (0.5, 0.95, 0.99, 0.999)


@dataclass
class PolicySummary:
    """The runs of one policy, summed up at every checkpoint."""

    steps: Ints
    regret: Moments
    explored: Moments
    sketches: list[Sketch]
    """Of the regret, one for each checkpoint."""
    worst: list[tuple[float, int]]
    """Regret at the end and number of the runs with most of it, the worst first."""
    seconds: float = 0.0
    """Of CPU or GPU."""

    @classmethod
    def none(cls, steps: Ints) -> "PolicySummary":
        """Of no runs yet."""
        columns = len(steps)
        return cls(steps, Moments.none(columns), Moments.none(columns), [Sketch() for _ in steps], [])

    @property
    def runs(self) -> int:
        """How many runs are in it."""
        return self.regret.count

    def add(self, first: int, regret: Floats, explored: Ints, seconds: float, keep: int) -> None:
        """Take in runs `first`, `first + 1`, ..., shape (runs, checkpoints), and keep so many of the worst."""
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
        """A quantile of the regret at a checkpoint, with its interval; exact among the worst runs at the end."""
        if not self.runs:
            return UNKNOWN
        found = self.sketches[place].quantile(of, level)
        rank = max(math.ceil(of * self.runs - 1e-9), 1)
        if place in (-1, len(self.steps) - 1) and self.runs - rank < len(self.worst):
            return found._replace(value=self.worst[self.runs - rank][0])
        return found

    def to_plain(self) -> Plain:
        """As plain data."""
        return {
            "steps": self.steps.tolist(),
            "runs": self.runs,
            "mean": self.regret.mean.tolist(),
            "squares": self.regret.squares.tolist(),
            "explored_mean": self.explored.mean.tolist(),
            "explored_squares": self.explored.squares.tolist(),
            "zeros": [sketch.zeros for sketch in self.sketches],
            "first": [sketch.first for sketch in self.sketches],
            "counts": [sketch.counts.tolist() for sketch in self.sketches],
            "worst": [[regret, run] for regret, run in self.worst],
            "seconds": self.seconds,
        }

    @classmethod
    def from_plain(cls, plain: Plain) -> "PolicySummary":
        """From what `to_plain` made; a ValueError if its numbers contradict each other."""
        steps = np.array(plain["steps"], dtype=np.int64)
        runs = plain["runs"]
        sketches = [
            Sketch(zeros, _whole(first), np.array(counts, dtype=np.int64))
            for zeros, first, counts in zip(plain["zeros"], plain["first"], plain["counts"], strict=True)
        ]
        columns = [plain[name] for name in ("mean", "squares", "explored_mean", "explored_squares")]
        if not len(steps) or any(len(column) != len(steps) for column in [*columns, sketches]):
            raise ValueError("every column must have one entry for each of steps")
        if any(sketch.size != runs or (sketch.counts < 0).any() for sketch in sketches):
            raise ValueError("counts must sum to runs at every checkpoint")
        mean, squares, explored_mean, explored_squares = (
            np.array(column, dtype=np.float64) for column in columns
        )
        if not all(np.isfinite(column).all() and (column >= 0).all() for column in (mean, squares)):
            raise ValueError("mean and squares must be finite and >= 0")
        return cls(
            steps,
            Moments(runs, mean, squares),
            Moments(runs, explored_mean, explored_squares),
            sketches,
            [(float(regret), int(run)) for regret, run in plain["worst"]],
            float(plain["seconds"]),
        )


def _whole(number: float) -> int:
    if number != int(number):
        raise ValueError(f"first must be whole numbers, got {number}")
    return int(number)


_POLICY_FIELDS = {
    "steps": [int],
    "runs": int,
    "mean": [float],
    "squares": [float],
    "explored_mean": [float],
    "explored_squares": [float],
    "zeros": [int],
    "first": [float],  # whole, and may be negative: from_plain sees to it
    "counts": [[int]],
    "worst": [[float]],
    "seconds": float,
}
_FIELDS = {"format": int, "configuration": dict, "device": str, "policies": {"*": _POLICY_FIELDS}}


@dataclass
class Summary:
    """What `summarise` gives: for each policy the mean regret, its quantiles and its worst runs.

    Every interval is at 95% unless `confidence` says otherwise. Quantiles come from counts in bins that are 1.6% wide
    at most, and are exact among the worst runs; their intervals hold whatever the distribution of the regret is.

    Example:
        >>> import solid_bandits as sb
        >>> summary = sb.summarise(sb.problems.toy(), {"RandUCB": sb.RandUCB()}, horizon=100, runs=50, jobs=1)
        >>> summary.final().height
        1
    """

    configuration: Plain
    """What was asked for."""
    device: str
    """What played it."""
    policies: dict[str, PolicySummary] = field(default_factory=dict)

    def table(self, confidence: float = CONFIDENCE) -> "pl.DataFrame":
        """Mean regret at each checkpoint: policy, step, mean, low, high (Student's interval), std, explored, runs."""
        import polars as pl

        level = _check.number("confidence", confidence, above=0, below=1)
        frames = []
        for label, one in self.policies.items():
            deviation = np.sqrt(one.regret.variance)
            half = (
                student_quantile(one.runs - 1, level) * deviation / math.sqrt(one.runs)
                if one.runs > 1
                else None
            )
            frames.append(
                pl.DataFrame(
                    {
                        "policy": [label] * len(one.steps),
                        "step": one.steps,
                        "mean": one.regret.mean,
                        "low": one.regret.mean - half if half is not None else [None] * len(one.steps),
                        "high": one.regret.mean + half if half is not None else [None] * len(one.steps),
                        "std": deviation if half is not None else [None] * len(one.steps),
                        "explored": one.explored.mean,
                        "runs": [one.runs] * len(one.steps),
                    },
                    schema_overrides={"low": pl.Float64, "high": pl.Float64, "std": pl.Float64},
                )
            )
        return pl.concat(frames)

    def quantiles(self, shares: tuple[float, ...] = SHARES, confidence: float = CONFIDENCE) -> "pl.DataFrame":
        """Quantiles of the regret at the end: policy, share, regret, low, high; null where runs are too few."""
        import polars as pl

        level = _check.number("confidence", confidence, above=0, below=1)
        if not isinstance(shares, Iterable):
            raise _check.ArgumentError("shares", f"must be a list of numbers, got {_check.short(shares)}")
        wanted = [_check.number("shares", share, above=0, below=1) for share in shares]
        rows = [
            {
                "policy": label,
                "share": of,
                **dict(zip(("regret", "low", "high"), one.quantile(of, -1, level), strict=True)),
            }
            for label, one in self.policies.items()
            for of in wanted
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def final(self, confidence: float = CONFIDENCE) -> "pl.DataFrame":
        """One row per policy: mean regret at the end with its interval, deviation, quantiles and the worst run."""
        import polars as pl

        last = self.table(confidence).filter(pl.col("step") == pl.col("step").max())
        columns = [
            pl.Series(f"q{of * 100:g}", [one.quantile(of).value for one in self.policies.values()])
            for of in SHARES
        ]
        worst = pl.Series("worst", [one.worst[0][0] if one.worst else None for one in self.policies.values()])
        return last.drop("step").with_columns(*columns, worst)

    @property
    def worst(self) -> "pl.DataFrame":
        """The worst runs, so that any can be played again: policy, run, regret."""
        import polars as pl

        rows = [
            {"policy": label, "run": run, "regret": regret}
            for label, one in self.policies.items()
            for regret, run in one.worst
        ]
        return pl.DataFrame(rows, schema={"policy": pl.String, "run": pl.Int64, "regret": pl.Float64})

    def survival(self, policy: str) -> "pl.DataFrame":
        """Share of the runs whose regret at the end is at least so large: regret, share."""
        import polars as pl

        edges, above = self._sketch(policy).survival()
        return pl.DataFrame({"regret": edges, "share": above})

    def share_above(self, policy: str, regret: float, confidence: float = CONFIDENCE) -> Estimate:
        """Share of the runs with more regret than this at the end, with Clopper and Pearson's interval.

        Counted from the first bin that lies above `regret` as a whole: at most 1.6% above it.
        """
        sketch = self._sketch(policy)
        regret = _check.number("regret", regret)
        edges, above = sketch.survival()
        hits = sketch.size if regret < 0 else 0
        for value, part in zip(edges, above, strict=True):
            if value >= regret >= 0:
                hits = round(part * sketch.size)
                break
        return share(hits, sketch.size, _check.number("confidence", confidence, above=0, below=1))

    def _sketch(self, policy: str) -> Sketch:
        """Of a policy's regret at the end."""
        return self.policies[_check.choice("policy", policy, self.policies)].sketches[-1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as one JSON file, whole or not at all."""
        content: Plain = {
            "format": FORMAT,
            "configuration": self.configuration,
            "device": self.device,
            "policies": {label: one.to_plain() for label, one in self.policies.items()},
        }
        _files.write_json(Path(path), content, indent=None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Summary":
        """Read what `save` wrote; a ValueError if it is anything else."""
        try:
            content: Plain = json.loads(_files.read_bytes(Path(path)).decode("utf-8"))
            _files.check_fields(content, _FIELDS)
            if content["format"] != FORMAT:
                raise ValueError(f"format must be {FORMAT}, got {content['format']}")
            policies = {label: PolicySummary.from_plain(one) for label, one in content["policies"].items()}
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{os.fspath(path)!r} is not a summary that can be read ({_files.first_line(error)})"
            ) from None
        return cls(content["configuration"], content["device"], policies)
