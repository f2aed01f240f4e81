"""The tables of docs/evaluation.md are made from the numbers that are kept beside the scripts."""

import importlib.util
import json
from pathlib import Path

from solid_bandits.ope.diagnostics import ENOUGH, SYMMETRIC
from solid_bandits.ope.running import ENOUGH as ENOUGH_AT_ALL_TIMES

HOME = Path(__file__).parent.parent.parent
PAGE = (HOME / "docs" / "evaluation.md").read_text(encoding="utf-8")


def script(path, monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.syspath_prepend(path.parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_randomised_trial():
    study = HOME / "studies" / "off_policy"
    kept = json.loads((study / "actg175.json").read_text(encoding="utf-8"))
    assert f"{kept['patients']:,} patients" in PAGE
    assert "\n".join(script(study / "actg175.py").page_table(kept["policies"])) in PAGE


def test_how_fast():
    benchmark = script(HOME / "benchmarks" / "live.py")
    assert "\n".join(benchmark.page_table(HOME / "benchmarks")) in PAGE
    assert "\n".join(benchmark.store_table(HOME / "benchmarks")) in PAGE
    live = json.loads((HOME / "benchmarks" / "live.json").read_text(encoding="utf-8"))
    assert live["decisions"] == 1_000_000
    assert abs(live["late"] / live["decisions"] - 0.5) < 0.01
    assert abs(live["never"] / live["decisions"] - 0.1) < 0.01


def test_coverage():
    """Shares and widths of the table of 2,000 rows, from their file."""
    kept = json.loads((HOME / "studies" / "off_policy" / "coverage-2000.json").read_text(encoding="utf-8"))
    found = {}
    for logger, target, method, held, width, _ in kept["rows"]:
        found.setdefault((logger, target), {})[method] = held, width
    for (logger, target), methods in found.items():
        two = [methods[name] for name in ("IPS, Student", "CADR")]
        shares = " | ".join(f"{100 * held:.1f}%" for held, _ in two)
        widths = ", ".join(f"{width:.3f}" for _, width in two)
        assert f"| {logger} | {target} | {shares} | {widths} |" in PAGE


def test_rare_rewards(monkeypatch):
    """The tables, and the limits of the package: those that the plan's rule chooses, or above."""
    study = script(HOME / "studies" / "off_policy" / "rare_rewards.py", monkeypatch)
    kept = json.loads((HOME / "studies" / "off_policy" / "rare_rewards.json").read_text(encoding="utf-8"))
    which, enough, running = study.chosen(kept)
    assert (which, enough) == ("C", ENOUGH)
    assert running <= ENOUGH_AT_ALL_TIMES
    for half in (0, 1):
        cells, groups, _ = study.verdict(kept["cells"], which, (half,), ENOUGH)
        assert (cells, groups) == ([], [])
        assert study.ever_missed(kept["running"], which, half, study.EDGES.index(ENOUGH_AT_ALL_TIMES)) == []
    assert "\n".join(study.page_table(kept, ENOUGH)) in PAGE
    assert "\n".join(study.page_table(kept, ENOUGH, study.FIXED, study.FIXED_METHODS, (2000,))) in PAGE
    assert f"With fewer than {ENOUGH}," in PAGE
    assert f"below {ENOUGH_AT_ALL_TIMES} effective rewards" in PAGE


def test_answers(monkeypatch):
    """The table, the number of rows per squared skewness, and that no cell loses."""
    study = script(HOME / "studies" / "off_policy" / "answers.py", monkeypatch)
    cells = json.loads((HOME / "studies" / "off_policy" / "answers.json").read_text(encoding="utf-8"))
    assert len(cells) == 72
    assert study.chosen(cells) <= study.TAKEN == SYMMETRIC
    for halves in ((0,), (1,), (0, 1)):
        assert study.losing(cells, lambda found: found["answers"][str(SYMMETRIC)], halves) == []
        assert study.losing(cells, lambda found: found["anytime"], halves) == []
    assert "\n".join(study.page_table(cells)) in PAGE
    assert f"{SYMMETRIC} rows per squared skewness" in PAGE
    clicks = [found for cell, found in cells.items() if cell.startswith("0.05|10000|")]
    assert max(found["answers"][str(SYMMETRIC)]["width"] / found["normal by truth"] for found in clicks) < 3


def test_verdicts(monkeypatch):
    """The table, and that no logger is wrong more often than δ and 3 standard errors."""
    study = script(HOME / "studies" / "off_policy" / "verdicts.py", monkeypatch)
    kept = json.loads((HOME / "studies" / "off_policy" / "verdicts.json").read_text(encoding="utf-8"))
    assert "\n".join(study.page_table(kept)) in PAGE
    for one, found in kept.items():
        risk = float(one.split("|")[2])
        assert found["wrong"] / found["runs"] <= risk + 3 * (risk * (1 - risk) / found["runs"]) ** 0.5
    for risk, said in ((0.05, "19 of 4,884 runs by intervals"), (0.01, "4 at 0.01")):
        wrong, runs = study.pooled(kept, study.KINDS[0], risk)
        assert f"{wrong} of {runs:,}" in said or said == f"{wrong} at {risk}"
        assert said in PAGE


def test_choices():
    worlds = json.loads((HOME / "studies" / "off_policy" / "choices.json").read_text(encoding="utf-8"))
    answered = [one for one in worlds if one["answers"]]
    wide = [one for one in worlds if one["gap"] > 3 * one["error"]]
    assert all(one["good"] for one in answered)
    assert f"{len(worlds)} random worlds" in PAGE
    assert f"In the {len(answered)} worlds in which it answers" in PAGE
    assert f"of the {len(wide)} worlds" in PAGE
    assert f"it answers in {sum(one['answers'] for one in wide)}." in PAGE


def test_stops():
    found = json.loads((HOME / "studies" / "off_policy" / "stops.json").read_text(encoding="utf-8"))
    three = [found[f"{logger}|0.05"] for logger in ("RandUCB", "LinTS", "EpsilonGreedy")]
    needed = [one["z-test with these arms"] for one in three]
    given = [round(100 * one["share of the weaker arm"]) for one in three]
    assert "{:,}, {:,} and {:,} decisions".format(*needed) in PAGE
    assert "{}, {} and {}% of the decisions".format(*given) in PAGE
    most = [one["at most"] for name, one in found.items() if not name.startswith("uniform")]
    assert f"{100 * min(most):.0f} to {100 * max(most):.0f}% of the runs" in PAGE


def test_identification(monkeypatch):
    study = script(HOME / "studies" / "off_policy" / "identification.py", monkeypatch)
    kept = json.loads((HOME / "studies" / "off_policy" / "identification.json").read_text(encoding="utf-8"))
    page = (HOME / "docs" / "identification.md").read_text(encoding="utf-8")
    assert "\n".join(study.page_table(kept)) in page
    assert study.wrong(kept, "mixture")[0] == 0
    assert f"Of {study.wrong(kept, 'mixture')[1]:,} searches with the valid threshold none" in page
