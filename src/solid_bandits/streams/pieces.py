"""Rows of a table as rounds: one row per round, or one per round and arm."""

import numpy as np
import polars as pl

from solid_bandits._internal.types import Bools, Ints
from solid_bandits.streams.columns import ARM, Cells, Columns
from solid_bandits.streams.encoding import Piece


def read_piece(columns: Columns, arms: tuple[str, ...], n_arms: int, cells: Cells) -> Piece:
    """Return rows as rounds with `n_arms` arms; if a row is an arm of a round, the rows of a round must be
    contiguous.
    """
    if columns.label is not None:
        return read_label(columns, arms, cells)
    if columns.round is None:
        return read_wide(columns, arms, cells)
    cells.words(columns.round)  # raises if one is missing
    return read_long(columns, arms, n_arms, cells, round_starts(cells.frame[columns.round]))


def read_wide(columns: Columns, arms: tuple[str, ...], cells: Cells) -> Piece:
    """Read one row per round, with columns named after the arms."""
    count, n_arms = len(cells.rows), len(arms)
    available: Bools = np.ones((count, n_arms), dtype=np.bool_)
    if columns.available is not None:
        for place, arm in enumerate(arms):
            available[:, place] = cells.truths(columns.available.replace(ARM, arm))
        check_some_available(available, cells.rows)
    own = np.zeros((count, n_arms, len(columns.features)))
    rewards = np.zeros((count, n_arms))
    assert columns.reward is not None
    for place, arm in enumerate(arms):
        offered = available[:, place]
        for feature, template in enumerate(columns.features):
            own[:, place, feature] = cells.features(template.replace(ARM, arm), offered)
        rewards[:, place] = cells.rewards(columns.reward.replace(ARM, arm), offered)
    return Piece(
        own, read_context(columns, cells), rewards, available, _all(count, n_arms), _ids(columns, cells)
    )


def read_label(columns: Columns, arms: tuple[str, ...], cells: Cells) -> Piece:
    """Read one row per round, with the name of the right arm, which has reward 1, and the others 0."""
    count, n_arms = len(cells.rows), len(arms)
    assert columns.label is not None
    rewards = np.zeros((count, n_arms))
    right = cells.codes(columns.label, {arm: place for place, arm in enumerate(arms)})
    rewards[np.arange(count), right] = 1.0
    available = np.ones((count, n_arms), dtype=np.bool_)
    own = np.zeros((count, n_arms, 0))
    return Piece(
        own, read_context(columns, cells), rewards, available, _all(count, n_arms), _ids(columns, cells)
    )


def read_long(columns: Columns, arms: tuple[str, ...], n_arms: int, cells: Cells, starts: Ints) -> Piece:
    """Read one row per round and arm; the rows of a round are contiguous, and `starts` are their first ones.

    Arms are numbered by their names, or by their position in the round if they have none.
    """
    count = len(starts)
    sizes = np.diff(np.append(starts, len(cells.rows)))
    rounds = np.repeat(np.arange(count), sizes)
    offered = np.ones(len(rounds), dtype=np.bool_)
    if columns.available is not None:
        offered = cells.truths(columns.available)
    if columns.arm is not None:
        slots = cells.codes(columns.arm, {arm: place for place, arm in enumerate(arms)})
        _check_once(columns.arm, slots, rounds, n_arms, cells)
        counts = _all(count, n_arms)
    else:
        slots = np.arange(len(rounds)) - np.repeat(starts, sizes)
        counts = sizes.astype(np.int64)
    available: Bools = np.zeros((count, n_arms), dtype=np.bool_)
    available[rounds, slots] = offered
    check_some_available(available, cells.rows[starts])
    own = np.zeros((count, n_arms, len(columns.features)))
    for feature, name in enumerate(columns.features):
        own[rounds, slots, feature] = cells.features(name, offered)
    assert columns.reward is not None
    rewards = np.zeros((count, n_arms))
    rewards[rounds, slots] = cells.rewards(columns.reward, offered)
    context = read_context(columns, cells)
    for place, name in enumerate(columns.context):
        differs = context[:, place] != context[starts, place][rounds]
        if differs.any():
            raise cells.bad(name, differs, "the same number in all rows of a round")
    first = Cells(cells.frame[starts.tolist()], cells.rows[starts], cells.text)
    return Piece(own, context[starts], rewards, available, counts, _ids(columns, first))


def round_starts(ids: pl.Series) -> Ints:
    """Return the first row of each round; the rows of a round must be contiguous."""
    if len(ids) == 0:
        return np.zeros(0, dtype=np.int64)
    changes = (ids != ids.shift(1)).fill_null(True).to_numpy()
    return np.flatnonzero(changes).astype(np.int64)


def read_context(columns: Columns, cells: Cells) -> np.ndarray:
    """Read the features that all arms share, shape (rows, context)."""
    context = np.zeros((len(cells.rows), len(columns.context)))
    for place, name in enumerate(columns.context):
        context[:, place] = cells.features(name)
    return context


def check_some_available(available: Bools, rows: Ints) -> None:
    """Raise an error for a round without an available arm."""
    none = ~available.any(axis=1)
    if none.any():
        raise ValueError(f"each round must have an available arm, got none in row {rows[int(none.argmax())]}")


def _check_once(column: str, slots: Ints, rounds: Ints, n_arms: int, cells: Cells) -> None:
    keys = rounds * n_arms + slots
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        again = np.ones(len(keys), dtype=np.bool_)
        again[first] = False
        raise cells.bad(column, again, "each arm once in a round")


def _ids(columns: Columns, cells: Cells) -> np.ndarray:
    """Return names of the rounds whose first rows these are."""
    named = columns.event_id or columns.round
    return cells.rows if named is None else np.array(cells.words(named), dtype=object)


def _all(rounds: int, n_arms: int) -> Ints:
    counts: Ints = np.full(rounds, n_arms, dtype=np.int64)
    return counts
