"""`solid-bandits compare`: policies on one problem, on a stream, or on a file of data."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from solid_bandits._files import ARMS_FILE, CALIBRATION_FILE, DECISIONS_FILE, MANIFEST_FILE, TABLE_FILE
from solid_bandits.cli.errors import bad_arguments, check_writable, plain_console
from solid_bandits.cli.problems import DATA, Chosen, takes_problem
from solid_bandits.cli.report import report_results
from solid_bandits.policies.default import DEFAULT

if TYPE_CHECKING:
    from solid_bandits._types import Plain
    from solid_bandits.cli.progress import Display
    from solid_bandits.problem import Problem
    from solid_bandits.results import Results
    from solid_bandits.simulation import Block, Plan
    from solid_bandits.simulation.playing import Key

DEFAULT_POLICIES = ["solid", DEFAULT, "linucb", "lints-paper", "lints"]
DATA_POLICIES = [DEFAULT, "lints", "linucb", "epsilon-greedy", "greedy"]
DEFAULT_HORIZON = 50_000
DATA_NOTE = (
    "intervals cover the policies' own random numbers alone: every run plays this file, in its order. They say nothing "
    "about other data, and policies that draw nothing have none"
)


@partial(takes_problem, streams=True)
def compare(
    chosen: Chosen,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy by name, with parameters if need be, such as 'randucb(ridge=0.05)'; repeat for several "
            f"(default: {', '.join(DEFAULT_POLICIES)}; on streams and data {', '.join(DATA_POLICIES)})."
        ),
    ] = None,
    import_: Annotated[
        list[str] | None,
        typer.Option(
            "--import", help="A module of yours; its policies can then be named by their classes' names."
        ),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Steps of each run (default: 50000; all rounds of data).")
    ] = None,
    runs: Annotated[int, typer.Option(help="Independent repetitions.")] = 100,
    seed: Annotated[int, typer.Option(help="Of everything random in the runs.")] = 0,
    out: Annotated[Path, typer.Option(help="Directory for the results, made if missing.")] = Path("results"),
    jobs: Annotated[int | None, typer.Option(help="Processes (default: one per core).")] = None,
    diagnostics: Annotated[
        bool, typer.Option("--diagnostics", help="Also record and show what goes on in SOLID.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, or gpu: all runs together on a GPU.")] = "cpu",
    record: Annotated[
        str | None,
        typer.Option(help="'decisions' also writes every decision on data to decisions.parquet."),
    ] = None,
) -> None:
    """Play policies on one problem, on a stream, or on a file of data.

    Prints a table, writes results.parquet, manifest.json, regret.png, report.html.
    """
    from solid_bandits import _check
    from solid_bandits.bounds.record import bound_record
    from solid_bandits.policies.naming import by_name, import_policies
    from solid_bandits.results import claim
    from solid_bandits.simulation import Plan
    from solid_bandits.streams import Stream
    from solid_bandits.streams.decisions import make_record

    # Everything that can be wrong is found before the first step is played.
    with bad_arguments():
        for module in import_ or []:
            import_policies(module)
        on_stream = isinstance(chosen.problem, Stream)
        names = policy or (DATA_POLICIES if on_stream else DEFAULT_POLICIES)
        played = by_name(names, chosen.kind, chosen.problem.n_arms)
        endless = getattr(chosen.problem, "length", None) is None
        steps = DEFAULT_HORIZON if horizon is None and endless else horizon
        kept = make_record(record, out / DECISIONS_FILE)
        plan = Plan(
            chosen.problem, played, cast("int", steps), runs, seed, diagnostics, device=device, record=kept
        )
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
        if not isinstance(chosen.problem, Stream):
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
        report_results(results, out, *_said(results, chosen, kept is not None))


def _said(results: "Results", chosen: Chosen, recorded: bool) -> tuple[list[str], str, str]:
    """Files that are written by now, what the intervals cover, and how long it took."""
    from solid_bandits._words import duration

    files = [TABLE_FILE, MANIFEST_FILE]
    files += [DECISIONS_FILE] if recorded else []
    files += [ARMS_FILE, CALIBRATION_FILE] if results.arms is not None else []
    note = DATA_NOTE if chosen.kind == DATA else ""
    return files, note, f"simulated in {duration(results.manifest['wall_seconds'])}; "


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
    from solid_bandits.gpu.layout import UnfitError
    from solid_bandits.policies.own import OwnPolicyError
    from solid_bandits.simulation.memory import simulate_plan
    from solid_bandits.simulation.playing import workers_for
    from solid_bandits.workers import WorkersLostError

    with Display(workers_for(plan, jobs).count) as display:
        display.say(
            f"{plan.problem!r}: {count(len(plan.policies), 'policy', 'policies')}, {count(plan.runs, 'run')} of "
            f"{count(plan.horizon, 'step')} each"
        )
        try:
            return simulate_plan(plan, jobs, Shown(plan, display))
        except (WorkersLostError, OwnPolicyError, UnfitError) as error:
            raise typer.TyperException(str(error)) from None


class Shown:
    """Shows how a plan's tasks go, with what they were estimated to take."""

    def __init__(self, plan: "Plan", display: "Display") -> None:
        self.plan = plan
        self.display = display

    def begin(self, tasks: "Sequence[Key]", kept: int) -> None:
        """These tasks are to be done; so many are kept."""
        self.display.begin(kept + len(tasks), kept, sum(map(self._seconds, tasks)))

    def compiling(self, done: int, total: int) -> None:
        """So many loops are compiled."""
        self.display.compiling(done, total)

    def start(self) -> None:
        """Everything is compiled."""
        self.display.start()

    def advance(self, key: "Key") -> None:
        """A task is done."""
        policy, _, runs = cast("Block", key.task)
        self.display.advance(policy, self.plan.horizon * runs, self._seconds(key))

    def _seconds(self, key: "Key") -> float:
        from solid_bandits.experiments.estimate import task_seconds

        return task_seconds(self.plan, key.task)
