"""What a log says of policies, for people: a printed table, a figure, a page."""

import math
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from rich import box
from rich.table import Table
from rich.text import Text

from solid_bandits import _words
from solid_bandits._files import write_text
from solid_bandits._types import Plain
from solid_bandits.report import markup
from solid_bandits.report.figure import GRID, INK, SMALL, TEXT, new_figure, save_figure, text_of
from solid_bandits.report.markup import read_part
from solid_bandits.report.palette import looks

if TYPE_CHECKING:
    from solid_bandits.ope import Evaluation

FIGURE_FILE, PAGE_FILE = "evaluation.png", "evaluation.html"


def rows_of(evaluation: "Evaluation") -> list[tuple[str, str, str, str, str]]:
    """Estimator, value, interval, its kind, and note, as text."""
    found = []
    for row in evaluation.table.iter_rows(named=True):
        half = None if row["low"] is None else (row["high"] - row["low"]) / 2
        value = _words.measured(row["value"], half) if half else _words.number(row["value"], 4)
        found.append(
            (row["estimator"], value, _words.ends(row["low"], row["high"]), row["interval"], row["note"])
        )
    return found


def evaluation_table(label: str, evaluation: "Evaluation") -> Table:
    """One policy, for the terminal."""
    level = _words.given(100 * evaluation.confidence)
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


def _facts(evaluation: "Evaluation") -> str:
    numbers = evaluation.diagnostics
    said = [_words.count(numbers["rows"], "row")]
    if "effective sample size" in numbers:
        said.append(f"effective sample size {_words.number(numbers['effective sample size'])}")
        said.append(f"largest weight {_words.number(numbers['weight, largest'])}")
    said.append(f"logger: {evaluation.logger}")
    return " · ".join(said)


def evaluation_figure(evaluations: Mapping[str, "Evaluation"]) -> Figure:
    """Values and intervals of every policy by every estimator; below, how the anytime-valid bounds narrowed."""
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
        rows = {row["estimator"]: row for row in evaluation.table.iter_rows(named=True)}
        colour = styles[label].colour
        known = [(name, row) for name, row in rows.items() if row["value"] is not None]
        shown = [(names.index(name) + (place + 0.5) * step - 0.4, row) for name, row in known]
        above.plot(
            [row["value"] for _, row in shown],
            [at for at, _ in shown],
            "o",
            color=colour,
            ms=3,
            label=text_of(label),
        )
        for at, row in shown:
            if row["low"] is not None:
                above.plot([row["low"], row["high"]], [at, at], "-", color=colour, lw=1.3)
        if below is not None and label in paths:
            path = paths[label]
            below.fill_between(
                path["rows"], path["low"], path["high"], color=colour, alpha=0.3 / len(paths), lw=0
            )
            below.plot(path["rows"], path["low"], color=colour, lw=0.8)
            below.plot(path["rows"], path["high"], color=colour, lw=0.8)
    above.set_yticks(range(len(names)), names, fontsize=SMALL)
    above.invert_yaxis()
    above.set_xlabel("value per decision", fontsize=TEXT, color=INK)
    above.legend(frameon=False, fontsize=SMALL, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    if below is not None:
        below.set_xscale("log")
        below.set_xlabel("rows of the log", fontsize=TEXT, color=INK)
        below.set_ylabel("anytime-valid bounds", fontsize=TEXT, color=INK)
    for axes in (above,) if below is None else (above, below):
        axes.tick_params(labelsize=SMALL)
        axes.grid(axis="x" if axes is above else "y", color=GRID, lw=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _estimators(evaluations: Mapping[str, "Evaluation"]) -> list[str]:
    """Those that have a value somewhere, in order."""
    found: dict[str, None] = {}
    for evaluation in evaluations.values():
        for row in evaluation.table.iter_rows(named=True):
            if row["value"] is not None:
                found[row["estimator"]] = None
    return list(found)


def write_evaluation(evaluations: Mapping[str, "Evaluation"], out: Path, source: str) -> None:
    """Write evaluation.png and evaluation.html into the directory `out`."""
    out.mkdir(parents=True, exist_ok=True)
    save_figure(evaluation_figure(evaluations), out / FIGURE_FILE)
    write_text(out / PAGE_FILE, _page(evaluations, source))


def _page(evaluations: Mapping[str, "Evaluation"], source: str) -> str:
    first = next(iter(evaluations.values()))
    ends = _scale(evaluations)
    sections = "".join(_section(label, one, ends) for label, one in evaluations.items())
    holds = (
        "The logger learnt from what it logged: ordinary intervals do not hold, and only those that do are shown."
        if first.logger == "learning"
        else "The logger did not learn from what it logged."
    )
    return Template(read_part("evaluation.html")).substitute(
        title=escape(f"Policies evaluated from {source}"),
        heading=escape(f"What {source} says of other policies"),
        lead=escape(holds),
        facts=escape(
            f"{_words.count(first.diagnostics['rows'], 'row')} · value is the mean reward per decision"
        ),
        sections=sections,
        style=read_part("page.css") + read_part("evaluation.css"),
    )


def _section(label: str, evaluation: "Evaluation", ends: tuple[float, float]) -> str:
    level = _words.given(100 * evaluation.confidence)
    heads = ("estimator", "value", f"{level}% interval", "", "interval is", "note")
    titles = "".join(f"<th>{head}</th>" for head in heads)
    body = []
    for plain, row in zip(rows_of(evaluation), evaluation.table.iter_rows(named=True), strict=True):
        name, value, interval, kind, note = map(escape, plain)
        cells = [(value, heads[1]), (interval, heads[2]), (_bar(row, ends), "")]
        tags = "".join(f'<td data-label="{head}">{cell}</td>' for cell, head in cells)
        tags += f'<td class="words" data-label="interval is">{kind}</td><td class="words" data-label="note">{note}</td>'
        body.append(f'<tr><th scope="row">{name}</th>{tags}</tr>')
    notes = "".join(f'<p class="note caution">{escape(one)}</p>' for one in evaluation.cautions)
    numbers = {
        name: _words.number(value) if isinstance(value, float) else f"{value:,}"
        for name, value in evaluation.diagnostics.items()
    }
    return (
        f"<section><h2>{escape(label)}</h2>"
        f'<table class="numbers stack evaluation"><thead><tr>{titles}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>{notes}"
        f"<h3>Can the log tell?</h3>{markup.facts(numbers)}</section>"
    )


def _scale(evaluations: Mapping[str, "Evaluation"]) -> tuple[float, float]:
    values = [
        value
        for one in evaluations.values()
        for row in one.table.iter_rows(named=True)
        for value in (row["value"], row["low"], row["high"])
        if value is not None and math.isfinite(value)
    ]
    low, high = min(values), max(values)
    margin = 0.03 * (high - low) or 0.5
    return low - margin, high + margin


def _bar(row: Plain, ends: tuple[float, float]) -> str:
    """The interval as a line and the value as a dot, on the scale of the page."""
    if row["value"] is None:
        return ""

    def at(value: float) -> float:
        return 200 * (value - ends[0]) / (ends[1] - ends[0])

    line = ""
    if row["low"] is not None:
        line = f'<line x1="{at(row["low"]):.1f}" x2="{at(row["high"]):.1f}" y1="7" y2="7"/>'
    return (
        '<svg class="bar" viewBox="0 0 200 14" aria-hidden="true">'
        f'{line}<circle cx="{at(row["value"]):.1f}" cy="7" r="3.5"/></svg>'
    )
