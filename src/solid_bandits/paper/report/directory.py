"""Report on a directory of experiments: a figure for each, and one page and one Markdown document for all."""

from collections.abc import Sequence
from pathlib import Path

from solid_bandits._internal.files import FIGURES
from solid_bandits._internal.types import Plain
from solid_bandits._internal.wording import duration
from solid_bandits.paper.invocations import past_invocations
from solid_bandits.paper.outcome import Outcome
from solid_bandits.paper.report.document import write_document
from solid_bandits.paper.report.experiment_figure import experiment_figure
from solid_bandits.paper.report.experiments_page import write_experiments_page
from solid_bandits.paper.report.readings import READINGS_FOLDER, main_view, readings_view
from solid_bandits.report.figure import save_figure


def write_report(outcomes: Sequence[Outcome], out: Path) -> list[str]:
    """Write figures/NAME.png, report.html and report.md into `out`; return the names of the files.

    The figures show the reading of `Solid()`; where there are others, figures/readings/NAME.png compares them.
    """
    known = facts(outcomes, out)
    (out / FIGURES).mkdir(exist_ok=True)
    for outcome in outcomes:
        save_figure(experiment_figure(main_view(outcome)), out / FIGURES / f"{outcome.name}.png")
        compared = readings_view(outcome)
        if compared is not None:
            (out / FIGURES / READINGS_FOLDER).mkdir(exist_ok=True)
            save_figure(experiment_figure(compared), out / FIGURES / READINGS_FOLDER / f"{outcome.name}.png")
    write_experiments_page(outcomes, out / "report.html", known)
    write_document(outcomes, out / "report.md", known)
    return ["report.html", "report.md", f"{FIGURES}/"]


def facts(outcomes: Sequence[Outcome], out: Path) -> Plain:
    """Collect the facts about the work as a whole: scale, machine, times, versions."""
    invocations = past_invocations(out)
    every = [results for outcome in outcomes for results in outcome.parts.values()]
    known: Plain = {"scale": ", ".join(dict.fromkeys(outcome.scale for outcome in outcomes))}
    for fact in ("machine", "cores"):
        known[fact] = ", ".join(dict.fromkeys(str(getattr(one, fact)) for one in invocations))
    if invocations:
        known["wall time"] = duration(sum(one.wall_seconds for one in invocations))
        known["invocations"] = len(invocations)
    known["CPU time of the policies"] = duration(sum(sum(results.seconds.values()) for results in every))
    made_with: dict[str, list[str]] = {}
    for results in every:
        for name, version in results.manifest.get("versions", {}).items():
            made_with.setdefault(name, []).append(version)
    known["versions"] = {name: ", ".join(dict.fromkeys(found)) for name, found in made_with.items()}
    return known
