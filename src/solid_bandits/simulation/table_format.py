"""The columns of the tables of results."""

import polars as pl

from solid_bandits.simulation.results_format import Configuration

COLUMNS = {
    "policy": pl.String,
    "run": pl.Int64,
    "step": pl.Int64,
    "regret": pl.Float64,
    "explored": pl.Int64,
}
STREAM_COLUMNS = {**COLUMNS, "reward": pl.Float64, "ridge_regret": pl.Float64}
"""Columns of the table of a simulation on a stream."""
ARMS_COLUMNS = {"policy": pl.String, "step": pl.Int64, "arm": pl.Int64, "pulls": pl.Int64}
CALIBRATION_COLUMNS = {
    "policy": pl.String,
    "run": pl.Int64,
    "step": pl.Int64,
    "predicted": pl.Float64,
    "reward": pl.Float64,
}


def check_table(table: pl.DataFrame, configuration: Configuration) -> None:
    """Raise a ValueError unless there is one row per policy, run and checkpoint of what was asked for."""
    columns = STREAM_COLUMNS if configuration.stream else COLUMNS
    if dict(table.schema) != columns:
        raise ValueError(f"must have columns {list(columns)}, got {table.columns}")
    keys = table.select("policy", "run", "step")
    policies, runs, steps = (set(keys[name].unique()) for name in keys.columns)
    first = configuration.first_run
    whole = (
        keys.height > 0
        and keys.null_count().sum_horizontal().item() == 0
        and policies == set(configuration.policies)
        and (len(runs), min(runs), max(runs)) == (configuration.runs, first, first + configuration.runs - 1)
        and max(steps, default=0) == configuration.horizon
        and keys.height == len(policies) * len(runs) * len(steps) == keys.n_unique()
    )
    if not whole:
        raise ValueError("must have one row for each policy, run and checkpoint of its configuration")
