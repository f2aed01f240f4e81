"""What all estimators are made of: a handful of numbers per row of the log, whatever the number of features."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._check import ArgumentError
from solid_bandits._types import Floats, Ints
from solid_bandits.ope.models import Model
from solid_bandits.ope.rows import Reader, Rows
from solid_bandits.ope.targets import checked

LARGEST_WEIGHT = 1e20
"""Beyond it a weight is refused: squares of weights times rewards must stay numbers."""


class Terms(NamedTuple):
    """Per row, shape (rows,)."""

    weight: Floats
    """w = π(a) / g(a): of the chosen arm, under the policy and under the logger."""
    reward: Floats
    expected: Floats
    """q(a), what the model expected of the chosen arm."""
    baseline: Floats
    """Σ_a π(a) q(a), what it expected of the policy."""
    second: Floats
    """Σ_a π(a)² / g(a), the mean of w² given the offer; w² where g is known of the chosen arm alone."""
    matched: Floats
    """π(a) of the chosen arm."""
    propensity: Floats
    """g(a)."""
    offered: Ints
    """Arms on offer."""
    lower: Floats
    """The term of the anytime-valid lower bound (`anytime`), rewards on [0, 1]."""
    upper: Floats
    """The same of 1 - reward, for the upper bound."""


class Found(NamedTuple):
    """The terms and what is known of all rows together."""

    terms: Terms
    unsupported: float
    """Mean probability that the policy gives to arms that the logger never chose; nan where that is not known."""
    unsupported_rows: int
    left_out: int
    direct: float
    """The direct method's value."""


def slack(step: Floats) -> Floats:
    """k_t = √t / 4: by how much a term of the anytime-valid bounds may fall below 0. Chosen before the log is seen."""
    return np.sqrt(step) / 4


def collect(
    reader: Reader,
    target: Callable[[Rows], Floats],
    model: Model,
    reward_range: tuple[float, float] | None,
    weighted: bool,
) -> Found:
    """Walk through the log once. Without `weighted`, propensities are not asked for: only the direct method is."""
    blocks: list[Terms] = []
    missing, rows_seen = 0.0, 0
    unsupported_rows, known = 0, True
    for rows in reader.blocks():
        policy = checked(target, rows)
        if weighted:
            _check_propensities(rows)
        q = model.predict(rows, policy)
        blocks.append(_terms(rows, policy, q, reward_range, rows_seen, weighted))
        rows_seen += len(rows.reward)
        if rows.probabilities is None:
            known = False
        else:
            outside = (policy * (rows.probabilities <= 0)).sum(axis=1)
            missing += float(outside.sum())
            unsupported_rows += int((outside > 0).sum())
    if not blocks:
        raise ArgumentError("log", "must have rows with a reward, got none")
    terms = Terms(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
    share = missing / rows_seen if known else math.nan
    return Found(terms, share, unsupported_rows, reader.left_out, model.direct())


def _check_propensities(rows: Rows) -> None:
    unknown = np.isnan(rows.propensity)
    if unknown.any():
        row = int(rows.where[unknown][0])
        raise ArgumentError(
            "log",
            f"cannot answer: the probability of the chosen arm is missing in row {row}; only estimators=['dm'] does "
            "without",
        )
    if not (rows.propensity > 0).all():
        row = int(rows.where[~(rows.propensity > 0)][0])
        raise ArgumentError(
            "log",
            f"cannot answer: the chosen arm has probability 0 in row {row}; what was logged is not what was played",
        )


def _check_weights(rows: Rows, policy: Floats, weight: Floats, ratios: Floats | None) -> None:
    """Refuse a logger's probability that is next to 0: its weight would be all there is, or no number."""
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


def _terms(
    rows: Rows,
    policy: Floats,
    q: Floats,
    reward_range: tuple[float, float] | None,
    before: int,
    weighted: bool,
) -> Terms:
    every = np.arange(len(rows.reward))
    own, expected = policy[every, rows.place], q[every, rows.place]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # refused below, where weights count
        weight = own / rows.propensity
        ratios: Any = None
        if rows.probabilities is not None:
            supported = rows.probabilities > 0
            ratios = np.divide(policy, rows.probabilities, out=np.zeros_like(policy), where=supported)
    if weighted:
        _check_weights(rows, policy, weight, ratios)
    second = weight**2 if ratios is None else (policy * ratios).sum(axis=1)
    empty = np.zeros(0)
    lower = upper = empty
    if reward_range is not None:
        step = np.arange(before + 1, before + len(every) + 1, dtype=np.float64)
        lower = _bounded(rows, policy, weight, ratios, q, reward_range, step, mirrored=False)
        upper = _bounded(rows, policy, weight, ratios, q, reward_range, step, mirrored=True)
    return Terms(
        weight=weight,
        reward=rows.reward,
        expected=expected,
        baseline=(policy * q).sum(axis=1),
        second=second,
        matched=own,
        propensity=rows.propensity,
        offered=rows.counts,
        lower=lower,
        upper=upper,
    )


def _bounded(
    rows: Rows,
    policy: Floats,
    weight: Floats,
    ratios: Floats | None,
    q: Floats,
    reward_range: tuple[float, float],
    step: Floats,
    mirrored: bool,
) -> Floats:
    """W (r - min(q, k/w)) + Σ_a π(a) min(q(a), k/w(a)) >= -k, of mean the policy's value (2210.10768, Section 2.2).

    Rewards and q are on [0, 1], or mirrored. Where g is known of the chosen arm alone, q is 0.
    """
    low, high = reward_range
    reward = (rows.reward - low) / (high - low)
    scaled = np.clip((q - low) / (high - low), 0.0, 1.0)
    if mirrored:
        reward, scaled = 1 - reward, 1 - scaled
    if ratios is None:
        return weight * reward
    limit = slack(step)[:, None]
    with np.errstate(divide="ignore", over="ignore"):
        capped = np.minimum(scaled, np.where(ratios > 0, limit / ratios, np.inf))
    every = np.arange(len(reward))
    return weight * (reward - capped[every, rows.place]) + (policy * capped).sum(axis=1)
