"""The judgement of Jester's runs, from lines made by hand."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "studies" / "jester"
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
        ("theorem, 10 runs", "**refuted**"),  # √t grows faster than log t
        ("local, 10 runs", "**refuted**"),
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


def test_what_is_there_twice_must_be_the_same(judge, tmp_path):
    source = tmp_path / "runs.jsonl"
    source.write_text("\n".join(json.dumps(line("LinUCB", 0, final)) for final in (1.0, 2.0)))
    with pytest.raises(ValueError, match="two different lines for LinUCB, run 0"):
        judge.lines_of(source)
    source.write_text("")
    with pytest.raises(ValueError, match="no finished run"):
        judge.lines_of(source)
