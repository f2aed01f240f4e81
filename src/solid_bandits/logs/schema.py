"""The columns of a log: one row per decision."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import polars as pl

from solid_bandits._internal import checks
from solid_bandits._internal.types import Ints
from solid_bandits.core.decision import SAID
from solid_bandits.core.setting import LARGEST_FEATURE, LARGEST_REWARD

SLACK = 1e-6
"""Tolerance on the sum of a row's probabilities."""
SAME = 1e-4
"""Relative tolerance between two copies of an arm's probability in a row, which may be rounded differently."""
_AT_ONCE = 50_000
"""Number of rows checked together, so that memory does not grow with a log."""
TIME = pl.Datetime("us", "UTC")

COLUMNS: dict[str, Any] = {
    "event_id": pl.String,
    "sequence": pl.Int64,
    "batch": pl.Int64,
    "time": TIME,
    "arms": pl.List(pl.String),
    "features": pl.List(pl.List(pl.Float64)),
    "context": pl.String,
    "arm_features": pl.List(pl.String),
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
    **dict.fromkeys(SAID, pl.String),
}
"""Name -> type.

`sequence` and `reward_sequence` count all decisions and rewards of a bandit together: its state is the result of this
order. `batch` is the `sequence` of the first of the decisions that were made together, under the same evidence; it is
null where one was made alone. `arms` are the arms on offer, with `features`, one row for each, or with named values
from the caller: the shared `context` and the arms' own `arm_features`, each a JSON object of names and values.
`probabilities` belong to the arms. A `reward` is null if none has come; with a `reward_time` it never will, as the
decision expired. `defaulted` rewards belong to decisions that expired with one. Any column but `arm` may be null
where it is unknown.
"""

SIMULATED: dict[str, Any] = {"run": pl.Int64, "predicted": pl.Float64, "means": pl.List(pl.Float64)}
"""Further columns of decisions that a simulation recorded: the run, the estimate of the reward, and the mean rewards of
the arms on offer.
"""


def empty() -> pl.DataFrame:
    """Return a log without rows."""
    return pl.DataFrame(schema=COLUMNS)


def is_simulated(names: Collection[str]) -> bool:
    """Return whether a table with these columns was recorded by a simulation."""
    return set(names) >= COLUMNS.keys() | SIMULATED.keys()


def check_one_run(runs: pl.DataFrame) -> None:
    """Raise an error for decisions of several policies or runs, given their columns `policy` and `run`."""
    groups = runs.select("policy", "run").n_unique()
    if groups > 1:
        raise checks.ArgumentError(
            "log",
            f"must have the decisions of one policy in one run, got {groups}; filter the table first "
            "(on the command line: --where policy=NAME --where run=0)",
        )


def lists_of(counts: Ints, flat: Any) -> pl.Series:
    """Return flat values as lists of these lengths; values with two axes become lists of lists.

    Polars takes a hundred times as long to convert Python's lists.
    """
    flat = np.ascontiguousarray(flat) if isinstance(flat, np.ndarray) else pl.Series(flat)
    if (counts == counts[0]).all():
        shape = (len(counts), int(counts[0]), *flat.shape[1:])
        if isinstance(flat, pl.Series):
            return flat.reshape(shape).cast(pl.List(flat.dtype))
        kind: Any = pl.Series(flat.reshape(-1)[:0]).dtype
        narrow = wide = kind
        for length in reversed(shape[1:]):
            narrow, wide = pl.Array(narrow, length), pl.List(wide)
        return pl.Series(flat.reshape(shape), dtype=narrow).cast(wide)
    values = pl.Series(flat)
    if isinstance(values.dtype, pl.Array):
        values = values.arr.to_list()
    rows = pl.DataFrame({"row": np.repeat(np.arange(len(counts)), counts), "values": values})
    return rows.group_by("row", maintain_order=True).agg("values")["values"]


