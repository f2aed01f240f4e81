"""Ridge regression with separate coefficients for each arm: the joint estimate on e_a ⊗ x, in K triangles of size d.

Where arms share no coefficient, V is block-diagonal, and everything derived from it is too: an arm's mean and norm come
from its own block, and ‖φ - φ'‖²_{V^-1} of arms in two blocks is the sum of both norms. Arms do share σ and the ridge,
which are computed from sums over all blocks. So a decision takes O(K d²), a reward O(d²) and memory K d², while the
joint estimate takes K² d² for each arm, for a reward, and of memory; estimates, widths and draws agree up to rounding.

A row is [block number, x_1, ..., x_d], a model K times d coefficients, one block after the other.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Bools, Floats, Ints, Words
from solid_bandits.core.setting import Setting
from solid_bandits.estimation import noise
from solid_bandits.estimation.arms import block_size, make_arms_work
from solid_bandits.estimation.estimator import Estimator, count_reward, solve_triangle, solve_upper
from solid_bandits.estimation.evidence import (
    LEAST_APART,
    LEAST_SCALE,
    Evidence,
    Search,
    determined,
    fade_sums,
    fade_weights,
    is_due,
    most_ridge,
    next_ridge,
    regularise,
    rotate_both,
)
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.regression import register_regression
from solid_bandits.estimation.ridge import (
    OF_A_TRIANGLE,
    Regression,
    RegressionParams,
    RegressionWork,
    make_params,
    make_regression,
    ridge_by,
)
from solid_bandits.estimation.student import student_next

T = TypeVar("T", Estimator, Evidence)


class Blocks(NamedTuple):
    """Ridge regression in blocks: what is chosen, what is carried, and scratch."""

    params: RegressionParams
    estimator: Estimator
    """Estimators; triangle, weights and targets have one more axis, of length K, and sums are over all blocks."""
    evidence: Evidence
    """The same for the rewards without a ridge."""
    step: Ints
    """t: decisions made, shape ()."""
    work: RegressionWork
    """Scratch: `theta` of all blocks, the other fields of one block."""


def make_estimators(blocks: int, width: int, ridge: float) -> Estimator:
    """Return the estimators of all blocks before any reward."""
    return Estimator(
        triangle=np.tile(np.eye(width), (blocks, 1, 1)),
        weights=np.full((blocks, width), float(ridge)),
        targets=np.zeros((blocks, width)),
        log_det_ratio=np.array(0.0),
        residual=np.array(0.0),
        rewards=np.array(0),
        mass=np.array(0.0),
        reward_sum=np.array(0.0),
        reward_scatter=np.array(0.0),
    )


def make_evidences(blocks: int, width: int, ridge: float) -> Evidence:
    """Return the evidence of all blocks before any reward; `ridge` is 0 if it will be set later."""
    zeros, numbers = np.zeros((blocks, width)), (np.array(0.0), np.array(float(ridge)), np.array(0.0))
    return Evidence(np.tile(np.eye(width), (blocks, 1, 1)), zeros, zeros.copy(), *numbers)


def make_blocks_work(blocks: int, width: int, norms: bool) -> RegressionWork:
    """Return scratch for `blocks` blocks of this width."""
    arms = make_arms_work(width) if norms else None
    return RegressionWork(np.zeros(blocks * width), np.zeros(width), np.zeros(width), arms)


def start_regression(
    setting: Setting, ridge: float | str, half_life: float | None, norms: bool, relative: bool
) -> Blocks | Regression:
    """Return the regression for this setting before any reward: in blocks, or one for all arms.

    The arguments after the first are those of `ridge.make_regression`.
    """
    if setting.blocks == 0:
        apart = setting.grows
        return make_regression(setting.dim, setting.noise_std, ridge, half_life, norms, relative, apart)
    params = make_params(setting.noise_std, ridge, half_life, relative)
    blocks, width, start = setting.blocks, setting.width, 0.0 if params.relative else params.ridge
    estimator, evidence = make_estimators(blocks, width, start), make_evidences(blocks, width, start)
    return Blocks(params, estimator, evidence, np.array(0), make_blocks_work(blocks, width, norms))


def each_block(kept: T) -> list[T]:
    """Return the estimator or evidence of each block, as views with the sums of all; a joint one, itself."""
    parts: Any = kept
    if parts.triangle.ndim == 2:
        return [kept]
    return [type(parts)(*own, *parts[3:]) for own in zip(*parts[:3], strict=True)]


@jit
def block_of(weights: Floats, row: Floats) -> int:
    """Return a row's block number, clamped to the existing blocks."""
    return int(min(max(row[0], 0.0), weights.shape[0] - 1.0))


