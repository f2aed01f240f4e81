"""docs/reproduction.md is what the code writes: its first screen counts and lists what its table of verdicts has.

The results behind the page are not in the repository, so experiments are made here from the table's marks.
"""

import re
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from made import make_outcome
from solid_bandits.experiments.names import ALL
from solid_bandits.experiments.outcome import OURS, Answer, Claim, Verdict
from solid_bandits.experiments.readings import READINGS
from solid_bandits.report.document.claims import claims
from solid_bandits.report.document.markdown import escaped
from solid_bandits.report.document.opening import opening
from solid_bandits.report.document.overview import overview
from solid_bandits.report.verdicts import MARKS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
ANSWERS = {mark: answer for answer, (mark, _) in MARKS.items()}


def marks():
    """Experiment and place -> the answers under the readings."""
    table = PAGE.split("## What holds, under which reading")[1].split("## Figures")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[-1] in ANSWERS:
            name, place = cells[0].split()[:2]
            found[name, int(place)] = [ANSWERS[mark] for mark in cells[2:]]
    return found


def made(name, given):
    """An experiment with the verdicts of the page."""
    text = (files("solid_bandits.experiments") / f"{name}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    every = [Claim.from_plain(one) for one in content.get("claim", [])]
    verdicts = [
        Verdict(claim, answer, "", (), reading)
        for place, claim in enumerate(every, start=1)
        for reading, answer in zip(READINGS, given[name, place], strict=True)
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


def test_the_first_screen(outcomes, jester):
    screen = "\n\n".join([*opening(outcomes, "figures", [jester]), *overview(outcomes, [jester])])
    assert screen in PAGE


def test_the_counts_of_the_claims(outcomes, jester):
    blocks = claims(outcomes, [jester])
    assert "\n\n".join(blocks[:3]) in PAGE


def test_every_sentence_of_the_paper_that_is_refuted_is_on_the_first_screen(outcomes, jester):
    screen = PAGE.split("## What holds, under which reading")[0]
    for outcome in (*outcomes, jester):
        for sentence in outcome.sentences:
            verdict = sentence.under("local")
            if sentence.claim.source != OURS and verdict.answer is Answer.REFUTED:
                assert f"- {escaped(sentence.claim.text)} ({outcome.name} " in screen
