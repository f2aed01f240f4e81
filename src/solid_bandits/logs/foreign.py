"""Logs from elsewhere: plain tables with named columns."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import polars as pl

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.files import first_line
from solid_bandits.features.values import of_pandas
from solid_bandits.logs.named import contexts_of
from solid_bandits.logs.schema import (
    COLUMNS,
    TIME,
    check_one_run,
    check_rows,
    first_broken,
    is_simulated,
    typed,
)

FARTHEST = 1e11
"""Largest distance of a time from 1970, in seconds."""
_WHOLE = re.compile(r"-?[0-9]+")


def from_table(
    table: Any,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] | Mapping[str, str | None] = (),
    arms: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Return a log from a table of another make.

    Args:
        table: a polars or pandas frame, or a mapping of columns. One row per decision. NaN in pandas is missing.
        columns: name in a log -> name in the table, where they differ: arm, reward, probability (of the chosen arm),
            probabilities (lists, in the order of the arms), arms (lists of the arms on offer), features (lists of
            lists), event_id, time, policy.
        context: columns that describe the occasion, shared by all arms: numbers, words, dates, lists of words; or a
            table of their names and types (`sb.Features`).
        arms: all arms, if the rows do not say which were on offer; None uses those that occur, in order.

    Example:
        >>> import solid_bandits as sb
        >>> table = {"arm": ["a", "b", "a"], "reward": [1.0, 0.0, 0.5], "probability": [0.5, 0.5, 0.5]}
        >>> log = sb.logs.from_table(table)
        >>> log["arm"].to_list(), log["arms"][0].to_list()
        (['a', 'b', 'a'], ['a', 'b'])
    """
    frame = _frame(table)
    chosen = _chosen(frame, columns, context)
    if is_simulated(frame.columns):
        check_one_run(frame)
    out = frame.select(pl.col(column).alias(name) for name, column in chosen.items())
    times = [name for name in ("time", "reward_time") if name in chosen and out[name].dtype != TIME]
    out = typed(out.with_columns(_time(out[name]) for name in times))
    if "arms" not in chosen:
        out = out.with_columns(_offered(out, chosen, arms))
    if context:
        kinds = dict(context) if isinstance(context, Mapping) else dict.fromkeys(context)
        out = out.with_columns(pl.Series("context", contexts_of(frame, kinds), dtype=pl.String))
    return _completed(out)


def _chosen(frame: pl.DataFrame, columns: Mapping[str, str] | None, context: Any) -> dict[str, str]:
    """Return name in a log -> name in the table."""
    if columns is not None and not isinstance(columns, Mapping):
        raise ArgumentError("columns", f"must map names in a log to names in the table, got {short(columns)}")
    if isinstance(context, str) or not isinstance(context, Sequence | Mapping):
        raise ArgumentError("context", f"must be a list of columns, got {short(context)}")
    chosen = {name: name for name in COLUMNS if name in frame.columns} | dict(columns or {})
    for name, column in chosen.items():
        if name not in COLUMNS:
            raise ArgumentError("columns", f"must name columns of a log ({', '.join(COLUMNS)}), got {name!r}")
        if column not in frame.columns:
            raise ArgumentError("columns", f"must be in the table, got {column!r} for {name!r}")
    for column in context:
        if column not in frame.columns:
            raise ArgumentError("context", f"must be columns of the table, got {column!r}")
    if "arm" not in chosen:
        raise ArgumentError("columns", f"must name the column of the arm, got {', '.join(frame.columns)}")
    return chosen


def _offered(out: pl.DataFrame, chosen: Mapping[str, str], arms: Sequence[str] | None) -> pl.Series:
    """Return the arms on offer in every row, if no column has them."""
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
            raise ArgumentError("arms", f"must be distinct names, got {short(arms)}")
    return pl.Series("arms", [known], dtype=pl.List(pl.String)).new_from_index(0, out.height)


def _completed(out: pl.DataFrame) -> pl.DataFrame:
    """Return all columns of a log in their types, taking a missing probability of the arm from those of all arms."""
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
    """Return times as the log has them from ISO text, Unix seconds or dates; without a zone they are UTC."""

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
        if values.dtype == pl.String:  # all must have the form of the first
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
        if hasattr(table, "to_dict") and hasattr(
            table, "columns"
        ):  # a pandas frame, detected without importing pandas
            return pl.DataFrame(
                {str(name): list(map(of_pandas, table[name].to_list())) for name in table.columns}
            )
        return pl.DataFrame(table)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise ArgumentError(
            "table", f"must be a table of named columns, got {short(table)} ({first_line(error)})"
        ) from None
