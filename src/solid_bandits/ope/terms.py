"""The terms that all estimators are made of: a few numbers per row of the log, whatever the number of features."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.ope.bounded import Bounding, unit
from solid_bandits.ope.models import Model
from solid_bandits.ope.rows import Reader, Rows
from solid_bandits.ope.targets import Target, checked

LARGEST_WEIGHT = 1e20
"""Largest accepted weight: squares of weights times rewards must not overflow."""


class Terms(NamedTuple):
    """Arrays with one number per row, shape (rows,)."""

    weight: Floats
    """w = π(a) / g(a) for the chosen arm, under the policy and under the logger."""
    reward: Floats
    expected: Floats
    """q(a), the model's expectation for the chosen arm."""
    baseline: Floats
    """Σ_a π(a) q(a), the model's expectation for the policy."""
    second: Floats
    """Σ_a π(a)² / g(a), the mean of w² given the offer; w² if g is known only for the chosen arm."""
    third: Floats
    """Σ_a π(a)³ / g(a)², the mean of w³ given the offer; w³ if g is known only for the chosen arm."""
    matched: Floats
    """π(a) of the chosen arm."""
    propensity: Floats
    """g(a) of the chosen arm."""
    offered: Ints
    """Number of arms on offer."""
    outside: Floats
    """Σ π(a) over arms that the logger gave probability 0; NaN if unknown."""
    lower: Floats
    """The term of the anytime-valid lower bound (`anytime`), rewards on [0, 1]."""
    lower_slack: Floats
    """k_t, the amount by which it may fall below 0."""
    upper: Floats
    """The same for the upper bound, that is, for -1 times the policy's value."""
    upper_slack: Floats
    """k_t, the amount by which it may fall below -1."""


class Found(NamedTuple):
    """The terms of a target, with facts about all rows together."""

    terms: Terms
    left_out: int
    """Number of rows without a reward."""
    learnt: int
    """Number of rows whose rewards the policy is known to have learnt from."""
    direct: float
    """The direct method's value."""


def dr_terms(terms: Terms, weight: Floats | None = None) -> Floats:
    """Return the terms of a doubly robust estimate, with other weights if given."""
    used = terms.weight if weight is None else weight
    return terms.baseline + used * (terms.reward - terms.expected)


def collect(
    reader: Reader,
    targets: Mapping[str, Target],
    model: Model,
    reward_range: tuple[float, float] | None,
    weighted: bool,
) -> dict[str, Found]:
    """Walk through the log once, for all targets by their labels.

    Without `weighted`, propensities are not needed, and only the direct method is computed. Without a range of rewards,
    the terms of `anytime` are left out.
    """
    blocks: dict[str, list[Terms]] = {label: [] for label in targets}
    bounding = {label: (Bounding(), Bounding()) for label in targets}
    learnt = Counter[str]()
    before = 0
    for rows in reader.blocks():
        if weighted:
            check_propensities(rows)
        q = model.predict(rows)
        for label, target in targets.items():
            policy = checked(target, rows)
            model.add_policy(label, rows, policy, q)
            blocks[label].append(terms_of(rows, policy, q, reward_range, bounding[label], weighted))
            if target.learnt and rows.events is not None:
                learnt[label] += int(rows.events.is_in(list(target.learnt)).sum() or 0)
        before += len(rows.reward)
    if not before:
        raise ArgumentError("log", "must have rows with a reward, got none")
    return {
        label: Found(
            Terms(*(np.concatenate(parts) for parts in zip(*blocks[label], strict=True))),
            reader.left_out,
            learnt[label],
            model.direct(label, before),
        )
        for label in targets
    }


def check_propensities(rows: Rows) -> None:
    """Raise an error for rows without the probability of the chosen arm."""
    for wrong, complaint in (
        (
            np.isnan(rows.propensity),
            "the probability of the chosen arm is missing in row {}; only estimators=['dm'] does without",
        ),
        (
            ~(rows.propensity > 0),
            "the chosen arm has probability 0 in row {}; what was logged is not what was played",
        ),
    ):
        if wrong.any():
            raise ArgumentError("log", f"cannot answer: {complaint.format(rows.where[wrong][0])}")


def _check_weights(rows: Rows, policy: Floats, weight: Floats, ratios: Floats | None) -> None:
    """Raise an error for a logger's probability near 0, whose weight would dominate everything or overflow."""
    largest = weight if ratios is None else np.maximum(weight, ratios.max(axis=1))
    sound = largest <= LARGEST_WEIGHT
    if not sound.all():
        row = int((~sound).argmax())
        place = int(rows.place[row])
        if ratios is not None and not weight[row] > LARGEST_WEIGHT:
            place = int(ratios[row].argmax())
        logged = rows.propensity if rows.probabilities is None else rows.probabilities[:, place]
        raise ArgumentError(
            "log",
            f"cannot answer: in row {rows.where[row]} the policy gives probability {policy[row, place]:.3g} to an arm "
            f"that the logger gave {logged[row]:.3g}, a weight above {LARGEST_WEIGHT:g}; log with a floor",
        )


def terms_of(
    rows: Rows,
    policy: Floats,
    q: Floats,
    reward_range: tuple[float, float] | None,
    bounding: tuple[Bounding, Bounding],
    weighted: bool,
) -> Terms:
    """Return the terms of a policy in some rows, or of the difference of two, given their probabilities."""
    every = np.arange(len(rows.reward))
    own, expected = policy[every, rows.place], q[every, rows.place]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # refused below, if weights count
        weight = own / rows.propensity
        second, third = weight**2, np.abs(weight) ** 3
        outside, ratios = np.full(len(every), np.nan), None
        if rows.probabilities is not None:
            supported = rows.probabilities > 0
            ratios = np.divide(policy, rows.probabilities, out=np.zeros_like(policy), where=supported)
            second, third = (policy * ratios).sum(axis=1), np.abs(policy * ratios**2).sum(axis=1)
            outside = np.abs(policy * ~supported).sum(axis=1)
    if weighted:
        _check_weights(rows, policy, weight, ratios)
    bounded = [np.zeros(0)] * 4
    if reward_range is not None:
        scaled, reward = unit(q, reward_range), unit(rows.reward, reward_range)
        lower, upper = bounding
        bounded = [*lower.terms(rows, policy, scaled, reward), *upper.terms(rows, -policy, scaled, reward)]
    return Terms(
        weight=weight,
        reward=rows.reward,
        expected=expected,
        baseline=(policy * q).sum(axis=1),
        second=second,
        third=third,
        matched=own,
        propensity=rows.propensity,
        offered=rows.counts,
        outside=outside,
        lower=bounded[0],
        lower_slack=bounded[1],
        upper=bounded[2],
        upper_slack=bounded[3],
    )
