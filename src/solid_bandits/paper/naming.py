"""Problems and streams by name, with parameters: `toy(xi=0.3)`, `gaussian(n_arms=5)`; or by the name of a file."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from solid_bandits._internal.calls import made, parsed
from solid_bandits._internal.checks import ArgumentError

if TYPE_CHECKING:
    from solid_bandits.core.problem import Problem
    from solid_bandits.streams import Stream

HOMES = {
    "toy": "problems",
    "random": "problems",
    "end-of-optimism": "problems",
    "jester": "paper.jester",
    "gaussian": "streams",
    "sparse": "streams",
    "joint": "streams",
}
"""Name -> the module of its constructor, which is imported when it is first used."""
STREAMS = tuple(name for name, home in HOMES.items() if home == "streams")
FINITE = tuple(name for name in HOMES if name not in STREAMS)
RANDOM = ("random", "jester", *STREAMS)
"""Kinds whose problems or streams take a seed."""
DATA_SUFFIXES = (".csv", ".parquet")
DATA = "data"
"""Kind of a stream that comes from a file."""


class Chosen(NamedTuple):
    """A problem or a stream, as chosen by name."""

    kind: str
    """Its name without parameters, or `data`, or `file`."""
    name: str
    problem: "Problem | Stream"


def constructor(kind: str) -> "Callable[..., Problem | Stream]":
    """Return the function that makes problems or streams of a kind."""
    made: Callable[..., Problem | Stream] = getattr(
        import_module(f"solid_bandits.{HOMES[kind]}"), kind.replace("-", "_")
    )
    return made


def choose(text: str, streams: bool = True, columns: Mapping[str, Any] | None = None) -> Chosen:
    """Return the problem or stream that `text` stands for: a name with parameters, or a file.

    Args:
        text: for instance `toy`, `random(n_arms=16)`, `mine.npz` or `trips.parquet`.
        streams: whether streams are allowed.
        columns: arguments of `streams.from_file`, for a data file.

    """
    suffix = Path(text).suffix.lower()
    if suffix not in DATA_SUFFIXES:
        for name, value in (columns or {}).items():
            raise ArgumentError(
                name, f"must be left out, as it is about files of data, got {value!r} for {text}"
            )
    elif streams:
        from solid_bandits.streams import from_file

        return Chosen(DATA, Path(text).name, from_file(text, **(columns or {})))
    if suffix == ".npz" or (suffix not in DATA_SUFFIXES and Path(text).exists()):
        from solid_bandits.core.problem import Problem

        return Chosen("file", Path(text).name, Problem.load(text))
    kind, parameters = parsed("problem", text)
    if kind not in (HOMES if streams else FINITE):
        raise ArgumentError("problem", _unknown(text, kind, streams))
    return Chosen(kind, text, made(constructor(kind), parameters))


def _unknown(text: str, kind: str, streams: bool) -> str:
    names = tuple(HOMES) if streams else FINITE
    files = "an .npz file, or of a .csv or .parquet file of data" if streams else "an .npz file"
    near = get_close_matches(kind, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if kind in STREAMS or Path(text).suffix.lower() in DATA_SUFFIXES:
        hint = "; streams are for compare and summarise"
    return f"must be {', '.join(names)}, or the name of {files}, got {text!r}{hint}"
