"""The regulariser ν of a decision policy: a number, a number in units of the arms' size, or what the evidence says.

Which one it is, is the type of `params.ridge`; what it carries is `state.evidence`, nothing for the first two.
"""

from typing import Any, NamedTuple

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._dispatch import by_type, variant
from solid_bandits._types import Bools, Floats
from solid_bandits.estimation.estimator import Estimator, make_estimator, observe, set_ridge
from solid_bandits.estimation.evidence import (
    LEAST_SCALE,
    Evidence,
    Search,
    absorb,
    begin,
    begin_by_size,
    make_evidence,
)
from solid_bandits.linalg.vectors import dot

EVIDENCE = "evidence"


@by_type
def meet(
    ridge: object, estimator: Estimator, evidence: Any, arms: Floats, available: Bools, row: Floats
) -> None:
    """Look at the arms on offer, before a decision: a ridge may take its scale from the first ones."""
    raise NotImplementedError


@by_type
def take_in(
    ridge: object,
    estimator: Estimator,
    evidence: Any,
    noise_std: float,
    features: Floats,
    reward: float,
    row: Floats,
    gains: Floats,
) -> None:
    """Take in one reward; `row` and `gains` are scratch, shape (dim,)."""
    raise NotImplementedError


class FixedRidge(NamedTuple):
    """ν is a number."""

    ridge: float


@jit
def _meet_nothing(
    ridge: FixedRidge, estimator: Estimator, evidence: None, arms: Floats, available: Bools, row: Floats
) -> None:
    pass


@jit
def _observe(
    ridge: FixedRidge,
    estimator: Estimator,
    evidence: None,
    noise_std: float,
    features: Floats,
    reward: float,
    row: Floats,
    gains: Floats,
) -> None:
    observe(estimator, features, reward, row, gains)


variant(meet, FixedRidge, _meet_nothing)
variant(take_in, FixedRidge, _observe)


class RelativeRidge(NamedTuple):
    """ν over L², L the largest norm among the arms of the first decision."""

    ridge: float


@jit
def _set_scale(ridge: RelativeRidge, estimator: Estimator, largest: float) -> None:
    """ν = ridge L², L² = `largest`, of at least `LEAST_SCALE`; any ridge does where it is 0."""
    scale = max(largest, LEAST_SCALE) if largest > 0.0 else 1.0
    set_ridge(estimator, ridge.ridge * scale)


@jit
def _meet_first(
    ridge: RelativeRidge, estimator: Estimator, evidence: None, arms: Floats, available: Bools, row: Floats
) -> None:
    if estimator.weights[0] == 0.0:
        largest = 0.0
        for arm in range(arms.shape[0]):
            if available[arm]:
                largest = max(largest, dot(arms[arm], arms[arm]))
        _set_scale(ridge, estimator, largest)


@jit
def _observe_scaled(
    ridge: RelativeRidge,
    estimator: Estimator,
    evidence: None,
    noise_std: float,
    features: Floats,
    reward: float,
    row: Floats,
    gains: Floats,
) -> None:
    if estimator.weights[0] == 0.0:
        _set_scale(ridge, estimator, dot(features, features))
    observe(estimator, features, reward, row, gains)


variant(meet, RelativeRidge, _meet_first)
variant(take_in, RelativeRidge, _observe_scaled)


class EvidenceRidge(NamedTuple):
    """ν is where the evidence is greatest (`evidence`); the first arms on offer set where it starts."""

    search: Search


SEARCH = Search(start=20.0, rounds=3, first=1, caution=4.0)
"""Chosen in a study (docs/untold.md)."""


@jit
def _begin(
    ridge: EvidenceRidge,
    estimator: Estimator,
    evidence: Evidence,
    arms: Floats,
    available: Bools,
    row: Floats,
) -> None:
    begin(ridge.search, evidence, estimator, arms, available, row)


@jit
def _absorb(
    ridge: EvidenceRidge,
    estimator: Estimator,
    evidence: Evidence,
    noise_std: float,
    features: Floats,
    reward: float,
    row: Floats,
    gains: Floats,
) -> None:
    if evidence.ridge.item() == 0.0:
        begin_by_size(ridge.search, evidence, estimator, dot(features, features), row)
    absorb(ridge.search, evidence, estimator, noise_std, features, reward, row, gains)


variant(meet, EvidenceRidge, _begin)
variant(take_in, EvidenceRidge, _absorb)


def check_ridge(value: float | str) -> None:
    """Refuse what is neither a number > 0 nor "evidence"."""
    if isinstance(value, str) and value != EVIDENCE:
        raise _check.ArgumentError("ridge", f"must be a number > 0 or {EVIDENCE!r}, got {value!r}")
    if not isinstance(value, str):
        _check.positive("ridge", value)


def make_ridge(
    ridge: float | str, dim: int, relative: bool = False
) -> tuple[FixedRidge | RelativeRidge | EvidenceRidge, Estimator, Evidence | None]:
    """How ν is chosen, the estimator before any reward, and what is carried beside it."""
    if isinstance(ridge, str):
        return EvidenceRidge(SEARCH), make_estimator(dim, 0.0), make_evidence(dim)
    if relative:
        return RelativeRidge(float(ridge)), make_estimator(dim, 0.0), None
    return FixedRidge(float(ridge)), make_estimator(dim, ridge), None
