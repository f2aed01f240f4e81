"""The results of a plan, assembled from those of its blocks."""

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl

from solid_bandits import __version__
from solid_bandits._types import Ints, Plain
from solid_bandits.results import Results
from solid_bandits.results_format import ARMS_COLUMNS, CALIBRATION_COLUMNS, COLUMNS
from solid_bandits.simulation.block import Block, Played
from solid_bandits.simulation.plan import Plan
from solid_bandits.streams.playing import StreamTrace


def assemble(plan: Plan, played: Mapping[Block, Played], manifest: Plain) -> Results:
    """The results of a plan from those of all its blocks: the same whatever order they came in."""
    traces: dict[str, dict[int, Any]] = {label: {} for label in plan.policies}
    rows: dict[str, dict[int, list[Plain]]] = {label: {} for label in plan.policies}
    for block, outcome in played.items():
        traces[block.policy].update(enumerate(outcome.traces, start=block.first))
        rows[block.policy][block.first] = outcome.diagnostics
    ordered = [(label, run, traces[label][run]) for label in traces for run in _runs(plan)]
    table = _table(ordered, plan.steps)
    if not plan.on_stream:
        return Results(table, manifest, _diagnostics_table(rows) if plan.diagnostics or plan.pulls else None)
    table = table.with_columns(
        reward=np.concatenate([trace.reward for _, _, trace in ordered]),
        ridge_regret=np.concatenate([trace.ridge_regret for _, _, trace in ordered]),
    )
    if plan.problem_of(plan.first_run).fit is None:  # type: ignore[union-attr]  # a stream
        table = table.with_columns(ridge_regret=pl.lit(None, dtype=pl.Float64))
    return Results(
        table, manifest, arms=_arms_table(ordered, plan.steps), calibration=_calibration_table(ordered)
    )


def _runs(plan: Plan) -> range:
    return range(plan.first_run, plan.first_run + plan.runs)


def _table(ordered: list[tuple[str, int, Any]], steps: Ints) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "policy": np.repeat([label for label, _, _ in ordered], len(steps)),
            "run": np.repeat([run for _, run, _ in ordered], len(steps)),
            "step": np.tile(steps, len(ordered)),
            "regret": np.concatenate([trace.regret for _, _, trace in ordered]),
            "explored": np.concatenate([trace.explored for _, _, trace in ordered]),
        },
        schema=COLUMNS,
    )


def _arms_table(ordered: list[tuple[str, int, StreamTrace]], steps: Ints) -> pl.DataFrame:
    """Pulls of each arm up to each checkpoint, all runs together."""
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


def _calibration_table(ordered: list[tuple[str, int, StreamTrace]]) -> pl.DataFrame:
    """The sampled rounds of which a prediction is known."""
    frame = pl.DataFrame(
        {
            "policy": np.concatenate([np.repeat(label, len(trace.sampled)) for label, _, trace in ordered]),
            "run": np.concatenate([np.repeat(run, len(trace.sampled)) for _, run, trace in ordered]),
            "step": np.concatenate([trace.sampled for _, _, trace in ordered]),
            "predicted": np.concatenate([trace.predicted for _, _, trace in ordered]),
            "reward": np.concatenate([trace.received for _, _, trace in ordered]),
        },
        schema=CALIBRATION_COLUMNS,
    )
    return frame.filter(pl.col("predicted").is_not_nan())


def _diagnostics_table(rows: dict[str, dict[int, list[Plain]]]) -> pl.DataFrame:
    ordered = [
        {"policy": label, **row}
        for label, of_policy in rows.items()
        for first in sorted(of_policy)
        for row in of_policy[first]
    ]
    return pl.DataFrame(ordered, infer_schema_length=None)


def seconds_by_policy(plan: Plan, played: Mapping[Block, Played]) -> dict[str, float]:
    """CPU seconds that each policy took."""
    return {
        label: round(sum(one.seconds for block, one in played.items() if block.policy == label), 3)
        for label in plan.policies
    }


def versions() -> dict[str, str]:
    """What the results were made with."""
    others = {name: version(name) for name in ("numpy", "numba", "polars")}
    return {"python": platform.python_version(), "solid-bandits": __version__, **others}
