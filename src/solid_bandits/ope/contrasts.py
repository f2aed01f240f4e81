"""Differences of policies on the same rows: between two of them, or from what was played; also by segments of rows.

A difference is a policy whose probabilities are π(a) - π'(a), so its terms are those of `terms`, and rows in which both
do the same cancel. What was played has the probabilities g(a); if g is known only for the chosen arm, its weight is 1
and the reward model is left out.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.ope.bounded import Bounding, unit
from solid_bandits.ope.diagnostics import check_terms
from solid_bandits.ope.models import Model
from solid_bandits.ope.rows import Reader, Rows
from solid_bandits.ope.targets import Target, as_target, checked
from solid_bandits.ope.terms import Terms, check_propensities, terms_of

PLAYED = "the log"
"""Label of what was played."""
EVERYONE = "everyone"
"""Label of all rows together."""
ALWAYS = "always:"

Pair = tuple[str, str]


class Contrasts(NamedTuple):
    """The terms of some rows."""

    rows: int
    values: dict[str, Terms]
    """Terms of policies by their labels, and of what was played."""
    pairs: dict[Pair, Terms]
    """Terms of differences, the first minus the second."""
    partly: dict[str, int]
    """Number of rows that have its arm, for policies that always choose one arm which is not in every row."""


class Asked(NamedTuple):
    """A policy as an argument of the comparison."""

    target: Target
    arm: str | None = None
    """The arm of a policy that always chooses one: rows without it are left out of all its comparisons."""


def as_asked(policy: Any, rows: int, log: Any) -> Asked:
    """Return the policy that an argument denotes."""
    if isinstance(policy, str) and policy.startswith(ALWAYS) and policy != ALWAYS:
        arm = policy.removeprefix(ALWAYS)
        return Asked(Target(lambda rows: _indicator(rows, arm)), arm)
    return Asked(as_target(policy, rows, log))


def _indicator(rows: Rows, arm: str) -> Floats:
    code = rows.names.index(arm) if arm in rows.names else -2
    return (rows.codes == code).astype(np.float64)


def contrast(
    reader: Reader,
    policies: Mapping[str, Asked],
    model: Model,
    ends: tuple[float, float] | None,
    segments: tuple[Sequence[str], Ints] | None = None,
    pairs: Collection[Pair] | None = None,
) -> dict[str, Contrasts]:
    """Walk through the log once; return the contrasts of all rows as `EVERYONE`, and of the segments.

    Args:
        reader: reader of the log.
        policies: policies by their labels.
        model: model of the rewards.
        ends: range of rewards; None if unknown.
        segments: labels of the segments, and the index of the segment of each row of the log, by the numbers of
            `Rows.where`; -1 for none.
        pairs: pairs of labels; None is all, with what was played as the second.
    """
    wanted = list(combinations((*policies, PLAYED), 2)) if pairs is None else list(pairs)
    names = (EVERYONE, *segments[0]) if segments else (EVERYONE,)
    groups = {name: _Group(policies, wanted, ends) for name in names}
    for rows in reader.blocks():
        check_propensities(rows)
        q = model.predict(rows)
        chosen = {
            label: asked.target.probabilities(rows) if asked.arm is not None else checked(asked.target, rows)
            for label, asked in policies.items()
        }
        groups[EVERYONE].add(rows, q, chosen)
        for place, name in enumerate(names[1:]):
            assert segments is not None
            inside = segments[1][rows.where] == place
            if inside.any():
                part = {label: one[inside] for label, one in chosen.items()}
                groups[name].add(taken(rows, inside), q[inside], part)
    found = {name: group.found() for name, group in groups.items() if group.rows}
    if EVERYONE not in found:
        raise ArgumentError("log", "must have rows with a reward, got none")
    for label, terms in found[EVERYONE].values.items():
        check_terms(terms, label)
    return found


def taken(rows: Rows, where: Bools) -> Rows:
    """Return some of the rows."""
    fields = rows._asdict()
    kept: dict[str, Any] = {
        name: value[where] for name, value in fields.items() if isinstance(value, np.ndarray)
    }
    events = None if rows.events is None else rows.events.filter(where)
    return rows._replace(**kept, events=events)


class _Group:
    """The terms of one group of rows, added block by block."""

    def __init__(
        self, policies: Mapping[str, Asked], pairs: Sequence[Pair], ends: tuple[float, float] | None
    ) -> None:
        self._arms = {label: asked.arm for label, asked in policies.items()}
        self._ends = ends
        self._pairs = pairs
        self._blocks: dict[str | Pair, list[Terms]] = {}
        self._bounding: dict[str | Pair, tuple[Bounding, Bounding]] = {}
        self._offered = dict.fromkeys(policies, 0)
        self.rows = 0

    def add(self, rows: Rows, q: Floats, chosen: Mapping[str, Floats]) -> None:
        """Add a block."""
        self.rows += len(rows.reward)
        there: dict[str, Bools] = {
            label: np.any(one, axis=1) for label, one in chosen.items() if self._arms[label] is not None
        }
        everywhere: Bools = np.ones(len(rows.reward), dtype=bool)
        self._keep(PLAYED, _of_played(rows, self._ends))
        for label, own in chosen.items():
            where = there.get(label, everywhere)
            self._offered[label] += int(where.sum())
            self._terms(label, rows, where, own, q)
        for pair in self._pairs:
            first, second = pair
            where = np.logical_and(there.get(first, everywhere), there.get(second, everywhere))
            if second != PLAYED:
                self._terms(pair, rows, where, chosen[first] - chosen[second], q)
            elif rows.probabilities is not None:
                self._terms(pair, rows, where, chosen[first] - rows.probabilities, q)
            elif where.any():
                own = chosen[first][where]
                self._keep(pair, _less_played(taken(rows, where), own, self._ends))

    def _terms(self, key: str | Pair, rows: Rows, where: Bools, signed: Floats, q: Floats) -> None:
        if where.any():
            some, own, expected = (
                (rows, signed, q) if where.all() else (taken(rows, where), signed[where], q[where])
            )
            bounding = self._bounding.setdefault(key, (Bounding(), Bounding()))
            self._keep(key, terms_of(some, own, expected, self._ends, bounding, True))

    def _keep(self, key: str | Pair, terms: Terms) -> None:
        self._blocks.setdefault(key, []).append(terms)

    def found(self) -> Contrasts:
        """Return all blocks together."""
        whole = {
            key: Terms(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
            for key, blocks in self._blocks.items()
        }
        partly = {label: count for label, count in self._offered.items() if count < self.rows}
        values = {key: terms for key, terms in whole.items() if isinstance(key, str)}
        pairs = {key: terms for key, terms in whole.items() if not isinstance(key, str)}
        return Contrasts(self.rows, values, pairs, partly)


def _of_played(rows: Rows, ends: tuple[float, float] | None) -> Terms:
    """Return the rewards themselves, as terms."""
    one, nothing = np.ones(len(rows.reward)), np.zeros(len(rows.reward))
    reward = unit(rows.reward, ends) if ends else nothing
    bounded = (reward, nothing, -reward, nothing)
    return Terms(
        one, rows.reward, nothing, nothing, one, one, one, rows.propensity, rows.counts, nothing, *bounded
    )


def _less_played(rows: Rows, policy: Floats, ends: tuple[float, float] | None) -> Terms:
    """Return a policy minus what was played, if g is known only for the chosen arm: (w - 1) r, or (w - 1) (1 - r)."""
    nothing = np.zeros(len(rows.reward))
    matched = policy[np.arange(len(nothing)), rows.place]
    weight = matched / rows.propensity - 1
    reward = unit(rows.reward, ends) if ends else nothing
    bounded = (weight * reward, nothing, weight * (1 - reward), nothing)
    moments = (weight**2, np.abs(weight) ** 3)
    unknown = np.full(len(nothing), np.nan)
    return Terms(
        weight,
        rows.reward,
        nothing,
        nothing,
        *moments,
        matched,
        rows.propensity,
        rows.counts,
        unknown,
        *bounded,
    )
