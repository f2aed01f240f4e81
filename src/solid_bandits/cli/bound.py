"""`solid-bandits bound`: the regret lower bound of one problem."""

from pathlib import Path
from typing import Annotated

import typer

from solid_bandits.cli.messages import bad_arguments, check_writable, show
from solid_bandits.cli.options import Finite


def bound(
    problem: Finite,
    z: Annotated[
        list[float] | None, typer.Option(help="Also solve (P_z) at this z; repeat for several.")
    ] = None,
    tol: Annotated[float, typer.Option(help="Relative width of the certified brackets.")] = 1e-6,
    out: Annotated[Path | None, typer.Option(help="Directory for bound.png and bound.json.")] = None,
) -> None:
    """Compute the regret lower bound of a problem: the constant of log n, certified from both sides."""
    from solid_bandits.bounds import curve, lower_bound, lower_bound_at, pure_exploration
    from solid_bandits.core.problem import Problem
    from solid_bandits.paper.naming import choose
    from solid_bandits.report.bound import bound_tables, check_bound_free, write_bound

    with bad_arguments():
        found = choose(problem, streams=False).problem
    assert isinstance(found, Problem)
    if out is not None:
        with bad_arguments("--out: "):
            check_writable(out)
            check_bound_free(out, found)
    with bad_arguments():
        answer = lower_bound(found, tol=tol)
        pure = pure_exploration(found, tol=tol)
        at = [lower_bound_at(found, value, tol=tol, exploration=pure) for value in z or []]
    show(f"{found!r}", *bound_tables(found, answer, pure, at))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_bound(found, answer, pure, at, curve(found), out)
        show(f"written to {out}/: bound.png, bound.json")
