"""Plain data that the page shows about a simulation on a stream."""

import polars as pl

from solid_bandits._internal import wording
from solid_bandits._internal.types import Plain
from solid_bandits.report.chart_data import curve
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.on_streams import (
    OTHER_ARMS,
    arm_shares,
    calibration,
    calibration_errors,
    final_rewards,
    reward_rates,
)


def stream_data(results: Results) -> Plain | None:
    """Return rewards per round, shares of the arms and calibration of each policy; None for a finite problem."""
    if results.arms is None or results.calibration is None:
        return None
    rates, shares = reward_rates(results.table), arm_shares(results.arms)
    binned = calibration(results.calibration)
    arms = sorted(shares["arm"].unique().to_list(), key=lambda arm: (arm == OTHER_ARMS, arm))
    policies: list[Plain] = []
    for policy in results.policies:
        own, bins = shares.filter(pl.col("policy") == policy), binned.filter(pl.col("policy") == policy)
        policies.append(
            {
                **curve(rates, policy),
                "share_step": own["step"].unique().sort().to_list(),
                "shares": [own.filter(pl.col("arm") == arm).sort("step")["share"].to_list() for arm in arms],
                "predicted": bins["predicted"].to_list(),
                "received": bins["reward"].to_list(),
                "half_width": bins["half_width"].to_list(),
            }
        )
    return {"policies": policies, "arms": [arm_name(results, arm) for arm in arms]}


def arm_name(results: Results, arm: int) -> str:
    """Return the name of an arm in the data, or else its number."""
    if arm == OTHER_ARMS:
        return "others"
    names = results.manifest["configuration"].get("problem", {}).get("arms")
    return str(names[arm]) if names is not None and arm < len(names) else f"arm {arm}"


STREAM_HEADS = ("reward per round", "regret to ridge fit", "calibration error")


def stream_cells(results: Results) -> dict[str, tuple[str, ...]]:
    """Return policy -> the cells under `STREAM_HEADS`, next to regret; empty for a finite problem."""
    if results.calibration is None:
        return {}
    errors = calibration_errors(results.calibration)
    cells: dict[str, tuple[str, ...]] = {}
    ranked = final_rewards(results.table).sort("mean", descending=True, maintain_order=True)
    for row in ranked.iter_rows(named=True):
        half = None if row["high"] is None else row["high"] - row["mean"]
        ridge = "" if row["ridge_regret"] is None else wording.number(row["ridge_regret"])
        error = errors.get(row["policy"])
        cells[row["policy"]] = (
            wording.plus_minus(row["mean"], half),
            ridge,
            "" if error is None else wording.number(error, 2),
        )
    return cells
