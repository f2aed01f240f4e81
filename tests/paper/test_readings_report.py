"""Reports on several readings of SOLID: one screen first, plain labels for one reading, the others beside it."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from made import make_outcome, make_part
from solid_bandits.paper.outcome import Answer, Claim, Outcome, UnderReading, Verdict
from solid_bandits.paper.ranking import ranking
from solid_bandits.paper.readings import READINGS, arranged, judged
from solid_bandits.paper.report.directory import write_report
from solid_bandits.paper.report.document import document
from solid_bandits.paper.report.experiment_figure import experiment_figure
from solid_bandits.paper.report.experiments_data import experiments_data
from solid_bandits.paper.report.experiments_page import write_experiments_page
from solid_bandits.paper.report.left_open import LEFT_OPEN, NOT_JUDGED
from solid_bandits.paper.report.markdown import escaped
from solid_bandits.paper.report.readings import chosen_words, main_view, readings_view, verdict_under
from solid_bandits.paper.report.verdicts import MARKS, TOO_SHORT, legend, verdict_table

USUAL = "theorem"
LESS = Claim("SOLID beats LinUCB.", "Section 6", "less", policies=("SOLID",), against=("LinUCB",))
OTHER = Claim("LinUCB has regret.", "ours", "below", margin=1.0, policies=("LinUCB",))
SLOPES = {"theorem": 2.0, "plain": 4.9, "local": 9.0, "none": 3.0}


def outcome_with(variants, name="toy", parts=1) -> Outcome:
    """Every variant under every reading, and LinUCB."""
    labels = {
        f"{label} [{reading}]": UnderReading(label, reading) for label in variants for reading in READINGS
    }
    slopes = {label: SLOPES[one.reading] + 0.1 * variants.index(one.label) for label, one in labels.items()}
    results = {f"part {k}": make_part(slopes | {"LinUCB": 5.0}, seed=k) for k in range(parts)}
    claims = [LESS, OTHER] if "SOLID" in variants else [OTHER]
    return make_outcome(
        {label: arranged(one, labels, USUAL) for label, one in results.items()},
        judged(claims, results, READINGS, labels),
        name=name,
        readings=READINGS,
        reading=USUAL,
        played={one.label if one.reading == USUAL else label: one for label, one in labels.items()},
    )


@pytest.fixture(scope="module")
def toy() -> Outcome:
    return outcome_with(["SOLID"], parts=2)


@pytest.fixture(autouse=True)
def as_printed(monkeypatch):
    """`Solid()` as it may be one day has another reading; the tests say theorem."""
    monkeypatch.setattr(
        "solid_bandits.paper.report.readings.default_reading", lambda given: USUAL if given else ""
    )


def test_the_main_figure_has_one_reading(toy):
    view = main_view(toy)
    assert view.policies == ["SOLID", "LinUCB"]
    assert len(experiment_figure(view).axes[0].collections) == 2
    without = make_outcome({"x": make_part({"A": 1.0})})
    assert main_view(without).policies == ["A"]
    assert readings_view(without) is None


def test_few_policies_are_compared_in_each_panel(toy):
    view = readings_view(toy)
    assert list(view.parts) == list(toy.parts)
    assert view.policies == [f"SOLID [{reading}]" for reading in READINGS]


def test_many_policies_have_a_panel_for_each_reading():
    variants = ["SOLID, a", "SOLID, b", "SOLID, c"]
    view = readings_view(outcome_with(variants))
    assert list(view.parts) == list(READINGS)
    assert view.policies == [*variants, "LinUCB"]
    assert len(experiment_figure(view).axes) == 4
    assert list(readings_view(outcome_with(variants, parts=2)).parts)[:2] == [
        "part 0, theorem",
        "part 0, plain",
    ]


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_the_document_opens_with_what_holds_under_which_reading(toy):
    text = document([toy], {})
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings == [
        "What holds, under which reading",
        "Figures",
        "How it was made",
        "Claims",
        "What the paper leaves open",
        "Experiments",
    ]
    screen = text.split("## Figures")[0]
    counts = {
        cells(line)[0].strip("*"): cells(line)[2:]
        for line in re.findall(r"^\|.*\+\d \||^\|.*−\d \|", screen, re.M)
    }
    assert counts["theorem"] == ["1", "0", "0", "0", "+1"]
    assert counts["local"] == ["0", "1", "0", "0", "−1"]
    assert "**theorem**" in screen
    (row,) = [cells(line) for line in screen.splitlines() if "SOLID beats LinUCB" in line]
    marks = [MARKS[one.answer][0] for one in toy.sentences[0].verdicts.values()]
    assert row == ["toy 1", "SOLID beats LinUCB.", *marks]
    (row,) = [cells(line) for line in screen.splitlines() if "LinUCB has regret" in line]
    assert row[2:] == ["✗"] * 4
    assert "(figures/toy.png)" in text.split("## Figures")[1].split("## How")[0]
    assert "(figures/readings/toy.png)" in text.split("## Experiments")[1]
    for words in (*LEFT_OPEN, *NOT_JUDGED):
        assert escaped(words) in text


def test_the_first_screen_says_what_holds_and_what_the_reading_changes(toy, monkeypatch):
    screen = document([toy], {}).split("## What holds")[0]
    assert "**1 of the paper’s 1 sentences that were judged hold**, 0 do not, 0 are undecided, with" in screen
    assert "count in the ranking" not in screen
    assert "(figures/toy.png)" in screen
    assert "**Does not hold under theorem**: nothing." in screen
    assert "as printed" not in screen.split("Does not hold")[1]
    monkeypatch.setattr(
        "solid_bandits.paper.report.readings.default_reading", lambda given: "local" if given else ""
    )
    screen = document([toy], {}).split("## What holds")[0]
    assert "**0 of the paper’s 1 sentences that were judged hold**, 1 do not" in screen
    assert "a rule committed before the runs chose" not in screen
    for title in ("Does not hold under local", "Holds as printed, not under local"):
        assert f"**{title}**\n\n- SOLID beats LinUCB. (toy 1)\n" in screen
    assert "**Holds under local, not as printed**: nothing." in screen


def test_sentences_of_later_do_not_count_and_are_marked(toy):
    later = outcome_with(["SOLID"], name="toy-pulls")
    assert ranking([toy, later]) == ranking([toy])
    text = document([toy, later], {})
    assert "| toy-pulls 1 † |" in text
    assert "| toy 1 |" in text
    assert "†: added after the rule was committed" in text
    assert "†" not in document([toy], {})


SLOWING = Claim("SOLID slows down.", "Section 5", "slowing", policies=("SOLID",))


def judged_apart() -> Outcome:
    """Jester as it is judged elsewhere: under two readings, of which SOLID loses under one; and slope that grows."""
    answers = {LESS: ("confirmed", "refuted"), SLOWING: ("refuted", "refuted")}
    verdicts = [
        Verdict(claim, Answer(answer), "A rule.", (), reading)
        for claim, both in answers.items()
        for reading, answer in zip(("theorem", "local"), both, strict=True)
    ]
    return make_outcome({}, verdicts, name="jester", title="Jester", readings=("theorem", "local"))


def test_the_first_screen_counts_and_lists_what_the_ranking_leaves_out(toy, monkeypatch):
    monkeypatch.setattr(
        "solid_bandits.paper.report.readings.default_reading", lambda given: "local" if given else ""
    )
    later = outcome_with(["SOLID"], name="toy-pulls")
    text = document([toy, later], {}, apart=[judged_apart()])
    screen = text.split("## What holds")[0]
    assert "**0 of the paper’s 4 sentences that were judged hold**, 4 do not, 0 are undecided, with" in screen
    assert (
        "1 of the sentences count in the ranking of the readings: 0 hold, 1 do not, 0 are undecided."
        in screen
    )
    assert (
        "Those added later (†) and those on Jester (‡) do not count, and do not change the ranking." in screen
    )
    refuted = screen.split("**Does not hold under local**")[1].split("\n\n**")[0].strip().splitlines()
    assert refuted[:3] == [
        "- SOLID beats LinUCB. (toy 1)",
        "- SOLID beats LinUCB. (toy-pulls 1 †)",
        "- SOLID beats LinUCB. (jester 1 ‡)",
    ]
    assert refuted[3].startswith("- SOLID slows down. (jester 2 ‡) The paper's sentence is asymptotic")
    rows = [cells(line) for line in text.split("## Figures")[0].splitlines() if line.startswith("| jester")]
    assert rows == [
        ["jester 1 ‡", "SOLID beats LinUCB.", "✓", "not played", "✗", "not played"],
        ["jester 2 ‡", "SOLID slows down.", "✗", "not played", "✗", "not played"],
    ]
    assert "‡: on Jester, which the rule leaves out." in text
    assert "Not in this table: the 2 sentences on Jester, judged at the end of this page." in text
    assert ranking([toy, later]) == ranking([toy])
    assert "‡" not in document([toy, later], {})


def test_the_numbers_name_their_reading(toy):
    text = document([toy], {})
    heads = "| claim | reading | number | estimate \\[interval\\] | says |"
    rows = text.split(heads)[1].splitlines()[2:]
    readings = [cells(row)[1] for row in rows if row.startswith("|")]
    assert readings == [reading for reading in READINGS for _ in toy.parts] + [""] * len(toy.parts)


def test_own_experiments_do_not_speak_of_the_paper(toy):
    text = document([outcome_with(["SOLID"], name="mine")], {})
    assert "What the paper leaves open" not in text
    assert "None of the paper’s experiments is here." in text


def test_the_rule_says_what_it_chose(toy):
    words = chosen_words([toy], ranking([toy]))
    assert "ranks theorem (+1)" in words
    assert "local (−1)" in words
    assert "the paper's reading is 'theorem', which is that of Solid()" in words
    assert re.search(r"These are 1 of the \d+ experiments", words)
    assert chosen_words([], []) == ""


def test_the_terminal_has_a_column_for_each_reading(toy):
    printed = io.StringIO()
    Console(file=printed, width=120).print(verdict_table([toy]))
    lines = printed.getvalue().splitlines()
    assert lines[1].split() == ["experiment", *READINGS, "claim"]
    assert lines[3].split()[1:5] == [MARKS[one.answer][0] for one in toy.sentences[0].verdicts.values()]
    assert "local: 0 confirmed, 2 refuted, 0 undecided, 0 not testable" in printed.getvalue()


def test_a_horizon_that_is_too_short_has_a_mark_of_its_own(toy, tmp_path):
    verdicts = [
        replace(one, answer=Answer.UNDECIDED, too_short=True) if one.claim == LESS else one
        for one in toy.verdicts
    ]
    short = replace(toy, verdicts=tuple(verdicts))
    explained = f"{TOO_SHORT}: undecided at this horizon, which is shorter than the sentence asks for."
    screen = document([short], {}).split("## Figures")[0]
    (row,) = [cells(line) for line in screen.splitlines() if line.startswith("| toy 1 ")]
    assert row[2:] == [TOO_SHORT] * 4
    (other,) = [cells(line) for line in screen.splitlines() if line.startswith("| toy 2 ")]
    assert other[2:] == ["✗"] * 4
    assert explained in screen
    write_experiments_page([short], tmp_path / "report.html", {})
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    holds = page.split("What holds, under which reading")[1].split("</section>")[0]
    assert holds.count(f'title="undecided at this horizon">{TOO_SHORT}</td>') == 4
    assert explained in holds
    # A line of its own: in the badge it would lie over the sentence beside it.
    assert page.count('</span> undecided</span><p class="source">at this horizon</p></td>') == 1
    printed = io.StringIO()
    Console(file=printed, width=120).print(verdict_table([short]))
    assert printed.getvalue().splitlines()[3].split()[1:5] == [TOO_SHORT] * 4
    assert explained in legend([short])
    assert TOO_SHORT not in legend([toy])


def test_what_was_played_under_one_reading_has_one_verdict(toy):
    part = make_part({"SOLID": 2.0, "LinUCB": 5.0})
    part.manifest["configuration"]["policies"]["SOLID"] = {"bonus": "local"}
    parts = {"x": part}
    jester = make_outcome(parts, judged([LESS, OTHER], parts, (), {}), name="jester", title="Jester")
    on_solid, other = jester.sentences
    marks = {reading: verdict_under(jester, on_solid, reading) for reading in READINGS}
    assert [reading for reading, verdict in marks.items() if verdict is not None] == ["local"]
    assert all(verdict_under(jester, other, reading) is not None for reading in READINGS)
    screen = document([toy, jester], {}).split("## Figures")[0]
    (row,) = [cells(line) for line in screen.splitlines() if "jester 1" in line]
    assert row[2:] == ["not played", "not played", "✓", "not played"]


def test_the_page_hides_the_other_readings_at_first(toy):
    (experiment,) = experiments_data([toy])["experiments"]
    hidden = {one["label"]: one["hidden"] for one in experiment["policies"]}
    assert hidden == {"SOLID": False, "LinUCB": False} | {
        f"SOLID [{reading}]": True for reading in READINGS if reading != USUAL
    }


def test_everything_is_written(toy, tmp_path):
    write_report([toy], tmp_path)
    for place in ("toy.png", "readings/toy.png"):
        assert (tmp_path / "figures" / place).read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    overview = page.split("What holds, under which reading")[1].split("</section>")[0]
    assert overview.count("SOLID beats LinUCB.") == 1
    for answer in (Answer.CONFIRMED, Answer.REFUTED):
        assert f'title="{answer}">{MARKS[answer][0]}</td>' in overview
    assert page.count("theorem: regret of LinUCB - regret of SOLID") == len(toy.parts)
