"""`solid-bandits policies`: what there is to choose from."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

WIDE = 130
"""Columns of a terminal from which on a policy takes one row; below, it takes a few lines, and no name is cut."""


def policies(
    references: Annotated[bool, typer.Option("--references", help="Also show references.")] = False,
) -> None:
    """List the policies: setting, optimality, exploration rule; the paper's Table 1, extended."""
    from rich.console import Console

    from solid_bandits.policies.catalogue import policy_table

    columns = ["contexts", "setting", "optimality", "exploration", "test", "parameters"]
    columns += ["reference"] if references else []
    console = Console(markup=False)
    rows = policy_table()
    console.print(_wide(rows, columns) if console.width >= WIDE else _narrow(rows, columns))


def _wide(rows: list[dict[str, str]], columns: list[str]) -> "Table":
    from rich.table import Table

    table = Table(show_lines=True)
    table.add_column("name", no_wrap=True)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(row["name"], *(row[column] for column in columns))
    return table


def _narrow(rows: list[dict[str, str]], columns: list[str]) -> "Table":
    from rich.table import Table

    table = Table(show_lines=True)
    table.add_column("name", no_wrap=True)
    table.add_column("what it does, and what is known of it")
    for row in rows:
        known = [f"{column}: {row[column]}" for column in columns if row[column]]
        table.add_row(row["name"], "\n".join([row["line"], *known]))
    return table
