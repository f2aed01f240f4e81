"""Every sentence under every reading, the figures, and what the paper leaves open."""

from collections.abc import Sequence
from urllib.parse import quote

from solid_bandits.experiments.outcome import OURS, Outcome
from solid_bandits.experiments.ranking import ranking
from solid_bandits.report.document.markdown import escaped, table
from solid_bandits.report.document.opening import counts
from solid_bandits.report.left_open import LEFT_OPEN, NOT_JUDGED
from solid_bandits.report.readings import (
    LATER,
    LEFT_OUT,
    all_readings,
    chosen_words,
    mark_of,
    usual_reading,
    verdict_under,
)
from solid_bandits.report.verdicts import MARKS, legend

NOT_PLAYED = "not played"
"""In place of a mark, where a sentence's SOLID was not played under a reading."""


def overview(outcomes: Sequence[Outcome], apart: Sequence[Outcome] = ()) -> list[str]:
    """The blocks of the section; none where nothing was played under several readings."""
    readings = all_readings(outcomes)
    if not readings:
        return []
    blocks = ["## What holds, under which reading"]
    usual = usual_reading(outcomes)
    words = chosen_words(outcomes, ranking(outcomes))
    blocks.append(escaped(words) if words else counts(outcomes))
    shown = [*outcomes, *apart]
    marks = [mark_of(outcome) for outcome in shown]
    later = f" {LATER}: added after the rule was committed, does not count in it." if LATER in marks else ""
    if LEFT_OUT in marks:
        later += f" {LEFT_OUT}: on Jester, which the rule leaves out."
    blocks.append(
        f"{escaped(legend())} Where SOLID is not in a sentence, all readings have the same verdict.{later} Figures and "
        f"tables below are those of {escaped(usual)}, where no other is named."
    )
    for title, ours in (("the paper’s sentence", False), ("ours", True)):
        rows = _rows(shown, readings, ours)
        if rows:
            blocks.append(table(("", title, *readings), rows))
    return blocks


def figures_section(outcomes: Sequence[Outcome], figures: str) -> list[str]:
    """The figures of all experiments."""
    blocks = ["## Figures"]
    for outcome in outcomes:
        blocks += [f"**{escaped(outcome.title)}**", image(outcome, figures)]
    return blocks


def image(outcome: Outcome, figures: str) -> str:
    """The figure of an experiment."""
    address = quote(f"{figures}/{outcome.name}.png")
    return f"![Mean cumulative regret against time: {escaped(outcome.title)}]({address})"


def left_open() -> list[str]:
    """What the paper leaves open, and what is not judged."""
    return [
        "## What the paper leaves open",
        table(("open", "here"), [(escaped(key), escaped(value)) for key, value in LEFT_OPEN.items()]),
        "Not judged:",
        table(("sentence", "why"), [(escaped(key), escaped(value)) for key, value in NOT_JUDGED.items()]),
    ]


def _rows(outcomes: Sequence[Outcome], readings: Sequence[str], ours: bool) -> list[list[str]]:
    rows = []
    for outcome in outcomes:
        for place, sentence in enumerate(outcome.sentences, start=1):
            if (sentence.claim.source == OURS) is ours:
                verdicts = [verdict_under(outcome, sentence, reading) for reading in readings]
                marks = [MARKS[one.answer][0] if one is not None else NOT_PLAYED for one in verdicts]
                name = f"{escaped(outcome.name)} {place} {mark_of(outcome)}".strip()
                rows.append([name, escaped(sentence.claim.text), *marks])
    return rows
