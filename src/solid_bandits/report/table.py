"""Tables for the terminal."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from solid_bandits.report import standings
from solid_bandits.report.stream_data import STREAM_HEADS, stream_cells
from solid_bandits.simulation.results import Results


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]], **options: Any) -> Table:
    """Make a table of labels and, to their right, numbers; `options` are those of `rich.table.Table`."""
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, caption_justify="left", **options
    )
    # On a narrow terminal, rich would otherwise collapse the one column that may wrap.
    table.add_column(heads[0], overflow="fold", min_width=9)
    for head in heads[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        # Text and not str, so that square brackets in a label are not read as markup.
        table.add_row(*(Text(cell) for cell in row))
    return table


def final_table(results: Results, bound: float | None = None) -> Table:
    """Return the standings at the last step, in order of mean regret, with v* log n below if v* is given.

    Next to each mean and its 95% Student interval is the difference from the best policy within the same runs (common
    random numbers), with its own interval, which is the one to judge by.
    """
    rows = standings.rows(results)
    # Longer headings do not fit in eighty columns.
    heads = [re.sub(r" (?=regret|rounds|\()", "\n", head) for head in standings.HEADS]
    table = table_of(heads, rows, caption="\n".join(standings.notes(rows, bound)) or None)
    if bound is not None:
        table.add_section()
        table.add_row(standings.BOUND_LABEL, standings.bound_at_horizon(results, bound))
    return table


def stream_table(results: Results) -> Table | None:
    """Return further results of a simulation on a stream, the most reward first; None for a finite problem."""
    cells = stream_cells(results)
    return (
        table_of(("policy", *STREAM_HEADS), [(policy, *row) for policy, row in cells.items()])
        if cells
        else None
    )