def check_log(table: pl.DataFrame, name: str = "log") -> pl.DataFrame:
    """Return the table with exactly the columns of a log; raise a ValueError if it lacks them or a row is invalid."""
    if not isinstance(table, pl.DataFrame):
        raise ValueError(
            f"{name} must be a polars DataFrame with the columns of a log, got {checks.short(table)}; "
            "use logs.from_table"
        )
    if is_simulated(table.columns):
        check_one_run(table)
        table = table.select(*COLUMNS)
    if set(table.columns) != set(COLUMNS):
        missing = sorted(set(COLUMNS) - set(table.columns))
        other = sorted(set(table.columns) - set(COLUMNS))
        raise ValueError(
            f"{name} must have the columns of a log, got {'none of ' + ', '.join(missing) if missing else ''}"
            f"{' and ' if missing and other else ''}{'also ' + ', '.join(other) if other else ''}; use logs.from_table"
        )
    result = typed(table.select(*COLUMNS), name)
    check_rows(result, name)
    return result


def typed(table: pl.DataFrame, name: str = "log", first: int = 0) -> pl.DataFrame:
    """Return columns of a log in their types; a ValueError names the column, and the row if one has another type.

    Args:
        table: some columns of a log.
        name: its name in messages.
        first: the number of its first row.
    """
    changed = [
        _cast(column, COLUMNS[column.name], name, first)
        for column in table
        if column.dtype != COLUMNS[column.name]
    ]
    return table.with_columns(changed)


def _cast(values: pl.Series, kind: Any, name: str, first: int) -> pl.Series:
    words = _words(kind)
    inner: Any = values.dtype
    wanted = kind
    while isinstance(wanted, pl.List) and isinstance(inner, pl.List | pl.Array):
        inner, wanted = inner.inner, wanted.inner
    plain = isinstance(inner, pl.Null)
    # Reject types that polars would also turn into numbers, or into lists of one.
    if isinstance(wanted, pl.List) or inner.is_nested() or isinstance(inner, pl.Object):
        plain = plain or values.null_count() == len(values)
    elif wanted in (pl.Float64, pl.Int64):
        plain = plain or inner.is_numeric() or inner in (pl.Boolean, pl.String)
    elif wanted == TIME:
        plain = plain or inner in (pl.String, pl.Date) or isinstance(inner, pl.Datetime)
    else:
        plain = True
    if not plain:
        raise ValueError(f"{name} must have {words} in its column {values.name!r}, got {values.dtype}")

    def sound(part: pl.Series) -> bool:
        try:
            found = part.cast(kind)
        except pl.exceptions.PolarsError:
            return False
        return kind != pl.Int64 or not inner.is_float() or bool((found == part).all())

    if not sound(values):
        at = first_broken(values, sound)
        got = checks.short(values.slice(at, 1).to_list()[0])
        raise ValueError(f"{name} row {first + at} must have {words} in column {values.name!r}, got {got}")
    return values.cast(kind)


def _words(kind: Any) -> str:
    if isinstance(kind, pl.List):
        return f"lists of {_words(kind.inner).removeprefix('a ')}" + ("s" if kind.inner == pl.Float64 else "")
    if kind == TIME:
        return "a time"
    return {
        pl.Float64: "a number",
        pl.Int64: "a whole number",
        pl.String: "text",
        pl.Boolean: "true or false",
    }[kind]


