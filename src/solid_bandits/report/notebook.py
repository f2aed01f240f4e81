"""Results in a notebook: the standings as a small HTML table, without scripts or styles of its own."""

from html import escape
from typing import TYPE_CHECKING

from solid_bandits._internal.wording import count
from solid_bandits.report import standings

if TYPE_CHECKING:
    from solid_bandits.simulation.results import Results


def html(results: "Results") -> str:
    """Return the standings of the policies at the last step as HTML, best first."""
    rows = standings.rows(results)
    body: list[list[str]] = [[*row] for row in rows]
    if results.bound is not None:
        value = standings.bound_at_horizon(results, results.bound)
        body.append([standings.BOUND_LABEL, value, *[""] * (len(standings.HEADS) - 2)])
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in body)
    notes = "".join(f"<br><small>{escape(note)}</small>" for note in standings.notes(rows, results.bound))
    return (
        f"<p>Regret after {count(results.horizon, 'step')}, {count(results.runs, 'run')}</p>"
        f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in standings.HEADS)}</tr></thead>"
        f"<tbody>{lines}</tbody></table>{notes}"
    )
