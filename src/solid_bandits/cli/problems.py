"""The options that name a problem, for every command that takes one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from solid_bandits.problem import Problem

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


class Chosen(NamedTuple):
    """A problem as the command line named it."""

    kind: str
    name: str
    problem: "Problem"


def choose(
    source: str,
    xi: float | None,
    first_context_prob: float | None,
    contexts: int | None,
    arms: int | None,
    dim: int | None,
    density: float | None,
    problem_seed: int | None,
    noise_std: float | None,
) -> Chosen:
    """The problem that the options name; a ValueError for options of another kind of problem."""
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
        return Chosen(kind, kind, problems.toy(**given))
    if kind == "random":
        # Whole numbers stay whole on their way here.
        return Chosen(kind, kind, problems.random(**given))  # type: ignore[arg-type]
    if not Path(source).exists() and Path(source).suffix != ".npz":
        raise ValueError(f"problem must be toy, random, or the name of an .npz file, got {source!r}")
    return Chosen(kind, Path(source).name, Problem.load(source))


def _refuse_stray_options(kind: str, options: dict[str, dict[str, float | None]]) -> None:
    spelling = {"n_contexts": "--contexts", "n_arms": "--arms", "seed": "--problem-seed"}
    for other, values in options.items():
        for name, value in values.items():
            if value is not None and name not in options[kind]:
                option = spelling.get(name, "--" + name.replace("_", "-"))
                raise ValueError(
                    f"{option} belongs to the {other} problem, got {value} for {kind}; leave it out"
                )
