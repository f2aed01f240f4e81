"""Choice of the reading of SOLID that is called "the paper's": the rule of studies/jester/plan.md, written beforehand.

Every sentence of the paper that an experiment judges counts 1 if confirmed, -1 if refuted, and 0 if undecided or not
testable. Sentences of our own, on Jester, or added after the rule do not count. The largest sum wins; among equal sums
the more literal reading.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from solid_bandits.paper.names import COUNTED
from solid_bandits.paper.outcome import OURS, Answer, Outcome, Sentence
from solid_bandits.paper.readings import READINGS


class Standing(NamedTuple):
    """A reading, and how many of the paper's sentences hold under it."""

    reading: str
    counts: dict[Answer, int]

    @property
    def sum(self) -> int:
        """Number of confirmed sentences minus refuted ones."""
        return self.counts[Answer.CONFIRMED] - self.counts[Answer.REFUTED]


def counted(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the experiments that count: the paper's, played under several readings, without Jester."""
    return [outcome for outcome in outcomes if outcome.name in COUNTED and outcome.readings]


def sentences(outcomes: Sequence[Outcome]) -> list[Sentence]:
    """Return the sentences that count."""
    every = [sentence for outcome in counted(outcomes) for sentence in outcome.sentences]
    return [sentence for sentence in every if sentence.claim.source != OURS]


def ranking(outcomes: Sequence[Outcome]) -> list[Standing]:
    """Return the readings under which all counting experiments were played, the chosen one first; [] if there are
    none.
    """
    count = counted(outcomes)
    readings = [one for one in READINGS if count and all(one in outcome.readings for outcome in count)]
    found = []
    for reading in readings:
        verdicts = [sentence.under(reading) for sentence in sentences(outcomes)]
        counts = Counter(verdict.answer for verdict in verdicts if verdict is not None)
        found.append(Standing(reading, {answer: counts[answer] for answer in Answer}))
    return sorted(found, key=lambda one: (-one.sum, READINGS.index(one.reading)))
