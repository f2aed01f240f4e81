"""Policies to be evaluated: each gives the probabilities of the arms of every row, and does not learn from it."""

import copy
import inspect
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.core.agent import Agent
from solid_bandits.features.design import Design
from solid_bandits.live.bandit import Bandit
from solid_bandits.logs.named import told
from solid_bandits.ope.rows import Rows, no_features

SLACK = 1e-6
"""Tolerance on the sum of probabilities."""


class Target(NamedTuple):
    """A policy as `evaluate` uses it."""

    probabilities: Callable[[Rows], Floats]
    """The probabilities of the arms of every row, shape (rows, arms)."""
    learnt: Collection[str] = ()
    """Ids of the events that it is known to have learnt from."""


def uniform() -> Target:
    """Return the policy that gives all arms on offer the same probability.

    Example:
        >>> import solid_bandits as sb
        >>> trial = {"arm": ["a", "b"] * 50, "reward": [1.0, 0.0] * 50, "probability": [0.5] * 100}
        >>> sb.ope.evaluate(trial, sb.ope.uniform(), ["snips"], logger="fixed").value("snips")
        0.5
    """
    return Target(lambda rows: rows.mask / rows.counts[:, None])


def always(arm: str) -> Target:
    """Return the policy that always chooses one arm, which must be on offer in every row.

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


def as_target(policy: Any, rows: int | None = None, log: Any = None) -> Target:
    """Return the target that an argument of `evaluate` denotes; `rows` is the height of the log, if known."""
    if isinstance(policy, Target):
        return policy
    if isinstance(policy, str):
        kind, _, name = policy.partition(":")
        if policy == "uniform":
            return uniform()
        if kind == "always" and name:
            return always(name)
        raise ArgumentError("policy", f"must be uniform or always:ARM where it is text, got {policy!r}")
    agent = getattr(policy, "agent", policy)
    if isinstance(agent, Agent):
        # A bandit knows the events that it remembers.
        owner = log if isinstance(log, Bandit) and policy is log.agent else policy
        memory = owner._remembered if isinstance(owner, Bandit) else ()
        design = getattr(policy, "design", None)
        return frozen(agent, {record.event_id for record in memory if record.reward is not None}, design)
    if isinstance(policy, np.ndarray | pl.Series | list | tuple):
        check_lists("policy", policy, rows)
        return Target(lambda rows: by_row("policy", "probabilities", policy, rows))
    if callable(policy):
        return _function(policy)
    raise ArgumentError(
        "policy",
        f"must be an Agent, a Bandit, a function of features, probabilities or text, got {short(policy)}",
    )


def check_lists(name: str, lists: Any, rows: int | None) -> None:
    """Raise an error unless the argument is one list for each row of the log."""
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


def checked(target: Target, rows: Rows) -> Floats:
    """Return the target's probabilities, checked."""
    found = np.asarray(target.probabilities(rows), dtype=np.float64)
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


def frozen(agent: Agent, learnt: Collection[str] = (), design: Design | None = None) -> Target:
    """Return an agent in its current state as a target; with a design, it decides by the named values of the log."""

    def target(rows: Rows) -> Floats:
        features = rows.features if design is None else _encoded(design, rows)
        if features is None:
            raise no_features(rows, "evaluate an agent by it")
        if features.shape[2] != agent.dim:
            raise ArgumentError(
                "policy", f"must be an agent of dim {features.shape[2]} as the log is, got {agent.dim}"
            )
        found = agent.probabilities_many(features, rows.counts, rows.mask)
        if found is None:
            raise ArgumentError(
                "policy",
                f"must give its probabilities: make the agent of {agent.policy.name} with probabilities=True",
            )
        return found

    return Target(target, learnt)


def _encoded(design: Design, rows: Rows) -> Floats:
    """Return a design's features for the named values of some rows; arms removed since then are restored."""
    if rows.named is None:
        raise ArgumentError("log", "must have named values to evaluate a bandit that decides by them")
    every = copy.copy(design)
    every.removed = set()
    width = design.dim + design.blocked
    found = np.zeros((*rows.mask.shape, width))
    for row, count in enumerate(rows.counts):
        found[row, :count] = every.encode(told(every, rows.named[row]))
    return found


def by_row(name: str, what: str, values: Any, rows: Rows) -> Floats:
    """Return the numbers given for the arms of each row, found by the rows' numbers; zeros beyond their arms.

    Lists may be longer than a row's arms if the rest is zeros.
    """
    if isinstance(values, np.ndarray) and values.ndim == 2:
        given = np.asarray(values[rows.where], dtype=np.float64)
        lengths = np.full(len(given), given.shape[1])
    else:
        flat, lengths = _flat(values, rows.where)
        given = np.zeros((len(lengths), lengths.max()))
        given[np.arange(lengths.max()) < lengths[:, None]] = flat
    width = rows.mask.shape[1]
    given = np.pad(given, ((0, 0), (0, max(width - given.shape[1], 0))))
    beyond = np.arange(given.shape[1]) >= rows.counts[:, None]
    bad = (lengths < rows.counts) | np.where(beyond, given, 0.0).any(axis=1)
    if bad.any():
        row = int(bad.argmax())
        got = values[int(rows.where[row])]
        shown = got if got is None or isinstance(got, list | tuple) else np.asarray(got).tolist()
        raise ArgumentError(
            name,
            f"must have {rows.counts[row]} {what} in row {rows.where[row]}, one for each arm, got {short(shown)}",
        )
    return given[:, :width]


def _flat(values: Any, where: Ints) -> tuple[Floats, Ints]:
    """Return the numbers of some lists, concatenated, and the length of each; empty if a list has other contents."""
    if isinstance(values, pl.Series):
        own = (values.arr.to_list() if isinstance(values.dtype, pl.Array) else values).gather(where)
        lengths = own.list.len().fill_null(0).to_numpy().astype(np.int64)
        return own.filter(lengths > 0).explode().cast(pl.Float64).fill_null(np.nan).to_numpy(), lengths
    lists = []
    for place in where:
        try:
            one = np.asarray(values[place], dtype=np.float64)
        except (TypeError, ValueError):
            one = np.zeros(())
        lists.append(one if one.ndim == 1 else np.zeros(0))
    return np.concatenate(lists), np.array([len(one) for one in lists])


def _function(policy: Callable[..., Any]) -> Target:
    """Return the target of a function of the arms' features, shape (arms, dim), or shared context, and names.

    The function returns a probability for each arm, or the index of one arm.
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
            pass  # functions written in another language have no signature
        for row, count in enumerate(rows.counts):
            names = [rows.names[code] for code in rows.codes[row, :count]]
            answer = np.asarray(policy(rows.shown(row), names))
            if answer.ndim == 0 and answer.dtype.kind in "UO" and isinstance(answer.item(), str):
                raise ArgumentError(
                    "policy",
                    "must return a probability for each arm, or the place of one, such as names.index("
                    f"{names[0]!r}), got {short(answer.item())}",
                )
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
