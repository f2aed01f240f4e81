"""The results of a plan, assembled from those of its blocks."""

import platform
from collections.abc import Mapping
from importlib.metadata import version

import numpy as np
import polars as pl

from solid_bandits._types import Ints, Plain
from solid_bandits.loop import Trace
from solid_bandits.results import COLUMNS, Results
from solid_bandits.simulation.block import Block, Played
from solid_bandits.simulation.plan import Plan


def assemble(plan: Plan, played: Mapping[Block, Played], manifest: Plain) -> Results:
    """The results of a plan from those of all its blocks: the same whatever order they came in."""
    traces: dict[str, dict[int, Trace]] = {label: {} for label in plan.policies}
    rows: dict[str, dict[int, list[Plain]]] = {label: {} for label in plan.policies}
    for block, outcome in played.items():
        traces[block.policy].update(enumerate(outcome.traces, start=block.first))
        rows[block.policy][block.first] = outcome.diagnostics
    table = _table(traces, plan.runs, plan.steps)
    return Results(table, manifest, _diagnostics_table(rows) if plan.diagnostics else None)


def _table(traces: dict[str, dict[int, Trace]], runs: int, steps: Ints) -> pl.DataFrame:
    ordered = [(label, run, traces[label][run]) for label in traces for run in range(runs)]
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
    packages = ("solid-bandits", "numpy", "numba", "polars")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