def first_broken(values: pl.Series, sound: Callable[[pl.Series], bool]) -> int:
    """Return the first index of a column that fails the check, by bisection; the whole column fails it."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        if sound(values.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def check_rows(table: pl.DataFrame, name: str = "log", first: int = 0) -> None:
    """Raise a ValueError that names an invalid row, `first` being the number of the first row."""
    for start in range(0, table.height, _AT_ONCE):
        _check_part(table.slice(start, _AT_ONCE), name, first + start)


def _check_part(table: pl.DataFrame, name: str, first: int) -> None:
    offered = pl.col("arms").list.len()
    summed = pl.col("probabilities").list.sum()
    rules = [
        ("arm", "must have an arm", pl.col("arm").is_null()),
        ("arms", "must have its arm among its arms", ~pl.col("arms").list.contains(pl.col("arm"))),
        ("arms", "must have each of its arms once", pl.col("arms").list.n_unique() != offered),
        (
            "probabilities",
            "must have a probability for each arm",
            pl.col("probabilities").list.len() != offered,
        ),
        ("features", "must have features for each arm", pl.col("features").list.len() != offered),
        ("arm_features", "must have features for each arm", pl.col("arm_features").list.len() != offered),
        (
            "reward",
            f"must have a finite reward of at most {LARGEST_REWARD:g} in size",
            ~pl.col("reward").is_between(-LARGEST_REWARD, LARGEST_REWARD),
        ),
        (
            "probability",
            "must have a probability from 0 to 1",
            ~pl.col("probability").is_between(0, 1 + 1e-9),
        ),
        (
            "probabilities",
            "must have probabilities that sum to 1",
            ((summed - 1).abs() > SLACK) | (pl.col("probabilities").list.min() < 0),
        ),
    ]
    flags = [broken.fill_null(False).alias(str(place)) for place, (_, _, broken) in enumerate(rules)]
    found = table.select(flag.any() for flag in flags).row(0)
    for place, broken in enumerate(found):
        if broken:
            at = table.select(flags[place].arg_true()).item(0, 0)
            column, complaint, _ = rules[place]
            _refuse(table, name, first, at, complaint, "" if column == "arm" else table[column][at])
    for column, complaint, limit in (
        ("arms", "must have no null among its arms", None),
        ("probabilities", "must have no null among its probabilities", None),
        ("features", f"must have finite features of at most {LARGEST_FEATURE:g} in size", LARGEST_FEATURE),
        ("arm_features", "must have no null among the features of its arms", None),
    ):
        if not _are_sound(table[column], limit):
            at = first_broken(table[column], lambda part, limit=limit: _are_sound(part, limit))  # type: ignore[misc]
            _refuse(table, name, first, at, complaint, _culprit(table[column][at], limit))
    _check_own(table, name, first)


def _refuse(table: pl.DataFrame, name: str, first: int, at: int, complaint: str, got: Any) -> None:
    said = "" if isinstance(got, str) else f", got {checks.short(_plain(got))}"
    raise ValueError(f"{name} row {first + at} (event_id {table['event_id'][at]!r}) {complaint}{said}")


def _plain(value: Any) -> Any:
    return value.to_list() if isinstance(value, pl.Series) else value


def _are_sound(lists: pl.Series, limit: float | None) -> bool:
    """Return whether lists, or lists of lists, contain only numbers within the limit, and no null."""
    flat, outermost = lists, True
    while isinstance(flat.dtype, pl.List):
        if flat.null_count():
            if not outermost:
                return False
            flat = flat.drop_nulls()
        lengths = flat.list.len()
        flat = flat if len(flat) and lengths.min() else flat.filter(lengths > 0)
        flat, outermost = flat.explode(), False
    return not flat.null_count() and (limit is None or bool(flat.is_between(-limit, limit).all()))


def _culprit(value: Any, limit: float | None) -> Any:
    """Return the first invalid value in a list, or in one of its lists."""
    for one in _plain(value):
        if isinstance(one, list):
            inner = _culprit(one, limit)
            if not isinstance(inner, list):
                return inner
        elif one is None or (limit is not None and not -limit <= one <= limit):
            return one
    return _plain(value)


def _check_own(table: pl.DataFrame, name: str, first: int) -> None:
    """Raise an error if the probability of the chosen arm differs from its entry in the probabilities of all arms."""
    known = pl.all_horizontal(pl.col("arms", "probabilities", "probability").is_not_null())
    both = table.select("arms", "arm", "probabilities", "probability").with_row_index("row").filter(known)
    if not both.height:
        return
    lengths = both["arms"].list.len().to_numpy()
    chosen = both["arm"].gather(np.repeat(np.arange(both.height), lengths))
    own = both["probabilities"].explode().filter(both["arms"].explode() == chosen).to_numpy()
    given = both["probability"].to_numpy()
    differ = np.abs(own - given) > SAME * np.maximum(own, given)
    if differ.any():
        at = int(differ.argmax())
        row = both["row"][at]
        raise ValueError(
            f"{name} row {first + row} (event_id {table['event_id'][row]!r}) must have the probability that its arm "
            f"has among its probabilities, {own[at]:g}, got {given[at]:g}"
        )
