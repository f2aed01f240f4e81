"""The verdicts on the paper's claims, for the terminal."""

from collections.abc import Sequence

from rich import box
from rich.table import Column, Table
from rich.text import Text

from solid_bandits.paper.outcome import Answer, Outcome, Verdict
from solid_bandits.paper.report.readings import all_readings, verdict_under

CLAIM_FIGURES = 3
"""Digits shown of the half-width of a deciding interval: one more than usual, so that an end near the threshold appears
on the correct side."""

MARKS = {
    Answer.CONFIRMED: ("✓", "green"),
    Answer.REFUTED: ("✗", "red"),
    Answer.UNDECIDED: ("?", "yellow"),
    Answer.NOT_TESTABLE: ("=", "dim"),
}


TOO_SHORT = "?ₙ"
"""Mark of a sentence that is undecided because its horizon is too short."""


def sign_of(verdict: Verdict) -> str:
    """Return the one-character sign of the verdict."""
    return TOO_SHORT if verdict.too_short else MARKS[verdict.answer][0]


def legend(outcomes: Sequence[Outcome]) -> str:
    """Explain the marks; the one for a horizon that is too short is explained where it is used."""
    words = ", ".join(f"{sign} {answer}" for answer, (sign, _) in MARKS.items()) + "."
    if any(verdict.too_short for outcome in outcomes for verdict in outcome.verdicts):
        words += f" {TOO_SHORT}: undecided at this horizon, which is shorter than the sentence asks for."
    return words


def verdict_table(outcomes: Sequence[Outcome]) -> Table:
    """Return a table of the verdict on each claim, reading by reading where several were played."""
    readings = all_readings(outcomes)
    heads = [Column(reading, justify="center", no_wrap=True) for reading in readings] or [Column("verdict")]
    table = Table("experiment", *heads, "claim", box=box.SIMPLE_HEAD, pad_edge=False)
    counts = {reading: dict.fromkeys(Answer, 0) for reading in readings or [""]}
    for outcome in outcomes:
        for sentence in outcome.sentences:
            cells = []
            for reading in counts:
                verdict = verdict_under(outcome, sentence, reading)
                if verdict is None:
                    cells.append(Text())
                    continue
                counts[reading][verdict.answer] += 1
                sign, colour = MARKS[verdict.answer]
                cells.append(Text(sign_of(verdict) if readings else f"{sign} {verdict.words}", style=colour))
            table.add_row(outcome.name, *cells, Text(sentence.claim.text))
    table.caption = "\n".join(
        (f"{reading}: " if reading else "") + ", ".join(f"{count} {answer}" for answer, count in here.items())
        for reading, here in counts.items()
    )
    return table
