"""The tails of regret: the share of runs beyond any regret as a figure, and quantiles as a table for the terminal."""

import os

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from rich import box
from rich.table import Table
from rich.text import Text

from solid_bandits import _words
from solid_bandits.report.figure import (
    GRID,
    INK,
    LINE,
    SMALL,
    TEXT,
    WIDTH,
    add_legend,
    new_figure,
    save_figure,
    text_of,
)
from solid_bandits.report.palette import looks
from solid_bandits.summary import SHARES, Summary

HEIGHT = 2.6
"""Of the panel, in inches."""


def survival_figure(summary: Summary, title: str = "") -> Figure:
    """Draw the share of runs whose regret at the end is at least x, against x, both logarithmic.

    The curve ends at the worst run. Below it, at the share of one run, nothing can be told.
    """
    styles = looks(list(summary.policies))
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.subplots()
    fewest = 1.0
    for label, one in summary.policies.items():
        edges, above = one.sketches[-1].survival()
        seen = above > 0
        if not seen.any():  # no run, or none with any regret: a logarithmic axis has no place for it
            continue
        end = one.worst[0][0] if one.worst else edges[seen][-1]
        steps = np.append(np.minimum(edges[seen], end), end)
        shares = np.append(above[seen], above[seen][-1])
        axes.step(
            steps,
            shares,
            where="post",
            color=styles[label].colour,
            linestyle=styles[label].linestyle,
            linewidth=LINE,
            label=text_of(label),
        )
        axes.plot(end, 1 / one.runs, marker="o", markersize=2.5, color=styles[label].colour)
        fewest = min(fewest, 1 / one.runs)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(fewest / 2, 1.5)
    axes.xaxis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=50))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("regret $x$ at the end", fontsize=TEXT, color=INK)
    axes.set_ylabel("share of runs with at least $x$", fontsize=TEXT, color=INK)
    axes.set_title(text_of(title), fontsize=TEXT, color=INK, loc="left")
    axes.tick_params(which="both", labelsize=SMALL, color=INK, labelcolor=INK, width=0.6)
    axes.grid(which="major", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=INK, linewidth=0.6)
    drawn = [line for line in axes.get_lines() if len(line.get_xdata()) > 1]  # type: ignore[arg-type]
    if drawn:
        add_legend(figure, drawn)
    return figure


def write_survival(summary: Summary, path: str | os.PathLike[str], title: str = "") -> None:
    """Write `survival_figure` to `path`, as its suffix says, whole or not at all."""
    save_figure(survival_figure(summary, title), path)


def tails_rows(summary: Summary, between: str = " ") -> list[list[str]]:
    """One row per policy, the least mean first: mean, quantiles and the worst run, with 95% intervals.

    What stands `between` a number and its interval may be a new line.
    """
    means = {row["policy"]: row for row in summary.final().to_dicts()}
    rows = []
    for label in sorted(means, key=lambda one: (not summary.policies[one].runs, means[one]["mean"])):
        row, one = means[label], summary.policies[label]
        cells = [label, _with_interval(row["mean"], row["low"], row["high"], between)]
        cells += [_with_interval(*one.quantile(of), between) for of in SHARES]
        worst = [f"{_words.number(regret)}{between}(run {run})" for regret, run in one.worst[:1]]
        cells += [*(worst or ["?"]), f"{one.runs:,}"]
        rows.append(cells)
    return rows


HEADINGS = ("policy", "mean regret", *(f"{of * 100:g}%" for of in SHARES), "worst", "runs")


def _with_interval(value: float | None, low: float | None, high: float | None, between: str) -> str:
    if value is None:
        return "?"
    if low is None and high is None:
        return _words.number(value)
    ends = [_words.number(end) if end is not None else "?" for end in (low, high)]
    return f"{_words.number(value)}{between}[{ends[0]}, {ends[1]}]"


def tails_table(summary: Summary) -> Table:
    """The rows of `tails_rows` for the terminal, whose eighty columns have no room for the median."""
    runs = max(one.runs for one in summary.policies.values())
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        padding=(0, 1, 0, 0),
        caption=f"{runs:,} runs; 95% intervals",
        caption_justify="left",
    )
    shown = [place for place, heading in enumerate(HEADINGS) if heading not in ("50%", "runs")]
    table.add_column(HEADINGS[0], overflow="fold", min_width=9)
    for place in shown[1:]:
        table.add_column(HEADINGS[place], justify="right", no_wrap=True)
    for row in tails_rows(summary, "\n"):
        table.add_row(*(Text(row[place]) for place in shown))
    return table
