"""Figure of an experiment: mean cumulative regret with 95% bands, a panel per part, one legend."""

import textwrap

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from solid_bandits._internal import wording
from solid_bandits.paper.outcome import Outcome
from solid_bandits.report import figure as drawing
from solid_bandits.report.palette import looks
from solid_bandits.report.scale import Scale, peaks, regret_scale

# Up to this many parts are stacked in one column of a journal; more take the width of two.
STACKED = 3
# Lengths in inches:
DOUBLE_WIDTH = 7.0
STACKED_PANELS = {2: 1.95, 3: 1.6}
GRID_PANEL = 1.95
TICKS = 0.58
"""Approximate width of the ticks and labels next to a panel."""
# Font sizes in points:
NOTE_LINE = 9.0
LETTER = 0.53
"""Approximate width of a letter, relative to the font size."""
TITLE_PAD = 3.0

# With many policies, those far above the middle one may leave the axis at the top even where each is not far above the
# next; otherwise half of them would lie on the floor of a small panel.
MANY = 8
FAR_ABOVE_MIDDLE = 4.0
JUMP = 1.5

JOINED = "\N{NO-BREAK SPACE}"
"""No-break space between the words of a policy and its number, which keeps them on one line."""
BOUND_NAME = f"asymptotic lower bound {drawing.BOUND}"


def experiment_figure(outcome: Outcome) -> Figure:
    """Draw mean cumulative regret with 95% Student bands and v* log t (dashed), one panel per part.

    Up to three parts are stacked at the width of a journal's column, more lie next to each other at twice that width.
    Time is linear, or logarithmic where the parts have different horizons; a single part is shown both ways. The regret
    axis ends at `regret_scale`, or lower where there are many policies. Policies that leave it are named in the panel's
    heading or, for a single part, in the legend.
    """
    if len(outcome.parts) == 1:
        ((label, results),) = outcome.parts.items()
        bound = results.bound
        return drawing.regret_figure(results, bound, label, _scale(results.summary(), bound))
    styles = looks(outcome.policies)
    summaries = {label: results.summary() for label, results in outcome.parts.items()}
    shared = len({summary["step"].max() for summary in summaries.values()}) == 1
    figure, panels = _lay_out(len(summaries), shared)
    columns = len({axes.get_subplotspec().colspan.start for axes in panels})  # type: ignore[union-attr]
    lines: dict[object, Line2D] = {}
    notes: list[int] = []
    for place, (axes, (label, summary)) in enumerate(zip(panels, summaries.items(), strict=True)):
        if not shared:
            axes.set_xscale("log")
        bound = outcome.parts[label].bound
        scale = _scale(summary, bound)
        drawing.draw_policies(axes, summary, scale, styles)
        if bound is not None:
            drawing.draw_bound(axes, summary, bound, BOUND_NAME)
        time = (drawing.TIME if shared else drawing.LOG_TIME) if place >= len(panels) - columns else ""
        drawing.dress(axes, summary, scale, time)
        lines |= {line.get_label(): line for line in axes.get_lines()}
        notes.append(
            _head(axes, label, bound, _leaving(summary, scale, bound), figure.get_figwidth() / columns)
        )
    # Extra lines of notes make the figure higher, not the panels lower.
    rows = [max(notes[first : first + columns]) for first in range(0, len(notes), columns)]
    figure.set_figheight(figure.get_figheight() + sum(rows) * NOTE_LINE / 72)
    names = [*map(drawing.text_of, outcome.policies), BOUND_NAME]
    drawing.add_legend(figure, [lines[name] for name in names if name in lines])
    # One label for all panels, centred on the panels and not on the figure.
    figure.draw_without_rendering()
    middle = (panels[0].get_position().y1 + panels[-1].get_position().y0) / 2
    figure.supylabel(drawing.REGRET, **drawing.LABEL, y=middle, va="center")
    return figure


def _lay_out(parts: int, shared_time: bool) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel per part."""
    if parts <= STACKED:
        columns, width, height = 1, drawing.WIDTH, STACKED_PANELS[parts]
    else:
        columns, width, height = 2 if parts == 4 else 3, DOUBLE_WIDTH, GRID_PANEL
    rows = -(-parts // columns)
    figure = drawing.new_figure(width, rows * height)
    # Only the lowest panels label the time axis, where it is the same in all.
    cells = figure.subplots(rows, columns, squeeze=False, sharex="col" if shared_time else False)
    panels = list(cells.flat)
    for axes in panels[parts:]:
        axes.remove()
    for axes in panels[parts - columns : parts]:
        axes.tick_params(labelbottom=True)  # also above a cell that is empty
    return figure, panels[:parts]


def _scale(summary: pl.DataFrame, bound: float | None) -> Scale:
    """Return the `regret_scale` of the policies that stay on the axis, which are fewer where there are many."""
    ends = peaks(summary)
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


def _leaving(summary: pl.DataFrame, scale: Scale, bound: float | None) -> list[str]:
    """List the policies that leave the axis, each as a few words that must not be broken."""
    words = [
        f"{drawing.text_of(policy)} ({wording.number(value)})" for policy, value in scale.off_scale.items()
    ]
    if bound is not None and drawing.bound_end(summary, bound) > scale.top:
        words.append(f"{drawing.BOUND} ({wording.number(drawing.bound_end(summary, bound))})")
    return words + [f"band of {drawing.text_of(policy)}" for policy in scale.cut]


def _head(axes: Axes, label: str, bound: float | None, leaving: list[str], width: float) -> int:
    """Write the panel's title on the left, v* on the right, and below them the policies that leave the axis.

    Returns the number of lines of the latter; `width` is the panel's width including its ticks, in inches.
    """
    room = (width - TICKS) * 72 / LETTER
    words = "; ".join(one.replace(" ", JOINED) for one in leaving)
    note = (
        textwrap.fill(f"off scale: {words}", int(room / drawing.SMALL), break_long_words=False)
        if leaving
        else ""
    )
    axes.annotate(
        note.replace(JOINED, " "),
        (0, 1),
        xytext=(0, 2),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=drawing.SMALL,
        color=drawing.INK,
    )
    count = len(note.splitlines())
    value = "" if bound is None else f"$v^*$ = {wording.number(bound)}"
    title = drawing.text_of(label, int(room / drawing.TEXT) - len(value.replace("$", "")))
    pad = TITLE_PAD + NOTE_LINE * count
    axes.set_title(title, **drawing.LABEL, loc="left", pad=pad)
    axes.set_title(value, fontsize=drawing.SMALL, color=drawing.INK, loc="right", pad=pad)
    return count
