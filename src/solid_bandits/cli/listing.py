"""`solid-bandits policies` and `problems`: the available choices, and their parameters."""

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from solid_bandits.cli.messages import bad_arguments, show

if TYPE_CHECKING:
    from rich.table import Table

WIDE = 130
"""Width in columns from which a policy takes one row; on a narrower terminal it takes a few lines, and no name is
cut."""
FACTS = ("contexts", "setting", "optimality", "exploration", "test")


def policies(
    name: Annotated[str | None, typer.Argument(help="Name of a policy whose parameters to explain.")] = None,
    references: Annotated[bool, typer.Option("--references", help="Also show references.")] = False,
) -> None:
    """List the policies: setting, optimality, exploration rule; the paper's Table 1, extended."""
    from rich.console import Console

    from solid_bandits.policies.catalogue import policy_table

    rows = policy_table()
    if name is not None:
        show(_one_policy(name, rows))
        return
    columns = [*FACTS, "parameters", *(["reference"] if references else [])]
    if Console().width >= WIDE:
        show(_table(["name", *columns], ([row["name"], *(row[one] for one in columns)] for row in rows)))
        return
    known = ([row["line"], *(f"{one}: {row[one]}" for one in columns if row[one])] for row in rows)
    cells = ([row["name"], "\n".join(lines)] for row, lines in zip(rows, known, strict=True))
    show(_table(["name", "what it does, and what is known of it"], cells))


def problems() -> None:
    """List the problems and streams that commands and experiments take by name, with their parameters."""
    from solid_bandits.paper.naming import HOMES, constructor

    rows = []
    for name in HOMES:
        make = constructor(name)
        given = ", ".join(
            f"{one.name}={one.default!r}" for one in inspect.signature(make).parameters.values()
        )
        rows.append([name, f"{(make.__doc__ or '').partition(chr(10))[0]}\n{name}({given})"])
    show(_table(["name", "what it is, and its parameters"], rows))


def _one_policy(name: str, rows: Sequence[dict[str, str]]) -> "Table":
    """Return the parameters of one policy: defaults, allowed values and meanings."""
    from solid_bandits._internal import checks
    from solid_bandits.policies.catalogue import CATALOGUE

    with bad_arguments():
        checks.choice("policy", name, CATALOGUE)
    (row,) = (one for one in rows if one["name"] == name)
    entry = CATALOGUE[name]
    means = argument_words(entry.kind)
    table = _table(
        ["parameter", "default", "may be", "means"],
        (
            [one.name, repr(one.value), one.constraint.words, means.get(one.name, "")]
            for one in entry.parameters
        ),
    )
    facts = "; ".join(f"{one}: {row[one]}" for one in (*FACTS, "reference") if row[one])
    table.title, table.caption = f"{row['policy']}: {row['line']}", facts
    table.title_justify = table.caption_justify = "left"
    return table


def argument_words(kind: type) -> dict[str, str]:
    """Return the description of each argument in the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        _, _, rest = (inspect.cleandoc(one.__doc__ or "")).partition("Args:\n")
        arguments = rest.partition("\n\n")[0]
        for name, words in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", arguments, flags=re.MULTILINE):
            found[name] = " ".join(words.split())
    return found


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
    from rich.table import Table

    table = Table(show_lines=True)
    for place, column in enumerate(columns):
        table.add_column(column, no_wrap=place == 0)
    for row in rows:
        table.add_row(*row)
    return table
