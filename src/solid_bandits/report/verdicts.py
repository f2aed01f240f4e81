"""The verdicts on the paper's claims, for the terminal."""

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from solid_bandits.experiments.outcome import Answer, Outcome

CLAIM_FIGURES = 3
"""Of the half-width of an interval that decides: one more than it needs, so that an end near the threshold is seen on
its side."""

MARKS = {
    Answer.CONFIRMED: ("✓", "green"),
    Answer.REFUTED: ("✗", "red"),
    Answer.UNDECIDED: ("?", "yellow"),
    Answer.NOT_TESTABLE: ("=", "dim"),
}


def verdict_table(outcomes: Sequence[Outcome]) -> Table:
    """One row per claim: what the results say to it."""
    table = Table("experiment", "verdict", "claim", box=box.SIMPLE_HEAD, pad_edge=False)
    counts = dict.fromkeys(Answer, 0)
    for outcome in outcomes:
        for verdict in outcome.verdicts:
            mark, colour = MARKS[verdict.answer]
            counts[verdict.answer] += 1
            table.add_row(
                outcome.name, Text(f"{mark} {verdict.answer}", style=colour), Text(verdict.claim.text)
            )
    table.caption = ", ".join(f"{count} {answer}" for answer, count in counts.items())
    return table
