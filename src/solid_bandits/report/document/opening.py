"""The first screen of the document: how much holds, the main figures, what does not hold, what the reading changes."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from solid_bandits.experiments.outcome import Answer, Outcome
from solid_bandits.experiments.ranking import Standing, counted, ranking
from solid_bandits.experiments.ranking import sentences as counted_sentences
from solid_bandits.report.document.markdown import escaped, table
from solid_bandits.report.readings import WORDS, usual_reading

MAIN = ("toy", "random")
"""The experiments whose figures open the document."""
PRINTED = "theorem"
"""The reading of the paper's equation."""


def opening(outcomes: Sequence[Outcome], figures: str) -> list[str]:
    """The blocks; none where nothing can be ranked."""
    standings = ranking(outcomes)
    usual = usual_reading(outcomes)
    if usual not in [one.reading for one in standings]:
        return []
    blocks = [_in_short(outcomes, standings, usual), _figures(outcomes, figures), counts(outcomes)]
    refuted = [name for name, answers in _answers(outcomes) if answers[usual] is Answer.REFUTED]
    blocks.append(_list(f"Does not hold under {usual}", refuted))
    if usual != PRINTED and PRINTED in [one.reading for one in standings]:
        held = {
            reading: {name for name, answers in _answers(outcomes) if answers[reading] is Answer.CONFIRMED}
            for reading in (usual, PRINTED)
        }
        names = [name for name, _ in _answers(outcomes)]
        gained = [name for name in names if name in held[usual] - held[PRINTED]]
        lost = [name for name in names if name in held[PRINTED] - held[usual]]
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


def _in_short(outcomes: Sequence[Outcome], standings: Sequence[Standing], usual: str) -> str:
    (one,) = (standing for standing in standings if standing.reading == usual)
    total = len(counted_sentences(outcomes))
    parts = [
        f"**{one.counts[Answer.CONFIRMED]} of the paper’s {total} sentences that can be judged hold**, "
        f"{one.counts[Answer.REFUTED]} do not, {one.counts[Answer.UNDECIDED]} are undecided"
    ]
    if one.counts[Answer.NOT_TESTABLE]:
        parts.append(f", {one.counts[Answer.NOT_TESTABLE]} cannot be tested")
    parts.append(
        f", with the constraint of SOLID read as *{escaped(usual)}*. How its bonus is to be read is open; of four "
        "readings, this is the one that a rule committed before the runs chose."
        if standings[0].reading == usual
        else f", with the constraint of SOLID read as *{escaped(usual)}*."
    )
    return "".join(parts)


def _figures(outcomes: Sequence[Outcome], figures: str) -> str:
    shown = [outcome for outcome in outcomes if outcome.name in MAIN]
    if not shown:
        return ""
    heads = [escaped(outcome.title) for outcome in shown]
    cells = [f"![{escaped(outcome.title)}]({quote(f'{figures}/{outcome.name}.png')})" for outcome in shown]
    return table(heads, [cells])


def _answers(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, dict[str, Answer]]]:
    """Every sentence that counts with its name, and what each reading says to it."""
    count = {id(sentence.claim) for sentence in counted_sentences(outcomes)}
    for outcome in counted(outcomes):
        for place, sentence in enumerate(outcome.sentences, start=1):
            if id(sentence.claim) not in count:
                continue
            found = {reading: sentence.under(reading) for reading in outcome.readings}
            name = f"{escaped(sentence.claim.text)} ({escaped(outcome.name)} {place})"
            yield name, {reading: one.answer for reading, one in found.items() if one is not None}


def _list(title: str, names: Sequence[str]) -> str:
    if not names:
        return f"**{title}**: nothing."
    return "\n".join([f"**{title}**", "", *(f"- {name}" for name in names)])
