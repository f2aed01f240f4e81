"""The options that name a problem, for every command that takes one."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from solid_bandits.cli.errors import bad_arguments

if TYPE_CHECKING:
    from solid_bandits.problem import Problem
    from solid_bandits.streams import Stream

DATA = "data"
DATA_SUFFIXES = (".csv", ".parquet")
FINITE = ("toy", "random", "end-of-optimism", "jester")
"""Problems by name: functions of `problems`."""
GENERATED = ("gaussian", "sparse", "joint")
"""Streams by name: functions of `streams`."""


class Chosen(NamedTuple):
    """A problem, or a stream of data, as the command line named it."""

    kind: str
    name: str
    problem: "Problem | Stream"


class _Option(NamedTuple):
    """An option, and what the constructors of problems call it."""

    name: str
    type: Any
    kinds: tuple[str, ...]
    parameter: str
    help: str
    default: str = ""
    finite_default: str = ""
    """Where it differs: for commands that take no streams."""

    def among(self, streams: bool) -> tuple[str, ...]:
        """The kinds of problems it belongs to, of those that a command takes."""
        return self.kinds if streams else tuple(kind for kind in self.kinds if kind in FINITE)

    def words(self, streams: bool) -> str:
        """What a command's help says."""
        default = self.default if streams else self.finite_default or self.default
        ending = f" (default: {default})" if default else ""
        return f"{', '.join(self.among(streams))}: {self.help}{ending}."


_OPTIONS = (
    _Option(
        "xi",
        float,
        ("toy", "end-of-optimism"),
        "xi",
        "distance of the second-best arms",
        "0.1",
    ),
    _Option("first-context-prob", float, ("toy",), "first_context_prob", "probability of context 1", "0.5"),
    _Option("contexts", int, ("random",), "n_contexts", "number of contexts", "4"),
    _Option("arms", int, ("random", *GENERATED), "n_arms", "number of arms", "8; 10", "8"),
    _Option(
        "dim",
        int,
        ("random", "gaussian", "sparse"),
        "dim",
        "dimension of the features",
        "8; 10; 100",
        "8",
    ),
    _Option(
        "density",
        float,
        ("random", "sparse"),
        "density",
        "share of entries that are not 0",
        "0.5; 0.1",
        "0.5",
    ),
    _Option(
        "problem-seed",
        int,
        ("random", "jester", *GENERATED),
        "seed",
        "seed of the problem itself",
        "0",
    ),
    _Option(
        "noise-std",
        float,
        ("toy", "random", "end-of-optimism", *GENERATED, DATA),
        "noise_std",
        "reward noise",
        "0.5 for toy, found by a fit to data, else 1",
        "0.5 for toy, else 1",
    ),
    _Option("source", str, ("jester",), "source", "file or folder of the ratings", "downloaded"),
    _Option(
        "users-fraction",
        float,
        ("jester",),
        "users_fraction",
        "share of users that are contexts",
        "0.01",
    ),
)
_STREAM_OPTIONS = (
    _Option("context-dim", int, ("joint",), "context_dim", "dimension of the context", "5"),
    _Option("fresh", float, GENERATED, "fresh", "share of rounds with a new context", "1"),
    _Option("drift", float, GENERATED, "drift", "how fast the parameter moves", "0"),
    _Option("availability", float, GENERATED, "availability", "probability of an arm to be available", "1"),
)
_DATA_OPTIONS = (
    _Option("reward", str, (DATA,), "reward", "column of the rewards, or template such as 'reward_{arm}'"),
    _Option("label", str, (DATA,), "label", "column of the right arm's name, instead of --reward"),
    _Option(
        "round", str, (DATA,), "round", "column that tells rounds apart, where a row is an arm of a round"
    ),
    _Option("arm", str, (DATA,), "arm", "column of the arms' names, with --round"),
    _Option("feature", list[str], (DATA,), "features", "column of each arm, or template; repeat for several"),
    _Option("context", list[str], (DATA,), "context", "column of the round; repeat for several"),
    _Option("available", str, (DATA,), "available", "column, or template, of which arms are available"),
    _Option("event-id", str, (DATA,), "event_id", "column of the rounds' names, for --record"),
)

