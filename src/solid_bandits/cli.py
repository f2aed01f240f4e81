"""The command line: arguments in, calls out.

Heavy imports wait inside the functions, so that `--help` and errors in the arguments answer at once.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, NoReturn

import typer

if TYPE_CHECKING:
    from solid_bandits._types import Plain
    from solid_bandits.policies.contract import Policy
    from solid_bandits.problem import Problem
    from solid_bandits.results import Results

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

DEFAULT_POLICIES = ["solid", "linucb", "lints", "lints-posterior"]

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Contextual linear bandits: SOLID and its rivals, compared fairly.",
)

# What names a problem, for every command that takes one.
Source = Annotated[str, typer.Argument(help="toy, random, or an .npz file with fields features, theta, ...")]
Xi = Annotated[float | None, typer.Option(help="toy: distance of the second-best arms (default: 0.1).")]
FirstProb = Annotated[float | None, typer.Option(help="toy: probability of context 1 (default: 0.5).")]
Contexts = Annotated[int | None, typer.Option(help="random: number of contexts (default: 4).")]
Arms = Annotated[int | None, typer.Option(help="random: number of arms (default: 8).")]
Dim = Annotated[int | None, typer.Option(help="random: dimension of the features (default: 8).")]
Density = Annotated[
    float | None, typer.Option(help="random: share of entries that are not 0 (default: 0.5).")
]
ProblemSeed = Annotated[int | None, typer.Option(help="random: seed of the problem itself (default: 0).")]
NoiseStd = Annotated[float | None, typer.Option(help="toy, random: reward noise (default: 0.5 and 1).")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from solid_bandits import __version__

        print(f"solid-bandits {__version__}")
        raise typer.Exit


@app.callback()
def _commands(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Contextual linear bandits: SOLID and its rivals, compared fairly."""


