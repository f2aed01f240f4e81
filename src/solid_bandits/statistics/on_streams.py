"""Statistics of a simulation on a stream: rewards per round, shares of the arms, calibration of predictions."""

import numpy as np
import polars as pl

from solid_bandits.statistics.summary import last_step, summarise

SHARES_AT = 30
"""Largest number of time stretches over which shares of arms are computed."""
ARMS_SHOWN = 8
"""Number of arms shown individually; the others are pooled."""
OTHER_ARMS = -1
"""Arm number that stands for the pooled arms."""
BINS = 10
"""Number of bins of predicted rewards."""


def reward_rates(table: pl.DataFrame) -> pl.DataFrame:
    """Return the mean reward per round up to each checkpoint: policy, step, mean, low, high, runs."""
    rates = table.with_columns(rate=pl.col("reward") / pl.col("step"))
    return summarise(rates, "rate")


def final_rewards(table: pl.DataFrame) -> pl.DataFrame:
    """Return the final mean reward per round and regret against the ridge fit: policy, mean, low, high,
    ridge_regret.
    """
    last = last_step(table)
    ridge = last.group_by("policy", maintain_order=True).agg(pl.col("ridge_regret").mean())
    return reward_rates(last).join(ridge, on="policy", maintain_order="left")


def arm_shares(arms: pl.DataFrame) -> pl.DataFrame:
    """Return each arm's share of the pulls in each stretch of time: policy, step (its end), arm, share.

    The arms pulled most, over all policies, keep their own numbers; the others are pooled as `OTHER_ARMS`.
    """
    if arms.height == 0:
        return pl.DataFrame(
            schema={"policy": pl.String, "step": pl.Int64, "arm": pl.Int64, "share": pl.Float64}
        )
    last = (
        last_step(arms)
        .group_by("arm")
        .agg(pl.col("pulls").sum())
        .sort("pulls", "arm", descending=[True, False])
    )
    shown = last["arm"].to_list()
    shown = shown if len(shown) <= ARMS_SHOWN + 1 else shown[:ARMS_SHOWN]
    steps = np.unique(arms["step"].to_numpy())
    wanted = np.linspace(0, steps[-1], SHARES_AT + 1)[1:]
    ends = np.unique(steps[np.searchsorted(steps, wanted).clip(max=len(steps) - 1)])
    pulls = (
        arms.filter(pl.col("step").is_in(ends.tolist()))
        .with_columns(arm=pl.when(pl.col("arm").is_in(shown)).then("arm").otherwise(OTHER_ARMS))
        .group_by("policy", "step", "arm", maintain_order=True)
        .agg(pl.col("pulls").sum())
        .sort("policy", "arm", "step", maintain_order=True)
        .with_columns(new=pl.col("pulls") - pl.col("pulls").shift(1, fill_value=0).over("policy", "arm"))
    )
    share = pl.col("new") / pl.col("new").sum().over("policy", "step")
    return pulls.select("policy", "step", "arm", share.alias("share"))


def calibration(samples: pl.DataFrame) -> pl.DataFrame:
    """Return predicted and received rewards of the second half of the steps, in bins of the predicted ones.

    Each bin holds about equally many rounds of a policy: policy, bin, predicted (mean), reward (mean), half_width (of a
    95% normal interval, treating rounds as independent), rounds.
    """
    half = samples["step"].max()
    late = samples.filter(pl.col("step") > (half or 0) / 2)  # type: ignore[operator]  # steps are integers
    placed = late.with_columns(
        bin=((pl.col("predicted").rank("ordinal").over("policy") - 1) * BINS // pl.len().over("policy")).cast(
            pl.Int64
        )
    )
    grouped = placed.group_by("policy", "bin", maintain_order=True).agg(
        pl.col("predicted").mean(),
        pl.col("reward").mean(),
        (1.96 * pl.col("reward").std() / pl.len().sqrt()).fill_null(0.0).alias("half_width"),
        pl.len().cast(pl.Int64).alias("rounds"),
    )
    order = {policy: place for place, policy in enumerate(late["policy"].unique(maintain_order=True))}
    place = pl.col("policy").replace_strict(order, return_dtype=pl.Int64)
    return grouped.sort(place, "bin")


def calibration_errors(samples: pl.DataFrame) -> dict[str, float]:
    """Return the mean distance between received and predicted rewards, bins weighted by rounds; 0 is calibrated."""
    binned = calibration(samples)
    distance = (pl.col("predicted") - pl.col("reward")).abs()
    errors = binned.group_by("policy", maintain_order=True).agg(
        ((distance * pl.col("rounds")).sum() / pl.col("rounds").sum()).alias("error")
    )
    return dict(errors.iter_rows())
