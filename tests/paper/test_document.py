"""The document of a reproduction: what its tables say is what the results say, and its Markdown is sound."""

import itertools
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest

from made import BOUND, FOUR, make_outcome, make_part
from solid_bandits.paper.judging import judge
from solid_bandits.paper.names import NAMES
from solid_bandits.paper.outcome import Answer, Claim, Comparison, Verdict
from solid_bandits.paper.report.document import document, write_document
from solid_bandits.paper.report.experiment_figure import experiment_figure
from solid_bandits.paper.report.markdown import escaped
from solid_bandits.paper.rules import RULES
from solid_bandits.report.figure import save_figure
from solid_bandits.statistics.estimate import Estimate

CONF = Path(__file__).parents[2] / "docs" / "conf.py"
FACTS = {
    "scale": "paper",
    "machine": "AMD | EPYC",
    "cores": 2,
    "wall time": 6123.4,
    "versions": {"python": "3.11.2", "numpy": "2.1.0"},
}
T_5 = 2.570582  # Student's 97.5% quantile, 5 degrees of freedom

LESS = Claim(
    "SOLID beats all_others.", "Section 6", "less", policies=("SOLID",), against=("LinUCB", "$a$ | b")
)
MORE = Claim("SOLID loses.", "ours", "more", policies=("SOLID",), against=("LinUCB",), beside=("$a$ | b",))


def outcomes():
    parts = {
        "|A| = 4": make_part(FOUR, seconds={"SOLID": 1.2, "LinUCB": 0.3}),
        "|A| = 8": make_part(FOUR, seed=1, bound={"reason": "two *best* arms"}),
    }
    return [make_outcome(parts, [judge(claim, parts) for claim in (LESS, MORE)])]


def verdict(answer, *comparisons, rule="A rule.", claim=LESS):
    return Verdict(claim, answer, rule, comparisons)


def cells(line):
    """The cells of a row; a pipe behind a backslash does not end one."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def tables(text):
    """Each table as its list of rows, the heading first and the rule below it left out."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.M)
    split = [[cells(line) for line in table.splitlines()] for table in found]
    return [[rows[0], *rows[2:]] for rows in split]


def table_with(text, *heads):
    return next(table for table in tables(text) if table[0][: len(heads)] == list(heads))


def section(text, heading):
    return text.split(f"\n{heading}\n")[1].split("\n#")[0]


def number(cell):
    """The number that a cell begins with."""
    return float(re.match(r"[+−]?[\d,]*\.?\d*", cell)[0].replace("−", "-").replace(",", ""))


def half(cell):
    return number(cell.partition("±")[2].strip())


def shown(value, cell):
    """Whether a cell's number is `value`, but for what its decimals leave out."""
    decimals = len(re.match(r"[+−]?[\d,]*\.?(\d*)", cell)[1])
    return abs(number(cell) - value) <= 0.5001 * 10**-decimals


def final(results, policy):
    last = results.table.filter(pl.col("step") == 2000, pl.col("policy") == policy)
    return last.sort("run")["regret"].to_numpy()


# The tables of the parts


def test_rows_hold_what_the_runs_say():
    (outcome,) = outcomes()
    results = outcome.parts["|A| = 4"]
    text = document([outcome], FACTS)
    (table,) = tables(section(text, r"#### \|A\| = 4"))
    steps = results.table["step"].unique().sort().to_numpy()
    tenth = steps[np.abs(steps - 200).argmin()]
    reference = final(results, "SOLID")
    assert {row[0] for row in table[1:]} == {escaped(policy) for policy in FOUR}
    for policy in FOUR:
        (row,) = (row for row in table if row[0] == escaped(policy))
        _, mean, median, worst, difference, slope, share, micro = row
        runs = final(results, policy)
        early = results.table.filter(pl.col("step") == tenth, pl.col("policy") == policy).sort("run")[
            "regret"
        ]
        slopes = (runs - early.to_numpy()) / math.log(2000 / tenth)
        for cell, values in ((mean, runs), (slope, slopes)):
            assert shown(values.mean(), cell)
            assert half(cell) == pytest.approx(T_5 * values.std(ddof=1) / math.sqrt(6), rel=0.05)
        assert shown(np.median(runs), median)
        assert shown(runs.max(), worst)
        if policy == "SOLID":
            assert difference == ""
        else:
            paired = runs - reference
            assert shown(paired.mean(), difference)
            width = T_5 * paired.std(ddof=1) / math.sqrt(6)
            assert half(difference) == pytest.approx(width, rel=0.05)
            assert difference.endswith("~") == (abs(paired.mean()) <= width)
        assert share == "25.0%"
        assert micro == {"SOLID": "100", "LinUCB": "25.0"}.get(policy, "–")
    means = [number(row[1]) for row in table[1:]]
    assert means == sorted(means)


