"""`solid-bandits evaluate`: what a log says of other policies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from solid_bandits.cli.messages import bad_arguments, check_writable, show

if TYPE_CHECKING:
    import polars as pl

    from solid_bandits.ope.rows import Reader


def evaluate(
    log: Annotated[Path, typer.Argument(help="A log: Parquet, CSV, dsjson, or the store of a bandit.")],
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
        list[str] | None,
        typer.Option(help="A column that all arms share, numbers or words; repeat for several."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="Would this name have helped? Policies that learn are evaluated once more without it; repeat for "
            "several names that are left out together."
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="policy=RandUCB: only rows in which a column has this value, as recorded decisions of several "
            "policies and runs need; repeat for several."
        ),
    ] = None,
    segment: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare the policies in segments too: a column of the table, or tree; repeat to cross columns."
        ),
    ] = None,
    verdict: Annotated[
        bool,
        typer.Option(
            "--verdict",
            help="Also say which arm or policy is best, and whether one may stop collecting decisions.",
        ),
    ] = False,
    delta: Annotated[float, typer.Option(help="The verdict's probability of ever being wrong.")] = 0.05,
    tolerance: Annotated[
        float, typer.Option(help="By how much another may be better when the verdict is to stop.")
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option(help="Directory for evaluation.png and evaluation.html.")
    ] = None,
) -> None:
    """Evaluate policies from the log of another: say who won, print a table for each, write a figure and a page."""
    from solid_bandits._internal.checks import ArgumentError
    from solid_bandits.ope import compare as compare_policies
    from solid_bandits.ope import evaluate as evaluate_policies
    from solid_bandits.ope import verdict as judge
    from solid_bandits.ope.named import asked_words
    from solid_bandits.report.evaluation import (
        FIGURE_FILE,
        PAGE_FILE,
        comparison_tables,
        evaluation_table,
        write_evaluation,
    )

    with bad_arguments():
        columns = {}
        for pair in column or []:
            name, equals, theirs = pair.partition("=")
            if not equals:
                raise ArgumentError("column", f"must look like arm=treatment, got {pair!r}")
            columns[name] = theirs
        if out is not None:
            check_writable(out)
        reader, policies = asked_words(
            log,
            policy or ["uniform"],
            files=True,
            where=where or (),
            columns=columns or None,
            context=context or (),
            missing_reward=missing_reward,
            without=without or (),
        )
        shared: dict[str, Any] = {"logger": logger, "reward_range": reward_range, "confidence": confidence}
        evaluations = evaluate_policies(reader, policies, estimator, bootstrap=bootstrap, **shared)
        first = next(iter(evaluations.values()))
        comparison = None
        if "effective rewards" in first.diagnostics:  # it has probabilities
            segments = None
            if segment:
                segments = segment[0] if segment == ["tree"] else segments_of(log, reader, segment)
            comparison = compare_policies(
                reader, policies, segments=segments, context=context or (), **shared
            )
        judged = None
        if verdict:
            others = {label: one for label, one in policies.items() if not str(one).startswith("always:")}
            judged = judge(reader, others, delta=delta, tolerance=tolerance, reward_range=reward_range)
    if judged is not None:
        show(judged.said)
    if comparison is not None:
        for table in comparison_tables(comparison):
            show(table)
    for label, evaluation in evaluations.items():
        show(evaluation_table(label, evaluation))
    if out is not None:
        write_evaluation(evaluations, out, log.name, comparison, judged)
        show(f"written to {out}/: {FIGURE_FILE}, {PAGE_FILE}")


def segments_of(log: Path, reader: "Reader", names: list[str]) -> "pl.Series":
    """Return one label per row by the log's columns and named values, or else by columns of the file."""
    from solid_bandits._internal.checks import ArgumentError
    from solid_bandits.ope.rows import opened
    from solid_bandits.ope.segments import by_columns, with_names

    known = with_names(reader.as_given())
    if set(names) <= set(known.columns):
        return by_columns(known, names)
    labels = by_columns(with_names(opened(log)), names)
    if len(labels) != reader.height:
        raise ArgumentError(
            "segment",
            "must not be a column where only some of the rows are evaluated: tree is possible there",
        )
    return labels
