"""The regularised least-squares estimator of Section 2, as a triangular factor kept by plane rotations.

Neither V = νI + Σ φφᵀ nor its inverse is formed: with every column of the features shifted by 1e5 the condition number
of V is 1e11, and both would lose the estimate. Instead R with RᵀR = V and z = Qᵀy with R θ-hat = z are kept, written
without square roots as R = D^½ U, z = D^½ t: U unit upper triangular, D diagonal. A reward is one more row of the
least-squares problem, and rotating it into the triangle takes O(d²) (Gentleman 1973, "Least squares computations by
Givens transformations without square roots").
"""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats, Ints


class Estimator(NamedTuple):
    """V, θ-hat and the sums of the rewards. All arrays are updated in place.

    Example:
        >>> make_estimator(dim=2, ridge=1.0).weights
        array([1., 1.])
    """

    triangle: Floats
    """U, unit upper triangular, shape (dim, dim)."""
    weights: Floats
    """D, shape (dim,): V = Uᵀ D U."""
    targets: Floats
    """t = U θ-hat, shape (dim,)."""
    log_det_ratio: Floats
    """log(det V / det νI), shape ()."""
    residual: Floats
    """Σ (Y - φᵀθ-hat)² + ν ‖θ-hat‖², shape ()."""
    rewards: Ints
    """Number of rewards so far, shape ()."""
    mass: Floats
    """Σ w, the weights of the rewards, shape (); equal to their number unless evidence fades."""
    reward_sum: Floats
    """Σ w Y, shape ()."""
    reward_scatter: Floats
    """Σ w (Y - Ȳ)², shape ()."""


def make_estimator(dim: int, ridge: float) -> Estimator:
    """Return the estimator before any reward: V = ridge * I, θ-hat = 0. A ridge of 0 is set later by `set_ridge`."""
    return Estimator(
        triangle=np.eye(dim),
        weights=np.full(dim, float(ridge)),
        targets=np.zeros(dim),
        log_det_ratio=np.array(0.0),
        residual=np.array(0.0),
        rewards=np.array(0),
        mass=np.array(0.0),
        reward_sum=np.array(0.0),
        reward_scatter=np.array(0.0),
    )


@jit
def set_ridge(estimator: Estimator, ridge: float) -> None:
    """Set V = ridge * I, for an estimator that has seen nothing."""
    estimator.weights[:] = ridge


@jit
def observe(estimator: Estimator, features: Floats, reward: float, row: Floats, gains: Floats) -> float:
    """Add one reward: V += φφᵀ and everything that follows; return 1 + ‖φ‖²_{V^-1} for the previous V.

    Writes the g with U^-1 g = V^-1 φ, for the new V, into `gains`, shape (dim,). `row` is scratch, shape (dim,).
    """
    triangle, weights, targets = estimator.triangle, estimator.weights, estimator.targets
    dim = weights.shape[0]
    for i in range(dim):
        row[i] = features[i]
    rest = reward
    weight = 1.0
    for i in range(dim):
        lead, old = row[i], weights[i]
        new = old + weight * lead * lead
        inverse = 1.0 / new
        gain = weight * lead * inverse
        weight *= old * inverse
        weights[i] = new
        gains[i] = gain
        rest -= lead * targets[i]
        targets[i] += gain * rest
        line = triangle[i]
        for j in range(i + 1, dim):
            row[j] -= lead * line[j]
            line[j] += gain * row[j]
    growth = 1.0 / weight
    estimator.log_det_ratio[()] += math.log(growth)
    estimator.residual[()] += weight * rest * rest
    count_reward(estimator, reward, 1.0)
    return growth


@jit
def count_reward(estimator: Estimator, reward: float, weight: float) -> None:
    """Count a reward and add it to the sums; an offset costs Σ w (Y - Ȳ)² no digits (Welford 1962)."""
    before = estimator.mass.item()
    after = before + weight
    mean = estimator.reward_sum.item() / before if before > 0.0 else reward
    estimator.rewards[()] += 1
    estimator.mass[()] = after
    estimator.reward_sum[()] += weight * reward
    around = estimator.reward_sum.item() / after if after > 0.0 else reward
    estimator.reward_scatter[()] += weight * max((reward - mean) * (reward - around), 0.0)


@jit
def solve_triangle(estimator: Estimator, values: Floats) -> None:
    """Replace `values` by U^-1 `values`."""
    solve_upper(estimator.triangle, values)


@jit
def solve_upper(triangle: Floats, values: Floats) -> None:
    """Replace `values` by U^-1 `values`, U unit upper triangular."""
    for j in range(values.shape[0] - 1, 0, -1):
        last = values[j]
        for i in range(j):
            values[i] -= triangle[i, j] * last


@jit
def write_theta(estimator: Estimator, theta: Floats) -> None:
    """Write θ-hat = U^-1 t into `theta`."""
    for i in range(theta.shape[0]):
        theta[i] = estimator.targets[i]
    solve_triangle(estimator, theta)


@jit
def squared_norm(estimator: Estimator, vector: Floats) -> float:
    """Return ‖φ‖²_{V^-1} of one vector, which is replaced by U^-T φ."""
    triangle, weights = estimator.triangle, estimator.weights
    total = 0.0
    for i in range(vector.shape[0]):
        lead, line = vector[i], triangle[i]
        total += lead * lead / weights[i]
        for j in range(i + 1, vector.shape[0]):
            vector[j] -= lead * line[j]
    return total


@jit
def write_gram(estimator: Estimator, gram: Floats) -> None:
    """Write V = Uᵀ D U into `gram`, for uses that need its eigenvectors, as SOLID's theoretical form does."""
    triangle, weights = estimator.triangle, estimator.weights
    dim = weights.shape[0]
    for i in range(dim):
        for j in range(i + 1):
            total = 0.0
            for k in range(j + 1):
                total += triangle[k, i] * weights[k] * triangle[k, j]
            gram[i, j] = total
            gram[j, i] = total
