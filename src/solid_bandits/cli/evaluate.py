"""`solid-bandits evaluate`: what a log says of other policies."""

from pathlib import Path
from typing import Annotated

import typer

from solid_bandits.cli.errors import bad_arguments, check_writable, plain_console


def evaluate(
    log: Annotated[
        Path, typer.Argument(help="A log: Parquet, CSV, dsjson, or the directory of a bandit's log.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="uniform, always:ARM, column:NAME (lists of probabilities), the file of an agent or a bandit, or a "
            "policy by name such as 'randucb', which learns from the first half of the log; repeat for several "
            "(default: uniform)."
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None, typer.Option(help="An estimator; repeat for several (default: all that apply).")
    ] = None,
    logger: Annotated[
        str, typer.Option(help="learning, or fixed if the logger did not learn from what it logged.")
    ] = "learning",
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(help="The least and the largest reward there can be, for anytime-valid bounds."),
    ] = None,
    missing_reward: Annotated[
        float | None, typer.Option(help="What a decision without a reward earned (default: it is left out).")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    bootstrap: Annotated[int, typer.Option(help="Samples for bootstrap intervals, for fixed loggers.")] = 0,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="arm=treatment: what a column of a log is called in this table; repeat for several."
        ),
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option(help="A numeric column that all arms share; repeat for several.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="policy=RandUCB: only rows in which a column has this value, as recorded decisions of several "
            "policies and runs need; repeat for several."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory for evaluation.png and evaluation.html.")
    ] = None,
) -> None:
    """Evaluate policies from the log of another: print a table for each, write a figure and a page."""
    from solid_bandits import ope
    from solid_bandits._check import ArgumentError
    from solid_bandits.ope.named import by_words, rows_where
    from solid_bandits.report.evaluation import FIGURE_FILE, PAGE_FILE, evaluation_table, write_evaluation

    with bad_arguments():
        columns = {}
        for pair in column or []:
            name, equals, theirs = pair.partition("=")
            if not equals:
                raise ArgumentError("column", f"must look like arm=treatment, got {pair!r}")
            columns[name] = theirs
        if out is not None:
            check_writable(out)
        source = log if where is None else rows_where(log, where)
        policies, rows = by_words(policy or ["uniform"], source, columns, context or ())
        plain = rows is source  # else it has been made a log already
        evaluations = {
            label: ope.evaluate(
                rows,
                one,
                estimator,
                logger=logger,
                reward_range=reward_range,
                missing_reward=missing_reward,
                confidence=confidence,
                bootstrap=bootstrap,
                columns=columns or None if plain else None,
                context=context or () if plain else (),
            )
            for label, one in policies.items()
        }
    console = plain_console()
    for label, evaluation in evaluations.items():
        console.print(evaluation_table(label, evaluation))
    if out is not None:
        write_evaluation(evaluations, out, log.name)
        console.print(f"written to {out}/: {FIGURE_FILE}, {PAGE_FILE}", highlight=False, soft_wrap=True)
