"""Policies to be evaluated: each gives the probabilities of the arms of every row, and does not learn from it."""

import inspect
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits._check import ArgumentError, short
from solid_bandits._types import Floats
from solid_bandits.agent import Agent
from solid_bandits.live.bandit import Bandit
from solid_bandits.ope.rows import Rows

SLACK = 1e-6
"""By which probabilities may miss a sum of 1."""


class Target:
    """A policy as `evaluate` asks it: from rows to probabilities, shape (rows, arms)."""

    def __init__(self, function: Callable[[Rows], Floats]) -> None:
        self._function = function

    def __call__(self, rows: Rows) -> Floats:
        """The probabilities of the arms of every row."""
        return self._function(rows)


def uniform() -> Target:
    """All arms on offer with the same probability.

    Example:
        >>> import solid_bandits as sb
        >>> trial = {"arm": ["a", "b"] * 50, "reward": [1.0, 0.0] * 50, "probability": [0.5] * 100}
        >>> sb.ope.evaluate(trial, sb.ope.uniform(), ["snips"], logger="fixed").value("snips")
        0.5
    """
    return Target(lambda rows: rows.mask / rows.counts[:, None])


def always(arm: str) -> Target:
    """One arm, which must be on offer in every row.

    Example:
        >>> import solid_bandits as sb
        >>> trial = {"arm": ["a", "b"] * 50, "reward": [1.0, 0.0] * 50, "probability": [0.5] * 100}
        >>> sb.ope.evaluate(trial, sb.ope.always("a"), ["snips"], logger="fixed").value("snips")
        1.0
    """

    def target(rows: Rows) -> Floats:
        code = rows.names.index(str(arm)) if str(arm) in rows.names else -2
        found = (rows.codes == code).astype(np.float64)
        if not found.any(axis=1).all():
            row = int(rows.where[~found.any(axis=1)][0])
            raise ArgumentError(
                "policy", f"must be an arm that is on offer in every row, got {arm!r}, not in row {row}"
            )
        return found

    return Target(target)


class Loaded(NamedTuple):
    """An agent and the ids of the events that it is known to have learnt from."""

    agent: Agent
    learnt: Collection[str]


def learnt_events(policy: Any) -> Collection[str]:
    """The ids of the events that a policy is known to have learnt from; a bandit knows those that it remembers."""
    if isinstance(policy, Bandit):
        return [record.event_id for record in policy._memory if record.reward is not None]
    return policy.learnt if isinstance(policy, Loaded) else ()


def as_target(policy: Any, rows: int | None = None) -> Target:
    """What `evaluate` takes for a policy, as a target; `rows` is the height of the log, where it is known."""
    if isinstance(policy, Target):
        return policy
    if isinstance(policy, str):
        kind, _, name = policy.partition(":")
        if policy == "uniform":
            return uniform()
        if kind == "always" and name:
            return always(name)
        raise ArgumentError("policy", f"must be uniform or always:ARM where it is text, got {policy!r}")
    agent = getattr(policy, "agent", policy)  # of a Bandit
    if isinstance(agent, Agent):
        return _frozen(agent)
    if isinstance(policy, np.ndarray | pl.Series | list | tuple):
        check_lists("policy", policy, rows)
        return _given(policy)
    if callable(policy):
        return _function(policy)
    raise ArgumentError(
        "policy",
        f"must be an Agent, a Bandit, a function of features, probabilities or text, got {short(policy)}",
    )


def check_lists(name: str, lists: Any, rows: int | None) -> None:
    """Refuse what is not one list for each row of the log."""
    if isinstance(lists, pl.Series):
        inner = lists.dtype.inner if isinstance(lists.dtype, pl.List | pl.Array) else None
        sound = isinstance(inner, pl.DataType) and inner.is_numeric()
        got = f"a Series of {lists.dtype}"
    elif isinstance(lists, np.ndarray):
        sound = lists.ndim == 2 and lists.dtype.kind in "biuf"
        sound = sound or (lists.ndim == 1 and lists.dtype.kind == "O")
        got = f"an array of {lists.dtype} of shape {lists.shape}"
    else:
        sound, got = True, ""
    if not sound:
        raise ArgumentError(name, f"must be one list of numbers per row of the log, got {got}")
    if rows is not None and len(lists) != rows:
        raise ArgumentError(
            name, f"must have one list for each of the {rows:,} rows of the log, got {len(lists):,}"
        )


def checked(target: Callable[[Rows], Floats], rows: Rows) -> Floats:
    """The target's probabilities, if they are some."""
    found = np.asarray(target(rows), dtype=np.float64)
    if found.shape != rows.mask.shape:
        raise ArgumentError(
            "policy", f"must give probabilities of shape {rows.mask.shape}, got {found.shape}"
        )
    sound = (
        np.isfinite(found).all(axis=1)
        & (found >= 0).all(axis=1)
        & ~np.where(rows.mask, 0.0, found).any(axis=1)
    )
    sound &= np.abs(found.sum(axis=1) - 1) <= SLACK
    if not sound.all():
        row = int(np.flatnonzero(~sound)[0])
        raise ArgumentError(
            "policy",
            "must give probabilities >= 0 that sum to 1, of the arms on offer alone, got "
            f"{found[row, : rows.counts[row]]} in row {rows.where[row]}",
        )
    return found


