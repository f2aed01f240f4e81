"""Means over runs, with Student's intervals: at every checkpoint, at the last one, and paired with another policy.

A table has one row per policy, run and checkpoint, with columns policy, run, step and the one to summarise.
"""

import polars as pl

from solid_bandits._internal import checks
from solid_bandits.statistics.intervals import CONFIDENCE, student_quantile


def summarise(table: pl.DataFrame, column: str = "regret", confidence: float = CONFIDENCE) -> pl.DataFrame:
    """Return the mean of a column over runs at each checkpoint with its interval: policy, step, mean, low, high, runs.

    With a single run the interval is unknown: low and high are null.
    """
    grouped = table.group_by("policy", "step", maintain_order=True).agg(
        pl.col(column).mean().alias("mean"),
        pl.col(column).std().alias("std"),
        pl.len().cast(pl.Int64).alias("runs"),
    )
    return with_interval(grouped, confidence).select("policy", "step", "mean", "low", "high", "runs")


def with_interval(table: pl.DataFrame, confidence: float) -> pl.DataFrame:
    """Add Student's interval, `low` and `high`, to columns mean, std and runs; null with a single run."""
    level = checks.number("confidence", confidence, above=0, below=1)
    quantile = {
        runs: student_quantile(runs - 1, level) for runs in table["runs"].unique().to_list() if runs > 1
    }
    factor = pl.col("runs").replace_strict(quantile, default=None, return_dtype=pl.Float64)
    half = factor * pl.col("std") / pl.col("runs").sqrt()
    return table.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half)


def last_step(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the last checkpoint."""
    return table.filter(pl.col("step") == pl.col("step").max())


def final(table: pl.DataFrame, confidence: float = CONFIDENCE) -> pl.DataFrame:
    """Return the summary at the last step, one row per policy, with the mean number of exploring rounds."""
    last = last_step(table)
    explored = last.group_by("policy", maintain_order=True).agg(pl.col("explored").mean())
    return summarise(last, confidence=confidence).join(explored, on="policy", maintain_order="left")


def paired_differences(table: pl.DataFrame, to: str) -> pl.DataFrame:
    """Return each policy's final regret minus that of `to`, run by run, with Student's interval.

    The columns are policy, difference, difference_low and difference_high. Run r of every policy sees the same contexts
    and the same noise, so the difference within a run is free of whatever the runs have in common, and its interval is
    narrower than two separate intervals suggest. Each interval stands alone: nothing corrects for the number of
    policies, nor for `to` having been chosen by its regret. The interval is null with fewer than two common runs.
    """
    found = summarise(paired(last_step(table), to, "regret"), "difference")
    return found.select("policy", difference="mean", difference_low="low", difference_high="high")


def paired(last: pl.DataFrame, to: str, column: str) -> pl.DataFrame:
    """Return the rows of all policies but `to`, with the `difference` of a column from that policy's in the same
    run.
    """
    reference = last.filter(pl.col("policy") == to).select("run", reference=column)
    others = last.filter(pl.col("policy") != to).join(reference, on="run", maintain_order="left")
    return others.with_columns(difference=pl.col(column).cast(pl.Float64) - pl.col("reference"))


def standings(table: pl.DataFrame) -> pl.DataFrame:
    """Return `final` in order of mean regret, the best first, with the paired differences to the best.

    The differences are null for the best itself.
    """
    ranked = final(table).sort("mean", maintain_order=True)
    differences = paired_differences(table, ranked["policy"][0])
    return ranked.join(differences, on="policy", how="left", maintain_order="left")
