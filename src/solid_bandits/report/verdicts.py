"""The verdicts on the paper's claims, for the terminal."""

from collections.abc import Sequence

from rich import box
from rich.table import Column, Table
from rich.text import Text

from solid_bandits.experiments.outcome import Answer, Outcome
from solid_bandits.report.readings import all_readings, verdict_under

CLAIM_FIGURES = 3
"""Of the half-width of an interval that decides: one more than it needs, so that an end near the threshold is seen on
its side."""

MARKS = {
    Answer.CONFIRMED: ("✓", "green"),
    Answer.REFUTED: ("✗", "red"),
    Answer.UNDECIDED: ("?", "yellow"),
    Answer.NOT_TESTABLE: ("=", "dim"),
}


def legend() -> str:
    """What the marks mean."""
    return ", ".join(f"{mark} {answer}" for answer, (mark, _) in MARKS.items()) + "."


def verdict_table(outcomes: Sequence[Outcome]) -> Table:
    """One row per claim: what the results say to it, reading by reading where several were played."""
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
                mark, colour = MARKS[verdict.answer]
                cells.append(Text(mark if readings else f"{mark} {verdict.answer}", style=colour))
            table.add_row(outcome.name, *cells, Text(sentence.claim.text))
    table.caption = "\n".join(
        (f"{reading}: " if reading else "") + ", ".join(f"{count} {answer}" for answer, count in here.items())
        for reading, here in counts.items()
    )
    return table
