"""Where the policies stand at the last step: means, and paired differences to the best."""

import math
from typing import NamedTuple

import polars as pl

from solid_bandits.results import Results


def paired_differences(results: Results, to: str, confidence: float = 0.95) -> pl.DataFrame:
    """Final regret of each policy less that of `to`, run by run: policy, difference, difference_low, difference_high.

    Run r of every policy sees the same contexts and the same noise, so the difference within a run is free of
    what the runs have in common, and its interval is narrower than two separate intervals suggest. Each interval
    stands alone: nothing corrects for the number of policies, nor for `to` having been chosen by its regret.
    The interval is null with fewer than two common runs.
    """
    last = results.table.filter(pl.col("step") == pl.col("step").max())
    reference = last.filter(pl.col("policy") == to).select("run", pl.col("regret").alias("reference"))
    paired = (
        last.filter(pl.col("policy") != to)
        .join(reference, on="run", maintain_order="left")
        .with_columns(pl.col("regret") - pl.col("reference"))
    )
    # A difference of regrets has the same columns as a regret: the same summary gives its Student interval.
    return (
        Results(paired, results.manifest)
        .summary(confidence)
        .select(
            "policy",
            pl.col("mean").alias("difference"),
            pl.col("low").alias("difference_low"),
            pl.col("high").alias("difference_high"),
        )
    )


def standings(results: Results, confidence: float = 0.95) -> pl.DataFrame:
    """`Results.final` in order of mean regret, the best first, with the paired differences to the best.

    The differences are null for the best itself.
    """
    final = results.final(confidence).sort("mean", maintain_order=True)
    differences = paired_differences(results, final["policy"][0], confidence)
    return final.join(differences, on="policy", how="left", maintain_order="left")


class Row(NamedTuple):
    """A policy's standing in words, the same on the terminal and on the page."""

    policy: str
    mean: str
    interval: str
    difference: str
    explored: str
    runs: str


BOUND_LABEL = "bound v* log n"
BOUND_NOTE = "the lower bound is asymptotic: at a finite n a policy may lie below it"


def bound_at_horizon(results: Results, bound: float) -> str:
    """v* log n in words, n the last step."""
    return f"{bound * math.log(results.manifest['configuration']['horizon']):,.4g}"


# Marks a difference whose interval holds 0.
TIE = "~"
TIE_NOTE = f"{TIE} the paired interval holds 0: not told apart from the best"


def rows(results: Results) -> list[Row]:
    """The standings in words, in order of mean regret."""
    table = standings(results)
    digits = _digits(table["mean"].to_list())

    def number(value: float, sign: str = "") -> str:
        return f"{value:{sign},.{digits if abs(value) < 1000 else 0}f}"

    def interval(low: float | None, high: float | None) -> str:
        return "one run" if low is None or high is None else f"[{number(low)}, {number(high)}]"

    def difference(mean: float | None, low: float | None, high: float | None) -> str:
        if mean is None:
            return ""
        if low is None or high is None:
            return number(mean, "+")
        mark = f"{TIE} " if low <= 0 <= high else ""
        return f"{mark}{number(mean, '+')} ± {number(high - mean)}"

    return [
        Row(
            policy=row["policy"],
            mean=number(row["mean"]),
            interval=interval(row["low"], row["high"]),
            difference="best"
            if place == 0
            else difference(row["difference"], row["difference_low"], row["difference_high"]),
            explored=f"{row['explored']:,.0f}",
            runs=f"{row['runs']:,}",
        )
        for place, row in enumerate(table.iter_rows(named=True))
    ]


def _digits(means: list[float]) -> int:
    """Decimals that show three figures of the smallest positive mean: one number for all, so that columns align."""
    least = min((mean for mean in means if mean > 0), default=1.0)
    return min(max(2 - math.floor(math.log10(least)), 0), 4)