# A kernel may not return arrays, so each makes its own views of the blocks.
@jit_apart
def replace_ridge(evidence: Evidence, estimator: Estimator, ridge: float, row: Floats) -> None:
    """Rebuild every block from its rewards with another ridge."""
    residual, log_det_ratio = evidence.residual.item(), 0.0
    evidence.ridge[()] = ridge
    for b in range(estimator.weights.shape[0]):
        bare = Evidence(evidence.triangle[b], evidence.weights[b], evidence.targets[b], *evidence[3:])
        own = Estimator(estimator.triangle[b], estimator.weights[b], estimator.targets[b], *estimator[3:])
        left, ratio = regularise(bare, own, ridge, row)
        residual += left
        log_det_ratio += ratio
    estimator.residual[()] = residual
    estimator.log_det_ratio[()] = log_det_ratio


@jit_apart
def refine(
    search: Search, rounds: int, evidence: Evidence, estimator: Estimator, noise_std: float, row: Floats
) -> None:
    """Iterate the fixed point of the ridge, whose γ and ‖θ-hat‖² are sums over the blocks."""
    most = most_ridge(evidence)
    for _ in range(rounds):
        size = square = 0.0
        for b in range(estimator.weights.shape[0]):
            bare = Evidence(evidence.triangle[b], evidence.weights[b], evidence.targets[b], *evidence[3:])
            own = Estimator(estimator.triangle[b], estimator.weights[b], estimator.targets[b], *estimator[3:])
            size += determined(bare, own, row)
            for i in range(row.shape[0]):
                row[i] = own.targets[i]
            solve_triangle(own, row)
            square += dot(row, row)
        ridge = next_ridge(search, most, noise.noise_variance(noise_std, estimator), size, square)
        if not ridge > 0.0:
            return
        replace_ridge(evidence, estimator, ridge, row)


@jit
def spread_of(arms: Floats, available: Bools, means: Floats, width: int) -> tuple[float, float]:
    """Return the largest ‖φ_a - mean of φ‖² and the largest ‖φ_a‖² among the available arms, with φ_a = e_a ⊗ x.

    `means` is scratch of a model's size.
    """
    count, widest, largest, total = 0, 0.0, 0.0, 0.0
    blocks = means.reshape((-1, width))
    means[:] = 0.0
    for arm in range(arms.shape[0]):
        if available[arm]:
            count += 1
            mean = blocks[block_of(blocks, arms[arm])]
            for i in range(width):
                mean[i] += arms[arm, 1 + i]
    for b in range(blocks.shape[0]):
        for i in range(width):
            blocks[b, i] /= count
        total += dot(blocks[b], blocks[b])
    for arm in range(arms.shape[0]):
        if available[arm]:
            mean, features = blocks[block_of(blocks, arms[arm])], arms[arm][1:]
            apart = total - dot(mean, mean)  # from the other blocks, where this arm has zeros
            for i in range(width):
                apart += (features[i] - mean[i]) * (features[i] - mean[i])
            widest, largest = max(widest, apart), max(largest, dot(features, features))
    return widest, largest


@jit
def set_ridge(regression: Blocks, square: float) -> None:
    """Set a ridge for features of this squared size, until arms that differ have been on offer."""
    params, row = regression.params, regression.work.vector
    ridge = ridge_by(params, square)
    if params.search.rounds > 0:
        ridge = params.search.start * (max(square, LEAST_SCALE) if square > 0.0 else 1.0)
    replace_ridge(regression.evidence, regression.estimator, ridge, row)


