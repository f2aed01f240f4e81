"""Means over runs, with Student's intervals: at every checkpoint, at the last one, and paired with another policy.

A table has one row per policy, run and checkpoint, with columns policy, run, step and the one that is summarised.
"""

import polars as pl

from solid_bandits import _check
from solid_bandits.statistics.intervals import CONFIDENCE, student_quantile


def summarise(table: pl.DataFrame, column: str = "regret", confidence: float = CONFIDENCE) -> pl.DataFrame:
    """Mean of a column over runs at each checkpoint with its interval: policy, step, mean, low, high, runs.

    With a single run the interval is unknown: low and high are null.
    """
    level = _check.number("confidence", confidence, above=0, below=1)
    grouped = table.group_by("policy", "step", maintain_order=True).agg(
        pl.col(column).mean().alias("mean"),
        pl.col(column).std().alias("std"),
        pl.len().cast(pl.Int64).alias("runs"),
    )
    quantile = {
        runs: student_quantile(runs - 1, level) for runs in grouped["runs"].unique().to_list() if runs > 1
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


def last_step(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of the last checkpoint."""
    return table.filter(pl.col("step") == pl.col("step").max())


def final(table: pl.DataFrame, confidence: float = CONFIDENCE) -> pl.DataFrame:
    """The summary at the last step, one row per policy, with the mean number of exploring rounds."""
    last = last_step(table)
    explored = last.group_by("policy", maintain_order=True).agg(pl.col("explored").mean())
    return summarise(last, confidence=confidence).join(explored, on="policy", maintain_order="left")


def paired_differences(table: pl.DataFrame, to: str, confidence: float = CONFIDENCE) -> pl.DataFrame:
    """Final regret of each policy - that of `to`, run by run: policy, difference, difference_low, difference_high.

    Run r of every policy sees the same contexts and the same noise, so the difference within a run is free of
    what the runs have in common, and its interval is narrower than two separate intervals suggest. Each interval
    stands alone: nothing corrects for the number of policies, nor for `to` having been chosen by its regret.
    The interval is null with fewer than two common runs.
    """
    last = last_step(table)
    reference = last.filter(pl.col("policy") == to).select("run", pl.col("regret").alias("reference"))
    paired = (
        last.filter(pl.col("policy") != to)
        .join(reference, on="run", maintain_order="left")
        .with_columns((pl.col("regret") - pl.col("reference")).alias("difference"))
    )
    return summarise(paired, "difference", confidence).select(
        "policy",
        pl.col("mean").alias("difference"),
        pl.col("low").alias("difference_low"),
        pl.col("high").alias("difference_high"),
    )


def standings(table: pl.DataFrame, confidence: float = CONFIDENCE) -> pl.DataFrame:
    """`final` in order of mean regret, the best first, with the paired differences to the best.

    The differences are null for the best itself.
    """
    ranked = final(table, confidence).sort("mean", maintain_order=True)
    differences = paired_differences(table, ranked["policy"][0], confidence)
    return ranked.join(differences, on="policy", how="left", maintain_order="left")
