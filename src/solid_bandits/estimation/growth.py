"""Regressions that grow: one more block or column, new coordinates; and the contribution of each coefficient.

Each function returns a new regression of the same type with its own arrays, exactly as if the block or the column had
been there from the start. That requires evidence kept apart from its ridge, which `blocks` always has and `ridge` on
request.
"""

import copy
from typing import Any, NamedTuple, TypeVar

import numpy as np

from solid_bandits._internal.compiling import jit_apart
from solid_bandits._internal.types import Floats
from solid_bandits.core.setting import check_blocks
from solid_bandits.estimation import blocks as in_blocks
from solid_bandits.estimation import evidence as jointly
from solid_bandits.estimation.blocks import (
    Blocks,
    each_block,
    make_blocks_work,
    make_estimators,
    make_evidences,
)
from solid_bandits.estimation.estimator import Estimator, solve_triangle, squared_norm, write_theta
from solid_bandits.estimation.evidence import LEAST_SCALE, Evidence, rotate
from solid_bandits.estimation.ridge import Regression, make_work, ridge_by

T = TypeVar("T")
Kept = Blocks | Regression
TRIANGULAR = "triangle", "weights", "targets"
"""Fields of an estimator, and of evidence, that have an axis for blocks."""


class Parts(NamedTuple):
    """Contribution of each feature of an arm.

    Example:
        >>> parts = Parts(estimate=np.array([1.0, 2.0]), squared_width=np.array([0.5, 0.25]))
        >>> float(parts.estimate.sum())
        3.0
    """

    estimate: Floats
    """φᵢ θᵢ, which sum to the estimate φᵀθ-hat; shape (width,)."""
    squared_width: Floats
    """φᵢ (V^-1 φ)ᵢ, which sum to ‖φ‖²_{V^-1}; shape (width,). Single ones may be negative; infinite without a ridge."""


def require_apart(regression: Any) -> Kept:
    """Return the regression; raise a ValueError if it cannot grow."""
    if isinstance(regression, Blocks) or (
        isinstance(regression, Regression) and regression.evidence is not None
    ):
        return regression
    raise ValueError(
        "agent must keep its evidence apart from its ridge to grow: give it blocks, or grows=True, when it is made"
    )


def add_block(regression: Any, like: int | None) -> Blocks:
    """Return the regression with one more block: without rewards, or with the knowledge of block `like`.

    A copy has the coefficients, widths and evidence of the other block, and they count fully in the ridge by evidence.
    Their rewards count once: σ-hat has no more degrees of freedom than before, and Σ (Y - φᵀθ-hat)² is unchanged;
    ν ‖θ‖², which is also in σ-hat, has one more block.
    """
    if not isinstance(regression, Blocks):
        raise ValueError("agent must have blocks to take one more, got one estimate for all arms")
    regression = _copied(regression)
    kept, evidence = regression.estimator, regression.evidence
    count, width = kept.weights.shape
    ridge = evidence.ridge.item()
    new, bare = make_estimators(1, width, ridge), make_evidences(1, width, ridge)
    if like is not None:
        for name in TRIANGULAR:
            getattr(bare, name)[0] = getattr(evidence, name)[like]
        if ridge > 0.0:
            in_blocks.replace_ridge(bare, new, ridge, np.zeros(width))
    kept.log_det_ratio[()] += new.log_det_ratio
    kept.residual[()] += new.residual
    return regression._replace(
        estimator=kept._replace(
            **{name: np.concatenate([getattr(kept, name), getattr(new, name)]) for name in TRIANGULAR}
        ),
        evidence=evidence._replace(
            **{name: np.concatenate([getattr(evidence, name), getattr(bare, name)]) for name in TRIANGULAR}
        ),
        work=make_blocks_work(count + 1, width, regression.work.arms is not None),
    )


def add_columns(regression: Any, place: int, count: int) -> Kept:
    """Return the regression with `count` columns before column `place` of each block, zero in all features so far."""
    kept = require_apart(regression)
    evidence = evidence_of(kept)
    return _with(
        kept,
        _widened(kept.estimator, place, count, evidence.ridge.item()),
        _widened(evidence, place, count, 0.0),
    )