def test_a_tie_is_marked():
    part = make_part({"SOLID": 2.0, "same": 2.0, "far": 9.0})
    (table,) = tables(section(document([make_outcome({"x": part})], {}), "#### x"))
    marks = {row[0]: row[4].endswith("~") for row in table[1:]}
    paired = final(part, "same") - final(part, "SOLID")
    assert marks["same"] == (abs(paired.mean()) <= T_5 * paired.std(ddof=1) / math.sqrt(6))
    assert marks == {"SOLID": False, "same": True, "far": False}


def test_the_bound_stands_with_its_bracket():
    text = document(outcomes(), FACTS)
    bounded = section(text, r"#### \|A\| = 4")
    assert "2,000 steps, 6 runs." in bounded
    assert r"v\* = 2.50000, certified to lie in \[2.49900, 2.50100\]" in bounded
    assert rf"v\* log n = {2.5 * math.log(2000):.1f}." in bounded
    assert r"No lower bound: two \*best\* arms." in section(text, r"#### \|A\| = 8")


def test_a_bound_of_many_problems_says_so():
    many = {key: BOUND[key] for key in ("value", "lower", "upper")}
    assert "mean over the problems" in document([make_outcome({"x": make_part(FOUR, bound=many)})], {})
    assert "mean over the problems" not in document([make_outcome({"x": make_part(FOUR)})], {})


@pytest.mark.parametrize("bound", [{}, None, {"reason": "none"}, {"value": 0.0, "lower": 0.0, "upper": 0.0}])
@pytest.mark.parametrize("runs", [1, 2])
def test_nothing_that_is_not_a_number_is_printed(bound, runs):
    few = make_part({"LinUCB": 1.0}, runs=runs, bound=bound)  # does not have the reference policy
    verdicts = [
        verdict(Answer.UNDECIDED, Comparison("a", Estimate(None, None, None), Answer.UNDECIDED)),
        verdict(Answer.UNDECIDED, Comparison("b", Estimate(math.nan, math.nan, math.inf), Answer.UNDECIDED)),
        verdict(Answer.UNDECIDED, Comparison("c", Estimate(1.5, None, None), Answer.UNDECIDED)),
        verdict(Answer.UNDECIDED),
    ]
    facts = {"machine": None, "versions": {}, "cores": 2}
    outcome = make_outcome({"x": make_part(FOUR, runs=runs, bound=bound), "y": few}, verdicts)
    text = document([outcome], facts)
    assert not re.search(r"\b(nan|none|inf|null)\b", text.replace("No lower bound: none", ""), re.I)
    if runs == 1:
        assert "±" not in text.split("\n### The toy\n")[1]
        assert "1 run." in text
    (table,) = tables(section(text, "#### y"))
    assert table[1][4] == "–"


def test_a_run_of_one_step_has_no_slope():
    part = make_part(FOUR)
    short = replace(part, table=part.table.filter(pl.col("step") == 1))
    (table,) = tables(section(document([make_outcome({"x": short})], {}), "#### x"))
    assert {row[5] for row in table[1:]} == {"–"}


# The claims


def test_verdicts_are_counted():
    verdicts = [verdict(Answer.CONFIRMED)] * 3 + [
        verdict(Answer.REFUTED),
        verdict(Answer.UNDECIDED, claim=MORE),
    ]
    text = document([make_outcome({"x": make_part(FOUR)}, verdicts)] * 2, {})
    heads, *rows = table_with(text, "claims")
    assert heads == ["claims", "confirmed", "refuted", "undecided", "not testable", "all"]
    assert [row[1:] for row in rows] == [["6", "2", "0", "0", "8"], ["0", "0", "2", "0", "2"]]


def test_claims_are_shown_with_source_numbers_and_rule():
    (outcome,) = outcomes()
    heads, first, second = table_with(document([outcome], {}), "", "verdict")
    assert heads == ["", "verdict", "claim", "numbers", "rule"]
    assert first[:2] == ["1", "**confirmed**"]
    assert first[2] == r"SOLID beats all\_others.<br>*Section 6*"
    assert second[1] == "**refuted**"
    assert "*ours, not the paper’s*" in second[2]
    numbers = first[3].split("<br>")
    assert len(numbers) == 4
    for line, comparison in zip(numbers, outcome.verdicts[0].comparisons, strict=True):
        what, _, value = line.rpartition(": ")
        assert what == f"• {escaped(comparison.what)}"
        ends = re.fullmatch(r"(\S+)\s\\\[(\S+),\s(\S+)\\\]", value).groups()
        for cell, wanted in zip(ends, comparison.estimate, strict=True):
            assert shown(wanted, cell)
    # What stands beside is not among what decides.
    assert "a\\$" not in second[3]
    assert first[4].startswith("*less*: cumulative regret at the end; level")


