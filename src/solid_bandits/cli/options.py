"""Arguments and options shared by several commands."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from solid_bandits.cli.messages import bad_arguments
from solid_bandits.policies.default import DEFAULT

if TYPE_CHECKING:
    from solid_bandits.paper.naming import Chosen
    from solid_bandits.simulation.plan import Plan

DEFAULT_POLICIES = ["solid", DEFAULT, "linucb-paper", "lints-paper", "lints"]
DATA_POLICIES = [DEFAULT, "lints", "linucb", "epsilon-greedy", "greedy"]

PROBLEM = "toy, random, end-of-optimism or jester, with parameters if need be, such as 'random(n_arms=16)'"
Finite = Annotated[
    str, typer.Argument(help=f"A problem: {PROBLEM}; or an .npz file with fields features, theta, ...")
]
Played = Annotated[
    str,
    typer.Argument(
        help=f"A problem: {PROBLEM}, or an .npz file with fields features, theta, ...; a stream: gaussian, sparse or "
        "joint, such as 'gaussian(drift=0.01)'; or a .csv or .parquet file of data. `solid-bandits problems` lists "
        "their parameters."
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        help="A policy by name, with parameters if need be, such as 'randucb(ridge=0.05)'; repeat for several "
        f"(default: {', '.join(DEFAULT_POLICIES)}; on streams and data {', '.join(DATA_POLICIES)})."
    ),
]
Imported = Annotated[
    list[str] | None,
    typer.Option(
        "--import", help="A module of yours; its policies can then be named by their classes' names."
    ),
]
Jobs = Annotated[int | None, typer.Option(help="Processes (default: one per core).")]
Runs = Annotated[int, typer.Option(help="Independent repetitions.")]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers in the runs.")]
Device = Annotated[str, typer.Option(help="cpu, or gpu: all runs together on a GPU.")]

# Option -> its type, and the column that it names.
_COLUMNS: dict[str, tuple[Any, str]] = {
    "reward": (str, "column of the rewards, or template such as 'reward_{arm}'"),
    "label": (str, "column of the right arm's name, instead of --reward"),
    "round": (str, "column that tells rounds apart, where a row is an arm of a round"),
    "arm": (str, "column of the arms' names, with --round"),
    "feature": (list[str], "column of each arm, or template; repeat for several"),
    "context": (list[str], "column of the round; repeat for several"),
    "named": (
        list[str],
        "column of the round with values (numbers, words, dates) that are made features of, as for live decisions; "
        "NAME, or NAME:TYPE; repeat for several",
    ),
    "available": (str, "column, or template, of which arms are available"),
    "event_id": (str, "column of the rounds' names, for --record"),
    "noise_std": (float, "reward noise (default: found by a fit)"),
}


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Add options that describe the columns of a data file to a command, which receives their values as `columns`."""
    own = inspect.signature(command).parameters.values()
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[kind | None, typer.Option(help=f"Files of data: {words}.")],
        )
        for name, (kind, words) in _COLUMNS.items()
    ]

    @wraps(command)
    def wrapped(**given: Any) -> None:
        columns = {name: given.pop(name) for name in _COLUMNS}
        columns["features"] = columns.pop("feature")
        named = [one.partition(":") for one in columns["named"] or ()]
        columns["named"] = {name: kind or None for name, _, kind in named} or None
        command(columns={name: value for name, value in columns.items() if value not in (None, [])}, **given)

    parameters = [*(one for one in own if one.name != "columns"), *options]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters}
    return wrapped


def plan_of(
    problem: str,
    columns: dict[str, Any],
    policies: list[str] | None,
    modules: list[str] | None,
    horizon: tuple[int | None, int],
    jobs: int | None,
    record_to: tuple[str | None, Path] | None = None,
    **sizes: Any,
) -> "tuple[Chosen, Plan]":
    """Return the chosen problem and the plan, checked before the first step; `horizon` holds the given and default
    values.
    """
    from solid_bandits._internal import checks
    from solid_bandits.paper.naming import choose
    from solid_bandits.policies.naming import by_name, import_policies
    from solid_bandits.simulation.plan import Plan
    from solid_bandits.streams import Stream
    from solid_bandits.streams.decisions import make_record

    with bad_arguments():
        for module in modules or []:
            import_policies(module)
        chosen = choose(problem, columns=columns)
        names = policies or (DATA_POLICIES if isinstance(chosen.problem, Stream) else DEFAULT_POLICIES)
        played = by_name(names, chosen.kind, chosen.problem.n_arms)
        given, usual = horizon
        steps = usual if given is None and getattr(chosen.problem, "length", None) is None else given
        kept = None if record_to is None else make_record(*record_to)
        plan = Plan(chosen.problem, played, cast("int", steps), record=kept, name=chosen.name, **sizes)
        if jobs is not None:
            checks.integer("jobs", jobs, least=1)
    return chosen, plan
