"""The command line: arguments in, calls out.

Heavy imports wait inside the functions, so that `--help` and errors in the arguments answer at once.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from solid_bandits.policies.contract import Policy
    from solid_bandits.problem import Problem
    from solid_bandits.results import Results

DEFAULT_POLICIES = ["solid", "linucb", "lints", "lints-posterior"]

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Contextual linear bandits: SOLID and its rivals, compared fairly.",
)


@app.callback()
def _commands() -> None:
    """Contextual linear bandits: SOLID and its rivals, compared fairly."""


@app.command()
def compare(
    problem: Annotated[
        str, typer.Argument(help="toy, random, or an .npz file with fields features, theta, ...")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="solid, linucb, lints, lints-posterior or greedy; repeat for several (default: all but greedy)"
        ),
    ] = None,
    horizon: Annotated[int, typer.Option(help="Steps of each run.")] = 50_000,
    runs: Annotated[int, typer.Option(help="Independent repetitions.")] = 100,
    seed: Annotated[int, typer.Option(help="Of everything random in the runs.")] = 0,
    out: Annotated[Path, typer.Option(help="Directory for the results; made if it is not there.")] = Path(
        "results"
    ),
    jobs: Annotated[int | None, typer.Option(help="Processes (default: one per core).")] = None,
    xi: Annotated[
        float | None, typer.Option(help="toy: distance of the second-best arms (default: 0.1).")
    ] = None,
    first_context_prob: Annotated[
        float | None, typer.Option(help="toy: probability of context 1 (default: 0.5).")
    ] = None,
    contexts: Annotated[int | None, typer.Option(help="random: number of contexts (default: 4).")] = None,
    arms: Annotated[int | None, typer.Option(help="random: number of arms (default: 8).")] = None,
    dim: Annotated[int | None, typer.Option(help="random: dimension of the features (default: 8).")] = None,
    density: Annotated[
        float | None, typer.Option(help="random: share of entries that are not zero (default: 0.5).")
    ] = None,
    problem_seed: Annotated[
        int | None, typer.Option(help="random: seed of the problem itself (default: 0).")
    ] = None,
    noise_std: Annotated[
        float | None, typer.Option(help="toy, random: reward noise (default: 0.5 and 1).")
    ] = None,
) -> None:
    """Play policies on one problem; print a table, write results.parquet, manifest.json, regret.png, report.html."""
    from solid_bandits import _check
    from solid_bandits.policies.catalogue import by_name
    from solid_bandits.results import check_free
    from solid_bandits.simulation import configuration_of

    kind = problem if problem in ("toy", "random") else "file"
    options: dict[str, dict[str, float | None]] = {
        "toy": {"xi": xi, "first_context_prob": first_context_prob, "noise_std": noise_std},
        "random": {
            "n_contexts": contexts,
            "n_arms": arms,
            "dim": dim,
            "density": density,
            "noise_std": noise_std,
            "seed": problem_seed,
        },
        "file": {},
    }
    # Everything that can be wrong is found before the first step is played.
    with _bad_arguments():
        _refuse_stray_options(kind, options)
        chosen = {name: value for name, value in options[kind].items() if value is not None}
        made = _make_problem(kind, problem, chosen)
        policies = by_name(policy or DEFAULT_POLICIES, kind, made.n_arms)
        configuration = configuration_of(made, policies, horizon, runs, seed)
        configuration["problem"]["name"] = Path(problem).name if kind == "file" else kind
        if jobs is not None:
            _check.integer("jobs", jobs, least=1)
    with _bad_arguments("--out: "):
        check_free(out, configuration)
        _check_writable(out)

    results = _simulate_with_progress(made, policies, horizon, runs, seed, jobs)
    results.manifest["configuration"] = configuration
    _write(results, out)


@contextmanager
def _bad_arguments(prefix: str = "") -> Iterator[None]:
    """Turn the ValueErrors of the library's checks into one-line errors; those of a bug elsewhere keep their trace."""
    try:
        yield
    except ValueError as error:
        raise typer.TyperException(prefix + str(error)) from None


def _refuse_stray_options(kind: str, options: dict[str, dict[str, float | None]]) -> None:
    spelling = {"n_contexts": "--contexts", "n_arms": "--arms", "seed": "--problem-seed"}
    for other, values in options.items():
        for name, value in values.items():
            if value is not None and name not in options[kind]:
                option = spelling.get(name, "--" + name.replace("_", "-"))
                raise ValueError(f"{option} is {value}, but it belongs to the {other} problem; leave it out")


def _make_problem(kind: str, source: str, options: dict[str, float]) -> "Problem":
    from solid_bandits import problems
    from solid_bandits.problem import Problem

    if kind == "toy":
        return problems.toy(**options)
    if kind == "random":
        return problems.random(**options)  # type: ignore[arg-type]  # whole numbers stay whole on their way here
    if not Path(source).exists() and Path(source).suffix != ".npz":
        raise ValueError(f"problem is {source!r}; give toy, random, or the name of an .npz file")
    return Problem.load(source)


def _check_writable(out: Path) -> None:
    """Find out now, not after the simulation, whether `out` can be made and written to."""
    home = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    if not home.is_dir():
        raise ValueError(
            f"path is {os.fspath(out)!r}, but {os.fspath(home)!r} is a file; give another directory"
        )
    if not os.access(home, os.W_OK | os.X_OK):
        raise ValueError(f"path is {os.fspath(out)!r}, which may not be written to; give another directory")


def _simulate_with_progress(
    problem: "Problem", policies: "Mapping[str, Policy]", horizon: int, runs: int, seed: int, jobs: int | None
) -> "Results":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from solid_bandits.simulation import simulate

    console = Console(stderr=True)
    console.print(
        f"{problem!r}: {len(policies)} policies, {runs} runs of {horizon:,} steps each", highlight=False
    )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("compiling", total=1.0)

        def show(fraction: float) -> None:
            bar.update(task, completed=fraction, description="simulating" if fraction > 0 else "compiling")

        return simulate(problem, policies, horizon, runs=runs, seed=seed, jobs=jobs, progress=show)


def _write(results: "Results", out: Path) -> None:
    from rich.console import Console

    from solid_bandits.report.figure import write_figure
    from solid_bandits.report.page import write_page
    from solid_bandits.report.table import final_table

    results.save(out)
    write_figure(results, out / "regret.png")
    write_page(results, out / "report.html")
    console = Console()
    console.print(final_table(results))
    console.print(
        f"simulated in {results.manifest['wall_seconds']:.1f} s; written to {out}/: results.parquet, "
        "manifest.json, regret.png, report.html",
        highlight=False,
        soft_wrap=True,
    )


def main() -> None:
    """Entry point: every error a person can cause is one line and exit status 2."""
    try:
        status = app(standalone_mode=False)
    except typer.TyperException as error:
        _fail(error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted before the results were written", status=130)
    except OSError as error:
        _fail(str(error))
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int = 2) -> NoReturn:
    print(f"solid-bandits: error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)