def test_rules_are_explained_once_and_whole():
    text = document(outcomes() * 2, {})
    for name in ("less", "more"):
        assert text.count(f"- *{name}*: {escaped(RULES[name].words)}") == 1
    assert "- *similar*" not in text
    own = document([make_outcome({"x": make_part(FOUR)}, [verdict(Answer.CONFIRMED, rule="By eye.")])], {})
    assert table_with(own, "", "verdict")[1][4] == "By eye."


def test_only_what_decides_is_in_the_row_and_all_of_it_below():
    comparisons = [
        Comparison("holds", Estimate(1.0, 0.5, 1.5), Answer.CONFIRMED),
        Comparison("fails", Estimate(-1.0, -1.5, -0.5), Answer.REFUTED),
        Comparison("open", Estimate(0.0, -1.5, 1.5), Answer.UNDECIDED),
        Comparison("beside", Estimate(-2.0, -3.0, -1.0), Answer.REFUTED, counted=False),
    ]
    text = document([make_outcome({"x": make_part(FOUR)}, [verdict(Answer.REFUTED, *comparisons)])], {})
    assert table_with(text, "", "verdict")[1][3] == "fails: −1.000\u00a0\\[−1.500,\u00a0−0.500\\]"
    _, *rows = table_with(text, "claim", "number")
    assert [row[1] for row in rows] == ["holds", "fails", "open", "beside"]
    assert [row[3] for row in rows] == ["confirmed", "refuted", "undecided", "refuted, not counted"]


def test_many_deciding_numbers_are_cut_short_in_the_row():
    comparisons = [Comparison(f"number {k}", Estimate(1.0, 0.5, 1.5), Answer.CONFIRMED) for k in range(12)]
    text = document([make_outcome({"x": make_part(FOUR)}, [verdict(Answer.CONFIRMED, *comparisons)])], {})
    lines = table_with(text, "", "verdict")[1][3].split("<br>")
    assert lines[-1] == f"• and {12 - len(lines) + 1} more"
    assert len(table_with(text, "claim", "number")) == 13


def test_an_end_near_zero_keeps_its_side():
    near = Comparison("a", Estimate(10.97, -0.28, 22.2), Answer.UNDECIDED)
    text = document([make_outcome({"x": make_part(FOUR)}, [verdict(Answer.UNDECIDED, near)])], {})
    assert "11.0\u00a0\\[−0.3,\u00a022.2\\]" in text


def test_a_horizon_that_is_too_short_is_said():
    short = Verdict(LESS, Answer.UNDECIDED, "A rule.", (), too_short=True)
    text = document([make_outcome({"x": make_part(FOUR)}, [short, verdict(Answer.UNDECIDED)])], {})
    _, *rows = table_with(text, "", "verdict")
    assert [row[1] for row in rows] == ["undecided at this horizon", "undecided"]


def test_a_note_stands_below_the_claims_of_its_experiment():
    parts = {"x": make_part(FOUR)}
    first = make_outcome(parts, [verdict(Answer.CONFIRMED)], name="first")
    second = make_outcome(parts, [verdict(Answer.CONFIRMED)], name="second")
    text = document([first, second], {}, notes={"first": "Played on, it holds.\n"})
    section = text.split("### first\n")[1].split("\n### second\n")[0]
    assert re.search(r"\|\n\nPlayed on, it holds\.\n$", section)
    assert text.count("Played on, it holds.") == 1
    assert "Played on" not in document([second], {}, notes={"first": "Played on, it holds."})


def test_without_claims_it_says_so():
    text = document([make_outcome({"x": make_part(FOUR)})], {})
    assert "No claims were judged." in text
    assert "behind the claims" not in text


# The facts


def test_facts_are_told():
    text = document(outcomes(), FACTS)
    told = dict(tables(text)[0][1:])
    assert told == {
        "scale": "paper",
        "machine": r"AMD \| EPYC",
        "cores": "2",
        "wall time": "1 h 42 min",
        "versions": "python 3.11.2, numpy 2.1.0",
    }
    assert "```sh\nsolid-bandits reproduce toy --scale paper\n```" in text


