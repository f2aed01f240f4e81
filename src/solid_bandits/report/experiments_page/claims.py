"""The claims of an experiment on the page: verdicts, the numbers that decided, and the rules in details."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from solid_bandits import _words
from solid_bandits.experiments.outcome import OURS, Answer, Comparison, Outcome, Sentence, Verdict
from solid_bandits.report.experiments_page.numbers import estimate_words
from solid_bandits.report.verdicts import CLAIM_FIGURES, MARKS

# A claim's row names this many of the numbers that it rests on; the details have all of them.
_MAIN_NUMBERS = 2

# Read by people who do not tell red from green: each answer has its own sign.
SIGNS = {answer: sign for answer, (sign, _) in MARKS.items()}

_VERBS = {
    Answer.CONFIRMED: ("confirms", "confirm"),
    Answer.REFUTED: ("refutes", "refute"),
    Answer.UNDECIDED: ("is undecided", "are undecided"),
    Answer.NOT_TESTABLE: ("is the same in every run", "are the same in every run"),
}


def kind(answer: Answer) -> str:
    """The answer as the name of a style."""
    return answer.replace(" ", "-")


def claims_table(outcome: Outcome) -> str:
    """The verdicts of one experiment."""
    if not outcome.verdicts:
        return '<p class="note none">No claim rests on this experiment.</p>'
    heads = "".join(f'<th scope="col"><span>{head}</span></th>' for head in ("Verdict", "Claim", "Measured"))
    return (
        f'<table class="verdicts"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(_claim(sentence, outcome.reading) for sentence in outcome.sentences)}</tbody></table>"
    )


def _claim(sentence: Sentence, usual: str) -> str:
    claim = sentence.claim
    verdict = sentence.under(usual) or next(iter(sentence.verdicts.values()))
    source = escape(claim.source)
    if claim.source == OURS:
        source = '<span class="ours">ours, not the paper’s</span>'
    return (
        f'<tr class="claim" data-answer="{verdict.answer}"><td>{_answer(verdict.answer)}</td>'
        f'<td class="said"><p class="text">{escape(claim.text)}</p><p class="source">{source}</p>'
        f"{_by_reading(sentence)}{_details(sentence, verdict)}</td>"
        f'<td class="measured">{_main_numbers(verdict)}</td></tr>'
    )


def _by_reading(sentence: Sentence) -> str:
    """The verdicts under all readings, in a line."""
    if len(sentence.verdicts) == 1:
        return ""
    marks = (
        f'<span class="{kind(one.answer)}" title="{one.answer}">{escape(reading)} {SIGNS[one.answer]}</span>'
        for reading, one in sentence.verdicts.items()
    )
    return f'<p class="source by-reading">{" · ".join(marks)}</p>'


def _answer(answer: Answer) -> str:
    return (
        f'<span class="answer {kind(answer)}"><span aria-hidden="true">{SIGNS[answer]}</span> {answer}</span>'
    )


def _main_numbers(verdict: Verdict) -> str:
    """How the counted comparisons answer, and the first of those that decided."""
    counted = verdict.counted
    if not counted:
        return '<p class="counts">nothing to compare</p>'
    numbers = "".join(
        f"<li>{_main_number(comparison)} <span>{escape(comparison.what)}</span></li>"
        for comparison in verdict.deciding[:_MAIN_NUMBERS]
    )
    tally = "" if len(counted) == 1 else f'<p class="counts">{_tally(counted, verdict.answer)}</p>'
    return f"{tally}<ul>{numbers}</ul>"


def _main_number(comparison: Comparison) -> str:
    if comparison.estimate.value is None:
        return "not measured:"
    return estimate_words(comparison.estimate, mark=True, figures=CLAIM_FIGURES)


def _tally(counted: Sequence[Comparison], first: Answer) -> str:
    """In words, how many comparisons answer what, the verdict's own answer first."""
    counts = Counter(comparison.answer for comparison in counted)
    (answer, number), *others = sorted(counts.items(), key=lambda item: item[0] != first)
    if not others:
        return f"all {number} comparisons {_VERBS[answer][1]}"
    tally = [f"{number} of {len(counted)} comparisons {_VERBS[answer][number > 1]}"]
    return ", ".join(tally + [f"{number} {_VERBS[answer][number > 1]}" for answer, number in others])


def _row(comparison: Comparison, reading: str) -> str:
    estimate = comparison.estimate
    number = _words.measured(estimate.value, estimate.half_width, figures=CLAIM_FIGURES)
    interval = _words.ends(estimate.low, estimate.high, CLAIM_FIGURES)
    what = f"{reading}: {comparison.what}" if reading else comparison.what
    return (
        f'<tr{"" if comparison.counted else " class=beside"}><th scope="row">{escape(what)}</th>'
        f"<td>{number}</td><td>{interval}</td><td>{_answer(comparison.answer)}</td>"
        f"<td>{'yes' if comparison.counted else 'no'}</td></tr>"
    )


def _details(sentence: Sentence, verdict: Verdict) -> str:
    """The rule in words and every comparison, under every reading."""
    every = [(one, reading) for reading, this in sentence.verdicts.items() for one in this.comparisons]
    rows = "".join(_row(one, reading) for one, reading in every)
    beside = sum(not comparison.counted for comparison, _ in every)
    heading = f"rule and {_words.count(len(every), 'comparison')}"
    if beside:
        heading += f", {beside} of them only shown beside"
    table = (
        '<table class="comparisons"><thead><tr><th scope="col">compared</th><th scope="col">estimate</th>'
        '<th scope="col">interval</th><th scope="col">says</th><th scope="col">counted</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    return (
        f'<details class="judged"><summary>{heading}</summary><p class="rule">{escape(verdict.rule)}</p>'
        f"{table if rows else ''}</details>"
    )
