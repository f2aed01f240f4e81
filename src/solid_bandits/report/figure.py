"""The regret figure: mean cumulative regret against time, linear and logarithmic, with 95% bands.

The functions that draw a panel and its legend are shared with `report.experiment_figure`.
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from solid_bandits._internal import wording
from solid_bandits._internal.files import write_whole
from solid_bandits.report.palette import BAND_OPACITY, Look, looks
from solid_bandits.report.scale import Scale, regret_scale
from solid_bandits.simulation.results import Results

# Drawn at the width of a journal's column, where the text has its final size; the resolution makes the same drawing
# good on a slide. The panels are stacked because two next to each other are too small at this width. Lengths in inches:
WIDTH = 3.4
PANELS = 3.9
LEGEND_PAD = 0.06
DPI = 300
LONGEST_LABEL = 40
# Font sizes and line widths in points:
TEXT = 8.0
SMALL = 7.0
LINE = 1.3
INK = "#333333"
GRID = "#E6E6E6"
REGRET, TIME, LOG_TIME = "mean cumulative regret", "step $t$", "step $t$ (logarithmic)"
BOUND = r"$v^* \log t$"
BOUND_DASH = (0, (4, 2))

LABEL: dict[str, Any] = {"fontsize": TEXT, "color": INK}
LEGEND: dict[str, Any] = {"fontsize": SMALL, "labelcolor": INK, "frameon": False}

# Opacity of bands: where the bands of all policies overlap, about this share of what is behind stays visible. A single
# band is never fainter than the second number, and its edge is drawn.
SEEN_THROUGH = 0.55
FAINTEST_BAND = 0.07
EDGE_OPACITY = 0.3


def regret_figure(
    results: Results, bound: float | None = None, title: str = "", scale: Scale | None = None
) -> Figure:
    """Draw mean cumulative regret with 95% Student bands: linear time above, logarithmic time below.

    The regret axis starts at 0; the legend names the policies that leave it.

    Args:
        results: the table to draw.
        bound: v*, the constant of the regret lower bound: v* log t is drawn as a dashed line.
        title: title above the panels.
        scale: the regret axis; None uses `regret_scale`.

    """
    summary = results.summary()
    scale = scale or regret_scale(summary, bound)
    styles = looks(results.policies)
    figure = new_figure(WIDTH, PANELS)
    above, below = figure.subplots(2, 1, sharey=True)
    below.set_xscale("log")
    for axes, time in ((above, TIME), (below, LOG_TIME)):
        draw_regret(axes, summary, scale, styles, bound, time)
    above.set_title(text_of(title), **LABEL, loc="left")
    add_legend(figure, above.get_lines())
    return figure


def write_figure(results: Results, path: str | os.PathLike[str], bound: float | None = None) -> None:
    """Write `regret_figure` to `path` in the format of its suffix (.png, .pdf, .svg), completely or not at all."""
    save_figure(regret_figure(results, bound), path)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to `path`, completely or not at all."""
    write_whole(Path(path), lambda file: figure.savefig(file, dpi=DPI))


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that can measure its text."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def text_of(label: str, longest: int = LONGEST_LABEL) -> str:
    """Shorten a label to `longest` characters, and escape it so that matplotlib does not read it as mathematics."""
    text = label if len(label) <= longest else label[: longest - 1] + "…"
    return text.replace("$", r"\$")


def draw_regret(
    axes: Axes,
    summary: pl.DataFrame,
    scale: Scale,
    styles: Mapping[str, Look],
    bound: float | None,
    time: str,
) -> None:
    """Draw a panel whose legend also names what the axis does not show."""
    names = {policy: text_of(policy) for policy in styles}
    names |= {policy: f"{names[policy]} (band cut)" for policy in scale.cut}
    for policy, end in scale.off_scale.items():
        names[policy] += f" (off scale: {wording.number(end)})"
    draw_policies(axes, summary, scale, styles, names)
    if bound is not None:
        # At a finite step curves may lie below the bound, so its name says that it is asymptotic.
        name, end = rf"asymptotic bound {BOUND}, $v^*$ = {wording.number(bound)}", bound_end(summary, bound)
        off = f" (off scale: {wording.number(end)})" if end > scale.top else ""
        draw_bound(axes, summary, bound, name + off)
    dress(axes, summary, scale, time, REGRET)


