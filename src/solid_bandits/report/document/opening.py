"""The first screen of the document: how much holds, the main figures, what does not hold, what the reading changes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from solid_bandits.experiments.names import NAMES
from solid_bandits.experiments.outcome import OURS, Answer, Outcome
from solid_bandits.experiments.ranking import Standing, ranking
from solid_bandits.experiments.ranking import sentences as counted_sentences
from solid_bandits.report.document.markdown import escaped, table
from solid_bandits.report.readings import (
    LATER,
    LEFT_OUT,
    WORDS,
    all_readings,
    mark_of,
    usual_reading,
    verdict_under,
)

MAIN = ("toy", "random")
"""The experiments whose figures open the document."""
PRINTED = "theorem"
"""The reading of the paper's equation."""

ASYMPTOTIC = (
    "The paper's sentence is asymptotic and the horizon is short: the least z_min of ten such problems is over four "
    "times as long (docs/jester.md). A refutation at this horizon does not refute the asymptotic statement."
)
CAVEATS = {("jester", "slowing"): ASYMPTOTIC}
"""What is to be said beside the refutation of a sentence, by experiment and rule."""

NOT_COUNTED = {LATER: f"those added later ({LATER})", LEFT_OUT: f"those on Jester ({LEFT_OUT})"}
"""The marks of sentences that do not count in the ranking, in words."""


class Judged(NamedTuple):
    """A sentence of the paper."""

    name: str
    """Its text, the experiment and its place there, in Markdown."""
    mark: str
    """Of a sentence that does not count in the ranking."""
    caveat: str
    answers: dict[str, Answer]
    """What each reading says to it, of those that were played."""


def opening(outcomes: Sequence[Outcome], figures: str, apart: Sequence[Outcome] = ()) -> list[str]:
    """The blocks; none where nothing can be ranked. `apart` are experiments that the page shows elsewhere."""
    standings = ranking(outcomes)
    usual = usual_reading(outcomes)
    if usual not in [one.reading for one in standings]:
        return []
    judged = _judged([*outcomes, *apart], all_readings(outcomes))
    blocks = [_in_short(outcomes, judged, standings, usual), _figures(outcomes, figures), counts(outcomes)]
    refuted = [one for one in judged if one.answers.get(usual) is Answer.REFUTED]
    named = [f"{one.name} {one.caveat}" if one.caveat else one.name for one in refuted]
    blocks.append(_list(f"Does not hold under {usual}", named))
    if usual != PRINTED and PRINTED in [one.reading for one in standings]:
        held = {
            reading: [one.name for one in judged if one.answers.get(reading) is Answer.CONFIRMED]
            for reading in (usual, PRINTED)
        }
        gained = [name for name in held[usual] if name not in held[PRINTED]]
        lost = [name for name in held[PRINTED] if name not in held[usual]]
        blocks.append(_list(f"Holds under {usual}, not as printed", gained))
        blocks.append(_list(f"Holds as printed, not under {usual}", lost))
    return [block for block in blocks if block]


def counts(outcomes: Sequence[Outcome]) -> str:
    """The readings and how many sentences hold under each."""
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


def _in_short(
    outcomes: Sequence[Outcome], judged: Sequence[Judged], standings: Sequence[Standing], usual: str
) -> str:
    """Both counts: that of all sentences, and that of those on which the ranking of the readings rests."""
    (one,) = (standing for standing in standings if standing.reading == usual)
    every = Counter(sentence.answers[usual] for sentence in judged if usual in sentence.answers)
    total, count = every.total(), len(counted_sentences(outcomes))
    parts = [
        f"**{every[Answer.CONFIRMED]} of the paper’s {total} sentences that were judged hold**, {_rest(every)}, "
        f"with the constraint of SOLID read as *{escaped(usual)}*."
    ]
    if standings[0].reading == usual:
        parts.append(
            "How its bonus is to be read is open; of four readings, this is the one that a rule committed before the "
            "runs chose."
        )
    others = [said for mark, said in NOT_COUNTED.items() if any(sentence.mark == mark for sentence in judged)]
    if others:
        words = " and ".join(others)
        parts.append(
            f"{count} of the sentences count in the ranking of the readings: {one.counts[Answer.CONFIRMED]} hold, "
            f"{_rest(one.counts)}. {words[0].upper()}{words[1:]} do not count, and do not change the ranking."
        )
    return " ".join(parts)


def _rest(counts: Mapping[Answer, int]) -> str:
    """How many do not hold, in words."""
    words = f"{counts[Answer.REFUTED]} do not, {counts[Answer.UNDECIDED]} are undecided"
    untestable = counts[Answer.NOT_TESTABLE]
    return f"{words}, {untestable} cannot be tested" if untestable else words


def _figures(outcomes: Sequence[Outcome], figures: str) -> str:
    shown = [outcome for outcome in outcomes if outcome.name in MAIN]
    if not shown:
        return ""
    heads = [escaped(outcome.title) for outcome in shown]
    cells = [f"![{escaped(outcome.title)}]({quote(f'{figures}/{outcome.name}.png')})" for outcome in shown]
    return table(heads, [cells])


def _judged(outcomes: Sequence[Outcome], readings: Sequence[str]) -> list[Judged]:
    """Every sentence of the paper, whether it counts in the ranking or not."""
    judged = []
    for outcome in outcomes:
        if outcome.name not in NAMES:
            continue
        mark = mark_of(outcome)
        for place, sentence in enumerate(outcome.sentences, start=1):
            if sentence.claim.source == OURS:
                continue
            where = f"{escaped(outcome.name)} {place}{f' {mark}' if mark else ''}"
            found = {reading: verdict_under(outcome, sentence, reading) for reading in readings}
            judged.append(
                Judged(
                    f"{escaped(sentence.claim.text)} ({where})",
                    mark,
                    escaped(CAVEATS.get((outcome.name, sentence.claim.rule), "")),
                    {reading: one.answer for reading, one in found.items() if one is not None},
                )
            )
    return judged


def _list(title: str, names: Sequence[str]) -> str:
    if not names:
        return f"**{title}**: nothing."
    return "\n".join([f"**{title}**", "", *(f"- {name}" for name in names)])
