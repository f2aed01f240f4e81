"""Logs from elsewhere: plain tables with named columns, and the decisions that a simulation recorded."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import polars as pl

from solid_bandits._check import ArgumentError, short
from solid_bandits._files import first_line
from solid_bandits.logs.schema import COLUMNS, TIME, check_log, check_rows, first_broken, typed

RECORDED = {"policy", "run", "step", "arm", "n_arms", "reward"}
"""Columns by which recorded decisions of a simulation are known."""
FARTHEST = 1e11
"""Seconds before and after 1970 that a time may be."""
_WHOLE = re.compile(r"-?[0-9]+")


def from_table(
    table: Any,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
    arms: Sequence[str] | None = None,
) -> pl.DataFrame:
    """A log from a table of another make.

    Args:
        table: a polars or pandas frame, or a mapping of columns. One row per decision.
        columns: name in a log -> name in the table, where they differ: arm, reward, probability (of the arm that was
            chosen), probabilities (lists, in the order of the arms), arms (lists of those on offer), features (lists of
            lists), event_id, time, policy.
        context: numeric columns that describe the occasion, shared by all arms.
        arms: all arms, where the rows do not say which were on offer; None is those that occur, in order.

    Example:
        >>> import solid_bandits as sb
        >>> table = {"arm": ["a", "b", "a"], "reward": [1.0, 0.0, 0.5], "probability": [0.5, 0.5, 0.5]}
        >>> log = sb.logs.from_table(table)
        >>> log["arm"].to_list(), log["arms"][0].to_list()
        (['a', 'b', 'a'], ['a', 'b'])
    """
    log, recorded = as_log(table, columns, context, arms)
    return log.sort("sequence", nulls_last=True, maintain_order=True) if recorded else log


def as_log(
    table: Any,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
    arms: Sequence[str] | None = None,
) -> tuple[pl.DataFrame, bool]:
    """A log with the rows of the table in the table's order; and whether a simulation recorded them."""
    frame = _frame(table)
    chosen = _chosen(frame, columns, context)
    if set(frame.columns) >= RECORDED and not columns:
        try:
            recorded = _recorded(frame)
        except pl.exceptions.PolarsError as error:
            raise ArgumentError(
                "table",
                f"must have its decisions as a simulation records them: {first_line(error)}; name the columns of "
                "another table with columns",
            ) from None
        return _completed(recorded), True
    out = frame.select(pl.col(column).alias(name) for name, column in chosen.items())
    times = [name for name in ("time", "reward_time") if name in chosen and out[name].dtype != TIME]
    out = typed(out.with_columns(_time(out[name]) for name in times))
    if "arms" not in chosen:
        out = out.with_columns(_offered(out, chosen, arms))
    if context:
        shared = pl.concat_list(pl.col(column).cast(pl.Float64) for column in context).alias("context")
        out = out.with_columns(frame.select(shared)["context"])
    return _completed(out), False


def _chosen(frame: pl.DataFrame, columns: Mapping[str, str] | None, context: Sequence[str]) -> dict[str, str]:
    """Name in a log -> name in the table."""
    if columns is not None and not isinstance(columns, Mapping):
        raise ArgumentError("columns", f"must map names in a log to names in the table, got {short(columns)}")
    if isinstance(context, str) or not isinstance(context, Sequence):
        raise ArgumentError("context", f"must be a list of columns, got {short(context)}")
    chosen = {name: name for name in COLUMNS if name in frame.columns} | dict(columns or {})
    for name, column in chosen.items():
        if name not in COLUMNS:
            raise ArgumentError("columns", f"must name columns of a log ({', '.join(COLUMNS)}), got {name!r}")
        if column not in frame.columns:
            raise ArgumentError("columns", f"must be in the table, got {column!r} for {name!r}")
    for column in context:
        if column not in frame.columns or not frame[column].dtype.is_numeric():
            raise ArgumentError("context", f"must be numeric columns of the table, got {column!r}")
    if "arm" not in chosen:
        raise ArgumentError("columns", f"must name the column of the arm, got {', '.join(frame.columns)}")
    return chosen


def _offered(out: pl.DataFrame, chosen: Mapping[str, str], arms: Sequence[str] | None) -> pl.Series:
    """The arms on offer in every row, where no column has them."""
    if arms is None:
        found = out["arm"].drop_nulls().unique().to_list()
        whole = all(_WHOLE.fullmatch(name) for name in found)
        known = sorted(found, key=int) if whole else sorted(found)
        if "probabilities" in chosen and whole:
            widths = out["probabilities"].list.len().drop_nulls().unique().to_list()
            known = [str(place) for place in range(widths[0])] if len(widths) == 1 else known
    else:
        if isinstance(arms, str) or not isinstance(arms, Sequence) or not len(arms):
            raise ArgumentError("arms", f"must be a list of names, got {short(arms)}")
        known = [str(name) for name in arms]
        if len(set(known)) < len(known):
            raise ArgumentError("arms", f"must be names that differ, got {short(arms)}")
    return pl.Series("arms", [known], dtype=pl.List(pl.String)).new_from_index(0, out.height)