@jit
def _observe_offer(regression: Blocks, arms: Floats, available: Bools) -> None:
    """Fade, and set the ridge by the first arms if that is chosen, as the joint estimate does."""
    params, estimator, evidence, work = (
        regression.params,
        regression.estimator,
        regression.evidence,
        regression.work,
    )
    regression.step[()] += 1
    if params.kept < 1.0 and estimator.rewards.item() > 0:
        for b in range(estimator.weights.shape[0]):
            fade_weights(evidence.weights[b], params.kept)
        fade_sums(evidence, estimator, params.kept)
        replace_ridge(evidence, estimator, evidence.ridge.item(), work.vector)
    searched = params.search.rounds > 0
    if (searched and evidence.start.item() > 0.0) or (not searched and evidence.ridge.item() > 0.0):
        return
    widest, largest = spread_of(arms, available, work.theta, work.vector.shape[0])
    if searched and widest > LEAST_APART * largest:
        evidence.start[()] = params.search.start * max(widest, LEAST_SCALE)
        replace_ridge(evidence, estimator, evidence.start.item(), work.vector)
    elif evidence.ridge.item() == 0.0:
        set_ridge(regression, largest)


@jit
def _observe_reward(regression: Blocks, row: Floats, reward: float, age: int) -> None:
    """Rotate a reward into the triangles of its block; at doubling counts, update the ridge."""
    params, estimator, evidence, work = (
        regression.params,
        regression.estimator,
        regression.evidence,
        regression.work,
    )
    features, b = row[1:], block_of(estimator.weights, row)
    if evidence.ridge.item() == 0.0:
        set_ridge(regression, dot(features, features))
    weight = params.kept**age if params.kept < 1.0 else 1.0
    bare = Evidence(evidence.triangle[b], evidence.weights[b], evidence.targets[b], *evidence[3:])
    own = Estimator(estimator.triangle[b], estimator.weights[b], estimator.targets[b], *estimator[3:])
    rotate_both(bare, own, features, reward, weight, work.vector, work.gains)
    count_reward(estimator, reward, weight)
    if is_due(params.search, estimator):
        refine(params.search, params.search.rounds, evidence, estimator, params.noise_std, work.vector)


@jit
def _write_theta(regression: Blocks, theta: Floats) -> None:
    blocks = theta.reshape((-1, regression.work.vector.shape[0]))
    for b in range(blocks.shape[0]):
        targets = regression.estimator.targets[b]
        for i in range(targets.shape[0]):
            blocks[b, i] = targets[i]
        solve_upper(regression.estimator.triangle[b], blocks[b])


@jit
def measure(estimator: Estimator, b: int, vector: Floats) -> tuple[float, float]:
    """Return φᵀθ-hat and ‖φ‖²_{V^-1} in a block for the features in `vector`, which are replaced by U^-T φ."""
    triangle, weights, targets = estimator.triangle[b], estimator.weights[b], estimator.targets[b]
    mean = sq_norm = 0.0
    for i in range(vector.shape[0]):
        lead, line = vector[i], triangle[i]
        mean += targets[i] * lead
        sq_norm += lead * lead / weights[i]
        for j in range(i + 1, vector.shape[0]):
            vector[j] -= lead * line[j]
    return mean, sq_norm


@jit
def measure_row(regression: Blocks, row: Floats) -> tuple[float, float]:
    """Return mean and squared norm of a row, in its own block."""
    vector = regression.work.vector
    for i in range(vector.shape[0]):
        vector[i] = row[1 + i]
    return measure(regression.estimator, block_of(regression.estimator.weights, row), vector)


@jit
def _predict_reward(regression: Blocks, vector: Floats) -> float:
    return measure_row(regression, vector)[0]


@jit
def _squared_norm(regression: Blocks, vector: Floats) -> float:
    return measure_row(regression, vector)[1]


