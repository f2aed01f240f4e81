"""`solid-bandits reproduce`: the paper's experiments, or the user's own."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from solid_bandits.cli.messages import bad_arguments, show, simulation_errors
from solid_bandits.cli.options import Jobs
from solid_bandits.cli.report import report_experiments

if TYPE_CHECKING:
    from solid_bandits.paper.experiment import Experiment
    from solid_bandits.simulation.workers import Workers


class Outsized(NamedTuple):
    """Steps and CPU seconds at each scale of an experiment that `--list` does not load."""

    quick: tuple[int, float]
    paper: tuple[int, float]
    title: str


# 5 policies (SOLID under 2 readings): 10 runs of 20,000 steps, and 100 of 2 million. CPU seconds at the paper's scale
# come from studies/jester/runs.jsonl, whose 20 runs of each policy represent 100.
OUTSIZED = {
    "jester": Outsized(
        (1_000_000, 60.0), (1_000_000_000, 48_000.0), "Jokes for users (needs Jester's ratings)"
    )
}


def reproduce(
    experiment: Annotated[
        list[str] | None,
        typer.Argument(help="Names of experiments (see --list), all, or .toml files of your own."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="quick (minutes for all of them) or paper (100 runs, the paper's horizons).")
    ] = "quick",
    out: Annotated[
        Path | None, typer.Option(help="Directory for results and report (default: reproduction/SCALE).")
    ] = None,
    jobs: Jobs = None,
    backend: Annotated[str, typer.Option(help="local, or dask: a running Dask cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="dask: HOST:PORT of the scheduler.")] = None,
    import_: Annotated[
        list[str] | None,
        typer.Option("--import", help="A module of yours, whose policies .toml files may then name."),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the experiments with size and estimated time, and exit.")
    ] = False,
) -> None:
    """Play experiments and report on the paper's claims; rerun after an interruption to resume.

    Writes results, one figure per experiment, report.html and report.md into the directory.
    """
    from solid_bandits.paper.names import NAMES
    from solid_bandits.paper.reader import load

    if list_:
        _list(experiment or [*NAMES])
        return
    if not experiment:
        raise typer.TyperException(
            f"experiment is missing; give all, a .toml file, or one of {', '.join(NAMES)}"
        )
    from solid_bandits.policies.naming import import_policies

    with bad_arguments():
        for module in import_ or []:
            import_policies(module)
        chosen = [load(name, scale) for name in _names(experiment)]
        workers = _workers(backend, address, jobs)
    _play(chosen, out or Path("reproduction") / scale, workers)


def _play(chosen: "list[Experiment]", out: Path, workers: "Workers") -> None:
    from solid_bandits._internal.files import StoreError
    from solid_bandits.cli.progress import Display
    from solid_bandits.paper.engine import play

    again = "finished tasks are saved; rerun to resume"
    with simulation_errors(f"; {again}"), Display(workers.count) as display:
        try:
            play(chosen, out, workers, display)
        except StoreError as error:
            raise typer.TyperException(str(error)) from None
        except KeyboardInterrupt:
            # The display has the counts; main() turns the interrupt into the exit status.
            display.say(
                f"interrupted after {display.done:,} of {display.tasks:,} tasks, saved in {out}; {again}"
            )
            raise
        except OSError as error:
            raise typer.TyperException(
                f"{out} cannot be written to ({error.strerror or error}); {again}"
            ) from None
        finally:
            close = getattr(workers, "close", None)
            if close is not None:
                close()
    with bad_arguments():
        report_experiments(out)


def _workers(backend: str, address: str | None, jobs: int | None) -> "Workers":
    from solid_bandits._internal import checks
    from solid_bandits.simulation.workers import DaskCluster, Processes

    if checks.choice("backend", backend, ("local", "dask")) == "dask":
        if address is None:
            raise ValueError("address is missing; give --address HOST:PORT of the Dask scheduler")
        if jobs is not None:
            raise ValueError(
                f"jobs must be left out with --backend dask, whose workers are the cluster's, got {jobs}"
            )
        return DaskCluster(address)
    if address is not None:
        raise ValueError(f"address belongs to --backend dask, got {address!r}; leave it out")
    return Processes(jobs)


def _names(given: list[str]) -> list[str]:
    """Return the requested names, each once."""
    from solid_bandits.paper.names import ALL

    return list(dict.fromkeys(name for one in given for name in (ALL if one == "all" else [one])))


def _list(names: list[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from solid_bandits.paper.names import ON_THEIR_OWN, SCALES
    from solid_bandits.paper.reader import load

    cores = os.cpu_count() or 1
    # Without table edges, the longest word of the titles fits into a terminal of 80 columns.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False)
    console = Console(markup=False)
    whole = console.width >= 80  # on a narrower terminal every column is folded
    table.add_column("experiment", no_wrap=whole, overflow="fold")
    for scale in SCALES:
        table.add_column(f"{scale}: steps,\ntime on {cores} cores", no_wrap=whole, overflow="fold")
    table.add_column("what", overflow="fold")
    notes = [
        "Times are estimates; the first run also compiles, for less than a minute.",
        f"`all` is every one but {', '.join(ON_THEIR_OWN)}.",
    ]
    for name in _names(names):
        if name in ON_THEIR_OWN:  # loading it would look for its data, even on the network
            one = OUTSIZED[name]
            table.add_row(name, *(_size(*size, cores) for size in (one.quick, one.paper)), one.title)
            continue
        with bad_arguments():
            loaded = [load(name, scale) for scale in SCALES]
        sizes = [_size(one.steps, one.seconds, cores) for one in loaded]
        table.add_row(name, *sizes, loaded[-1].title)
    console.print(table)
    show(*notes)


def _size(steps: int, seconds: float, cores: int) -> str:
    """Return the steps and an estimate of the time, rounded to hours where it takes many."""
    from solid_bandits._internal.wording import duration

    shared = seconds / cores
    return f"{_count(steps)}, {f'{shared / 3600:.0f} h' if shared >= 7200 else duration(shared)}"


def _count(steps: int) -> str:
    from solid_bandits._internal.wording import number

    return f"{number(steps / 1e9, 2)} billion" if steps >= 1e9 else f"{number(steps / 1e6, 2)} million"
