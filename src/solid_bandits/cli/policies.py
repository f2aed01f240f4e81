"""`solid-bandits policies`: what there is to choose from."""

from typing import Annotated

import typer


def policies(
    references: Annotated[bool, typer.Option("--references", help="Also show references.")] = False,
) -> None:
    """List the policies: setting, optimality, exploration rule; the paper's Table 1, extended."""
    from rich.console import Console
    from rich.table import Table

    from solid_bandits.policies.catalogue import policy_table

    columns = ["name", "contexts", "setting", "optimality", "exploration", "test", "parameters"]
    columns += ["reference"] if references else []
    table = Table(*columns, show_lines=True)
    for row in policy_table():
        table.add_row(*(row[column] for column in columns))
    Console().print(table)