@app.command()
def compare(
    problem: Source,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy by name; repeat for several (default: solid, linucb, lints, lints-posterior)."
        ),
    ] = None,
    horizon: Annotated[int, typer.Option(help="Steps of each run.")] = 50_000,
    runs: Annotated[int, typer.Option(help="Independent repetitions.")] = 100,
    seed: Annotated[int, typer.Option(help="Of everything random in the runs.")] = 0,
    out: Annotated[Path, typer.Option(help="Directory for the results, made if missing.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(help="Processes (default: one per core).")] = None,
    insides: Annotated[
        bool, typer.Option("--insides", help="Also record and show what goes on in SOLID.")
    ] = False,
    xi: Xi = None,
    first_context_prob: FirstProb = None,
    contexts: Contexts = None,
    arms: Arms = None,
    dim: Dim = None,
    density: Density = None,
    problem_seed: ProblemSeed = None,
    noise_std: NoiseStd = None,
) -> None:
    """Play policies on one problem; print a table, write results.parquet, manifest.json, regret.png, report.html."""
    from solid_bandits import _check
    from solid_bandits.policies.catalogue import by_name
    from solid_bandits.results import check_free
    from solid_bandits.simulation import configuration_of

    # Everything that can be wrong is found before the first step is played.
    with _bad_arguments():
        chosen = _choose(
            problem, xi, first_context_prob, contexts, arms, dim, density, problem_seed, noise_std
        )
        played = by_name(policy or DEFAULT_POLICIES, chosen.kind, chosen.problem.n_arms)
        configuration = configuration_of(chosen.problem, played, horizon, runs, seed, insides)
        configuration["problem"]["name"] = chosen.name
        if jobs is not None:
            _check.integer("jobs", jobs, least=1)
    with _bad_arguments("--out: "):
        check_free(out, configuration)
        _check_writable(out)

    # The bound is computed beside the simulation: on a fresh machine its compilation takes as long. The process
    # is loky's, which does not run the caller's main module again, and leaves Ctrl-C to this one.
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(
        1, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    ) as beside:
        bound = beside.submit(_bound_of, chosen.problem)
        results = _simulate_with_progress(chosen.problem, played, horizon, runs, seed, jobs, insides)
        results.manifest["configuration"] = configuration
        results.save(out)  # what was played is safe, whatever becomes of the rest
        results.manifest["lower_bound"] = _outcome(bound, "lower bound")
        if results.insides is not None:
            zs = sorted(set(results.insides["normalisation"].drop_nulls())) if results.insides.height else []
            targets = _outcome(beside.submit(_targets_of, chosen.problem, zs), "optimal policies")
            if "reason" not in targets:
                results.manifest["targets"] = targets
    _write(results, out)


@app.command()
def bound(
    problem: Source,
    z: Annotated[
        list[float] | None, typer.Option(help="Also solve (P_z) at this z; repeat for several.")
    ] = None,
    tol: Annotated[float, typer.Option(help="Relative width of the certified brackets.")] = 1e-6,
    out: Annotated[Path | None, typer.Option(help="Directory for bound.png and bound.json.")] = None,
    xi: Xi = None,
    first_context_prob: FirstProb = None,
    contexts: Contexts = None,
    arms: Arms = None,
    dim: Dim = None,
    density: Density = None,
    problem_seed: ProblemSeed = None,
    noise_std: NoiseStd = None,
) -> None:
    """Compute the regret lower bound of a problem: the constant of log n, certified from both sides."""
    from rich.console import Console

    from solid_bandits.bounds import lower_bound, lower_bound_at, pure_exploration
    from solid_bandits.report.bound import bound_tables, check_bound_free, write_bound

    with _bad_arguments():
        chosen = _choose(
            problem, xi, first_context_prob, contexts, arms, dim, density, problem_seed, noise_std
        )
    if out is not None:
        with _bad_arguments("--out: "):
            _check_writable(out)
            check_bound_free(out, chosen.problem)
    with _bad_arguments():
        answer = lower_bound(chosen.problem, tol=tol)
        pure = pure_exploration(chosen.problem, tol=tol)
        at = [lower_bound_at(chosen.problem, value, tol=tol, exploration=pure) for value in z or []]
    console = Console()
    console.print(f"{chosen.problem!r}", highlight=False, soft_wrap=True)
    for table in bound_tables(chosen.problem, answer, pure, at):
        console.print(table)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_bound(chosen.problem, answer, pure, at, out)
        console.print(f"written to {out}/: bound.png, bound.json", highlight=False, soft_wrap=True)


@app.command()
def policies(
    references: Annotated[bool, typer.Option("--references", help="Also show references.")] = False,
) -> None:
    """List the policies: setting, optimality, exploration rule; the paper's Table 1, extended."""
    from rich.console import Console
    from rich.table import Table

    from solid_bandits.policies.catalogue import policy_table

    columns = ["name", "contexts", "setting", "optimality", "exploration", "test", "parameters"]
    columns += ["reference"] if references else []
    table = Table(*columns, show_lines=True)
    for row in policy_table():
        table.add_row(*(row[column] for column in columns))
    Console().print(table)


class _Chosen(NamedTuple):
    """A problem as the command line named it."""

    kind: str
    name: str
    problem: "Problem"


def _choose(
    source: str,
    xi: float | None,
    first_context_prob: float | None,
    contexts: int | None,
    arms: int | None,
    dim: int | None,
    density: float | None,
    problem_seed: int | None,
    noise_std: float | None,
) -> _Chosen:
    from solid_bandits import problems
    from solid_bandits.problem import Problem

    kind = source if source in ("toy", "random") else "file"
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
    _refuse_stray_options(kind, options)
    given = {name: value for name, value in options[kind].items() if value is not None}
    if kind == "toy":
        return _Chosen(kind, kind, problems.toy(**given))
    if kind == "random":
        # Whole numbers stay whole on their way here.
        return _Chosen(kind, kind, problems.random(**given))  # type: ignore[arg-type]
    if not Path(source).exists() and Path(source).suffix != ".npz":
        raise ValueError(f"problem is {source!r}; give toy, random, or the name of an .npz file")
    return _Chosen(kind, Path(source).name, Problem.load(source))


def _refuse_stray_options(kind: str, options: dict[str, dict[str, float | None]]) -> None:
    spelling = {"n_contexts": "--contexts", "n_arms": "--arms", "seed": "--problem-seed"}
    for other, values in options.items():
        for name, value in values.items():
            if value is not None and name not in options[kind]:
                option = spelling.get(name, "--" + name.replace("_", "-"))
                raise ValueError(f"{option} is {value}, but it belongs to the {other} problem; leave it out")


@contextmanager
def _bad_arguments(prefix: str = "") -> Iterator[None]:
    """Turn the ValueErrors of the library's checks into one-line errors; those of a bug elsewhere keep their trace."""
    try:
        yield
    except ValueError as error:
        raise typer.TyperException(prefix + str(error)) from None


def _check_writable(out: Path) -> None:
    """Find out now, not after the simulation, whether `out` can be made and written to."""
    home = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    if not home.is_dir():
        raise ValueError(
            f"path is {os.fspath(out)!r}, but {os.fspath(home)!r} is a file; give another directory"
        )
    if not os.access(home, os.W_OK | os.X_OK):
        raise ValueError(f"path is {os.fspath(out)!r}, which may not be written to; give another directory")


def _bound_of(problem: "Problem") -> "Plain":
    """The lower bound as the manifest keeps it; where there is none (ties for the best arm, say), the reason."""
    from solid_bandits.bounds import lower_bound

    try:
        answer = lower_bound(problem, tol=1e-4)
    except ValueError as error:
        return {"reason": str(error)}
    return {"value": answer.value, "lower": answer.lower, "upper": answer.upper}


def _targets_of(problem: "Problem", zs: list[float]) -> "Plain":
    """ω*_z and λ* at each normalisation that SOLID used; null where (P_z) is infeasible or has no solution."""
    from solid_bandits.bounds import lower_bound_at, pure_exploration

    at: list[Plain] = []
    exploration = None
    for z in zs:
        try:
            exploration = exploration or pure_exploration(problem, tol=1e-4)
            answer = lower_bound_at(problem, z, tol=1e-4, exploration=exploration)
        except ValueError:
            at.append({"z": z, "omega": None, "multiplier": None, "value": None})
        else:
            omega = answer.policy.tolist()
            at.append({"z": z, "omega": omega, "multiplier": answer.multiplier, "value": answer.value})
    return {"context_probs": problem.context_probs.tolist(), "n_arms": problem.n_arms, "at": at}


def _outcome(awaited: "Future[Plain]", what: str) -> "Plain":
    from rich.console import Console

    console = Console(stderr=True)
    if not awaited.done():
        console.print(f"waiting for the {what}", highlight=False)
    try:
        outcome = awaited.result()
    except Exception as error:  # a figure without its dashed line is no reason to lose a finished simulation
        outcome = {"reason": f"{type(error).__name__}: {error}"}
    if "reason" in outcome:
        console.print(f"no {what} drawn: {outcome['reason']}", highlight=False, soft_wrap=True)
    return outcome


def _simulate_with_progress(
    problem: "Problem",
    policies: "Mapping[str, Policy]",
    horizon: int,
    runs: int,
    seed: int,
    jobs: int | None,
    insides: bool,
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
        f"{problem!r}: {len(policies)} policies, {runs} runs of {horizon:,} steps each",
        highlight=False,
        soft_wrap=True,
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

        return simulate(
            problem, policies, horizon, runs=runs, seed=seed, jobs=jobs, progress=show, insides=insides
        )


def _write(results: "Results", out: Path) -> None:
    from rich.console import Console

    from solid_bandits.report.figure import write_figure
    from solid_bandits.report.page import write_page
    from solid_bandits.report.table import final_table

    constant = results.manifest["lower_bound"].get("value")
    results.save(out)
    write_figure(results, out / "regret.png", bound=constant)
    write_page(results, out / "report.html", bound=constant)
    console = Console()
    console.print(final_table(results, bound=constant))
    if constant is not None:
        console.print(f"v* = {constant:.6g}, the constant of the regret lower bound", highlight=False)
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
        status = INTERRUPTED
    except OSError as error:
        _fail(str(error))
    if status == INTERRUPTED:  # what typer itself makes of Ctrl-C
        _fail("interrupted before all results were written", status=INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int = 2) -> NoReturn:
    print(f"solid-bandits: error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)
