"""The columns of a log: one row per decision."""

from datetime import UTC, datetime
from typing import Any

import polars as pl

from solid_bandits import _check

TIME = pl.Datetime("us", "UTC")

COLUMNS: dict[str, Any] = {
    "event_id": pl.String,
    "sequence": pl.Int64,
    "time": TIME,
    "arms": pl.List(pl.String),
    "features": pl.List(pl.List(pl.Float64)),
    "context": pl.List(pl.Float64),
    "probabilities": pl.List(pl.Float64),
    "arm": pl.String,
    "probability": pl.Float64,
    "explored": pl.Boolean,
    "reward": pl.Float64,
    "defaulted": pl.Boolean,
    "reward_sequence": pl.Int64,
    "reward_time": TIME,
    "policy": pl.String,
    "model_version": pl.String,
}
"""Name -> type.

`sequence` and `reward_sequence` count all decisions and rewards of a bandit together: in this order its state came
about. `arms` are those on offer, with `features`, one row for each, or with a `context` that they share, and
`probabilities`. A `reward` is null where none has come; with a `reward_time` it never will, as the decision expired.
`defaulted` rewards are those of decisions that expired with one. Any column but `arm` may be null where it is unknown.
"""


def empty() -> pl.DataFrame:
    """A log without rows."""
    return pl.DataFrame(schema=COLUMNS)


def check_log(table: pl.DataFrame, name: str = "log") -> pl.DataFrame:
    """The table with exactly the columns of a log; a ValueError unless it has them and sound rows."""
    if set(table.columns) != set(COLUMNS):
        missing = sorted(set(COLUMNS) - set(table.columns))
        other = sorted(set(table.columns) - set(COLUMNS))
        raise ValueError(
            f"{name} must have the columns of a log, got {'none of ' + ', '.join(missing) if missing else ''}"
            f"{' and ' if missing and other else ''}{'also ' + ', '.join(other) if other else ''}; use logs.from_table"
        )
    try:
        result = table.select(pl.col(column).cast(kind) for column, kind in COLUMNS.items())
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{name} must have the types of a log ({str(error).splitlines()[0]})") from None
    check_rows(result, name)
    return result


def check_rows(table: pl.DataFrame, name: str = "log") -> None:
    """Raise a ValueError that names the first row that cannot be."""
    offered = pl.col("arms").list.len()
    rules = [
        ("must have an arm", pl.col("arm").is_null()),
        ("must have its arm among its arms", ~pl.col("arms").list.contains(pl.col("arm"))),
        ("must have each of its arms once", pl.col("arms").list.n_unique() != offered),
        ("must have a probability for each arm", pl.col("probabilities").list.len() != offered),
        ("must have features for each arm", pl.col("features").list.len() != offered),
        ("must have a finite reward", ~pl.col("reward").is_finite()),
        ("must have a probability from 0 to 1", ~pl.col("probability").is_between(0, 1 + 1e-9)),
        (
            "must have probabilities that sum to 1",
            ((pl.col("probabilities").list.sum() - 1).abs() > 1e-6)
            | (pl.col("probabilities").list.min() < 0),
        ),
    ]
    flags = [broken.fill_null(False).alias(str(place)) for place, (_, broken) in enumerate(rules)]
    found = table.select(flag.any() for flag in flags).row(0) if table.height else ()
    for place, broken in enumerate(found):
        if broken:
            at = table.select(flags[place].arg_true()).item(0, 0)
            event = table["event_id"][at]
            raise ValueError(f"{name} row {at} (event_id {event!r}) {rules[place][0]}")


def microseconds(name: str, value: datetime | float) -> int:
    """A time, as an aware datetime or Unix seconds, in microseconds since 1970."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} must have a time zone, such as datetime.now(UTC), got {value!r}")
        difference = value - datetime(1970, 1, 1, tzinfo=UTC)
        return (difference.days * 86_400 + difference.seconds) * 1_000_000 + difference.microseconds
    return round(_check.number(name, value, least=-1e11, most=1e11) * 1e6)
