"""`solid-bandits report`: figures and pages of a directory of results again, whichever command wrote it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from solid_bandits._files import MANIFEST_FILE
from solid_bandits.cli.errors import bad_arguments, plain_console

if TYPE_CHECKING:
    from rich.console import Console

    from solid_bandits.experiments.outcome import Outcome
    from solid_bandits.results import Results
    from solid_bandits.summary import Summary

SUMMARY_FILE = "summary.json"
SURVIVAL_FILE = "survival.png"


def report(
    directory: Annotated[
        Path, typer.Argument(help="A directory that compare, reproduce, summarise or results.save wrote.")
    ],
) -> None:
    """Write figures and pages of a directory again, from its results, and print what they show."""
    with bad_arguments():
        if (directory / MANIFEST_FILE).exists():
            from solid_bandits.results import Results

            report_results(Results.load(directory), directory)
        elif (directory / SUMMARY_FILE).exists():
            from solid_bandits.summary import Summary

            report_summary(Summary.load(directory / SUMMARY_FILE), directory)
        else:
            report_experiments(directory)


def report_results(
    results: "Results", out: Path, kept: Sequence[str] = (), note: str = "", first: str = ""
) -> None:
    """Figures, page and table of one simulation.

    `kept` are files that are there already; `note` says what the intervals cover; `first` begins the last line.
    """
    from solid_bandits._words import number
    from solid_bandits.report.figure import write_figure
    from solid_bandits.report.page import write_page
    from solid_bandits.report.stream_figure import write_stream_figure
    from solid_bandits.report.table import final_table, stream_table

    constant = results.bound
    written = [*kept, "regret.png", "report.html"]
    write_figure(results, out / "regret.png", bound=constant)
    write_page(results, out / "report.html", bound=constant)
    if results.arms is not None:
        write_stream_figure(results, out / "stream.png")
        written.append("stream.png")
    console = plain_console()
    console.print(final_table(results, bound=constant))
    beside = stream_table(results)
    if beside is not None:
        console.print(beside)
    if note:
        console.print(note, highlight=False, soft_wrap=True)
    if constant is not None:
        console.print(f"v* = {number(constant, 6)}, the constant of the regret lower bound", highlight=False)
    _say_written(console, out, written, first)


def report_summary(summary: "Summary", out: Path) -> None:
    """Figure and table of many runs."""
    from solid_bandits.report.tails import tails_table, write_survival

    write_survival(summary, out / SURVIVAL_FILE)
    console = plain_console()
    console.print(tails_table(summary))
    _say_written(console, out, [SUMMARY_FILE, SURVIVAL_FILE])


def report_experiments(out: Path) -> None:
    """Figures, page, document and verdicts of a directory of experiments; regret of those that claim nothing."""
    from solid_bandits.experiments.outcomes import outcomes
    from solid_bandits.experiments.ranking import ranking
    from solid_bandits.report.directory import write_report
    from solid_bandits.report.readings import chosen_words
    from solid_bandits.report.verdicts import legend, verdict_table

    found = outcomes(out)
    if not found:
        raise ValueError(
            f"{os.fspath(out)!r} holds no results; give a directory that compare, reproduce, summarise or results.save "
            "wrote"
        )
    written = write_report(found, out)
    console = plain_console()
    for outcome in found:
        if not outcome.verdicts:
            _print_regret(console, outcome)
    if any(outcome.verdicts for outcome in found):
        console.print(verdict_table(found))
    words = chosen_words(found, ranking(found))
    if words:
        console.print(f"{legend()} {words}", highlight=False, soft_wrap=True)
    _say_written(console, out, written)


def _print_regret(console: "Console", outcome: "Outcome") -> None:
    """What there is to say of an experiment without claims."""
    from solid_bandits.report.table import final_table

    for label, results in outcome.parts.items():
        console.print(f"{outcome.title}: {label}", highlight=False, soft_wrap=True)
        console.print(final_table(results, bound=results.bound))


def _say_written(console: "Console", out: Path, files: list[str], first: str = "") -> None:
    console.print(f"{first}written to {out}/: {', '.join(files)}", highlight=False, soft_wrap=True)
