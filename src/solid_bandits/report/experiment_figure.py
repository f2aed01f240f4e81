"""The figure of an experiment: mean cumulative regret with 95% bands, a panel per part, one legend."""

import os
from collections.abc import Mapping

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from solid_bandits import _words
from solid_bandits.experiments.outcome import Outcome
from solid_bandits.report.figure import (
    BOUND_DASH,
    INK,
    LINE,
    SMALL,
    TEXT,
    WIDTH,
    add_legend,
    bound_end,
    draw_bound,
    draw_policies,
    dress,
    new_figure,
    regret_figure,
    save_figure,
    text_of,
)
from solid_bandits.report.palette import Look, looks
from solid_bandits.report.scale import Scale, regret_scale

# Up to this many parts are stacked in a journal's column; more take the width of two.
STACKED = 3
# In inches:
DOUBLE_WIDTH = 7.0
STACKED_PANELS = {2: 1.95, 3: 1.6}
GRID_PANEL = 1.95
BELOW = 0.36
"""About what ticks and labels below the panels take."""
ABOVE = 0.17
"""About what the title of the uppermost panels takes."""
TICKS = 0.58
"""About what the ticks and labels beside a panel take of its width."""
# In points:
NOTE_LINE = 9.0
TITLE_PAD = 3.0

# With many policies, those far above the middle one are let out of the top even where each is not so far
# above the next: half of them would else lie on the floor of a small panel.
MANY = 8
FAR_ABOVE_MIDDLE = 4.0
JUMP = 1.5

BOUND_NAME = r"asymptotic lower bound $v^* \log t$"


def experiment_figure(outcome: Outcome) -> Figure:
    """Draw mean cumulative regret with 95% Student bands and v* log t (dashed), one panel per part.

    Up to three parts are stacked at the width of a journal's column, more lie beside each other at twice that
    width. Time is linear, or logarithmic where the parts have different horizons; a single part is shown both
    ways. A regret axis is as high as `regret_scale` says, or lower where there are many policies; what leaves
    it is named, in the panel's heading or, for a single part, in the legend.
    """
    if len(outcome.parts) == 1:
        ((label, results),) = outcome.parts.items()
        bound = results.bound
        return regret_figure(results, bound, label, _scale(results.summary(), bound))
    styles = looks(outcome.policies)
    summaries = {label: results.summary() for label, results in outcome.parts.items()}
    horizons = {summary["step"].max() for summary in summaries.values()}
    figure, panels = _lay_out(len(summaries), shared_time=len(horizons) == 1)
    notes = []
    for axes, (label, summary) in zip(panels, summaries.items(), strict=True):
        if len(horizons) > 1:
            axes.set_xscale("log")
        bound = outcome.parts[label].bound
        scale = _scale(summary, bound)
        draw_policies(axes, summary, scale, styles, {policy: text_of(policy) for policy in styles})
        if bound is not None:
            draw_bound(axes, summary, bound, BOUND_NAME)
        dress(axes, summary, scale)
        notes.append(_head(axes, label, bound, _leaving(summary, scale, bound)))
    time = "step $t$" if len(horizons) == 1 else "step $t$ (logarithmic)"
    columns = _columns(panels[0])
    for axes in panels[-columns:]:
        axes.set_xlabel(time, fontsize=TEXT, color=INK)
    # The notes make the figure higher, not the panels lower.
    rows = [max(notes[first : first + columns]) for first in range(0, len(notes), columns)]
    figure.set_figheight(figure.get_figheight() + sum(rows) * NOTE_LINE / 72)
    bounded = any(results.bound is not None for results in outcome.parts.values())
    legend = add_legend(figure, _legend_lines(styles, bounded))
    # One label for all panels, beside the middle of them and not of the figure.
    height = figure.get_figheight()
    middle = (BELOW + height - legend - ABOVE - rows[0] * NOTE_LINE / 72) / 2 / height
    figure.supylabel("mean cumulative regret", fontsize=TEXT, color=INK, y=middle, va="center")
    return figure


