"""Height of the regret axis, and what does not fit below it."""

import math
from dataclasses import dataclass

import polars as pl

# A policy stuck with linear regret would flatten the curves of the others. Policies that rise this many times above the
# next one may leave the axis while most stay; where only half would stay, they must be further away, so that a plain
# comparison of two is drawn completely.
FAR = 6.0
FAR_FROM_HALF = 18.0

# The band of two or three runs can be many times its mean; the axis follows bands only up to this multiple.
BAND_ROOM = 2.0


@dataclass(frozen=True)
class Scale:
    """The regret axis, from 0 to `top`.

    Args:
        top: the height of the axis.
        off_scale: policies whose mean leaves the axis, with the largest value of that mean.
        cut: other policies whose band leaves the axis.

    """

    top: float
    off_scale: dict[str, float]
    cut: tuple[str, ...]


def peaks(summary: pl.DataFrame) -> pl.DataFrame:
    """Return the largest mean and the largest upper end of each policy's interval, in order of the mean."""
    ends = summary.group_by("policy", maintain_order=True).agg(
        pl.col("mean").max(), pl.max_horizontal("mean", "high").max().alias("high")
    )
    return ends.sort("mean", maintain_order=True)


def regret_scale(summary: pl.DataFrame, bound: float | None = None) -> Scale:
    """Choose the height of the regret axis, so that at least half of the policies are readable.

    Args:
        summary: result of `Results.summary`.
        bound: v*; v* log t is kept in view where that does not flatten the policies.

    """
    ends = peaks(summary)
    means, highs = ends["mean"].to_list(), ends["high"].to_list()
    kept = _count_kept(means)
    room = BAND_ROOM * means[kept - 1]
    tops = highs[:kept]
    if bound is not None:
        tops.append(bound * math.log(summary["step"].max()))  # type: ignore[arg-type]  # steps are integers
    # Leave some space above the highest curve, and more where another curve must be seen leaving.
    top = min(max(tops), room) * (1.05 if kept == len(means) else 1.25) or 1.0
    policies = ends["policy"].to_list()
    return Scale(
        top=top,
        off_scale=dict(zip(policies[kept:], means[kept:], strict=True)),
        cut=tuple(policy for policy, high in zip(policies[:kept], tops, strict=False) if high > top),
    )


def _count_kept(means: list[float]) -> int:
    """Count how many of the ascending `means` stay on the axis."""
    for index in range((len(means) + 1) // 2, len(means)):
        far = FAR if 2 * index > len(means) else FAR_FROM_HALF
        if means[index] > far * means[index - 1] > 0:
            return index
    return len(means)