@jit
def _first_coefficient(regression: Blocks, features: Floats) -> int:
    weights = regression.estimator.weights
    return block_of(weights, features) * weights.shape[1]


@jit
def _value(regression: Blocks, features: Floats, model: Floats) -> float:
    first = _first_coefficient(regression, features)
    return dot(features[1:], model[first:])


@jit
def _compare_arms(regression: Blocks, features: Floats, other: Floats) -> tuple[float, float]:
    """Return gap and norm: for arms of two blocks the norms add up, within one it is the norm of the difference."""
    weights, vector = regression.estimator.weights, regression.work.vector
    b = block_of(weights, features)
    if b == block_of(weights, other):
        for i in range(vector.shape[0]):
            vector[i] = features[1 + i] - other[1 + i]
        return measure(regression.estimator, b, vector)
    mean, sq_norm = measure_row(regression, features)
    less, more = measure_row(regression, other)
    return mean - less, sq_norm + more


@jit
def _estimate_arms(regression: Any, arms: Floats, first: int) -> int:
    work, count = regression.work.arms, block_size(arms.shape[0] - first)
    for k in range(count):
        work.means[k], work.sq_norms[k] = measure_row(regression, arms[first + k])
    return count


@jit
def _estimate_differences(regression: Any, arms: Floats, best: int, first: int) -> int:
    work, count = regression.work.arms, block_size(arms.shape[0] - first)
    for k in range(count):
        work.means[k], work.sq_norms[k] = _compare_arms(regression, arms[best], arms[first + k])
    return count


@jit
def _draw_model(regression: Blocks, spread: float, model: Floats, rng: Words) -> None:
    """Draw what the joint estimate would draw, number by number."""
    estimator, squares = regression.estimator, 0.0
    degrees = noise.degrees_of_freedom(regression.params.noise_std, estimator)
    blocks, drawn = model.reshape((-1, regression.work.vector.shape[0])), 0
    for b in range(blocks.shape[0]):
        targets, weights, own = estimator.targets[b], estimator.weights[b], blocks[b]
        for i in range(own.shape[0]):
            number = student_next(degrees, drawn, squares, rng)
            squares += number * number
            drawn += 1
            own[i] = targets[i] + spread * number / math.sqrt(weights[i])
        solve_upper(estimator.triangle[b], own)


@jit
def _have(estimator: Estimator, evidence: Evidence, blocks: int, width: int) -> bool:
    """Return whether there are this many triangles of this dimension."""
    square, line = (blocks, width, width), (blocks, width)
    parts = estimator.triangle.shape == square and evidence.triangle.shape == square
    parts = parts and estimator.weights.shape == line and evidence.weights.shape == line
    return parts and estimator.targets.shape == line and evidence.targets.shape == line


@jit
def _fit(regression: Blocks, width: int) -> bool:
    estimator, evidence, work = regression.estimator, regression.evidence, regression.work
    blocks = estimator.weights.shape[0]
    scratch = work.vector.shape[0] == width and work.gains.shape[0] == width
    scratch = scratch and work.theta.shape[0] == blocks * width
    return blocks > 0 and width > 0 and scratch and _have(estimator, evidence, blocks, width)


@jit
def _fits(regression: Blocks, dim: int) -> bool:
    return _fit(regression, dim - 1)


@jit
def _models_fit(regression: Blocks, size: int) -> bool:
    return regression.work.theta.shape[0] == size and _fit(regression, regression.work.vector.shape[0])


_OURS: dict[str, Callable[..., Any]] = {
    "observe_offer": _observe_offer,
    "observe_reward": _observe_reward,
    "write_theta": _write_theta,
    "predict_reward": _predict_reward,
    "value": _value,
    "first_coefficient": _first_coefficient,
    "squared_norm": _squared_norm,
    "estimate_arms": _estimate_arms,
    "estimate_differences": _estimate_differences,
    "compare_arms": _compare_arms,
    "draw_model": _draw_model,
    "fits": _fits,
    "models_fit": _models_fit,
}
register_regression(Blocks, **(OF_A_TRIANGLE | _OURS))
