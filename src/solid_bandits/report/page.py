"""The report page: one HTML file that contains its data, its style and plotly.js, and needs no network."""

import json
import math
import os
from pathlib import Path

import polars as pl
from plotly.offline import get_plotlyjs

from solid_bandits._internal import wording
from solid_bandits._internal.files import write_text
from solid_bandits._internal.types import Plain
from solid_bandits.report import standings
from solid_bandits.report.chart_data import curve
from solid_bandits.report.diagnostics import diagnostics_data
from solid_bandits.report.palette import BAND_OPACITY, looks
from solid_bandits.report.scale import regret_scale
from solid_bandits.report.stream_data import STREAM_HEADS, stream_cells, stream_data
from solid_bandits.report.templates import render
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.summary import last_step
from solid_bandits.statistics.summary import standings as ranked_table

# Smallest number of runs for a box plot; quartiles of fewer say less than the runs themselves.
_LEAST_BOXED = 5


def write_page(results: Results, path: str | os.PathLike[str], bound: float | None = None) -> None:
    """Write the page to `path`, completely or not at all.

    Args:
        results: the table and manifest to show.
        path: the HTML file.
        bound: v*, the constant of the regret lower bound: v* log t is drawn as a dashed line.

    """
    write_text(Path(path), _page(results, bound))


def page_data(results: Results, bound: float | None = None) -> Plain:
    """Return the data of the page's charts: the summary, each run's final regret, the looks, SOLID's diagnostics."""
    summary = results.summary()
    scale = regret_scale(summary, bound)
    last = last_step(results.table)
    policies: list[Plain] = []
    for policy, look in looks(results.policies).items():
        runs = last.filter(pl.col("policy") == policy)
        policies.append(
            {
                "label": policy,
                "colour": look.colour,
                "dash": look.dash,
                "off_scale": policy in scale.off_scale,
                **curve(summary, policy),
                "run": runs["run"].to_list(),
                "final": runs["regret"].to_list(),
            }
        )
    ranked = ranked_table(results.table)["policy"].to_list()
    return {
        "policies": policies,
        "order": [results.policies.index(policy) for policy in ranked],
        "top": scale.top,
        "band_opacity": BAND_OPACITY,
        "boxes": min(len(policy["run"]) for policy in policies) >= _LEAST_BOXED,
        "bound": None if bound is None else _bound(summary["step"].unique().sort().to_list(), bound),
        "diagnostics": diagnostics_data(results),
        "stream": stream_data(results),
    }


def _bound(steps: list[int], bound: float) -> Plain:
    return {
        "label": f"asymptotic lower bound v* log t, v* = {wording.number(bound)}",
        "step": steps,
        "value": [bound * math.log(step) for step in steps],
    }


def _page(results: Results, bound: float | None) -> str:
    manifest = results.manifest
    configuration = manifest["configuration"]
    problem = configuration.get("problem", {})
    name, description = problem.get("name", "a problem"), problem.get("description", "")
    found, seconds = standings.rows(results), results.seconds
    beside = stream_cells(results)
    rows = {row.policy: [*row[1:], *beside.get(row.policy, ())] for row in found}
    if seconds:
        for policy, cells in rows.items():
            cells.append(wording.duration(seconds[policy]) if policy in seconds else "")
    return render(
        "page.html",
        title=f"Regret on {name}: {description}".removesuffix(": "),
        name=name,
        description=description,
        results=results,
        bound=bound,
        standings=standings,
        heads=[*standings.HEADS[1:], *(STREAM_HEADS if beside else ()), *(["CPU time"] if seconds else ())],
        rows=rows,
        notes=standings.notes(found, bound),
        configuration=configuration,
        looks=looks(configuration["policies"]),
        played=_played(manifest),
        manifest=manifest,
        raw=json.dumps(manifest, indent=2, ensure_ascii=False),
        data=page_data(results, bound),
        plotly=get_plotlyjs(),
    )


def _played(manifest: Plain) -> Plain:
    """Return the problem and the other settings, without those that the page shows elsewhere."""
    configuration = manifest["configuration"]
    problem = configuration.get("problem", {}).items()
    facts = {"problem" if key == "name" else key: value for key, value in problem if key != "description"}
    facts |= {key: value for key, value in configuration.items() if key not in ("problem", "policies")}
    if "started" in manifest:
        facts["started"] = str(manifest["started"]).replace("T", " ")
    if "wall_seconds" in manifest:
        facts["wall time"] = wording.duration(manifest["wall_seconds"])
    return facts
