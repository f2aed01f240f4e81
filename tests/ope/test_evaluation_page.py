"""The tables of docs/evaluation.md are made from the numbers that are kept beside the scripts."""

import importlib.util
import json
from pathlib import Path

HOME = Path(__file__).parent.parent.parent
PAGE = (HOME / "docs" / "evaluation.md").read_text(encoding="utf-8")


def script(path):
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
    assert "\n".join(script(HOME / "benchmarks" / "live.py").page_table(HOME / "benchmarks")) in PAGE
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
        three = [methods[name] for name in ("IPS, Student", "CADR", "anytime-valid")]
        shares = " | ".join(f"{100 * held:.1f}%" for held, _ in three)
        widths = ", ".join(f"{width:.3f}" for _, width in three)
        assert f"| {logger} | {target} | {shares} | {widths} |" in PAGE
