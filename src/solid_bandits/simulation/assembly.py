"""Assembly of a plan's results from those of its blocks."""

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl

from solid_bandits import __version__
from solid_bandits._internal.files import FORMAT
from solid_bandits._internal.types import Ints, Plain
from solid_bandits.simulation.block import Block, BlockResult
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.results import Results
from solid_bandits.simulation.table_format import ARMS_COLUMNS, CALIBRATION_COLUMNS, COLUMNS, STREAM_COLUMNS
from solid_bandits.streams.base import Stream
from solid_bandits.streams.playing import StreamTrace


def assemble(plan: Plan, played: Mapping[Block, BlockResult], facts: Plain) -> Results:
    """Return the results of a plan from those of all its blocks, in whatever order they arrived.

    The manifest holds the given facts, and everything that follows from the plan and from what was played.
    """
    labels = list(plan.policies)
    blocks = sorted(played, key=lambda block: (labels.index(block.policy), block.first))
    ordered: list[tuple[str, int, Any]] = [
        (block.policy, run, trace)
        for block in blocks
        for run, trace in enumerate(played[block].traces, start=block.first)
    ]
    others = {name: version(name) for name in ("numpy", "numba", "polars")}
    seconds = {
        label: round(sum(played[block].seconds for block in blocks if block.policy == label), 3)
        for label in labels
    }
    manifest: Plain = {
        "format": FORMAT,
        "configuration": plan.configuration(),
        "versions": {"python": platform.python_version(), "solid-bandits": __version__, **others},
        "seconds": seconds,
        **facts,
    }
    if isinstance(plan.first, Stream):
        table = _stacked(ordered, STREAM_COLUMNS, "steps", "regret", "explored", "reward", "ridge_regret")
        if plan.first.fit is None:
            table = table.with_columns(ridge_regret=pl.lit(None, dtype=pl.Float64))
        sampled = _stacked(ordered, CALIBRATION_COLUMNS, "sampled", "predicted", "received")
        known = sampled.filter(pl.col("predicted").is_not_nan())
        return Results(table, manifest, arms=_arms_table(ordered, plan.steps), calibration=known)
    table = _stacked(ordered, COLUMNS, "steps", "regret", "explored")
    diagnostics = None
    if plan.diagnostics or plan.pulls:
        rows = [{"policy": block.policy, **row} for block in blocks for row in played[block].diagnostics]
        diagnostics = pl.DataFrame(rows, infer_schema_length=None)
    return Results(table, manifest, diagnostics)


def _stacked(ordered: list[tuple[str, int, Any]], schema: dict[str, Any], *fields: str) -> pl.DataFrame:
    """Return the fields of all traces, concatenated, next to policy and run; the schema names the columns."""
    labels, runs, traces = zip(*ordered, strict=True)
    parts = [[getattr(trace, field) for trace in traces] for field in fields]
    lengths = [len(one) for one in parts[0]]
    columns = [np.repeat(labels, lengths), np.repeat(runs, lengths), *map(np.concatenate, parts)]
    return pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema)


def _arms_table(ordered: list[tuple[str, int, StreamTrace]], steps: Ints) -> pl.DataFrame:
    """Return the pulls of each arm up to each checkpoint, summed over runs."""
    labels = list(dict.fromkeys(label for label, _, _ in ordered))
    n_arms = ordered[0][2].pulls.shape[1]
    pulls = [sum(trace.pulls for label, _, trace in ordered if label == one) for one in labels]
    size = len(steps) * n_arms
    return pl.DataFrame(
        {
            "policy": np.repeat(labels, size),
            "step": np.tile(np.repeat(steps, n_arms), len(labels)),
            "arm": np.tile(np.arange(n_arms), len(steps) * len(labels)),
            "pulls": np.concatenate([np.ravel(one) for one in pulls]),
        },
        schema=ARMS_COLUMNS,
    )
