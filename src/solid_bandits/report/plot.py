"""`results.plot()`: one panel of mean regret against time, drawn into the user's axes or into a new figure."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from matplotlib.axes import Axes

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits.report import figure as drawing
from solid_bandits.report.palette import looks
from solid_bandits.report.scale import regret_scale

if TYPE_CHECKING:
    from solid_bandits.simulation.results import Results

SUFFIXES = (".png", ".pdf", ".svg")
# Size in inches, and dots per inch on a screen; text of 8 points is readable in a notebook.
WIDTH, HEIGHT, SCREEN_DPI = 4.8, 2.9, 160


def plot_regret(
    results: "Results",
    path: str | os.PathLike[str] | None,
    axes: Axes | None,
    log: bool,
    bands: bool,
    bound: float | None,
    title: str,
) -> Axes:
    """Draw mean cumulative regret into `axes`, or into a new figure; see `Results.plot`."""
    if path is not None and Path(path).suffix.lower() not in SUFFIXES:
        raise ArgumentError("path", f"must end in {', '.join(SUFFIXES)}, got {os.fspath(path)!r}")
    if axes is not None and not isinstance(axes, Axes):
        raise ArgumentError("axes", f"must be axes of matplotlib, got {short(axes)}")
    own = axes is None
    panel = axes if axes is not None else _new_panel(shown=path is None)
    _draw(panel, results, log, bands, bound)
    if title:
        panel.set_title(drawing.text_of(title), **drawing.LABEL, loc="left")
    figure = panel.get_figure(root=True)
    assert figure is not None  # axes belong to a figure
    if own:
        drawing.add_legend(figure, panel.get_lines())
    else:
        panel.legend(**drawing.LEGEND)
    if path is not None:
        drawing.save_figure(figure, path)
    return panel


def _draw(panel: Axes, results: "Results", log: bool, bands: bool, bound: float | None) -> None:
    summary = results.summary()
    if not bands:
        summary = summary.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in ("low", "high"))
    if log:
        panel.set_xscale("log")
    scale = regret_scale(summary, bound)
    drawing.draw_regret(
        panel, summary, scale, looks(results.policies), bound, drawing.LOG_TIME if log else drawing.TIME
    )


def _new_panel(shown: bool) -> Axes:
    """Return the axes of a new figure; if `shown`, pyplot knows it, as notebooks and `pyplot.show` require."""
    if not shown:
        return drawing.new_figure(WIDTH, HEIGHT).subplots()
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(WIDTH, HEIGHT), dpi=SCREEN_DPI, layout="constrained")
    return figure.subplots()
