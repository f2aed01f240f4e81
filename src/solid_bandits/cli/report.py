"""`solid-bandits report`: figures and pages of a results directory again, whichever command wrote it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from solid_bandits._internal.files import MANIFEST_FILE
from solid_bandits.cli.messages import bad_arguments, show

if TYPE_CHECKING:
    from solid_bandits.simulation.results import Results
    from solid_bandits.simulation.summary import Summary

SUMMARY_FILE = "summary.json"
SURVIVAL_FILE = "survival.png"


def report(
    directory: Annotated[
        Path, typer.Argument(help="A directory that compare, reproduce, summarise or results.save wrote.")
    ],
) -> None:
    """Write the figures and pages of a directory again from its results, and print a summary."""
    with bad_arguments():
        if (directory / MANIFEST_FILE).exists():
            from solid_bandits.simulation.results import Results

            report_results(Results.load(directory), directory)
        elif (directory / SUMMARY_FILE).exists():
            from solid_bandits.simulation.summary import Summary

            report_summary(Summary.load(directory / SUMMARY_FILE), directory)
        else:
            report_experiments(directory)


def report_results(
    results: "Results", out: Path, kept: Sequence[str] = (), note: str = "", first: str = ""
) -> None:
    """Write figures and page of one simulation, and print its table.

    `kept` are files that exist already; `note` says what the intervals cover; `first` begins the last line.
    """
    from solid_bandits._internal.wording import number
    from solid_bandits.report.figure import save_figure, write_figure
    from solid_bandits.report.page import write_page
    from solid_bandits.report.stream_figure import stream_figure
    from solid_bandits.report.table import final_table, stream_table

    constant = results.bound
    written = [*kept, "regret.png", "report.html"]
    write_figure(results, out / "regret.png", bound=constant)
    write_page(results, out / "report.html", bound=constant)
    if results.arms is not None:
        save_figure(stream_figure(results), out / "stream.png")
        written.append("stream.png")
    show(
        final_table(results, bound=constant),
        stream_table(results),
        note,
        constant is not None and f"v* = {number(constant, 6)}, the constant of the regret lower bound",
        _written(out, written, first),
    )


def report_summary(summary: "Summary", out: Path) -> None:
    """Write the figure and print the table of many runs."""
    from solid_bandits.report.figure import save_figure
    from solid_bandits.report.tails import survival_figure, tails_table

    save_figure(survival_figure(summary), out / SURVIVAL_FILE)
    show(tails_table(summary), _written(out, [SUMMARY_FILE, SURVIVAL_FILE]))


def report_experiments(out: Path) -> None:
    """Write figures, page, document and verdicts of a directory of experiments; regret of those without claims."""
    from solid_bandits.paper.loading import load_outcomes
    from solid_bandits.paper.ranking import ranking
    from solid_bandits.paper.report.directory import write_report
    from solid_bandits.paper.report.readings import all_readings, chosen_words
    from solid_bandits.paper.report.verdicts import legend, verdict_table
    from solid_bandits.report.table import final_table

    found = load_outcomes(out)
    if not found:
        raise ValueError(
            f"{os.fspath(out)!r} holds no results; give a directory that compare, reproduce, summarise or results.save "
            "wrote"
        )
    written = write_report(found, out)
    for outcome in found:
        for label, results in () if outcome.verdicts else outcome.parts.items():
            show(f"{outcome.title}: {label}", final_table(results, bound=results.bound))
    if any(outcome.verdicts for outcome in found):
        show(verdict_table(found))
    if all_readings(found):
        show(f"{legend(found)} {chosen_words(found, ranking(found))}".strip())
    show(_written(out, written))


def _written(out: Path, files: Sequence[str], first: str = "") -> str:
    return f"{first}written to {out}/: {', '.join(files)}"
