"""The final table, for the terminal."""

from rich import box
from rich.table import Table
from rich.text import Text

from solid_bandits.report import standings
from solid_bandits.report.stream_data import STREAM_HEADS, stream_cells
from solid_bandits.results import Results


def final_table(results: Results, bound: float | None = None) -> Table:
    """Where the policies stand at the last step, in order of mean regret; v* log n below, where v* is given.

    Beside each mean and its 95% Student interval stands the difference to the best policy within the same runs
    (common random numbers), with its own interval: that is the one to judge by.
    """
    rows = standings.rows(results)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        caption="\n".join(standings.notes(rows, bound)) or None,
        caption_justify="left",
    )
    # Without a least width rich would, on a narrow terminal, squeeze out the one column that may wrap.
    table.add_column("policy", overflow="fold", min_width=9)
    for heading in (
        "mean\nregret",
        "95% interval",
        "difference to best\n(paired 95%)",
        "exploring\nrounds",
        "runs",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        # Text, not str: a label with square brackets is a label, not markup.
        table.add_row(*(Text(cell) for cell in row))
    if bound is not None:
        table.add_section()
        table.add_row(standings.BOUND_LABEL, standings.bound_at_horizon(results, bound))
    return table


def stream_table(results: Results) -> Table | None:
    """What a simulation on a stream gave beside regret, the most reward first; None for a finite problem."""
    cells = stream_cells(results)
    if not cells:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("policy", overflow="fold", min_width=9)
    for heading in STREAM_HEADS:
        table.add_column(heading, justify="right", no_wrap=True)
    for policy, row in cells.items():
        table.add_row(*(Text(cell) for cell in (policy, *row)))
    return table
