"""The regret figure: mean cumulative regret against time, linear and logarithmic, with 95% bands."""

import os
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from solid_bandits._types import Ints
from solid_bandits.report.palette import BAND_OPACITY, Look, looks
from solid_bandits.report.scale import Scale, regret_scale
from solid_bandits.results import Results, write_whole

# Drawn at the width of a journal's column, where the text has its final size; the resolution makes the same
# drawing good on a slide. The panels lie above each other because two beside each other are too small in a column.
# In inches:
WIDTH = 3.4
PANELS = 3.9
LEGEND_ROW = 0.15
DPI = 300
LONGEST_LABEL = 40
TEXT = 8.0
SMALL = 7.0
INK = "#333333"
GRID = "#E6E6E6"


def regret_figure(results: Results, bound: float | None = None) -> Figure:
    """Draw mean cumulative regret with 95% Student bands: linear time above, logarithmic time below.

    The regret axis starts at 0 and is as high as `regret_scale` says; the legend names what runs off it.

    Args:
        results: the table to draw.
        bound: v*, the constant of the regret lower bound: v* log t is drawn as a dashed line.

    """
    summary = results.summary()
    scale = regret_scale(summary, bound)
    figure = Figure(figsize=(WIDTH, PANELS), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharey=True)
    below.set_xscale("log")
    for axes in (above, below):
        for policy, look in looks(results.policies).items():
            _draw_policy(axes, summary.filter(pl.col("policy") == policy), look, _label(policy, scale))
        if bound is not None:
            _draw_bound(axes, summary["step"].unique().sort().to_numpy(), bound, scale)
        _dress(axes, scale, summary["step"].max())  # type: ignore[arg-type]  # steps are integers
    above.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    above.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    below.xaxis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=50))
    below.xaxis.set_minor_formatter(NullFormatter())
    above.set_xlabel("step $t$", fontsize=TEXT, color=INK)
    below.set_xlabel("step $t$ (logarithmic)", fontsize=TEXT, color=INK)
    _add_legend(figure, above)
    return figure


def write_figure(results: Results, path: str | os.PathLike[str], bound: float | None = None) -> None:
    """Write `regret_figure` to `path`, in the format of its suffix (.png, .pdf, .svg), whole or not at all."""
    figure = regret_figure(results, bound)
    write_whole(Path(path), lambda file: figure.savefig(file, dpi=DPI))


def _draw_policy(axes: Axes, curve: pl.DataFrame, look: Look, label: str) -> None:
    steps = curve["step"].to_numpy()
    if curve["low"].null_count() == 0:
        low, high = curve["low"].to_numpy(), curve["high"].to_numpy()
        axes.fill_between(steps, low, high, color=look.colour, alpha=BAND_OPACITY, linewidth=0)
    axes.plot(
        steps,
        curve["mean"].to_numpy(),
        color=look.colour,
        linestyle=look.linestyle,
        linewidth=1.3,
        marker="o" if len(steps) == 1 else None,  # a line through one point cannot be seen
        markersize=3,
        label=label,
    )


def _draw_bound(axes: Axes, steps: Ints, bound: float, scale: Scale) -> None:
    label = f"bound $v^* \\log t$, $v^* = {bound:.3g}$"
    values = bound * np.log(steps)
    if values[-1] > scale.top:
        label += f" (off scale: {values[-1]:,.0f})"
    axes.plot(steps, values, color=INK, linestyle=(0, (4, 2)), linewidth=1.0, label=label)


def _label(policy: str, scale: Scale) -> str:
    name = policy if len(policy) <= LONGEST_LABEL else policy[: LONGEST_LABEL - 1] + "…"
    name = name.replace("$", r"\$")  # a label is a label, not mathematics
    if policy in scale.off_scale:
        return f"{name} (off scale: {scale.off_scale[policy]:,.0f})"
    return f"{name} (band cut)" if policy in scale.cut else name


def _dress(axes: Axes, scale: Scale, last: int) -> None:
    axes.set_ylim(0, scale.top)
    axes.set_xlim(1 if axes.get_xscale() == "log" else 0, max(last, 2))  # an axis of one step has no width
    axes.set_ylabel("mean cumulative regret", fontsize=TEXT, color=INK)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.tick_params(which="both", labelsize=SMALL, color=INK, labelcolor=INK, width=0.6)
    axes.tick_params(which="major", length=3)
    axes.tick_params(which="minor", length=1.5)
    axes.grid(which="major", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=INK, linewidth=0.6)


def _add_legend(figure: Figure, axes: Axes) -> None:
    """Put the legend above the panels, in two columns where they fit, and make the figure higher by its rows."""
    lines = axes.get_lines()
    for columns in (2, 1):
        legend = figure.legend(
            handles=lines,
            loc="outside upper center",
            ncols=columns,
            fontsize=SMALL,
            labelcolor=INK,
            frameon=False,
            handlelength=2.0,
            columnspacing=1.2,
            borderaxespad=0.2,
        )
        if columns == 1 or legend.get_window_extent().width < figure.bbox.width:
            break
        legend.remove()
    figure.set_figheight(PANELS + LEGEND_ROW * -(-len(lines) // columns))
