"""The options that name a problem, for every command that takes one."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from solid_bandits.cli.errors import bad_arguments

if TYPE_CHECKING:
    from solid_bandits.problem import Problem


class Chosen(NamedTuple):
    """A problem as the command line named it."""

    kind: str
    name: str
    problem: "Problem"


class _Option(NamedTuple):
    """An option, and what the constructors of problems call it."""

    name: str
    type: type
    kinds: tuple[str, ...]
    parameter: str
    help: str


_OPTIONS = (
    _Option("xi", float, ("toy",), "xi", "distance of the second-best arms (default: 0.1)"),
    _Option(
        "first-context-prob", float, ("toy",), "first_context_prob", "probability of context 1 (default: 0.5)"
    ),
    _Option("contexts", int, ("random",), "n_contexts", "number of contexts (default: 4)"),
    _Option("arms", int, ("random",), "n_arms", "number of arms (default: 8)"),
    _Option("dim", int, ("random",), "dim", "dimension of the features (default: 8)"),
    _Option("density", float, ("random",), "density", "share of entries that are not 0 (default: 0.5)"),
    _Option("problem-seed", int, ("random",), "seed", "seed of the problem itself (default: 0)"),
    _Option("noise-std", float, ("toy", "random"), "noise_std", "reward noise (default: 0.5 and 1)"),
)

_SOURCE = Annotated[str, typer.Argument(help="toy, random, or an .npz file with fields features, theta, ...")]


def takes_problem(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the argument and the options that name a problem; it is called with what they name.

    The command takes a `Chosen` as its first argument.
    """
    own = list(inspect.signature(command).parameters.values())[1:]
    problem = inspect.Parameter("problem", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=_SOURCE)
    options = [
        inspect.Parameter(
            _identifier(option),
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[
                option.type | None, typer.Option(help=f"{', '.join(option.kinds)}: {option.help}.")
            ],
        )
        for option in _OPTIONS
    ]

    @wraps(command)
    def wrapped(problem: str, **given: Any) -> None:
        values = {option: given.pop(_identifier(option)) for option in _OPTIONS}
        with bad_arguments():
            chosen = choose(problem, {option: value for option, value in values.items() if value is not None})
        command(chosen, **given)

    parameters = [problem, *own, *options]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def choose(source: str, given: dict[_Option, Any]) -> Chosen:
    """The problem that the options name; a ValueError for options of another kind of problem."""
    from solid_bandits import problems
    from solid_bandits.problem import Problem, check_size

    kind = source if source in ("toy", "random") else "file"
    for option, value in given.items():
        if kind not in option.kinds:
            kinds = " or ".join(option.kinds)
            raise ValueError(
                f"--{option.name} belongs to the {kinds} problem, got {value} for {kind}; leave it out"
            )
    parameters = {option.parameter: value for option, value in given.items()}
    if kind == "toy":
        return Chosen(kind, kind, problems.toy(**parameters))
    if kind == "random":
        sizes = {"n_contexts": 4, "n_arms": 8, "dim": 8}
        check_size(**{name: max(parameters.get(name, usual), 1) for name, usual in sizes.items()})
        return Chosen(kind, kind, problems.random(**parameters))
    if not Path(source).exists() and Path(source).suffix != ".npz":
        raise ValueError(f"problem must be toy, random, or the name of an .npz file, got {source!r}")
    return Chosen(kind, Path(source).name, Problem.load(source))


def _identifier(option: _Option) -> str:
    return option.name.replace("-", "_")
