"""Numbers for the charts of pages."""

import math
from collections.abc import Iterable

import polars as pl

from solid_bandits._internal.types import Plain


def curve(summary: pl.DataFrame, policy: str) -> Plain:
    """Return the policy's mean at each step, and its interval unless some step has none."""
    own = summary.filter(pl.col("policy") == policy)
    banded = own["low"].null_count() == 0
    ends = {end: own[end].to_list() if banded else None for end in ("low", "high")}
    return {"step": own["step"].to_list(), "mean": own["mean"].to_list(), **ends}


def rounded(values: Iterable[float | None], figures: int = 6) -> list[float | None]:
    """Round to `figures` significant figures, enough for a chart; unknown or non-finite values become null."""
    found = []
    for value in values:
        short = None if value is None or not math.isfinite(value) else float(f"{value:.{figures}g}")
        found.append(int(short) if short is not None and short.is_integer() else short)
    return found