def write_experiment_figure(outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Write `experiment_figure` to `path`, as its suffix says (.png, .pdf, .svg), whole or not at all."""
    save_figure(experiment_figure(outcome), path)


def _lay_out(parts: int, shared_time: bool) -> tuple[Figure, list[Axes]]:
    """A figure with as many panels as there are parts."""
    if parts <= STACKED:
        columns, width, height = 1, WIDTH, STACKED_PANELS[parts]
    else:
        columns, width, height = 2 if parts == 4 else 3, DOUBLE_WIDTH, GRID_PANEL
    rows = -(-parts // columns)
    figure = new_figure(width, rows * height)
    # Only the lowest panels say what the time is, where it is the same in all.
    cells = figure.subplots(rows, columns, squeeze=False, sharex="col" if shared_time else False)
    panels = list(cells.flat)
    for axes in panels[parts:]:
        axes.remove()
    for axes in panels[parts - columns : parts]:
        axes.tick_params(labelbottom=True)  # also above a cell that is empty
    return figure, panels[:parts]


def _columns(axes: Axes) -> int:
    place = axes.get_subplotspec()
    return 1 if place is None else place.get_gridspec().ncols


def _scale(summary: pl.DataFrame, bound: float | None) -> Scale:
    """`regret_scale`, of fewer policies where there are many."""
    ends = (
        summary.group_by("policy", maintain_order=True)
        .agg(pl.col("mean").max(), pl.max_horizontal("mean", "high").max().alias("high"))
        .sort("mean", maintain_order=True)
    )
    means = ends["mean"].to_list()
    middle = means[(len(means) - 1) // 2]
    kept = len(means)
    if kept >= MANY:
        far = (
            place
            for place in range(kept // 2, kept)
            if means[place] > max(FAR_ABOVE_MIDDLE * middle, JUMP * means[place - 1]) > 0
        )
        kept = next(far, kept)
    scale = regret_scale(summary.filter(pl.col("policy").is_in(ends["policy"][:kept].to_list())), bound)
    let_out = ends[kept:]
    return Scale(
        top=scale.top,
        off_scale=scale.off_scale
        | dict(let_out.filter(pl.col("mean") > scale.top).select("policy", "mean").rows()),
        cut=scale.cut
        + tuple(let_out.filter(pl.col("mean") <= scale.top, pl.col("high") > scale.top)["policy"]),
    )


def _legend_lines(styles: Mapping[str, Look], bounded: bool) -> list[Line2D]:
    """Every policy once, also one that only some parts have."""
    lines = []
    for policy, look in styles.items():
        line = Line2D([], [], color=look.colour, linewidth=LINE, label=text_of(policy))
        line.set_linestyle(look.linestyle)  # type: ignore[arg-type]  # one of palette.PATTERNS
        lines.append(line)
    if bounded:
        lines.append(Line2D([], [], color=INK, linestyle=BOUND_DASH, linewidth=1.0, label=BOUND_NAME))
    return lines


def _leaving(summary: pl.DataFrame, scale: Scale, bound: float | None) -> list[str]:
    """What leaves the axis, each as a few words that are not to be broken."""
    words = [f"{text_of(policy)} ({_words.number(value)})" for policy, value in scale.off_scale.items()]
    if bound is not None and bound_end(summary, bound) > scale.top:
        words.append(f"$v^* \\log t$ ({_words.number(bound_end(summary, bound))})")
    return words + [f"band of {text_of(policy)}" for policy in scale.cut]


def _head(axes: Axes, label: str, bound: float | None, leaving: list[str]) -> int:
    """The panel's title on the left, v* on the right, and below them what leaves the axis.

    Returns the number of lines that this last takes.
    """
    room = axes.figure.bbox.width / axes.figure.dpi * 72 / _columns(axes) - TICKS * 72
    lines = (
        _wrapped(axes, ["off scale:", *(f"{word};" for word in leaving[:-1]), leaving[-1]], room)
        if leaving
        else []
    )
    pad = TITLE_PAD + NOTE_LINE * len(lines)
    value = "" if bound is None else f"$v^*$ = {_words.number(bound)}"
    title = label
    while len(title) > 1 and _width(axes, text_of(title), TEXT) + _width(axes, value, SMALL) > room - SMALL:
        title = title.rstrip("…")[:-1] + "…"
    axes.set_title(text_of(title), fontsize=TEXT, color=INK, loc="left", pad=pad)
    axes.set_title(value, fontsize=SMALL, color=INK, loc="right", pad=pad)
    for place, line in enumerate(reversed(lines)):
        axes.annotate(
            line,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, TITLE_PAD - 1 + NOTE_LINE * place),
            textcoords="offset points",
            fontsize=SMALL,
            color=INK,
        )
    return len(lines)


def _wrapped(axes: Axes, words: list[str], room: float) -> list[str]:
    """Join the words to lines no wider than `room` points."""
    lines = [words[0]]
    for word in words[1:]:
        longer = f"{lines[-1]} {word}"
        if _width(axes, longer, SMALL) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _width(axes: Axes, text: str, size: float) -> float:
    """The width of a text in points."""
    drawn = axes.text(0, 0, text, fontsize=size)
    width = drawn.get_window_extent().width / axes.figure.dpi * 72
    drawn.remove()
    return float(width)
