"""What the document opens with: how many of the paper's sentences hold under which reading, and which ones."""

from collections.abc import Sequence
from urllib.parse import quote

from solid_bandits.experiments.outcome import OURS, Answer, Outcome
from solid_bandits.experiments.ranking import ranking
from solid_bandits.report.document.markdown import escaped, table
from solid_bandits.report.left_open import LEFT_OPEN, NOT_JUDGED
from solid_bandits.report.readings import WORDS, all_readings, chosen_words, usual_reading, verdict_under
from solid_bandits.report.verdicts import MARKS, legend


def overview(outcomes: Sequence[Outcome]) -> list[str]:
    """The blocks of the section; none where nothing was played under several readings."""
    readings = all_readings(outcomes)
    if not readings:
        return []
    blocks = ["## What holds, under which reading", _counts(outcomes)]
    usual = usual_reading(outcomes)
    words = chosen_words(outcomes, ranking(outcomes))
    if words:
        blocks.append(escaped(words))
    blocks.append(
        f"{escaped(legend())} Where SOLID is not in a sentence, all readings have the same verdict. Figures and tables "
        f"below are those of {escaped(usual)}, where no other is named."
    )
    for title, ours in (("the paper’s sentence", False), ("ours", True)):
        rows = _rows(outcomes, readings, ours)
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


def _counts(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for one in ranking(outcomes):
        mark = "**" if one.reading == usual_reading(outcomes) else ""
        rows.append(
            (
                f"{mark}{escaped(one.reading)}{mark}",
                escaped(WORDS[one.reading]),
                *(str(one.counts[answer]) for answer in Answer),
                f"{one.sum:+d}".replace("-", "−"),
            )
        )
    heads = ("reading", "the bonus in g", *Answer, "confirmed − refuted")
    return (
        table(heads, rows, right=range(2, len(heads))) if rows else "None of the paper’s experiments is here."
    )


def _rows(outcomes: Sequence[Outcome], readings: Sequence[str], ours: bool) -> list[list[str]]:
    rows = []
    for outcome in outcomes:
        for place, sentence in enumerate(outcome.sentences, start=1):
            if (sentence.claim.source == OURS) is ours:
                verdicts = [verdict_under(outcome, sentence, reading) for reading in readings]
                marks = [MARKS[one.answer][0] if one is not None else "" for one in verdicts]
                rows.append([f"{escaped(outcome.name)} {place}", escaped(sentence.claim.text), *marks])
    return rows