def test_the_command_names_what_was_played():
    part = {"x": make_part(FOUR)}
    every = [make_outcome(part, name=name) for name in NAMES if name != "jester"]
    assert "reproduce all --scale paper\n" in document(every, {"scale": "paper"})
    jester = make_outcome(part, name="jester")
    assert "reproduce all jester --scale quick\n" in document([*every, jester], {})
    assert "reproduce toy toy-pulls --scale quick\n" in document(every[:2], {})
    assert "reproduce all 'my own.toml' --scale quick\n" in document(
        [*every, make_outcome(part, name="my own")], {}
    )


@pytest.mark.parametrize(
    ("seconds", "words"), [(42.4, "42 s"), (100, "2 min"), (900, "15 min"), (7199, "2 h 00 min")]
)
def test_wall_time_is_said_as_people_say_it(seconds, words):
    assert f"| wall time | {words} |" in document(outcomes(), {"wall time": seconds})


def test_the_scale_is_known_without_facts_and_a_command_may_be_given():
    text = document(outcomes(), {})
    assert "--scale quick" in text
    assert "| scale | quick |" in text
    own = [make_outcome({"x": make_part(FOUR)}, scale="own")]
    assert "solid-bandits" not in document(own, {})
    assert "```sh\nsolid-bandits reproduce mine.toml\n```" in document(
        own, {"command": "solid-bandits reproduce mine.toml"}
    )


# The Markdown


def test_the_same_outcomes_give_the_same_text():
    assert document(outcomes(), FACTS) == document(outcomes(), FACTS)


AWKWARD = [
    "a | b",
    "$x$ *y* _z_ `c` <b> [l](m) {r}`s` &amp; ~~d~~ \\| e\\",
    "# no heading",
    "1. no list",
    "- no list",
]
AWKWARD += ["% no comment", "(no-target)=", "::: no fence", "> no quote", "+++", "two\nlines"]


@pytest.mark.parametrize("label", AWKWARD)
def test_labels_are_text_whatever_they_hold(label):
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    part = make_part({label: 2.0, "other": 1.0})
    outcome = make_outcome({label: part}, title=label, about=label)
    page = parser.parse(document([outcome], {"machine": label}))
    assert [token.tag for token in page if token.type == "heading_open"] == ["h1", "h2", "h2", "h3", "h4"]
    texts = [
        "".join(child.content for child in token.children)
        for token in page
        if token.type == "inline" and {child.type for child in token.children} <= {"text", "text_special"}
    ]
    line = " ".join(label.split())
    # The machine, the title, the paragraph below it, the part's heading and the row of the policy.
    assert texts.count(line) == 5
    columns = {
        len(re.findall("<t[dh]", row))
        for row in re.findall("<tr>.*?</tr>", parser.render(document([outcome], {})), re.S)
    }
    assert columns == {2, 8}


def test_headings_descend_one_by_one():
    levels = [len(marks) for marks in re.findall(r"^(#+) ", document(outcomes() * 2, FACTS), re.M)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def write_all(outcomes, path):
    write_document(outcomes, path, FACTS)
    (path.parent / "figures").mkdir()
    for outcome in outcomes:
        save_figure(experiment_figure(outcome), path.parent / "figures" / f"{outcome.name}.png")


def test_the_file_is_written_and_its_figures_are_where_it_looks_for_them(tmp_path):
    several = [*outcomes(), replace(outcomes()[0], name="my own")]
    write_all(several, tmp_path / "reproduction.md")
    text = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert text == document(several, FACTS)
    images = re.findall(r"!\[.*\]\((.*)\)", text)
    assert images == ["figures/toy.png", "figures/my%20own.png"]
    assert all((tmp_path / unquote(image)).exists() for image in images)
    assert len(list(tmp_path.iterdir())) == 2  # nothing temporary is left
    assert "](elsewhere/toy.png)" in document(several, FACTS, figures="elsewhere")


def test_sphinx_builds_it_without_warnings(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_nb")
    pytest.importorskip("furo")
    several = [
        *outcomes(),
        make_outcome(
            {label: make_part({label: 1.0, "other": 2.0}) for label in AWKWARD[:-1]}, name="ablation-z0"
        ),
    ]
    write_all(several, tmp_path / "index.md")
    (tmp_path / "conf.py").write_text(
        CONF.read_text(encoding="utf-8").replace("html_static_path", "unused"), encoding="utf-8"
    )
    shutil.copytree(CONF.parent / "_extensions", tmp_path / "_extensions")
    sphinx = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*sphinx, tmp_path, tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out" / "_images").iterdir())) == 2
