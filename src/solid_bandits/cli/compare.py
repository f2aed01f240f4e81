"""`solid-bandits compare` and `summarise`: policies on one problem, on a stream, or on a file of data."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from solid_bandits._internal.files import (
    ARMS_FILE,
    CALIBRATION_FILE,
    DECISIONS_FILE,
    MANIFEST_FILE,
    TABLE_FILE,
)
from solid_bandits.cli.messages import bad_arguments, check_writable, show, simulation_errors
from solid_bandits.cli.options import (
    Device,
    Imported,
    Jobs,
    Played,
    Policies,
    Runs,
    Seed,
    plan_of,
    takes_columns,
)
from solid_bandits.cli.report import SUMMARY_FILE, report_results, report_summary

if TYPE_CHECKING:
    from solid_bandits.core.problem import Problem

DATA_NOTE = (
    "intervals cover the policies' own random numbers alone: every run plays this file, in its order. They say nothing "
    "about other data, and policies that draw nothing have none"
)


@takes_columns
def compare(
    problem: Played,
    columns: dict[str, Any],
    policy: Policies = None,
    import_: Imported = None,
    horizon: Annotated[
        int | None, typer.Option(help="Steps of each run (default: 50000; all rounds of data).")
    ] = None,
    runs: Runs = 100,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="Directory for the results, made if missing.")] = Path("results"),
    jobs: Jobs = None,
    diagnostics: Annotated[
        bool, typer.Option("--diagnostics", help="Also record and show what goes on in SOLID.")
    ] = False,
    device: Device = "cpu",
    record: Annotated[
        str | None,
        typer.Option(help="'decisions' also writes every decision on data to decisions.parquet."),
    ] = None,
) -> None:
    """Play policies on one problem, on a stream, or on a file of data.

    Prints a table, writes results.parquet, manifest.json, regret.png, report.html.
    """
    from solid_bandits._internal.wording import count, duration
    from solid_bandits.bounds.record import bound_record, targets_record
    from solid_bandits.cli.progress import Display
    from solid_bandits.paper.naming import DATA
    from solid_bandits.simulation.playing import Extra, workers_for
    from solid_bandits.simulation.results import claim
    from solid_bandits.simulation.simulate import simulate_plan

    chosen, plan = plan_of(
        problem,
        columns,
        policy,
        import_,
        (horizon, 50_000),
        jobs,
        (record, out / DECISIONS_FILE),
        runs=runs,
        seed=seed,
        diagnostics=diagnostics,
        device=device,
    )
    extras = () if plan.on_stream else (Extra("lower_bound", bound_record, (plan.problem,)),)
    with ExitStack() as held:
        with bad_arguments("--out: "):
            check_writable(out)
            save = held.enter_context(claim(out, plan.configuration()))  # until the last file is written
        with simulation_errors(), Display(workers_for(plan, jobs).count) as display:
            display.say(
                f"{plan.problem!r}: {count(len(plan.policies), 'policy', 'policies')}, {count(plan.runs, 'run')} of "
                f"{count(plan.horizon, 'step')} each"
            )
            results = simulate_plan(plan, jobs, display, extras)
        try:
            if results.diagnostics is not None:
                zs = results.diagnostics["normalisation"].drop_nulls() if results.diagnostics.height else ()
                results.manifest["targets"] = targets_record(cast("Problem", chosen.problem), zs)
        finally:
            save(results)  # the results are saved even if the rest fails
        reason = results.manifest.get("lower_bound", {}).get("reason")
        show(reason and f"no lower bound drawn: {reason}", stderr=True)
        files = [TABLE_FILE, MANIFEST_FILE]
        files += [DECISIONS_FILE] if plan.record is not None else []
        files += [ARMS_FILE, CALIBRATION_FILE] if results.arms is not None else []
        note = DATA_NOTE if chosen.kind == DATA else ""
        took = duration(results.manifest["wall_seconds"])
        report_results(results, out, files, note, f"simulated in {took}; ")


@takes_columns
def summarise(
    problem: Played,
    columns: dict[str, Any],
    policy: Policies = None,
    import_: Imported = None,
    horizon: Annotated[
        int | None, typer.Option(help="Steps of each run (default: 10000; all rounds of data).")
    ] = None,
    runs: Runs = 10_000,
    seed: Seed = 0,
    device: Device = "cpu",
    jobs: Jobs = None,
    out: Annotated[Path, typer.Option(help="Directory for the summary, made if missing.")] = Path("summary"),
) -> None:
    """Play many runs and keep their tails: print means and quantiles, write summary.json and survival.png.

    Finished blocks of runs are kept, and the same command continues after an interruption.
    """
    from solid_bandits._internal.files import locked
    from solid_bandits.cli.progress import Display
    from solid_bandits.simulation.playing import workers_for
    from solid_bandits.simulation.summarise import WORST, summarise_plan

    steps = (horizon, 10_000)
    _, plan = plan_of(problem, columns, policy, import_, steps, jobs, runs=runs, seed=seed, device=device)
    with bad_arguments("--out: "):
        check_writable(out)
        with locked(out):
            with simulation_errors(), Display(workers_for(plan, jobs).count) as display:
                summary = summarise_plan(plan, jobs, display, WORST, out / SUMMARY_FILE)
            report_summary(summary, out)
