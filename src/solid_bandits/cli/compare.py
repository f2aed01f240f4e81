"""`solid-bandits compare`: policies on one problem."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from solid_bandits.cli.errors import bad_arguments, check_writable, plain_console
from solid_bandits.cli.problems import Chosen, takes_problem

if TYPE_CHECKING:
    from solid_bandits._types import Plain
    from solid_bandits.cli.progress import Display
    from solid_bandits.problem import Problem
    from solid_bandits.results import Results
    from solid_bandits.simulation import Block, Plan
    from solid_bandits.simulation.playing import Key

DEFAULT_POLICIES = ["solid", "randucb", "linucb", "lints-paper", "lints"]


@takes_problem
def compare(
    chosen: Chosen,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy by name, with parameters if need be, such as 'randucb(ridge=0.05)'; repeat for several "
            "(default: solid, randucb, linucb, lints-paper, lints)."
        ),
    ] = None,
    import_: Annotated[
        list[str] | None,
        typer.Option(
            "--import", help="A module of yours; its policies can then be named by their classes' names."
        ),
    ] = None,
    horizon: Annotated[int, typer.Option(help="Steps of each run.")] = 50_000,
    runs: Annotated[int, typer.Option(help="Independent repetitions.")] = 100,
    seed: Annotated[int, typer.Option(help="Of everything random in the runs.")] = 0,
    out: Annotated[Path, typer.Option(help="Directory for the results, made if missing.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(help="Processes (default: one per core).")] = None,
    diagnostics: Annotated[
        bool, typer.Option("--diagnostics", help="Also record and show what goes on in SOLID.")
    ] = False,
) -> None:
    """Play policies on one problem; print a table, write results.parquet, manifest.json, regret.png, report.html."""
    from solid_bandits import _check
    from solid_bandits.bounds.record import bound_record
    from solid_bandits.policies.naming import by_name, import_policies
    from solid_bandits.results import claim
    from solid_bandits.simulation import Plan

    # Everything that can be wrong is found before the first step is played.
    with bad_arguments():
        for module in import_ or []:
            import_policies(module)
        played = by_name(policy or DEFAULT_POLICIES, chosen.kind, chosen.problem.n_arms)
        plan = Plan(chosen.problem, played, horizon, runs, seed, diagnostics)
        configuration = plan.configuration()
        configuration["problem"]["name"] = chosen.name
        if jobs is not None:
            _check.integer("jobs", jobs, least=1)
    with ExitStack() as held:
        with bad_arguments("--out: "):
            check_writable(out)
            save = held.enter_context(claim(out, configuration))  # until the last file is written
        results = _simulate(plan, jobs)
        results.manifest["configuration"] = configuration
        save(results)  # what was played is safe, whatever becomes of the rest
        results.manifest["lower_bound"] = _outcome("lower bound", bound_record, chosen.problem)
        if results.diagnostics is not None:
            zs = (
                sorted(set(results.diagnostics["normalisation"].drop_nulls()))
                if results.diagnostics.height
                else []
            )
            targets = _outcome("optimal policies", _targets_of, chosen.problem, zs)
            if "reason" not in targets:
                results.manifest["targets"] = targets
        save(results)
        _write(results, out)


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


def _outcome(what: str, function: "Callable[..., Plain]", *arguments: Any) -> "Plain":
    console = plain_console(stderr=True)
    console.print(f"computing the {what}", highlight=False)
    try:
        outcome = function(*arguments)
    except Exception as error:  # a figure without its dashed line is no reason to lose a finished simulation
        outcome = {"reason": f"{type(error).__name__}: {error}"}
    if "reason" in outcome:
        console.print(f"no {what} drawn: {outcome['reason']}", highlight=False, soft_wrap=True)
    return outcome


def _simulate(plan: "Plan", jobs: int | None) -> "Results":
    from solid_bandits._words import count
    from solid_bandits.cli.progress import Display
    from solid_bandits.policies.own import OwnPolicyError
    from solid_bandits.simulation.memory import simulate_plan
    from solid_bandits.workers import Processes, WorkersLostError

    with Display(Processes(jobs).count) as display:
        display.say(
            f"{plan.problem!r}: {count(len(plan.policies), 'policy', 'policies')}, {count(plan.runs, 'run')} of "
            f"{count(plan.horizon, 'step')} each"
        )
        try:
            return simulate_plan(plan, jobs, _Shown(plan, display))
        except (WorkersLostError, OwnPolicyError) as error:
            raise typer.TyperException(str(error)) from None


class _Shown:
    """Shows how a plan's tasks go, with what they were estimated to take."""

    def __init__(self, plan: "Plan", display: "Display") -> None:
        self.plan = plan
        self.display = display

    def begin(self, tasks: "Sequence[Key]", kept: int) -> None:
        self.display.begin(kept + len(tasks), kept, sum(map(self._seconds, tasks)))

    def compiling(self, done: int, total: int) -> None:
        self.display.compiling(done, total)

    def start(self) -> None:
        self.display.start()

    def advance(self, key: "Key") -> None:
        policy, _, runs = cast("Block", key.task)
        self.display.advance(policy, self.plan.horizon * runs, self._seconds(key))

    def _seconds(self, key: "Key") -> float:
        from solid_bandits.experiments.estimate import task_seconds

        return task_seconds(self.plan, key.task)


def _write(results: "Results", out: Path) -> None:
    from solid_bandits._words import duration, number
    from solid_bandits.report.figure import write_figure
    from solid_bandits.report.page import write_page
    from solid_bandits.report.table import final_table

    constant = results.bound
    write_figure(results, out / "regret.png", bound=constant)
    write_page(results, out / "report.html", bound=constant)
    console = plain_console()
    console.print(final_table(results, bound=constant))
    if constant is not None:
        console.print(f"v* = {number(constant, 6)}, the constant of the regret lower bound", highlight=False)
    console.print(
        f"simulated in {duration(results.manifest['wall_seconds'])}; written to {out}/: results.parquet, "
        "manifest.json, regret.png, report.html",
        highlight=False,
        soft_wrap=True,
    )
