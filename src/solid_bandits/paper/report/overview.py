"""Every sentence under every reading, shown first on page and document where SOLID has several readings."""

from collections.abc import Sequence
from typing import NamedTuple

from solid_bandits.paper.outcome import OURS, Outcome, Sentence, Verdict
from solid_bandits.paper.ranking import Standing, ranking
from solid_bandits.paper.report.readings import (
    LATER,
    LEFT_OUT,
    all_readings,
    chosen_words,
    mark_of,
    usual_reading,
    verdict_under,
)
from solid_bandits.paper.report.verdicts import legend


class Row(NamedTuple):
    """A sentence of an experiment, with its verdicts."""

    outcome: Outcome
    place: int
    """Its position in the experiment, counted from 1."""
    sentence: Sentence
    verdicts: dict[str, Verdict | None]
    """Reading -> verdict; None if the sentence's SOLID was not played under it."""

    @property
    def ours(self) -> bool:
        """Whether the sentence is ours and not the paper's."""
        return self.sentence.claim.source == OURS

    @property
    def mark(self) -> str:
        """Mark of a sentence that does not count in the ranking."""
        return mark_of(self.outcome)

    @property
    def where(self) -> str:
        """The experiment, the position in it, and the mark."""
        return f"{self.outcome.name} {self.place} {self.mark}".strip()


class Overview(NamedTuple):
    """The sentences that hold, and under which readings."""

    readings: list[str]
    usual: str
    """The reading of figures and tables."""
    standings: list[Standing]
    words: str
    """The ranking of the readings and its rule; empty where there is nothing to rank."""
    rows: list[Row]
    """The paper's sentences, then ours."""
    note: str
    """Explanation of the marks."""


def overview(outcomes: Sequence[Outcome], apart: Sequence[Outcome] = ()) -> Overview | None:
    """Collect the sentences of all experiments; `apart` are experiments that are shown elsewhere.

    Returns None if nothing was played under several readings.
    """
    readings = all_readings(outcomes)
    if not readings:
        return None
    shown = [*outcomes, *apart]
    rows = [
        Row(outcome, place, sentence, {one: verdict_under(outcome, sentence, one) for one in readings})
        for outcome in shown
        for place, sentence in enumerate(outcome.sentences, start=1)
    ]
    note = f"{legend(shown)} Where SOLID is not in a sentence, all readings have the same verdict."
    marks = {mark_of(outcome) for outcome in shown}
    if LATER in marks:
        note += f" {LATER}: added after the rule was committed, does not count in it."
    if LEFT_OUT in marks:
        note += f" {LEFT_OUT}: on Jester, which the rule leaves out."
    standings = ranking(outcomes)
    return Overview(
        readings=readings,
        usual=usual_reading(outcomes),
        standings=standings,
        words=chosen_words(outcomes, standings),
        rows=sorted(rows, key=lambda row: row.ours),
        note=note,
    )
