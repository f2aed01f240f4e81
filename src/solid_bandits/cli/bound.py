"""`solid-bandits bound`: the regret lower bound of one problem."""

from pathlib import Path
from typing import Annotated

import typer

from solid_bandits.cli.errors import bad_arguments, check_writable, plain_console
from solid_bandits.cli.problems import Chosen, takes_problem


@takes_problem
def bound(
    chosen: Chosen,
    z: Annotated[
        list[float] | None, typer.Option(help="Also solve (P_z) at this z; repeat for several.")
    ] = None,
    tol: Annotated[float, typer.Option(help="Relative width of the certified brackets.")] = 1e-6,
    out: Annotated[Path | None, typer.Option(help="Directory for bound.png and bound.json.")] = None,
) -> None:
    """Compute the regret lower bound of a problem: the constant of log n, certified from both sides."""
    from solid_bandits.bounds import curve, lower_bound, lower_bound_at, pure_exploration
    from solid_bandits.problem import Problem
    from solid_bandits.report.bound import bound_tables, check_bound_free, write_bound

    problem = chosen.problem
    assert isinstance(problem, Problem)  # files of data are for compare alone
    if out is not None:
        with bad_arguments("--out: "):
            check_writable(out)
            check_bound_free(out, problem)
    with bad_arguments():
        answer = lower_bound(problem, tol=tol)
        pure = pure_exploration(problem, tol=tol)
        at = [lower_bound_at(problem, value, tol=tol, exploration=pure) for value in z or []]
    console = plain_console()
    console.print(f"{problem!r}", highlight=False, soft_wrap=True)
    for table in bound_tables(problem, answer, pure, at):
        console.print(table)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_bound(problem, answer, pure, at, curve(problem), out)
        console.print(f"written to {out}/: bound.png, bound.json", highlight=False, soft_wrap=True)
