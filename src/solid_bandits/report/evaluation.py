"""Evaluations of policies from a log, for readers: a printed table, a figure, a page."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich import box
from rich.table import Table
from rich.text import Text

from solid_bandits._internal import wording
from solid_bandits._internal.files import write_text
from solid_bandits.report.figure import LEGEND, new_figure, save_figure, style_axes, text_of
from solid_bandits.report.palette import looks
from solid_bandits.report.templates import render

if TYPE_CHECKING:
    from solid_bandits.ope import Comparison, Evaluation, Verdict

WIDE, LEFT, RIGHT = 360, 24, 24
"""Width of the chart of differences and of its margins, in units of the drawing (about a phone's pixels)."""
FIGURE_FILE, PAGE_FILE = "evaluation.png", "evaluation.html"


def rows_of(evaluation: "Evaluation") -> list[tuple[str, str, str, str, str]]:
    """Return estimator, value, interval, kind of interval, and note, as text."""
    found = []
    for row in evaluation.table.iter_rows(named=True):
        half = None if row["low"] is None else (row["high"] - row["low"]) / 2
        value = wording.measured(row["value"], half) if half else wording.number(row["value"], 4)
        found.append(
            (row["estimator"], value, wording.ends(row["low"], row["high"]), row["interval"], row["note"])
        )
    return found


def evaluation_table(label: str, evaluation: "Evaluation") -> Table:
    """Return the table of one policy for the terminal."""
    level = wording.given(100 * evaluation.confidence)
    notes = [f"note: {one}" for one in evaluation.cautions]
    table = Table(
        title=Text(f"{label}: value per decision"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=Text("\n".join([_facts(evaluation), *notes])),
        caption_justify="left",
    )
    table.add_column("estimator", no_wrap=True)
    for heading in ("value", f"{level}% interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("interval is", no_wrap=True)
    table.add_column("note", overflow="fold", min_width=12)
    for row in rows_of(evaluation):
        table.add_row(*(Text(cell) for cell in row))
    return table


def comparison_tables(comparison: "Comparison") -> list[Table]:
    """Return the table of each segment for the terminal: which policy won, and by how much over what was played."""
    level = wording.given(100 * comparison.confidence)
    tables = list[Table]()
    for segment in comparison.table["segment"].unique(maintain_order=True):
        table = Table(
            title=Text(f"{segment}: {comparison.sentence(segment)}"),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            caption=Text("\n".join(f"note: {one}" for one in comparison.cautions)) if not tables else None,
            caption_justify="left",
        )
        table.add_column("policy", overflow="fold", min_width=12)
        # Intervals are below their values, as both beside each other leave no room for policies in eighty columns.
        for heading in (f"value\n{level}% interval", f"over the log\n{level}% interval", "rank", "rows"):
            table.add_column(heading, justify="right", no_wrap=True)
        for policy, value, ends, over, over_ends, *others in compared_rows(comparison, segment):
            cells = (policy, f"{value}\n{ends}", f"{over}\n{over_ends}", *others)
            table.add_row(*(Text(cell) for cell in cells))
        tables.append(table)
    return tables


def compared_rows(comparison: "Comparison", segment: str) -> list[tuple[str, ...]]:
    """Return policy, value and its interval, difference to the log and its interval, ranks and rows, as text."""
    found = list[tuple[str, ...]]()
    for row in comparison.table.filter(pl.col("segment") == segment).iter_rows(named=True):
        ranks = sorted({row["best rank"], row["worst rank"]})
        found.append(
            (
                row["policy"],
                wording.number(row["value"], 4),
                wording.ends(row["low"], row["high"]),
                "" if row["over the log"] is None else wording.number(row["over the log"], 3, sign="+"),
                wording.ends(row["over low"], row["over high"]),
                " to ".join(map(str, ranks)),
                f"{row['rows']:,}",
            )
        )
    return found


def _facts(evaluation: "Evaluation") -> str:
    numbers = evaluation.diagnostics
    said = [wording.count(numbers["rows"], "row")]
    if "effective sample size" in numbers:
        said.append(f"effective sample size {wording.number(numbers['effective sample size'])}")
        said.append(f"largest weight {wording.number(numbers['weight, largest'])}")
    said.append(f"logger: {evaluation.logger}")
    return " · ".join(said)


def evaluation_figure(evaluations: Mapping[str, "Evaluation"]) -> Figure:
    """Draw values and intervals by every estimator and, below, how the anytime-valid bounds narrowed."""
    styles = looks(evaluations)
    names = _estimators(evaluations)
    paths = {label: one.path for label, one in evaluations.items() if one.path is not None}
    height = 0.9 + len(names) * (0.14 + 0.085 * len(evaluations))
    figure = new_figure(5.2, height + (2.2 if paths else 0))
    if paths:
        above, below = figure.subplots(2, 1, height_ratios=[height, 2.2])
    else:
        above, below = figure.subplots(1, 1), None
    step = 0.8 / len(evaluations)
    for place, (label, evaluation) in enumerate(evaluations.items()):
        colour = styles[label].colour
        known = evaluation.table.filter(pl.col("value").is_not_null())
        at = [names.index(name) + (place + 0.5) * step - 0.4 for name in known["estimator"]]
        above.plot(known["value"], at, "o", color=colour, ms=3, label=text_of(label))
        low, high = (known[end].cast(pl.Float64).to_numpy() for end in ("low", "high"))
        above.hlines(at, low, high, color=colour, lw=1.3)
        if below is not None and label in paths:
            path = paths[label]
            below.fill_between(
                path["rows"], path["low"], path["high"], color=colour, alpha=0.3 / len(paths), lw=0
            )
            for end in ("low", "high"):
                below.plot(path["rows"], path[end], color=colour, lw=0.8)
    style_axes(above, "value per decision", grid="x")
    above.set_yticks(range(len(names)), names)
    above.invert_yaxis()
    above.legend(**LEGEND, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    if below is not None:
        below.set_xscale("log")
        style_axes(below, "rows of the log", "anytime-valid bounds", grid="y")
    return figure


def _estimators(evaluations: Mapping[str, "Evaluation"]) -> list[str]:
    """Return the estimators that have a value for some policy, in order."""
    tables = pl.concat([one.table for one in evaluations.values()], how="vertical_relaxed")
    return tables.drop_nulls("value")["estimator"].unique(maintain_order=True).to_list()


def write_evaluation(
    evaluations: Mapping[str, "Evaluation"],
    out: Path,
    source: str,
    comparison: "Comparison | None" = None,
    verdict: "Verdict | None" = None,
) -> None:
    """Write evaluation.png and evaluation.html into the directory `out`."""
    out.mkdir(parents=True, exist_ok=True)
    save_figure(evaluation_figure(evaluations), out / FIGURE_FILE)
    write_text(out / PAGE_FILE, _page(evaluations, source, comparison, verdict))


def _page(
    evaluations: Mapping[str, "Evaluation"],
    source: str,
    comparison: "Comparison | None",
    verdict: "Verdict | None",
) -> str:
    segments = [] if comparison is None else comparison.table["segment"].unique(maintain_order=True).to_list()
    return render(
        "evaluation.html",
        title=f"Policies evaluated from {source}",
        source=source,
        evaluations=evaluations,
        first=next(iter(evaluations.values())),
        rows={
            label: list(zip(rows_of(one), one.table.iter_rows(named=True), strict=True))
            for label, one in evaluations.items()
        },
        numbers={label: _numbers(one.diagnostics) for label, one in evaluations.items()},
        ends=_scale(evaluations),
        comparison=comparison,
        verdict=verdict,
        segments=segments,
        answers={label: one.said(label) for label, one in evaluations.items()},
        chart=None if comparison is None else difference_chart(comparison),
        compared={} if comparison is None else {one: compared_rows(comparison, one) for one in segments},
    )


@dataclass(frozen=True)
class Bar:
    """The bar of a policy in the chart of differences; positions are in units of the drawing."""

    label: str
    at: float
    low: float | None
    high: float | None
    words: str


@dataclass(frozen=True)
class Chart:
    """The differences of all policies from what was played: bars, and the ticks of their axis."""

    bars: list[Bar]
    ticks: list[tuple[float, str]]
    zero: float


def difference_chart(comparison: "Comparison") -> Chart | None:
    """Lay out the chart of the segment "everyone"; None if no difference is known."""
    rows = comparison.table.filter(pl.col("segment") == "everyone").drop_nulls("over the log")
    if not rows.height:
        return None
    ends = [*rows["over the log"], *rows["over low"].drop_nulls(), *rows["over high"].drop_nulls(), 0.0]
    low, high = min(ends), max(ends)
    ticks = list(map(float, MaxNLocator(4).tick_values(low, high)))
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * (value - low) / span

    bars = []
    for row in rows.sort("over the log", descending=True).iter_rows(named=True):
        known = row["over low"] is not None
        value = wording.number(row["over the log"], 3, sign="+")
        words = (
            f"{value}, {wording.ends(row['over low'], row['over high'])}"
            if known
            else f"{value}, no interval"
        )
        bars.append(
            Bar(
                row["policy"],
                place(row["over the log"]),
                place(row["over low"]) if known else None,
                place(row["over high"]) if known else None,
                words,
            )
        )
    return Chart(
        bars,
        [(place(one), wording.number(one, 2, sign="+") if abs(one) > 1e-9 * span else "0") for one in ticks],
        place(0.0),
    )


def _numbers(diagnostics: Mapping[str, float]) -> dict[str, str]:
    return {
        name: wording.number(value) if isinstance(value, float) else f"{value:,}"
        for name, value in diagnostics.items()
    }


def _scale(evaluations: Mapping[str, "Evaluation"]) -> tuple[float, float]:
    """Return the ends of the axis on which the page draws all intervals."""
    every = pl.concat([one.table for one in evaluations.values()], how="vertical_relaxed")
    values = [
        value for end in ("value", "low", "high") for value in every[end].drop_nulls() if math.isfinite(value)
    ]
    low, high = min(values), max(values)
    margin = 0.03 * (high - low) or 0.5
    return low - margin, high + margin
