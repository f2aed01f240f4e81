"""The adaptive estimate as its paper has it, where the logger can be asked: its decisions are replayed from the log.

Bibaut et al. (2021), arXiv 2106.00418, Section 4: with g_t the logger as it was before row t and Q the reward model of
the rows before t, the variance of the doubly robust term of row t is estimated on all earlier rows s,

    σ²_t = mean of u_s D_s² - (mean of u_s D_s)²,   u_s = g_t(a_s) / g_s(a_s),
    D_s = π(a_s) / g_t(a_s) (r_s - Q(a_s)) + Σ_a π(a) Q(a),

and ψ = Σ D_t / σ_t / Σ 1 / σ_t has the standard error √T / Σ 1 / σ_t.

To ask g_t about earlier rows, a new agent made as the logger was is led through the log; its probabilities must be the
logged ones, which also checks the log. Decisions that were made together are replayed together: g_t is the same for all
of a batch, and so is the σ that it begins with. σ is estimated anew whenever the log has grown by a twentieth, on at
most `KEPT` earlier rows, evenly spread: functions of the past, as the theorem asks.
"""

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.core.agent import Agent
from solid_bandits.core.decision import OPEN, Decision
from solid_bandits.live.bandit import Bandit
from solid_bandits.logs.records import Step, steps_of
from solid_bandits.ope.adaptive import NO_VARIANCE
from solid_bandits.ope.contract import Value, normal
from solid_bandits.ope.models import RIDGE
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.targets import Target, checked
from solid_bandits.ope.terms import Terms, dr_terms

FIRST = 50
"""Rows before the first estimate of σ; they have no weight."""
GROWTH = 1.05
KEPT = 1000
CLOSE = 1e-9
"""Tolerance on the difference to the logged probabilities."""


def check_new(bandit: Bandit) -> Agent:
    """Return a copy of a bandit's agent before its first decision."""
    if not isinstance(bandit, Bandit) or bandit.decisions:
        raise ArgumentError(
            "logger", f"must be learning, fixed, or a new Bandit made as the logger was, got {short(bandit)}"
        )
    if bandit.design is not None:
        raise ArgumentError(
            "logger",
            f"must be a Bandit that decides from matrices of features, as named values are not replayed, got "
            f"{short(bandit)}: leave it out",
        )
    return copy.deepcopy(bandit.agent)


class Counted(NamedTuple):
    """A row of the log that is counted."""

    place: int
    """The index of the row among the terms."""
    policy: Floats
    """The target's probabilities of the arms."""
    reward: float
    """Its reward, or the value of `missing_reward`."""


def retraced_cadr(terms: Terms, target: Target, reader: Reader, logger: Bandit, level: float) -> Value:
    """Return the estimate with the paper's interval."""
    if len(terms.reward) <= 2 * FIRST:
        return Value(None, note=f"needs more than {2 * FIRST} rows")
    log, counted = reader.table(), dict[str, Counted]()
    for rows in reader.blocks():
        assert rows.events is not None
        for event, own, count, reward in zip(
            rows.events, checked(target, rows), rows.counts, rows.reward, strict=True
        ):
            counted[event] = Counted(len(counted), own[:count], float(reward))
    inverse = _inverse_sigmas(steps_of(log, logger.agent.dim), counted, check_new(logger))
    values, used = dr_terms(terms), inverse > 0
    total = float(inverse.sum())
    if total == 0:
        return Value(float(values.mean()), note=NO_VARIANCE)
    value = float(inverse @ values) / total
    return normal(value, math.sqrt(used.sum()) / total, level, "adaptive", "σ by the replayed logger")


