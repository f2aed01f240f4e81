"""The decisions of a block of rounds as rows of the file that records them."""

from typing import Any

import numpy as np
import polars as pl

from solid_bandits._internal.types import Floats
from solid_bandits.logs.schema import COLUMNS, SIMULATED, lists_of
from solid_bandits.streams.decisions import DecisionLog
from solid_bandits.streams.rounds import Rounds

SCHEMA: dict[str, Any] = COLUMNS | SIMULATED
"""Columns of the file, in order: those of every log (`logs.schema`), and three more."""


def decisions_frame(
    policy: str, run: int, first_step: int, rounds: Rounds, log: DecisionLog, features: bool
) -> pl.DataFrame:
    """The decisions of one block as rows of the file."""
    arrays = rounds.arrays
    count, width = arrays.available.shape
    steps = np.arange(first_step, first_step + count)
    offered = arrays.available & (np.arange(width) < arrays.counts[:, None])
    counts = offered.sum(axis=1)
    names = pl.Series([str(arm) for arm in range(width)])
    known = ~np.isnan(log.probability) if log.probabilities.shape[1] else np.zeros(count, dtype=np.bool_)
    columns: dict[str, Any] = dict.fromkeys(SCHEMA) | {
        "event_id": pl.Series(steps if rounds.event_ids is None else rounds.event_ids).cast(pl.String),
        "sequence": steps,
        "arms": lists_of(counts, names.gather(np.nonzero(offered)[1])),
        "features": lists_of(counts, arrays.features[offered]) if features else None,
        "arm": names.gather(log.arms),
        "probability": _known(log.probability),
        "explored": log.explored,
        "reward": log.rewards,
        "policy": pl.repeat(policy, count, eager=True, dtype=pl.String),
        "run": pl.repeat(run, count, eager=True, dtype=pl.Int64),
        "predicted": _known(log.predicted),
        "means": lists_of(counts, arrays.means[offered]),
    }
    if known.any():
        shares = lists_of(counts, log.probabilities[offered]).to_frame("shares")
        columns["probabilities"] = shares.select(pl.when(pl.Series(known)).then("shares"))["shares"]
    return pl.DataFrame(columns, schema=SCHEMA)


def _known(values: Floats) -> pl.Series:
    """Numbers, null where they are NaN."""
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)
