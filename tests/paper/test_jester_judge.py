"""The judgement of Jester's runs, from lines made by hand."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from made import FOUR, make_outcome, make_part

FOLDER = Path(__file__).parents[2] / "studies" / "jester"
STEPS = [1, 10, 100, 1000, 2000]


@pytest.fixture(scope="module")
def judge():
    sys.path.insert(0, str(FOLDER))
    try:
        import judge

        yield judge
    finally:
        sys.path.remove(str(FOLDER))


def line(policy, run, final, exponent=0.5):
    regret = final * (np.array(STEPS) / STEPS[-1]) ** exponent
    return {
        "policy": policy,
        "run": run,
        "horizon": STEPS[-1],
        "seed": 0,
        "seconds": 10.0,
        "steps": STEPS,
        "regret": regret.tolist(),
        "explored": [step // 2 for step in STEPS],
        "made_by": {"source": "abc"},
    }


def made(runs, solid=100.0, other=50.0):
    rng = np.random.default_rng(0)
    lines = []
    for run in range(runs):
        base = rng.normal()
        finals = {"SOLID, theorem": solid, "SOLID, local": other, "LinUCB": 200.0, "LinTS (paper)": 80.0}
        finals |= {"LinTS (posterior)": 30.0, "RandUCB": 20.0}
        lines += [line(policy, run, final + base + rng.normal()) for policy, final in finals.items()]
    return lines


def test_verdicts_are_those_of_the_numbers(judge):
    rows = judge.verdicts(made(10), {"SOLID, theorem": "theorem", "SOLID, local": "local"})
    assert [(row[1], row[2]) for row in rows] == [
        ("theorem, 10 runs", "**refuted**"),  # LinTS (paper) has less
        ("local, 10 runs", "**confirmed**"),
        ("theorem, 10 runs", "**refuted** at this horizon"),  # √t grows faster than log t
        ("local, 10 runs", "**refuted** at this horizon"),
    ]
    assert "regret of LinUCB - regret of SOLID: +100" in rows[0][3]
    assert "regret of RandUCB - regret of SOLID: −79.6" in rows[0][3]


def test_any_number_of_runs_will_do_and_is_said(judge, tmp_path):
    lines = made(3)
    del lines[-5:]  # only SOLID as printed has its third run
    source = tmp_path / "runs.jsonl"
    source.write_text("\n".join(map(json.dumps, [*lines, lines[0]])) + "\n")
    text = judge.fragment(judge.lines_of(source))
    assert text.startswith("2 to 3 runs of each policy are finished (the paper has 100), 2,000 steps each")
    assert "| SOLID, theorem | 3 | " in text
    assert "theorem, 2 runs" in text
    assert "local, 2 runs" in text
    assert "In 0 of 2 runs SOLID, theorem and SOLID, local have the same regret to the last digit." in text
    assert "too few runs" in judge.fragment(made(1))


def test_the_refutation_of_an_asymptotic_sentence_says_what_it_does_not_refute(judge):
    assert "A slope that still grows there does not refute the asymptotic statement." in judge.fragment(
        made(3)
    )


def test_the_verdicts_are_an_outcome_like_others(judge):
    found = judge.outcome(made(10))
    assert (found.name, found.readings) == ("jester", ("theorem", "local"))
    assert [sorted(one.verdicts) for one in found.sentences] == [["local", "theorem"]] * 2
    assert [one.under("local").answer for one in found.sentences] == ["confirmed", "refuted"]
    assert found.sentences[0].under("plain") is None


def test_the_page_has_jesters_section_last(judge):
    import page

    lines = made(3)
    text = page.page([make_outcome({"x": make_part(FOUR)})], {}, lines)
    assert text.startswith("# Reproduction\n")
    assert text.endswith(f"\n\n## Jester at the paper's horizon\n\n{judge.fragment(lines)}\n")


def test_the_tables_on_the_pages_are_those_of_the_runs(judge):
    docs = FOLDER.parents[1] / "docs"
    text = judge.fragment(judge.lines_of(FOLDER / "runs.jsonl"))
    assert (docs / "_tables" / "jester.md").read_text(encoding="utf-8") == f"{text}\n"
    page = (docs / "reproduction.md").read_text(encoding="utf-8")
    assert page.endswith(f"\n\n## Jester at the paper's horizon\n\n{text}\n")


def test_what_is_there_twice_must_be_the_same(judge, tmp_path):
    source = tmp_path / "runs.jsonl"
    source.write_text("\n".join(json.dumps(line("LinUCB", 0, final)) for final in (1.0, 2.0)))
    with pytest.raises(ValueError, match="two different lines for LinUCB, run 0"):
        judge.lines_of(source)
    source.write_text("")
    with pytest.raises(ValueError, match="no finished run"):
        judge.lines_of(source)
