"""docs/reproduction.md is what the code writes: its first screen counts and lists what its table of verdicts has.

The results behind the page are not in the repository, so experiments are made here from the table's marks.
"""

import re
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec import convert

from made import make_outcome
from solid_bandits.paper.names import ALL
from solid_bandits.paper.outcome import OURS, Answer, Claim, Verdict
from solid_bandits.paper.readings import READINGS
from solid_bandits.paper.report.document import document
from solid_bandits.paper.report.markdown import escaped
from solid_bandits.paper.report.verdicts import MARKS, TOO_SHORT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
ANSWERS = {mark: answer for answer, (mark, _) in MARKS.items()} | {TOO_SHORT: Answer.UNDECIDED}


def marks():
    """Experiment and place -> the marks under the readings."""
    table = PAGE.split("## What holds, under which reading")[1].split("## Figures")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[-1] in ANSWERS:
            name, place = cells[0].split()[:2]
            found[name, int(place)] = cells[2:]
    return found


def content_of(name):
    """An experiment as its file has it."""
    return tomllib.loads((files("solid_bandits.paper") / f"{name}.toml").read_text(encoding="utf-8"))


def made(name, given):
    """An experiment with the verdicts of the page."""
    content = content_of(name)
    every = [convert(one, Claim) for one in content.get("claim", [])]
    verdicts = [
        Verdict(claim, ANSWERS[mark], "", (), reading, too_short=mark == TOO_SHORT)
        for place, claim in enumerate(every, start=1)
        for reading, mark in zip(READINGS, given[name, place], strict=True)
    ]
    return make_outcome(
        {}, verdicts, name=name, title=content["title"], readings=READINGS, reading="local", scale="paper"
    )


@pytest.fixture(scope="module")
def jester():
    folder = ROOT / "studies" / "jester"
    sys.path.insert(0, str(folder))
    try:
        import judge

        yield judge.outcome(judge.lines_of(folder / "runs.jsonl"))
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def outcomes():
    given = marks()
    return [made(name, given) for name in ALL]


@pytest.mark.parametrize(
    ("first", "end"),
    [
        ("# Reproduction", "## How it was made"),  # the first screen, every sentence, the figures
        ("## Claims", "The numbers are those that decide"),
    ],
)
def test_what_counts_and_lists_verdicts(outcomes, jester, first, end):
    def part(text):
        return text[text.index(f"{first}\n") : text.index(end)]

    assert part(document(outcomes, {}, apart=[jester])) == part(PAGE)


def test_every_sentence_of_the_paper_that_is_refuted_is_on_the_first_screen(outcomes, jester):
    screen = PAGE.split("## What holds, under which reading")[0]
    for outcome in (*outcomes, jester):
        for sentence in outcome.sentences:
            verdict = sentence.under("local")
            if sentence.claim.source != OURS and verdict.answer is Answer.REFUTED:
                assert f"- {escaped(sentence.claim.text)} ({outcome.name} " in screen


def test_sentences_are_undecided_where_their_horizon_is_too_short():
    short = {
        (name, place)
        for name in ALL
        for content in [content_of(name)]
        for place, claim in enumerate(content.get("claim", []), start=1)
        if content["horizon"] < claim.get("least_horizon", 0)
    }
    assert short == {("end-of-optimism", place) for place in (1, 2, 3, 4)}
    for where, given in marks().items():
        assert given == [TOO_SHORT] * 4 if where in short else TOO_SHORT not in given
    rows = PAGE.split("### end-of-optimism\n")[1].split("\n###")[0].splitlines()
    verdicts = [row.split("|")[2].strip() for row in rows if re.match(r"\| \d", row)]
    assert verdicts == ["undecided at this horizon"] * 4 + ["**confirmed**"]


def test_the_longer_horizon_stands_below_the_claims():
    section = PAGE.split("### end-of-optimism\n")[1].split("\n### ")[0]
    assert section.strip().endswith("|\n\n```{include} _tables/end-of-optimism.md\n```")
    assert (ROOT / "docs" / "_tables" / "end-of-optimism.md").is_file()
