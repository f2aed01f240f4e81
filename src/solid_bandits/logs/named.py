"""Named values in a log: the context and arms' own features as the caller named them, and the resulting features."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.types import Floats
from solid_bandits.features.columns import Columns
from solid_bandits.features.design import Design, Growth, Named
from solid_bandits.features.spec import Features
from solid_bandits.logs.schema import COLUMNS, check_log


def as_text(values: Mapping[str, Any]) -> str:
    """Return named values as a log stores them."""
    return json.dumps(values, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def contexts_of(frame: pl.DataFrame, kinds: Mapping[str, str | None], what: str = "context") -> list[str]:
    """Return the rows of some columns as texts of named values; raise a ValueError that names an invalid row."""
    columns = Columns(kinds, 1, what)
    types = dict(kinds)
    found = []
    for place, row in enumerate(frame.select(*kinds).iter_rows(named=True)):
        try:
            found.append(as_text(columns.check(row, types)[0]))
        except ArgumentError as error:
            raise ArgumentError("log", f"row {place}: {error}") from None
    return found


def values(log: pl.DataFrame) -> pl.DataFrame:
    """Return the named values of each decision's context as a table with one column per name.

    Example:
        >>> import solid_bandits as sb
        >>> table = {"arm": ["a", "b"], "reward": [1.0, 0.0], "age": [31, 54], "device": ["ios", None]}
        >>> log = sb.logs.from_table(table, context=["age", "device"])
        >>> sb.logs.values(log).rows()
        [(31, 'ios'), (54, None)]
    """
    rows = [
        {} if text is None else _loaded(text, place) for place, text in enumerate(check_log(log)["context"])
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame(
        {name: pl.Series(name, [row.get(name) for row in rows], strict=False) for name in names}
    )


def _loaded(text: str, row: int) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ArgumentError("log", f"row {row} must have a context that is a JSON object, got {short(text)}")
    return found


Raw = tuple[dict[str, Any], Sequence[str], list[dict[str, Any]] | None]
"""Context, arms and the arms' own features of a row."""


def named_rows(table: pl.DataFrame, first: int = 0) -> Iterator[Raw]:
    """Yield the named values of each row of a log with contexts."""
    for place, row in enumerate(table.select("context", "arms", "arm_features").iter_rows(named=True), first):
        yield raw_of(row, place)


def raw_of(row: Mapping[str, Any], place: int) -> Raw:
    """Return the named values of one row."""
    context, own = row["context"], row["arm_features"]
    shared = {} if context is None else _loaded(context, place)
    return shared, row["arms"], None if own is None else [_loaded(text, place) for text in own]


def declared(rows: Iterable[Raw]) -> Features:
    """Return the features that the names in a log declare, in order of appearance, with all arms that were on offer."""
    context: dict[str, None] = {}
    own: dict[str, None] = {}
    arms: dict[str, None] = {}
    for shared, offered, mine in rows:
        context |= dict.fromkeys(shared)
        arms |= dict.fromkeys(offered)
        for one in mine or ():
            own |= dict.fromkeys(one)
    return Features(list(context), None if own else list(arms), list(own))


def told(design: Design, row: Raw, growth: Growth | None = None) -> Named:
    """Return a row as a design reads it, without names that it does not declare."""
    shared, arms, own = row
    features = design.features
    context = {name: value for name, value in shared.items() if name in features.context}
    if not features.arm_features:
        return design.check(context, list(arms), growth)
    mine = [
        {name: value for name, value in one.items() if name in features.arm_features}
        for one in own or [{}] * len(arms)
    ]
    return design.check(context, dict(zip(arms, mine, strict=True)), growth)


def taken(rows: Iterable[Raw], features: Features) -> Design:
    """Return the design of these features after all rows, in order."""
    design = Design(features)
    for place, row in enumerate(rows):
        try:
            design.take(told(design, row))
        except ArgumentError as error:
            raise ArgumentError("log", f"row {place}: {error}") from None
    return design


def expanded(design: Design, rows: Floats) -> Floats:
    """Return features with a block number as features of the joint estimate, which are 0 outside the arm's block."""
    if not design.blocked:
        return rows
    found = np.zeros((len(rows), len(design.arms), design.dim))
    found[np.arange(len(rows)), rows[:, 0].astype(np.int64)] = rows[:, 1:]
    return found.reshape(len(rows), -1)


def with_features(log: pl.DataFrame, features: Features | None = None) -> pl.DataFrame:
    """Return the log with features made of its named values, in the coordinates in force after its last row.

    Args:
        log: a log with named contexts, or with named features of arms.
        features: declaration of the features; None declares those in the log, where arms without features of their own
            have separate coefficients.

    Example:
        >>> import solid_bandits as sb
        >>> table = {"arm": ["a", "b"], "reward": [1.0, 0.0], "age": [31.0, 54.0]}
        >>> log = sb.logs.from_table(table, context=["age"])
        >>> sb.logs.with_features(log)["features"][0].to_list()
        [[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]]
    """
    log = check_log(log)
    if log["arms"].null_count() or (log["context"].null_count() and log["arm_features"].null_count()):
        raise ArgumentError("log", "must have arms, and a context or features of its arms, in every row")
    features = declared(named_rows(log)) if features is None else features
    design = taken(named_rows(log), features)
    rows = [expanded(design, design.encode(told(design, row))).tolist() for row in named_rows(log)]
    return log.with_columns(pl.Series("features", rows, dtype=COLUMNS["features"]))
