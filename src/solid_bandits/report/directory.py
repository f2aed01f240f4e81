"""The report on a directory of experiments: a figure for each, one page and one Markdown document for all."""

from collections.abc import Sequence
from pathlib import Path

from solid_bandits._types import Plain
from solid_bandits._words import duration
from solid_bandits.experiments.engine import SITTINGS_FILE
from solid_bandits.experiments.outcome import Outcome
from solid_bandits.experiments.store import read_json
from solid_bandits.report.document import write_document
from solid_bandits.report.experiment_figure import write_experiment_figure
from solid_bandits.report.experiments_page import write_experiments_page


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
    path = out / SITTINGS_FILE
    sittings = read_json(path, "sittings")["sittings"] if path.exists() else []
    manifests = [results.manifest for outcome in outcomes for results in outcome.parts.values()]
    seconds = sum(value for manifest in manifests for value in manifest.get("seconds", {}).values())
    known: Plain = {"scale": ", ".join(dict.fromkeys(outcome.scale for outcome in outcomes))}
    for fact in ("machine", "cores"):
        known[fact] = ", ".join(dict.fromkeys(str(sitting[fact]) for sitting in sittings if fact in sitting))
    if sittings:
        known["wall time"] = duration(sum(sitting["wall_seconds"] for sitting in sittings))
        known["sittings"] = len(sittings)
    known["CPU time of the policies"] = duration(seconds)
    made_with: dict[str, list[str]] = {}
    for manifest in manifests:
        for name, version in manifest.get("versions", {}).items():
            made_with.setdefault(name, []).append(version)
    known["versions"] = {name: ", ".join(dict.fromkeys(found)) for name, found in made_with.items()}
    return known
