"""Tails of regret: the share of runs beyond any regret as a figure, and quantiles as a table for the terminal."""

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from solid_bandits._internal import wording
from solid_bandits.report import figure as drawing
from solid_bandits.report.palette import looks
from solid_bandits.report.table import table_of
from solid_bandits.simulation.summary import SHARES, Summary

HEIGHT = 2.6
"""Height of the panel in inches."""


def survival_figure(summary: Summary) -> Figure:
    """Draw the share of runs whose final regret is at least x, against x, both logarithmic.

    The curve ends at the worst run. Shares below that of a single run cannot be estimated.
    """
    styles = looks(list(summary.policies))
    figure = drawing.new_figure(drawing.WIDTH, HEIGHT)
    axes = figure.subplots()
    fewest = 1.0
    for label, one in summary.policies.items():
        edges, above = one.sketches[-1].survival()
        seen = above > 0
        if not seen.any():  # no run, or none with any regret, which a logarithmic axis could show
            continue
        end = one.worst[0][0] if one.worst else edges[seen][-1]
        steps = np.append(np.minimum(edges[seen], end), end)
        shares = np.append(above[seen], above[seen][-1])
        axes.step(
            steps,
            shares,
            where="post",
            **styles[label].line,
            linewidth=drawing.LINE,
            label=drawing.text_of(label),
        )
        axes.plot(end, 1 / one.runs, marker="o", markersize=2.5, color=styles[label].colour)
        fewest = min(fewest, 1 / one.runs)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(fewest / 2, 1.5)
    drawing.logarithmic_ticks(axes)
    drawing.style_axes(axes, "regret $x$ at the end", "share of runs with at least $x$")
    drawn = [line for line in axes.get_lines() if len(line.get_xdata()) > 1]  # type: ignore[arg-type]
    if drawn:
        drawing.add_legend(figure, drawn)
    return figure


def tails_rows(summary: Summary, between: str = " ") -> list[list[str]]:
    """Return one row per policy, the least mean first: mean, quantiles and the worst run, with 95% intervals.

    The text `between` a number and its interval may be a line break.
    """
    means = {row["policy"]: row for row in summary.final().to_dicts()}
    rows = []
    for label in sorted(means, key=lambda one: (not summary.policies[one].runs, means[one]["mean"])):
        row, one = means[label], summary.policies[label]
        cells = [label, _with_interval(row["mean"], row["low"], row["high"], between)]
        cells += [_with_interval(*one.quantile(of), between) for of in SHARES]
        worst = [f"{wording.number(regret)}{between}(run {run})" for regret, run in one.worst[:1]]
        cells += [*(worst or ["?"]), f"{one.runs:,}"]
        rows.append(cells)
    return rows


HEADINGS = ("policy", "mean regret", *(f"{of * 100:g}%" for of in SHARES), "worst", "runs")


def _with_interval(value: float | None, low: float | None, high: float | None, between: str) -> str:
    if value is None:
        return "?"
    if low is None and high is None:
        return wording.number(value)
    ends = [wording.number(end) if end is not None else "?" for end in (low, high)]
    return f"{wording.number(value)}{between}[{ends[0]}, {ends[1]}]"


def tails_table(summary: Summary) -> Table:
    """Return the rows of `tails_rows` for the terminal, without the median, which does not fit in eighty columns."""
    runs = max(one.runs for one in summary.policies.values())
    shown = [place for place, heading in enumerate(HEADINGS) if heading not in ("50%", "runs")]
    return table_of(
        [HEADINGS[place] for place in shown],
        ([row[place] for place in shown] for row in tails_rows(summary, "\n")),
        padding=(0, 1, 0, 0),
        caption=f"{runs:,} runs; 95% intervals",
    )