def change_basis(regression: Any, basis: Floats) -> Kept:
    """Return the model in other coordinates, φ_new = M φ_old, with M = `basis` in every block.

    The evidence without its ridge has rows R with RᵀR = Σ φφᵀ. They become R Mᵀ, rotated back into a triangle, which is
    exact: as if all rewards had come with the new features. The ridge is then put back by the rules that it is chosen
    by, without a trace of the old coordinates:

    - a number stays; where it is in units of the arms, the unit is the root of the mean ‖φ‖² of the rewards so far;
    - the ridge by evidence starts from that mean, and the fixed point gets as many iterations as if it had been
      updated at every doubling of the rewards;
    - before the first reward it is unset if the arms on offer set it: the next ones do.
    """
    kept = require_apart(regression)
    params, old, row = kept.params, evidence_of(kept), np.zeros(len(basis))
    bare = _copied(old)
    for source, target in zip(each_block(old), each_block(bare), strict=True):
        bare.residual[()] += move(source, basis, target, row)
    estimator = _copied(kept.estimator)
    form: Any = in_blocks if isinstance(kept, Blocks) else jointly
    mass, searched = estimator.mass.item(), params.search.rounds > 0
    if mass == 0.0 and (searched or params.relative):
        bare.ridge[()] = bare.start[()] = 0.0
        estimator.weights[...] = 0.0
        return _with(kept, estimator, bare)
    # Not a product by BLAS, whose rounding nobody promises to be the same wherever arrays lie.
    size = sum(float((weights[:, None] * triangle**2).sum()) for triangle, weights, *_ in each_block(bare))
    scale = max(size / mass, LEAST_SCALE) if size > 0.0 else 1.0
    ridge = params.search.start * scale if searched else params.ridge
    if params.relative:
        ridge = ridge_by(params, size / mass)
    bare.start[()] = ridge if old.start > 0.0 else 0.0
    form.replace_ridge(bare, estimator, ridge, row)
    if searched:
        rounds = params.search.rounds * int(estimator.rewards).bit_length()
        form.refine(params.search, rounds, bare, estimator, params.noise_std, row)
    return _with(kept, estimator, bare)


def parts_of(regression: Any, features: Floats) -> Parts:
    """Return the contribution of each feature of an arm to its estimate and to its squared width.

    `features` is the row of the arm, shape (dim,).
    """
    if isinstance(regression, Blocks):
        check_blocks("features", features, len(regression.estimator.weights))
        block, features = int(features[0]), features[1:]
        estimator = each_block(regression.estimator)[block]
    elif isinstance(regression, Regression):
        estimator = regression.estimator
    else:
        raise ValueError("agent must keep a linear estimate to be explained")
    if not estimator.weights.any():  # no ridge yet, so nothing is known
        return Parts(np.zeros(len(features)), np.where(features == 0.0, 0.0, np.inf))
    theta, direction = np.zeros(len(features)), np.array(features)
    solve_both(estimator, theta, direction)
    return Parts(features * theta, features * direction)


@jit_apart
def solve_both(estimator: Estimator, theta: Floats, direction: Floats) -> None:
    """Write θ-hat = U^-1 t into `theta`, and replace φ in `direction` by V^-1 φ = U^-1 D^-1 U^-T φ."""
    write_theta(estimator, theta)
    squared_norm(estimator, direction)
    for i in range(direction.shape[0]):
        direction[i] /= estimator.weights[i]
    solve_triangle(estimator, direction)


@jit_apart
def move(kept: Evidence, basis: Floats, moved: Evidence, row: Floats) -> float:
    """Write the triangle of the same rewards with features M φ; return the residual added by rounding."""
    dim, residual = row.shape[0], 0.0
    for i in range(dim):
        moved.weights[i], moved.targets[i] = 0.0, 0.0
        for j in range(dim):
            moved.triangle[i, j] = 1.0 if i == j else 0.0
    for i in range(dim):
        if kept.weights[i] > 0.0:
            for j in range(dim):
                # Summed in a register: a sum in memory is compiled in two versions, for arrays near each other and not,
                # whose rounding differs, so a replay could depend on where arrays are in memory.
                total = basis[j, i]
                for k in range(i + 1, dim):
                    total += basis[j, k] * kept.triangle[i, k]
                row[j] = total
            left, _ = rotate(
                moved.triangle, moved.weights, moved.targets, row, kept.targets[i], kept.weights[i]
            )
            residual += left
    return residual


def evidence_of(regression: Kept) -> Evidence:
    """Return the rewards without a ridge."""
    assert regression.evidence is not None  # `require_apart` ensures it
    return regression.evidence


def _copied(arrays: T) -> T:
    """Return a named tuple with copies of its arrays."""
    return copy.deepcopy(arrays)


def _widened(kept: Any, place: int, count: int, weight: float) -> Any:
    """Return the triangle or vector with columns of zeros, of this weight, before column `place`."""
    where = [place] * count
    triangle = np.insert(np.insert(kept.triangle, where, 0.0, axis=-1), where, 0.0, axis=-2)
    new = np.arange(place, place + count)
    triangle[..., new, new] = 1.0
    weights = np.insert(kept.weights, where, weight, axis=-1)
    targets = np.insert(kept.targets, where, 0.0, axis=-1)
    return _copied(kept)._replace(triangle=triangle, weights=weights, targets=targets)


def _with(regression: Kept, estimator: Estimator, evidence: Evidence) -> Kept:
    """Return the regression with this estimator and evidence, and scratch of their size."""
    norms, width = regression.work.arms is not None, estimator.weights.shape[-1]
    if isinstance(regression, Blocks):
        work = make_blocks_work(len(estimator.weights), width, norms)
    else:
        work = make_work(width, norms)
    return regression._replace(estimator=estimator, evidence=evidence, step=regression.step.copy(), work=work)
