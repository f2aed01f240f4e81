"""The report on a directory of experiments: a figure for each, one page and one Markdown document for all."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from solid_bandits._types import Plain
from solid_bandits._words import duration
from solid_bandits.experiments.outcome import Outcome
from solid_bandits.experiments.store import read_json
from solid_bandits.report.document import write_document
from solid_bandits.report.experiment_figure import write_experiment_figure
from solid_bandits.report.experiments_page import write_experiments_page
from solid_bandits.simulation import versions


def write_report(outcomes: Sequence[Outcome], out: Path) -> list[str]:
    """Write figures/NAME.png, report.html and report.md into `out`; return what was written."""
    known = facts(outcomes, out)
    (out / "figures").mkdir(exist_ok=True)
    for outcome in outcomes:
        write_experiment_figure(outcome, out / "figures" / f"{outcome.name}.png")
    write_experiments_page(outcomes, out / "report.html", known)
    write_document(outcomes, out / "report.md", known)
    return ["report.html", "report.md", "figures/"]


def facts(outcomes: Sequence[Outcome], out: Path) -> Plain:
    """What is to be known of the work as a whole: scale, machine, times, versions."""
    path = out / "sittings.json"
    sittings = read_json(path)["sittings"] if path.exists() else []
    seconds = [
        value
        for outcome in outcomes
        for results in outcome.parts.values()
        for value in results.manifest.get("seconds", {}).values()
    ]
    known: Plain = {
        "scale": ", ".join(dict.fromkeys(outcome.scale for outcome in outcomes)),
        "machine": _processor(),
        "cores": os.cpu_count(),
    }
    if sittings:
        known["wall time"] = duration(sum(sitting["wall_seconds"] for sitting in sittings))
        known["sittings"] = len(sittings)
    known["CPU time of the policies"] = duration(sum(seconds))
    known["versions"] = versions()
    return known


def _processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
