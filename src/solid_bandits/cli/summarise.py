"""`solid-bandits summarise`: many runs of policies on one problem, kept as a summary."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from solid_bandits.cli.compare import DATA_POLICIES, DEFAULT_POLICIES, Shown
from solid_bandits.cli.errors import bad_arguments, check_writable
from solid_bandits.cli.problems import Chosen, takes_problem
from solid_bandits.cli.report import SUMMARY_FILE, report_summary

if TYPE_CHECKING:
    from solid_bandits.simulation import Plan
    from solid_bandits.summary import Summary

DEFAULT_HORIZON = 10_000


@partial(takes_problem, streams=True)
def summarise(
    chosen: Chosen,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy by name, with parameters if need be; repeat for several (default: as in compare)."
        ),
    ] = None,
    import_: Annotated[
        list[str] | None,
        typer.Option("--import", help="A module of yours, whose policies can then be named."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Steps of each run (default: 10000; all rounds of data).")
    ] = None,
    runs: Annotated[int, typer.Option(help="Independent repetitions.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of everything random in the runs.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, or gpu: thousands of runs at a time.")] = "cpu",
    jobs: Annotated[int | None, typer.Option(help="Processes on the CPU (default: one per core).")] = None,
    out: Annotated[Path, typer.Option(help="Directory for the summary, made if missing.")] = Path("summary"),
) -> None:
    """Play many runs and keep their tails: print means and quantiles, write summary.json and survival.png.

    Finished blocks of runs are kept; the same command after an interruption goes on.
    """
    from solid_bandits import _check
    from solid_bandits._files import locked
    from solid_bandits.policies.naming import by_name, import_policies
    from solid_bandits.simulation import Plan
    from solid_bandits.streams import Stream

    with bad_arguments():
        for module in import_ or []:
            import_policies(module)
        names = policy or (DATA_POLICIES if isinstance(chosen.problem, Stream) else DEFAULT_POLICIES)
        played = by_name(names, chosen.kind, chosen.problem.n_arms)
        endless = getattr(chosen.problem, "length", None) is None
        steps = DEFAULT_HORIZON if horizon is None and endless else horizon
        plan = Plan(chosen.problem, played, cast("int", steps), runs, seed, device=device)
        if jobs is not None:
            _check.integer("jobs", jobs, least=1)
    with bad_arguments("--out: "):
        check_writable(out)
        with locked(out):
            report_summary(_play(plan, jobs, out / SUMMARY_FILE), out)


def _play(plan: "Plan", jobs: int | None, path: Path) -> "Summary":
    from solid_bandits.cli.progress import Display
    from solid_bandits.gpu.layout import UnfitError
    from solid_bandits.policies.own import OwnPolicyError
    from solid_bandits.simulation.playing import workers_for
    from solid_bandits.simulation.summing import WORST, summarise_plan
    from solid_bandits.workers import WorkersLostError

    with Display(workers_for(plan, jobs).count) as display:
        try:
            return summarise_plan(plan, jobs, Shown(plan, display), WORST, path)
        except (WorkersLostError, OwnPolicyError, UnfitError) as error:
            raise typer.TyperException(str(error)) from None
