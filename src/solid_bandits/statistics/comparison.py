"""Comparison of two policies, run by run."""

from dataclasses import dataclass

import polars as pl

from solid_bandits._internal import checks, wording
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.intervals import CONFIDENCE, student
from solid_bandits.statistics.summary import last_step, paired

MORE_IS_BETTER = ("reward",)
MEASURES = ("regret", "reward", "ridge_regret", "explored")


@dataclass(frozen=True, repr=False)
class Comparison:
    """Difference between two policies at the last step, run by run.

    Run r of both saw the same contexts and the same noise, so the difference within a run is free of whatever the runs
    have in common, and its interval is narrower than two separate intervals suggest.

    Args:
        first: a policy.
        second: the other one.
        measure: the measure that is compared: a column of the results, such as regret.
        step: the last step.
        differences: table with columns run and difference, which is first - second in that run.
        difference: their mean, with Student's interval; no interval with a single run.
        confidence: the level of the interval.

    """

    first: str
    second: str
    measure: str
    step: int
    differences: pl.DataFrame
    difference: Estimate
    confidence: float

    @property
    def runs(self) -> int:
        """Number of pairs of runs."""
        return self.differences.height

    @property
    def better(self) -> str | None:
        """The better policy according to the interval; None if the interval does not tell them apart."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None or low <= 0 <= high:
            return None
        return self.first if (low > 0) == (self.measure in MORE_IS_BETTER) else self.second

    def __repr__(self) -> str:
        mean, half = self.difference.value, self.difference.half_width
        level = wording.given(100 * self.confidence)
        words = self.measure.replace("_", " ")
        line = f"{words} of {self.first} - {self.second}: {wording.measured(mean, half, sign='+')}"
        counted = f"{wording.count(self.runs, 'run')} at step {self.step:,}"
        if half is None:
            return f"{line} in {counted}; one run has no interval"
        line += f" {wording.ends(self.difference.low, self.difference.high)}, {level}% Student interval, {counted}"
        less = int((self.differences["difference"] < 0).sum())
        more = int((self.differences["difference"] > 0).sum())
        told = "not told apart" if self.better is None else f"{self.better} is better"
        return f"{line}\n{self.first} has less {words} in {less:,}, more in {more:,} of them; {told}"


def compare(
    table: pl.DataFrame, first: str, second: str, measure: str = "regret", confidence: float = CONFIDENCE
) -> Comparison:
    """Compare two policies of a table of results; see `Results.compare`."""
    labels = table["policy"].unique(maintain_order=True).to_list()
    for name, label in (("first", first), ("second", second)):
        checks.choice(name, label, labels)
    if first == second:
        raise checks.ArgumentError("second", f"must be another policy than first, got {second!r} twice")
    known = [name for name in MEASURES if name in table.columns and table[name].null_count() == 0]
    checks.choice("measure", measure, known)
    level = checks.number("confidence", confidence, above=0, below=1)
    last = last_step(table)
    differences = (
        paired(last, second, measure)
        .filter(pl.col("policy") == first)
        .select("run", "difference")
        .drop_nulls()
        .sort("run")
    )
    difference = student(differences["difference"].to_numpy(), level)
    return Comparison(first, second, measure, int(last["step"][0]), differences, difference, level)