_SOURCE = f"{', '.join(FINITE)}, or an .npz file with fields features, theta, ..."
_SOURCE_OR_STREAM = (
    f"A problem: {', '.join(FINITE)}, or an .npz file with fields features, theta, ...; a stream: "
    f"{', '.join(GENERATED)}; or a .csv or .parquet file of data."
)


def takes_problem(command: Callable[..., None], streams: bool = False) -> Callable[..., None]:
    """Give a command the argument and the options that name a problem; it is called with what they name.

    The command takes a `Chosen` as its first argument; streams and files of data are among them if `streams` says so.
    """
    known = (*_OPTIONS, *_STREAM_OPTIONS, *_DATA_OPTIONS) if streams else _OPTIONS
    source = Annotated[str, typer.Argument(help=_SOURCE_OR_STREAM if streams else _SOURCE)]
    own = list(inspect.signature(command).parameters.values())[1:]
    problem = inspect.Parameter("problem", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=source)
    options = [
        inspect.Parameter(
            _identifier(option),
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[option.type | None, typer.Option(help=option.words(streams))],
        )
        for option in known
    ]

    @wraps(command)
    def wrapped(problem: str, **given: Any) -> None:
        values = {option: given.pop(_identifier(option)) for option in known}
        with bad_arguments():
            chosen = choose(
                problem,
                {option: value for option, value in values.items() if value not in (None, [])},
                streams,
            )
        command(chosen, **given)

    parameters = [problem, *own, *options]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def choose(source: str, given: dict[_Option, Any], streams: bool = False) -> Chosen:
    """What the options name; a ValueError for options of another kind of problem."""
    from solid_bandits.problem import Problem

    kind = _kind(source)
    if not streams and kind in (*GENERATED, DATA):
        raise ValueError(f"problem must be {_SOURCE}, got {source!r}; streams are for compare and summarise")
    for option, value in given.items():
        if kind not in option.kinds:
            kinds = ", ".join("files of data" if one == DATA else one for one in option.among(streams))
            raise ValueError(f"--{option.name} belongs to {kinds}, got {value} for {kind}; leave it out")
    parameters = {option.parameter: value for option, value in given.items()}
    if kind in FINITE:
        return Chosen(kind, kind, _finite(kind, parameters))
    if kind in GENERATED:
        from solid_bandits import streams as made

        return Chosen(kind, kind, getattr(made, kind)(**parameters))
    if kind == DATA:
        from solid_bandits.streams import from_file

        return Chosen(kind, Path(source).name, from_file(source, **parameters))
    if not Path(source).exists() and Path(source).suffix != ".npz":
        raise ValueError(_unknown(source, streams))
    return Chosen(kind, Path(source).name, Problem.load(source))


def _kind(source: str) -> str:
    if source in (*FINITE, *GENERATED):
        return source
    return DATA if Path(source).suffix.lower() in DATA_SUFFIXES else "file"


def _finite(kind: str, parameters: dict[str, Any]) -> "Problem":
    from solid_bandits import problems
    from solid_bandits.problem import check_size

    if kind == "random":
        sizes = {"n_contexts": 4, "n_arms": 8, "dim": 8}
        check_size(**{name: max(parameters.get(name, usual), 1) for name, usual in sizes.items()})
    made: Problem = getattr(problems, kind.replace("-", "_"))(**parameters)
    return made


def _unknown(source: str, streams: bool) -> str:
    names = (*FINITE, *GENERATED) if streams else FINITE
    files = "an .npz file, or of a .csv or .parquet file of data" if streams else "an .npz file"
    near = get_close_matches(source, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"problem must be {', '.join(names)}, or the name of {files}, got {source!r}{hint}"


def _identifier(option: _Option) -> str:
    return option.name.replace("-", "_")
