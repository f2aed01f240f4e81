"""Ridge regression with Gaussian noise, the regression that all policies have, and kernels for any triangle.

It holds its estimator, how its ridge is chosen, how long its evidence lasts, σ (told or estimated), and its scratch.
The functions that a policy calls are declared in `regression`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Bools, Floats, Ints, Words
from solid_bandits.estimation import arms as measuring
from solid_bandits.estimation import estimator as triangular
from solid_bandits.estimation import noise
from solid_bandits.estimation.arms import ArmsWork, make_arms_work
from solid_bandits.estimation.estimator import Estimator, make_estimator, observe, set_ridge, solve_triangle
from solid_bandits.estimation.evidence import (
    LEAST_SCALE,
    Evidence,
    Search,
    absorb,
    begin,
    begin_by_size,
    fade,
    make_evidence,
    replace_ridge,
)
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.regression import EVIDENCE, predict_linearly, register_regression, write_theta
from solid_bandits.estimation.student import student_next

SEARCH = Search(start=20.0, rounds=3, first=1, caution=4.0)
"""Search settings of the ridge by evidence, chosen in a study (docs/untold.md)."""
SHORTEST, LONGEST = 1.0, 1e12
"""Limits of a half-life, in decisions."""


class RegressionParams(NamedTuple):
    """How the ridge is chosen, and how long evidence lasts."""

    noise_std: float
    """σ, or 0 where it is unknown."""
    ridge: float
    """ν, or ν over L² with L the largest norm among the arms of the first decision; 0 if it is searched for."""
    search: Search
    """Settings of the ridge by evidence; without iterations the ridge is fixed."""
    relative: bool
    """Whether ν is in units of the arms."""
    kept: float
    """2^(-1/h), the share of earlier evidence that is left after each decision; 1 without fading."""


class RegressionWork(NamedTuple):
    """Scratch; nothing is carried over in it."""

    theta: Floats
    """θ-hat, shape (dim,)."""
    vector: Floats
    """Scratch, shape (dim,)."""
    gains: Floats
    """Scratch, shape (dim,)."""
    arms: ArmsWork | None
    """Scratch for policies that ask for norms of arms."""


class Regression(NamedTuple):
    """Ridge regression: what is chosen, what is carried, and scratch.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.LinTS(), dim=2, noise_std=0.5)
        >>> agent._compiled.state.regression.estimator.weights
        array([1., 1.])
    """

    params: RegressionParams
    estimator: Estimator
    evidence: Evidence | None
    """The rewards without a ridge, if the ridge is by evidence or the evidence fades."""
    step: Ints
    """t: decisions made, shape ()."""
    work: RegressionWork


def make_work(dim: int, norms: bool) -> RegressionWork:
    """Return scratch for features of dimension `dim`; `norms` is whether blocks of arms will be measured."""
    return RegressionWork(np.zeros(dim), np.zeros(dim), np.zeros(dim), make_arms_work(dim) if norms else None)


def make_params(
    noise_std: float, ridge: float | str, half_life: float | None, relative: bool
) -> RegressionParams:
    """Check the chosen parameters and return them in compiled form."""
    searched = isinstance(ridge, str) and ridge == EVIDENCE
    if not searched:
        checks.positive("ridge", ridge)  # type: ignore[arg-type]  # a word is refused too
    given = 0.0 if isinstance(ridge, str) else float(ridge)
    search = SEARCH if searched else SEARCH._replace(rounds=0)
    kept = 1.0
    if half_life is not None:
        kept, search = 2.0 ** (-1.0 / half_life), search._replace(every=max(round(half_life), 1))
    return RegressionParams(float(noise_std), given, search, relative and not searched, kept)


def make_regression(
    dim: int,
    noise_std: float,
    ridge: float | str,
    half_life: float | None = None,
    norms: bool = False,
    relative: bool = False,
    apart: bool = False,
) -> Regression:
    """Return a regression before any reward.

    Args:
        dim: the feature dimension d.
        noise_std: σ, or 0 where it is unknown.
        ridge: ν, or "evidence".
        half_life: number of decisions in which evidence loses half its weight; None for never.
        norms: whether `estimate_arms` and `estimate_differences` will be called.
        relative: whether a numeric ridge is in units of the first arms' size.
        apart: whether evidence is kept apart from its ridge even if no decision ever changes either.
    """
    params = make_params(noise_std, ridge, half_life, relative)
    start = 0.0 if params.relative else params.ridge
    evidence = None
    if params.search.rounds > 0 or half_life is not None or apart:
        evidence = make_evidence(dim)
        evidence.ridge[()] = start
    return Regression(params, make_estimator(dim, start), evidence, np.array(0), make_work(dim, norms))


@jit
def ridge_by(params: RegressionParams, square: float) -> float:
    """Return ν for arms whose largest squared size is `square`, at least `LEAST_SCALE`; at 0 any ridge will do."""
    return params.ridge * (max(square, LEAST_SCALE) if square > 0.0 else 1.0)


@jit
def largest_square(arms: Floats, available: Bools) -> float:
    """Return the largest ‖φ‖² among the arms that may be pulled."""
    largest = 0.0
    for arm in range(arms.shape[0]):
        if available[arm]:
            largest = max(largest, dot(arms[arm], arms[arm]))
    return largest


# `evidence` is an argument of its own, so that numba compiles only the branch that is used.
@jit
def prepare(evidence: Evidence | None, regression: Regression, arms: Floats, available: Bools) -> None:
    """Fade the evidence by one decision, and set the ridge if it is unset."""
    params, estimator, row = regression.params, regression.estimator, regression.work.vector
    if evidence is None:
        if estimator.weights[0] == 0.0:
            set_ridge(estimator, ridge_by(params, largest_square(arms, available)))
    else:
        if params.kept < 1.0 and estimator.rewards.item() > 0:
            fade(evidence, estimator, params.kept)
            replace_ridge(evidence, estimator, evidence.ridge.item(), row)
        if params.search.rounds > 0:
            begin(params.search, evidence, estimator, arms, available, row)
        elif evidence.ridge.item() == 0.0:
            replace_ridge(evidence, estimator, ridge_by(params, largest_square(arms, available)), row)


@jit
def learn(
    evidence: Evidence | None, regression: Regression, features: Floats, reward: float, age: int
) -> None:
    """Rotate a reward into the triangles, with the current weight of its decision."""
    params, estimator = regression.params, regression.estimator
    row, gains = regression.work.vector, regression.work.gains
    if evidence is None:
        if estimator.weights[0] == 0.0:  # a reward before any decision: its arm sets the ridge
            set_ridge(estimator, ridge_by(params, dot(features, features)))
        observe(estimator, features, reward, row, gains)
    else:
        if evidence.ridge.item() == 0.0:
            square = dot(features, features)
            if params.search.rounds > 0:
                begin_by_size(params.search, evidence, estimator, square, row)
            else:
                replace_ridge(evidence, estimator, ridge_by(params, square), row)
        weight = params.kept**age if params.kept < 1.0 else 1.0
        absorb(params.search, evidence, estimator, params.noise_std, features, reward, weight, row, gains)


@jit
def _observe_offer(regression: Regression, arms: Floats, available: Bools) -> None:
    regression.step[()] += 1
    prepare(regression.evidence, regression, arms, available)


@jit
def _observe_triangle_offer(regression: Any, arms: Floats, available: Bools) -> None:
    regression.step[()] += 1
    prepare(None, regression, arms, available)


@jit
def _observe_reward(regression: Regression, features: Floats, reward: float, age: int) -> None:
    learn(regression.evidence, regression, features, reward, age)


# These serve every regression with `params`, `estimator`, `step` and `work` like ours.
@jit
def _write_theta(regression: Any, theta: Floats) -> None:
    triangular.write_theta(regression.estimator, theta)


@jit
def _value(regression: Any, features: Floats, model: Floats) -> float:
    return dot(features, model)


@jit
def _first_coefficient(regression: Any, features: Floats) -> int:
    return 0


@jit
def _squared_norm(regression: Any, vector: Floats) -> float:
    return triangular.squared_norm(regression.estimator, vector)


@jit
def _estimate_arms(regression: Any, arms: Floats, first: int) -> int:
    return measuring.estimate_arms(regression.estimator, arms, first, regression.work.arms)


@jit
def _estimate_differences(regression: Any, arms: Floats, best: int, first: int) -> int:
    return measuring.estimate_differences(regression.estimator, arms, best, first, regression.work.arms)


@jit
def _compare_arms(regression: Any, features: Floats, other: Floats) -> tuple[float, float]:
    work = regression.work
    for i in range(work.vector.shape[0]):
        work.vector[i] = features[i] - other[i]
    write_theta(regression, work.theta)
    gap = dot(work.vector, work.theta)
    return gap, triangular.squared_norm(regression.estimator, work.vector)


@jit
def _log_det_ratio(regression: Any) -> float:
    return max(regression.estimator.log_det_ratio.item(), 0.0)


@jit
def triangle_fits(triangle: Floats, weights: Floats, targets: Floats, dim: int) -> bool:
    """Return whether the parts of a triangle have this dimension."""
    rows, columns = triangle.shape
    return rows == dim and columns == dim and weights.shape[0] == dim and targets.shape[0] == dim


@jit
def evidence_fits(evidence: Evidence | None, dim: int) -> bool:
    """Return whether the evidence, if any, has this dimension."""
    if evidence is None:
        return True
    return triangle_fits(evidence.triangle, evidence.weights, evidence.targets, dim)


@jit
def _triangle_fits(regression: Any, dim: int) -> bool:
    estimator, work = regression.estimator, regression.work
    scratch = work.theta.shape[0] == dim and work.vector.shape[0] == dim and work.gains.shape[0] == dim
    return scratch and triangle_fits(estimator.triangle, estimator.weights, estimator.targets, dim)


@jit
def _fits(regression: Regression, dim: int) -> bool:
    return _triangle_fits(regression, dim) and evidence_fits(regression.evidence, dim)


@jit
def _draw_model(regression: Any, spread: float, model: Floats, rng: Words) -> None:
    """Draw U^-1 (t + spread D^-½ g), which is N(θ-hat, spread² V^-1); Student of this scale if σ is estimated."""
    estimator, squares = regression.estimator, 0.0
    degrees = noise.degrees_of_freedom(regression.params.noise_std, estimator)
    for i in range(model.shape[0]):
        drawn = student_next(degrees, i, squares, rng)
        squares += drawn * drawn
        model[i] = estimator.targets[i] + spread * drawn / math.sqrt(estimator.weights[i])
    solve_triangle(estimator, model)


@jit
def _noise_deviation(regression: Any) -> float:
    return noise.noise_deviation(regression.params.noise_std, regression.estimator)


@jit
def _degrees_of_freedom(regression: Any) -> float:
    return noise.degrees_of_freedom(regression.params.noise_std, regression.estimator)


OF_A_TRIANGLE: dict[str, Callable[..., Any]] = {
    "observe_offer": _observe_triangle_offer,
    "write_theta": _write_theta,
    "predict_reward": predict_linearly,
    "value": _value,
    "first_coefficient": _first_coefficient,
    "squared_norm": _squared_norm,
    "estimate_arms": _estimate_arms,
    "estimate_differences": _estimate_differences,
    "compare_arms": _compare_arms,
    "draw_model": _draw_model,
    "noise_deviation": _noise_deviation,
    "degrees_of_freedom": _degrees_of_freedom,
    "log_det_ratio": _log_det_ratio,
    "fits": _triangle_fits,
    "models_fit": _triangle_fits,
}
"""Kernels for any regression that keeps its evidence as a triangle: all but `observe_reward`."""

_OURS: dict[str, Callable[..., Any]] = {
    "observe_offer": _observe_offer,
    "observe_reward": _observe_reward,
    "fits": _fits,
    "models_fit": _fits,
}
register_regression(Regression, **(OF_A_TRIANGLE | _OURS))
