"""The report page: one html file that holds its data, its style and plotly.js, and asks the network for nothing."""

import json
import math
import os
from html import escape
from pathlib import Path
from string import Template

import polars as pl
from plotly.offline import get_plotlyjs

from solid_bandits import _words
from solid_bandits._files import write_text
from solid_bandits._types import Plain
from solid_bandits.report import markup, standings
from solid_bandits.report.diagnostics import diagnostics_data
from solid_bandits.report.markup import embedded, policy_head, read_part, swatch
from solid_bandits.report.palette import BAND_OPACITY, looks
from solid_bandits.report.scale import regret_scale
from solid_bandits.report.stream_data import STREAM_HEADS, stream_cells, stream_data
from solid_bandits.results import Results
from solid_bandits.statistics.summary import last_step
from solid_bandits.statistics.summary import standings as ranked_table

# Quartiles of a handful of runs say less than the runs themselves: no box below this number.
_LEAST_BOXED = 5


def write_page(results: Results, path: str | os.PathLike[str], bound: float | None = None) -> None:
    """Write the page to `path`, whole or not at all.

    Args:
        results: the table and manifest to show.
        path: the html file.
        bound: v*, the constant of the regret lower bound: v* log t is drawn as a dashed line.

    """
    write_text(Path(path), _page(results, bound))


def page_data(results: Results, bound: float | None = None) -> Plain:
    """What the page's charts are drawn from: the summary, each run's final regret, the looks, SOLID's diagnostics."""
    summary = results.summary()
    scale = regret_scale(summary, bound)
    last = last_step(results.table)
    policies: list[Plain] = []
    for policy, look in looks(results.policies).items():
        curve = summary.filter(pl.col("policy") == policy)
        runs = last.filter(pl.col("policy") == policy)
        banded = curve["low"].null_count() == 0
        policies.append(
            {
                "label": policy,
                "colour": look.colour,
                "dash": look.dash,
                "swatch": swatch(look.colour, look.dash),
                "off_scale": policy in scale.off_scale,
                "step": curve["step"].to_list(),
                "mean": curve["mean"].to_list(),
                "low": curve["low"].to_list() if banded else None,
                "high": curve["high"].to_list() if banded else None,
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
        "label": f"asymptotic lower bound v* log t, v* = {_words.number(bound)}",
        "swatch": swatch("currentColor", "dash"),
        "step": steps,
        "value": [bound * math.log(step) for step in steps],
    }


def _page(results: Results, bound: float | None) -> str:
    configuration = results.manifest["configuration"]
    problem = configuration.get("problem", {})
    name, description = problem.get("name", "a problem"), problem.get("description", "")
    facts = [
        _words.count(results.horizon, "step"),
        _words.count(results.runs, "run"),
        f"seed {configuration['seed']}",
    ]
    band_note = "Bands: 95% Student intervals of the mean." if results.runs > 1 else "One run: no bands."
    data = page_data(results, bound)
    spread_note = "Final regret of each run: a dot is a run."
    if data["boxes"]:
        spread_note = (
            "Final regret of each run: a dot is a run, the box holds the middle half, the line in it is the median. "
            "A heavy tail shows here and not in a mean."
        )
    scripts = ["chart.js", "curves.js", "page.js"]
    scripts += [f"{part}.js" for part in ("stream", "diagnostics") if data[part]]
    return Template(read_part("page.html")).substitute(
        title=escape(f"Regret on {name}: {description}".removesuffix(": ")),
        heading=escape(f"Regret on {name}"),
        description=escape(description),
        facts=escape(" · ".join(facts)),
        band_note=band_note,
        spread_note=spread_note,
        standings=_standings(results, bound),
        stream=read_part("stream.html") if data["stream"] else "",
        diagnostics=read_part("diagnostics.html") if data["diagnostics"] else "",
        configuration=_configuration(results.manifest),
        data=embedded(data),
        style=read_part("page.css"),
        script="\n".join(map(read_part, scripts)),
        plotly=get_plotlyjs(),
    )


def _standings(results: Results, bound: float | None) -> str:
    rows, styles = standings.rows(results), looks(results.policies)
    seconds = results.seconds
    heads = ["mean regret", "95% interval", "difference to best (paired 95%)", "exploring rounds", "runs"]
    beside = stream_cells(results)
    heads += STREAM_HEADS if beside else ()
    if seconds:
        heads.append("CPU time")
    body = []
    for policy, *cells in rows:
        cells += beside.get(policy, ())
        if seconds:
            cells.append(_words.duration(seconds[policy]) if policy in seconds else "")
        tags = (
            f'<td data-label="{head}">{escape(cell)}</td>' for head, cell in zip(heads, cells, strict=True)
        )
        body.append(f"<tr>{policy_head(policy, styles[policy])}{''.join(tags)}</tr>")
    if bound is not None:
        value = escape(standings.bound_at_horizon(results, bound))
        rest = "<td></td>" * (len(heads) - 1)
        body.append(
            f'<tr><th>{standings.BOUND_LABEL}</th><td data-label="{heads[0]}">{value}</td>{rest}</tr>'
        )
    note = "".join(f'<p class="note">{escape(text)}</p>' for text in standings.notes(rows, bound))
    return (
        '<table class="numbers stack"><thead><tr><th>policy</th>'
        + "".join(f"<th>{head.replace(' (', '<br>(')}</th>" for head in heads)
        + f"</tr></thead><tbody>{''.join(body)}</tbody></table>{note}"
    )


def _configuration(manifest: Plain) -> str:
    configuration = manifest["configuration"]
    styles = looks(configuration["policies"])
    # The description stands under the title already.
    problem = configuration.get("problem", {}).items()
    facts = {"problem" if key == "name" else key: value for key, value in problem if key != "description"}
    facts |= {key: value for key, value in configuration.items() if key not in ("problem", "policies")}
    if "started" in manifest:
        facts["started"] = str(manifest["started"]).replace("T", " ")
    if "wall_seconds" in manifest:
        facts["wall time"] = _words.duration(manifest["wall_seconds"])
    body = "".join(
        f'<tr>{policy_head(policy, styles[policy])}<td class="parameters">{markup.parameters(parameters)}</td></tr>'
        for policy, parameters in configuration["policies"].items()
    )
    raw = json.dumps(manifest, indent=2, ensure_ascii=False)
    return (
        f"{markup.facts(facts)}<h3>Policies and their parameters</h3>"
        f'<table class="words stack"><tbody>{body}</tbody></table>'
        f"<h3>Versions</h3>{markup.facts(manifest.get('versions', {}))}"
        f"<details><summary>The whole manifest</summary><pre><code>{escape(raw)}</code></pre></details>"
    )
