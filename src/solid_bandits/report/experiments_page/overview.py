"""What the page opens with where SOLID was played under several readings: how many sentences hold, and which ones."""

from collections.abc import Sequence
from html import escape

from solid_bandits.experiments.names import AFTERWARDS
from solid_bandits.experiments.outcome import OURS, Answer, Outcome, Sentence
from solid_bandits.experiments.ranking import ranking
from solid_bandits.report.experiments_page.claims import SIGNS, kind
from solid_bandits.report.readings import (
    LATER,
    WORDS,
    all_readings,
    chosen_words,
    usual_reading,
    verdict_under,
)
from solid_bandits.report.verdicts import legend


def overview(outcomes: Sequence[Outcome]) -> str:
    """The section; empty where nothing was played under several readings."""
    readings = all_readings(outcomes)
    if not readings:
        return ""
    usual, words = usual_reading(outcomes), chosen_words(outcomes, ranking(outcomes))
    added = any(outcome.name in AFTERWARDS for outcome in outcomes)
    later = f" {LATER}: added after the rule was committed, does not count in it." if added else ""
    note = (
        f"{legend()} Where SOLID is not in a sentence, all readings have the same verdict.{later} What follows is "
        f"under {usual}, where no other reading is named."
    )
    return (
        '<section class="readings"><h2>What holds, under which reading</h2>'
        f"{_counts(outcomes)}{f'<p>{escape(words)}</p>' if words else ''}"
        f'<details class="plain" open><summary>Sentence by sentence</summary>{_sentences(outcomes, readings)}</details>'
        f'<p class="note">{escape(note)}</p></section>'
    )


def _counts(outcomes: Sequence[Outcome]) -> str:
    standings = ranking(outcomes)
    if not standings:
        return ""
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("reading", *Answer, "confirmed − refuted"))
    rows = []
    for one in standings:
        counts = "".join(
            f'<td class="{kind(answer)}">{SIGNS[answer]} {one.counts[answer]}</td>' for answer in Answer
        )
        name = f"<b>{one.reading}</b>" if one.reading == usual_reading(outcomes) else one.reading
        total = f"{one.sum:+d}".replace("-", "−")
        rows.append(
            f'<tr><th scope="row">{name} <small>{escape(WORDS[one.reading])}</small></th>{counts}'
            f"<td>{total}</td></tr>"
        )
    return _scrolled(
        "Verdicts on the paper’s sentences, reading by reading", f"<tr>{heads}</tr>", "".join(rows)
    )


def _sentences(outcomes: Sequence[Outcome], readings: Sequence[str]) -> str:
    heads = "".join(f'<th scope="col">{head}</th>' for head in (*readings, "sentence"))
    rows = []
    for ours in (False, True):
        for outcome in outcomes:
            for place, sentence in enumerate(outcome.sentences, start=1):
                if (sentence.claim.source == OURS) is ours:
                    mark = ' <span class="ours">ours</span>' if ours else ""
                    marks = _marks(outcome, sentence, readings)
                    later = f" {LATER}" if outcome.name in AFTERWARDS else ""
                    number = f"<small>{escape(outcome.name)} {place}{later}</small>"
                    text = f"{number} {escape(sentence.claim.text)}{mark}"
                    rows.append(f'<tr>{marks}<th scope="row">{text}</th></tr>')
    return _scrolled("Verdicts, sentence by sentence", f"<tr>{heads}</tr>", "".join(rows))


def _marks(outcome: Outcome, sentence: Sentence, readings: Sequence[str]) -> str:
    cells = []
    for reading in readings:
        verdict = verdict_under(outcome, sentence, reading)
        if verdict is None:
            cells.append("<td></td>")
        else:
            cells.append(
                f'<td class="{kind(verdict.answer)}" title="{verdict.answer}">{SIGNS[verdict.answer]}</td>'
            )
    return "".join(cells)


def _scrolled(what: str, head: str, body: str) -> str:
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{what}"><table class="holds"><thead>'
        f"{head}</thead><tbody>{body}</tbody></table></div>"
    )
