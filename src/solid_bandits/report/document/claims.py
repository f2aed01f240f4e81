"""The claims of the document: counts of verdicts, the rules, and a table for each experiment."""

from collections.abc import Sequence

from solid_bandits import _words
from solid_bandits.experiments.outcome import OURS, Answer, Outcome, Verdict
from solid_bandits.experiments.rules import RULES
from solid_bandits.report.document.markdown import escaped, table, with_interval
from solid_bandits.report.readings import usual_reading

MOST_NUMBERS = 3
"""A row of the claims table shows this many numbers; the full list stands with the experiment."""


def claims(outcomes: Sequence[Outcome], apart: Sequence[Outcome] = ()) -> list[str]:
    """The blocks of the section; `apart` are experiments that the page shows elsewhere."""
    verdicts = [verdict for outcome in outcomes for verdict in outcome.usual]
    if not verdicts:
        return ["No claims were judged."]
    usual = usual_reading(outcomes)
    blocks = [
        *(
            [f"Verdicts and numbers under {escaped(usual)}; all of them stand with the experiments."]
            if usual
            else []
        ),
        _counts(verdicts),
        *(
            f"Not in this table: the {_words.count(len(outcome.sentences), 'sentence')} on {escaped(outcome.title)}, "
            "judged at the end of this page."
            for outcome in apart
        ),
        "The numbers are those that decide, each with its interval: all that count if the claim is "
        "confirmed, else those against it or those that leave it open. What does not fit, and what was "
        "compared beside, stands with the experiment.",
    ]
    if any(verdict.answer is Answer.NOT_TESTABLE for outcome in outcomes for verdict in outcome.verdicts):
        blocks.append(
            f"*{Answer.NOT_TESTABLE}* is a comparison of what is the same in every run: more runs would say nothing. "
            "So is a claim with such a comparison, unless another one refutes it."
        )
    blocks += _rules(verdicts)
    for outcome in outcomes:
        if outcome.verdicts:
            blocks += [f"### {escaped(outcome.name)}", _claims_table(outcome)]
    return blocks


def numbers_table(outcome: Outcome) -> str:
    """Every number behind the claims of an experiment, under every reading."""
    rows = [
        (
            str(place),
            *([escaped(reading)] if outcome.readings else []),
            escaped(comparison.what),
            with_interval(comparison.estimate),
            str(comparison.answer) if comparison.counted else f"{comparison.answer}, not counted",
        )
        for place, sentence in enumerate(outcome.sentences, start=1)
        for reading, verdict in sentence.verdicts.items()
        for comparison in verdict.comparisons
    ]
    heads = ("claim", *(["reading"] if outcome.readings else []), "number", "estimate \\[interval\\]", "says")
    return table(heads, rows)


def _counts(verdicts: Sequence[Verdict]) -> str:
    """How many claims have which verdict; the paper's and others."""
    groups = {
        "the paper’s": [verdict for verdict in verdicts if verdict.claim.source != OURS],
        "not the paper’s (ours)": [verdict for verdict in verdicts if verdict.claim.source == OURS],
    }
    rows = [
        (
            name,
            *(str(sum(verdict.answer == answer for verdict in group)) for answer in Answer),
            str(len(group)),
        )
        for name, group in groups.items()
        if group
    ]
    return table(("claims", *Answer, "all"), rows, right=range(1, len(Answer) + 2))


def _rules(verdicts: Sequence[Verdict]) -> list[str]:
    """The rules that the tables refer to by name."""
    names = [name for name in RULES if any(_refers(verdict, name) for verdict in verdicts)]
    if not names:
        return []
    return [
        "The rules, which the tables name:",
        "\n".join(f"- *{escaped(name)}*: {escaped(RULES[name].words)}" for name in names),
    ]


def _refers(verdict: Verdict, name: str) -> bool:
    return verdict.claim.rule == name and verdict.rule.startswith(RULES[name].words)


def _claims_table(outcome: Outcome) -> str:
    rows = []
    for place, verdict in enumerate(outcome.usual, start=1):
        source = "ours, not the paper’s" if verdict.claim.source == OURS else escaped(verdict.claim.source)
        rows.append(
            (
                str(place),
                _answer(verdict.answer),
                f"{escaped(verdict.claim.text)}<br>*{source}*",
                _deciding_numbers(verdict),
                _rule(verdict),
            )
        )
    return table(("", "verdict", "claim", "numbers", "rule"), rows)


def _answer(answer: Answer) -> str:
    return f"**{answer}**" if answer in (Answer.CONFIRMED, Answer.REFUTED) else str(answer)


def _rule(verdict: Verdict) -> str:
    """The rule's name, and what is special to this claim; the whole rule where its name says less."""
    name = verdict.claim.rule
    if name not in RULES or not _refers(verdict, name):
        return escaped(verdict.rule)
    rest = verdict.rule.removeprefix(RULES[name].words).strip().removeprefix("Here:").strip()
    return f"*{escaped(name)}*: {escaped(rest)}" if rest else f"*{escaped(name)}*"


def _deciding_numbers(verdict: Verdict) -> str:
    deciding = verdict.deciding
    shown = deciding if len(deciding) <= MOST_NUMBERS + 1 else deciding[:MOST_NUMBERS]
    lines = [f"{escaped(comparison.what)}: {with_interval(comparison.estimate)}" for comparison in shown]
    if len(deciding) > len(shown):
        lines.append(f"and {len(deciding) - len(shown)} more")
    bullet = "• " if len(lines) > 1 else ""
    return "<br>".join(bullet + line for line in lines) or _words.ABSENT