class Past:
    """Earlier rows, evenly thinned, and the reward model of all of them."""

    def __init__(self, dim: int) -> None:
        self.rows: list[tuple[Decision, Counted]] = []
        self._every, self._seen = 1, 0
        self._gram, self._sums = RIDGE * np.eye(dim + 1), np.zeros(dim + 1)

    def add(self, row: Decision, counted: Counted) -> None:
        """Add one more row, with its reward."""
        if self._seen % self._every == 0:
            self.rows.append((row, counted))
            if len(self.rows) >= 2 * KEPT:
                self.rows, self._every = self.rows[::2], 2 * self._every
        self._seen += 1
        assert row.features is not None  # it is of a log
        described = np.append(row.features, 1.0)
        self._gram += np.outer(described, described)
        self._sums += counted.reward * described

    def variance(self, agent: Agent) -> float:
        """Return σ² of the next row's term, given the logger's current state."""
        features, counts, mask = self._offers()
        given = agent.probabilities_many(features, counts, mask)
        assert given is not None  # a bandit gives its probabilities
        theta = np.linalg.solve(self._gram, self._sums)
        q = features @ theta[:-1] + theta[-1]
        every = np.arange(len(self.rows))
        place = np.array([row.place for row, _ in self.rows])
        reward = np.array([counted.reward for _, counted in self.rows])
        before = np.array([row.probability for row, _ in self.rows])
        now = given[every, place]
        target = np.zeros(mask.shape)
        target[mask] = np.concatenate([counted.policy for _, counted in self.rows])
        weight = np.divide(target[every, place], now, out=np.zeros(len(now)), where=now > 0)
        values = weight * (reward - q[every, place]) + (target * q * mask).sum(axis=1)
        ratio = now / before
        return float((ratio * values**2).mean() - (ratio * values).mean() ** 2)

    def _offers(self) -> tuple[Floats, Ints, Bools]:
        offers = [row.offered for row, _ in self.rows if row.offered is not None]
        counts = np.array([len(offer) for offer in offers])
        mask = np.arange(counts.max()) < counts[:, None]
        features = np.zeros((*mask.shape, offers[0].shape[1]))
        features[mask] = np.concatenate(offers)
        return features, counts, mask


def _inverse_sigmas(steps: Sequence[Step], counted: Mapping[str, Counted], agent: Agent) -> Floats:
    """Return 1 / σ_t of each counted row, at its index among the terms; 0 for the first ones.

    A row without a reward is decided again like any other, and the agent learns nothing from it. It is counted only
    where it is taken to have earned something.
    """
    past = Past(agent.dim)
    inverse = np.zeros(len(counted))
    count, due, current = 0, FIRST, 0.0
    for group in _together(steps):
        if group[0].status != OPEN:
            if group[0].reward is not None:
                agent.learn(group[0].decision, group[0].reward)
            continue
        rows = [step.decision for step in group]
        own = [counted.get(row.event_id) for row in rows]
        if count >= due and any(one is not None for one in own):
            variance = past.variance(agent)
            current = 1 / math.sqrt(variance) if variance > 0 else current
            due = math.ceil(max(count + 1, GROWTH * count))
        for row, decision, one in zip(rows, _decided_again(rows, agent), own, strict=True):
            row.number = decision.number
            _check_same(row, decision)
            if one is not None:
                inverse[one.place] = current
                past.add(row, one)
                count += 1
    return inverse


def _together(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Outcomes and decisions one by one, and decisions that were made together as one list."""
    group: list[Step] = []
    for step in steps:
        joins = step.status == OPEN and step.batch is not None and step.batch == (group and group[0].batch)
        if group and not joins:
            yield group
            group = []
        group.append(step)
    if group:
        yield group


def _decided_again(rows: Sequence[Decision], agent: Agent) -> Iterable[Decision]:
    """Decisions as the log says that they were made: one, or a batch under the same evidence."""
    if len(rows) == 1:
        return [agent.decide(rows[0].offered)]
    offers = [row.offered for row in rows if row.offered is not None]
    return agent.decide_many(offers)


def _check_same(row: Decision, decision: Decision) -> None:
    assert row.probabilities is not None  # NaN where the log has none
    assert decision.probabilities is not None  # a bandit's agent gives them
    if not np.allclose(decision.probabilities, row.probabilities, rtol=0, atol=CLOSE):
        raise ArgumentError(
            "logger",
            "must be made as the bandit of the log was, and the log must have all its decisions and rewards: the "
            f"probabilities of event_id {row.event_id!r} differ",
        )