def _recorded(frame: pl.DataFrame) -> pl.DataFrame:
    """Decisions that a simulation recorded: arms are numbers, and `available` says which of them were on offer."""
    if frame.select("policy", "run").n_unique() > 1:
        groups = frame.select("policy", "run").n_unique()
        raise ArgumentError(
            "log",
            f"must have the decisions of one policy in one run, got {groups}; filter the table first "
            "(on the command line: --where policy=NAME --where run=0)",
        )
    places = pl.int_ranges(pl.col("n_arms")).cast(pl.List(pl.String))
    out = frame.with_columns(places.alias("arms"), pl.col("arm").cast(pl.String))
    lists = [
        name for name in ("probabilities", "features") if name in out.columns and out[name].null_count() == 0
    ]
    if "available" in out.columns and out["available"].null_count() < out.height:
        mask = pl.col("available").fill_null(pl.lit(True).repeat_by(pl.col("n_arms")))
        kept = out.with_row_index("__row").with_columns(mask.alias("available"))
        kept = kept.explode("available", "arms", *lists).filter("available")
        kept = kept.group_by("__row", maintain_order=True).agg("arms", *lists)
        out = out.with_columns(kept[name] for name in ("arms", *lists))
    have = [name for name in COLUMNS if name in out.columns]
    sequence = pl.col("step").rank("ordinal").cast(pl.Int64).alias("sequence")
    return typed(out.with_columns(sequence).select(*dict.fromkeys([*have, "sequence"])))


def _completed(out: pl.DataFrame) -> pl.DataFrame:
    """All columns of a log, in their types; the probability of the arm from those of all where it is missing."""
    made: list[Any] = []
    if "event_id" not in out.columns:
        made.append(pl.int_range(pl.len()).cast(pl.String).alias("event_id"))
    if "sequence" not in out.columns:
        made.append(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias("sequence"))
    out = out.with_columns(made)
    missing = [
        pl.lit(None, dtype=kind).alias(name) for name, kind in COLUMNS.items() if name not in out.columns
    ]
    out = out.with_columns(missing)
    check_rows(out)
    if out["probability"].null_count() and out["probabilities"].null_count() < out.height:
        pairs = (
            out.with_row_index("__row")
            .select("__row", "arms", "probabilities", "arm")
            .explode("arms", "probabilities")
        )
        own = pairs.filter(pl.col("arms") == pl.col("arm")).select(
            "__row", pl.col("probabilities").alias("__own")
        )
        out = out.with_row_index("__row").join(own, on="__row", how="left", maintain_order="left")
        out = out.with_columns(pl.col("probability").fill_null(pl.col("__own"))).drop("__row", "__own")
    return out.select(*COLUMNS)


def _time(values: pl.Series) -> pl.Series:
    """Times as the log has them: text in ISO form, Unix seconds, or dates; without a zone they are UTC."""

    def read(part: pl.Series) -> pl.Series:
        if part.dtype == pl.String:
            return part.str.to_datetime(time_unit="us", time_zone="UTC")
        if part.dtype.is_numeric():
            if not part.is_between(-FARTHEST, FARTHEST).all():
                raise pl.exceptions.ComputeError("too far away")
            return (part * 1e6).round().cast(pl.Int64).cast(TIME)
        if isinstance(part.dtype, pl.Datetime) and part.dtype.time_zone is not None:
            return part.dt.convert_time_zone("UTC").dt.cast_time_unit("us")
        if part.dtype == pl.Boolean:
            raise pl.exceptions.ComputeError("no time")
        return part.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")

    def sound(part: pl.Series) -> bool:
        try:
            return part.null_count() == len(part) or read(part) is not None
        except pl.exceptions.PolarsError:
            return False

    if values.dtype == pl.Null:
        return values.cast(TIME)
    if not sound(values):
        at = first_broken(values, sound)
        if values.dtype == pl.String:  # all in the form of the first
            with suppress(pl.exceptions.PolarsError):
                loose = values.str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
                at = int((loose.is_null() & values.is_not_null()).arg_max() or 0)
        got = short(values.slice(at, 1).to_list()[0])
        raise ArgumentError(
            "log",
            f"row {at} must have a time in ISO form or in seconds since 1970 in column {values.name!r}, got {got}",
        )
    return read(values) if values.null_count() < len(values) else values.cast(pl.Null).cast(TIME)


def _frame(table: Any) -> pl.DataFrame:
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if isinstance(table, pl.DataFrame):
        return table
    try:
        if hasattr(table, "to_dict") and hasattr(table, "columns"):  # pandas, without its helpers
            return pl.DataFrame({str(name): table[name].to_list() for name in table.columns})
        return pl.DataFrame(table)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise ArgumentError(
            "table", f"must be a table of named columns, got {short(table)} ({first_line(error)})"
        ) from None


def crossed(log: pl.DataFrame) -> pl.DataFrame:
    """The log with features made of its contexts: those of an arm are its context and a 1 in the arm's own places, else
    0.

    A linear policy on them has a regression for each arm. Arms are those of the whole log, in order of appearance.

    Example:
        >>> import solid_bandits as sb
        >>> table = {"arm": ["a", "b"], "reward": [1.0, 0.0], "age": [31.0, 54.0]}
        >>> log = sb.logs.from_table(table, context=["age"])
        >>> sb.logs.crossed(log)["features"][0].to_list()
        [[31.0, 1.0, 0.0, 0.0], [0.0, 0.0, 31.0, 1.0]]
    """
    log = check_log(log)
    if log["context"].null_count():
        raise ArgumentError("log", "must have a context in every row")
    places = {
        name: place for place, name in enumerate(log["arms"].explode().unique(maintain_order=True).to_list())
    }
    rows = []
    for arms, context in log.select("arms", "context").iter_rows():
        width = len(context) + 1
        offered = [[0.0] * (width * len(places)) for _ in arms]
        for own, name in zip(offered, arms, strict=True):
            own[places[name] * width : (places[name] + 1) * width] = [*context, 1.0]
        rows.append(offered)
    return log.with_columns(pl.Series("features", rows, dtype=COLUMNS["features"]))