def _frozen(agent: Agent) -> Target:
    """An agent as it is; what it gives is its probabilities of the next decision."""

    def target(rows: Rows) -> Floats:
        if rows.features is None:
            raise ArgumentError("log", "must have features to evaluate an agent by it")
        if rows.features.shape[2] != agent.dim:
            raise ArgumentError(
                "policy", f"must be an agent of dim {rows.features.shape[2]} as the log is, got {agent.dim}"
            )
        found = agent.probabilities_many(rows.features, rows.counts, rows.mask)
        if found is None:
            raise ArgumentError(
                "policy",
                f"must give its probabilities: make the agent of {agent.policy.name} with probabilities=True",
            )
        return found

    return Target(target)


def _given(values: Any) -> Target:
    """Probabilities that were computed before, one list per row of the log."""
    return Target(lambda rows: by_row("policy", "probabilities", values, rows))


def by_row(name: str, what: str, values: Any, rows: Rows) -> Floats:
    """The numbers that were given for the arms of each row, found by the rows' numbers; zeros beyond their arms."""
    found: Floats = np.zeros(rows.mask.shape)
    if isinstance(values, pl.Series):
        own = (values.arr.to_list() if isinstance(values.dtype, pl.Array) else values).gather(rows.where)
        lengths = own.list.len().fill_null(0).to_numpy()
        if not np.array_equal(lengths, rows.counts):
            row = int(np.flatnonzero(lengths != rows.counts)[0])
            raise _wrong(name, what, rows, row, own[row])
        found[rows.mask] = own.explode().cast(pl.Float64).fill_null(np.nan).to_numpy()
        return found
    if isinstance(values, np.ndarray) and values.ndim == 2:
        taken: Any = np.asarray(values[rows.where], dtype=np.float64)
        width = min(taken.shape[-1], rows.mask.shape[-1])
        found[:, :width] = taken[:, :width]
        # A rectangle may be wider than a row's arms, by zeros.
        beyond = taken[:, width:].any(axis=1) | np.where(rows.mask, 0.0, found).any(axis=1)
        bad = beyond | (rows.counts > width)
        if bad.any():
            row = int(bad.argmax())
            raise _wrong(name, what, rows, row, taken[row])
        return found
    for row, (place, count) in enumerate(zip(rows.where, rows.counts, strict=True)):
        listed: Any = values[place] if place < len(values) else ()
        try:
            numbers = np.asarray(listed, dtype=np.float64)
        except (TypeError, ValueError):
            raise _wrong(name, what, rows, row, listed) from None
        if numbers.ndim != 1 or len(numbers) < count or np.any(numbers[count:]):
            raise _wrong(name, what, rows, row, listed)
        found[row, :count] = numbers[:count]
    return found


def _wrong(name: str, what: str, rows: Rows, row: int, got: Any) -> ArgumentError:
    shown = (
        got.to_list() if isinstance(got, pl.Series) else got.tolist() if isinstance(got, np.ndarray) else got
    )
    return ArgumentError(
        name,
        f"must have {rows.counts[row]} {what} in row {rows.where[row]}, one for each arm, got {short(shown)}",
    )


def _function(policy: Callable[..., Any]) -> Target:
    """A function of the features of the arms on offer, shape (arms, dim), and their names; of the context where the
    arms share one. It returns a probability for each, or the place of one arm.
    """

    def target(rows: Rows) -> Floats:
        found = np.zeros(rows.mask.shape)
        try:
            inspect.signature(policy).bind(None, [])
        except TypeError:
            raise ArgumentError(
                "policy", f"must be a function of features and names of the arms, got {short(policy)}"
            ) from None
        except ValueError:
            pass  # what is written in another language does not tell
        given = rows.features if rows.features is not None else rows.context
        for row, count in enumerate(rows.counts):
            names = [rows.names[code] for code in rows.codes[row, :count]]
            shown = None if given is None else given[row, :count] if rows.features is not None else given[row]
            answer = np.asarray(policy(shown, names))
            if answer.dtype.kind not in "biuf":
                raise ArgumentError("policy", f"must return numbers, got {short(answer.tolist())}")
            if answer.ndim == 0 and answer.dtype.kind in "iu" and 0 <= answer < count:
                found[row, int(answer)] = 1.0
            elif answer.shape == (count,):
                found[row, :count] = answer
            else:
                raise ArgumentError(
                    "policy",
                    f"must return {count} probabilities, or the place of an arm from 0 to {count - 1}, got "
                    f"{short(answer)}",
                )
        return found

    return Target(target)