def draw_policies(
    axes: Axes,
    summary: pl.DataFrame,
    scale: Scale,
    styles: Mapping[str, Look],
    names: Mapping[str, str] | None = None,
) -> None:
    """Draw the mean of each policy in `summary`, with its band; the legend shows `names`, or else the labels.

    Policies that leave the scale have no band, which would cover the others without showing anything.
    """
    present = set(summary["policy"])
    drawn = [policy for policy in styles if policy in present]
    opacity = min(BAND_OPACITY, max(1 - SEEN_THROUGH ** (1 / len(drawn)), FAINTEST_BAND))
    for place, policy in enumerate(drawn):
        # Where curves cross, the first policy (the reference of the others) is drawn on top.
        order = 1 - place / len(drawn)
        curve = summary.filter(pl.col("policy") == policy)
        steps = curve["step"].to_numpy()
        look = styles[policy]
        if curve["low"].null_count() == 0 and policy not in scale.off_scale:
            low, high = curve["low"].to_numpy(), curve["high"].to_numpy()
            axes.fill_between(
                steps,
                low,
                high,
                facecolor=(look.colour, opacity),
                edgecolor=(look.colour, EDGE_OPACITY),
                linewidth=0.35,
                zorder=1 + order,
            )
        axes.plot(
            steps,
            curve["mean"].to_numpy(),
            **look.line,
            linewidth=LINE,
            marker="o" if len(steps) == 1 else None,  # a line through one point cannot be seen
            markersize=3,
            label=names[policy] if names else text_of(policy),
            zorder=3 + order,
        )


def draw_bound(axes: Axes, summary: pl.DataFrame, bound: float, name: str) -> None:
    """Draw v* log t at the summary's steps."""
    steps = summary["step"].unique().sort().to_numpy()
    axes.plot(
        steps, bound * np.log(steps), color=INK, linestyle=BOUND_DASH, linewidth=1.0, label=name, zorder=5
    )


def bound_end(summary: pl.DataFrame, bound: float) -> float:
    """Return v* log n for the summary's last step n."""
    return bound * math.log(_last(summary))


def style_axes(
    axes: Axes, below: str = "", beside: str = "", grid: Literal["both", "x", "y"] = "both"
) -> None:
    """Give axes the labels, ticks, grid and spines that all figures share."""
    axes.set_xlabel(below, **LABEL)
    axes.set_ylabel(beside, **LABEL)
    axes.tick_params(which="both", labelsize=SMALL, color=INK, labelcolor=INK, width=0.6)
    axes.tick_params(which="major", length=3)
    axes.tick_params(which="minor", length=1.5)
    axes.grid(which="major", axis=grid, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=INK, linewidth=0.6)


def logarithmic_ticks(axes: Axes) -> None:
    """Put unlabelled ticks between the powers of ten."""
    axes.xaxis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=50))
    axes.xaxis.set_minor_formatter(NullFormatter())


def dress(axes: Axes, summary: pl.DataFrame, scale: Scale, below: str = "", beside: str = "") -> None:
    """Style axes of regret against time, and set their limits and ticks."""
    style_axes(axes, below, beside)
    axes.set_ylim(0, scale.top)
    logarithmic = axes.get_xscale() == "log"
    axes.set_xlim(1 if logarithmic else 0, max(_last(summary), 2))  # an axis of one step has no width
    if logarithmic:
        logarithmic_ticks(axes)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def add_legend(figure: Figure, lines: Sequence[Line2D]) -> None:
    """Put the legend above the panels, in as few rows as fit, and enlarge the figure by its height."""
    most = min(len(lines), 3 if figure.get_figwidth() < 5 else 6)
    for columns in range(most, 0, -1):
        # Columns that do not save a row would only make the legend ragged.
        if columns > 1 and -(-len(lines) // columns) == -(-len(lines) // (columns - 1)):
            continue
        legend = figure.legend(
            handles=list(lines),
            loc="outside upper center",
            ncols=columns,
            **LEGEND,
            handlelength=2.4,
            handletextpad=0.6,
            labelspacing=0.3,
            columnspacing=1.2,
            borderpad=0.2,
            borderaxespad=0.2,
        )
        extent = legend.get_window_extent()
        if columns == 1 or extent.width < 0.98 * figure.bbox.width:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi + LEGEND_PAD)


def _last(summary: pl.DataFrame) -> int:
    return summary["step"].max()  # type: ignore[return-value]  # steps are integers
