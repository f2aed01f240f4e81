"""`results.plot()`: one panel of mean regret against time, into axes of the user's or into a figure of its own."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from matplotlib.axes import Axes

from solid_bandits._check import ArgumentError, short
from solid_bandits.report.figure import (
    INK,
    SMALL,
    TEXT,
    add_legend,
    bound_end,
    bound_name,
    draw_bound,
    draw_policies,
    dress,
    new_figure,
    policy_name,
    save_figure,
    text_of,
)
from solid_bandits.report.palette import looks
from solid_bandits.report.scale import regret_scale

if TYPE_CHECKING:
    from solid_bandits.results import Results

SUFFIXES = (".png", ".pdf", ".svg")
# In inches, and dots per inch on a screen: text of 8 points is readable in a notebook.
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
        panel.set_title(text_of(title), fontsize=TEXT, color=INK, loc="left")
    figure = panel.get_figure(root=True)
    assert figure is not None  # axes are of a figure
    if own:
        add_legend(figure, panel.get_lines())
    else:
        panel.legend(fontsize=SMALL, labelcolor=INK, frameon=False)
    if path is not None:
        save_figure(figure, path)
    return panel


def _draw(panel: Axes, results: "Results", log: bool, bands: bool, bound: float | None) -> None:
    summary = results.summary()
    if not bands:
        summary = summary.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in ("low", "high"))
    scale = regret_scale(summary, bound)
    styles = looks(results.policies)
    if log:
        panel.set_xscale("log")
    draw_policies(panel, summary, scale, styles, {policy: policy_name(policy, scale) for policy in styles})
    if bound is not None:
        draw_bound(panel, summary, bound, bound_name(bound, bound_end(summary, bound), scale))
    dress(panel, summary, scale)
    panel.set_xlabel(f"step $t${' (logarithmic)' if log else ''}", fontsize=TEXT, color=INK)
    panel.set_ylabel("mean cumulative regret", fontsize=TEXT, color=INK)


def _new_panel(shown: bool) -> Axes:
    """Of a figure that pyplot knows, so that notebooks and `pyplot.show` show it; or of one that goes with its file."""
    if not shown:
        return new_figure(WIDTH, HEIGHT).subplots()
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(WIDTH, HEIGHT), dpi=SCREEN_DPI, layout="constrained")
    return figure.subplots()
