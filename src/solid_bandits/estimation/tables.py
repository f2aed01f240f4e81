"""Mean and norm of every pair of a finite problem, brought up to date when a policy asks for all of them.

One inner product p = φᵀV^-1φ_t per pair changes a squared norm by p² / (1 + ‖φ_t‖²_{V^-1}) (Sherman and Morrison), so
the directions of rewards since the last update are kept and applied together. Where there are too many of them, all
norms are recomputed from the triangle, as they are when differences could have cost digits: a norm falls at most by
the factor det V / det V_s since it was computed, which bounds its relative error.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.core.setting import Table
from solid_bandits.estimation.arms import ArmsWork, make_arms_work
from solid_bandits.estimation.estimator import Estimator, make_estimator, observe, solve_triangle
from solid_bandits.estimation.linalg.vectors import inner_products
from solid_bandits.estimation.regression import estimate_arms, register_regression, write_theta
from solid_bandits.estimation.ridge import OF_A_TRIANGLE

LOSS = 14.0
"""log(det V / det V_s) beyond which norms are recomputed: ten of sixteen digits are left."""
ANEW = 3
"""A direction costs P d products, recomputing all norms P d²/2 in a faster loop: up to d / ANEW directions are kept."""
STRIP = 512
"""Number of pairs whose sums stay in the processor's first-level cache."""


class Tables(NamedTuple):
    """The known quantities of every pair, and pending rewards. All arrays are updated in place."""

    means: Floats
    """φ(x,a)ᵀθ-hat, shape (contexts, arms)."""
    sq_norms: Floats
    """‖φ(x,a)‖²_{V^-1}, shape (contexts, arms)."""
    directions: Floats
    """V^-1 φ_t √(1 + ‖φ_t‖²) of pending rewards, shape (number worth keeping, dim)."""
    waiting: Ints
    """Number of pending rewards, whether their directions are kept or not, shape ()."""
    log_det_ratio: Floats
    """log(det V / det νI) of the estimator when all norms were last computed, shape ()."""


class TableWork(NamedTuple):
    """Scratch; nothing is carried over in it."""

    theta: Floats
    """θ-hat, shape (dim,)."""
    vector: Floats
    """Scratch, shape (dim,)."""
    gains: Floats
    """Scratch, shape (dim,)."""
    arms: ArmsWork
    products: Floats
    """Scratch, shape (pairs,)."""


class TableRegression(NamedTuple):
    """Ridge regression with means and norms of every pair; σ is told, and the ridge is a number."""

    noise_std: float
    estimator: Estimator
    tables: Tables
    work: TableWork


def make_table_regression(table: Table, noise_std: float, ridge: float) -> TableRegression:
    """Return the estimator with means and norms of every pair, before any reward."""
    n_contexts, n_arms, dim = table.features.shape
    tables = Tables(
        means=np.zeros((n_contexts, n_arms)),
        sq_norms=(table.features**2).sum(axis=2) / ridge,
        directions=np.zeros((max(dim // ANEW, 1), dim)),
        waiting=np.array(0),
        log_det_ratio=np.array(0.0),
    )
    pairs = n_contexts * n_arms
    work = TableWork(np.zeros(dim), np.zeros(dim), np.zeros(dim), make_arms_work(dim), np.zeros(pairs))
    return TableRegression(float(noise_std), make_estimator(dim, ridge), tables, work)


@jit
def _observe_reward(regression: TableRegression, features: Floats, reward: float, age: int) -> None:
    """Add one reward; its direction stays pending until the tables are asked for."""
    estimator, tables, work = regression.estimator, regression.tables, regression.work
    growth = observe(estimator, features, reward, work.vector, work.gains)
    place = tables.waiting.item()
    tables.waiting[()] += 1
    if place < tables.directions.shape[0]:
        direction = tables.directions[place]
        scale = math.sqrt(growth)
        for i in range(direction.shape[0]):
            direction[i] = scale * work.gains[i]
        solve_triangle(estimator, direction)


@jit
def _noise_deviation(regression: TableRegression) -> float:
    return regression.noise_std


_OURS: dict[str, Callable[..., Any]] = {
    "observe_reward": _observe_reward,
    "noise_deviation": _noise_deviation,
}
register_regression(TableRegression, **(OF_A_TRIANGLE | _OURS))


@jit
def bring_up_to_date(regression: TableRegression, table: Table) -> None:
    """Update means and norms with all rewards so far."""
    estimator, tables, work = regression.estimator, regression.tables, regression.work
    waiting = tables.waiting.item()
    if waiting == 0:
        return
    sq_norms, means = tables.sq_norms.reshape(-1), tables.means.reshape(-1)
    lost = estimator.log_det_ratio.item() - tables.log_det_ratio.item()
    if waiting > tables.directions.shape[0] or lost > LOSS:
        _recompute_norms(regression, table.features)
    else:
        for place in range(waiting - 1):
            inner_products(table.columns, tables.directions[place], work.products)
            for pair in range(sq_norms.shape[0]):
                sq_norms[pair] = max(sq_norms[pair] - work.products[pair] * work.products[pair], 0.0)
        write_theta(regression, work.theta)
        direction = tables.directions[waiting - 1]
        _last_direction(table.columns, direction, work.theta, work.products, sq_norms, means)
    tables.waiting[()] = 0


@jit
def write_means(regression: TableRegression, table: Table) -> None:
    """Update the means alone with all rewards so far; the norms stay pending."""
    write_theta(regression, regression.work.theta)
    inner_products(table.columns, regression.work.theta, regression.tables.means.reshape(-1))


@jit
def _last_direction(
    columns: Floats, direction: Floats, theta: Floats, products: Floats, sq_norms: Floats, means: Floats
) -> None:
    """Subtract a direction from the norms and write the means, in one pass over the features, whose reading dominates.

    Handles three rows at a time: with two sums and four rows the compiler cannot prove that nothing overlaps.
    """
    dim, pairs = columns.shape
    whole = dim - dim % 3
    for start in range(0, pairs, STRIP):
        end = min(start + STRIP, pairs)
        along, mean, sq_norm = products[start:end], means[start:end], sq_norms[start:end]
        along[:] = 0.0
        mean[:] = 0.0
        for i in range(0, whole, 3):
            d0, d1, d2 = direction[i], direction[i + 1], direction[i + 2]
            t0, t1, t2 = theta[i], theta[i + 1], theta[i + 2]
            r0, r1, r2 = columns[i, start:end], columns[i + 1, start:end], columns[i + 2, start:end]
            for p in range(end - start):
                along[p] += d0 * r0[p] + d1 * r1[p] + d2 * r2[p]
                mean[p] += t0 * r0[p] + t1 * r1[p] + t2 * r2[p]
        for i in range(whole, dim):
            d0, t0, row = direction[i], theta[i], columns[i, start:end]
            for p in range(end - start):
                along[p] += d0 * row[p]
                mean[p] += t0 * row[p]
        for p in range(end - start):
            sq_norm[p] = max(sq_norm[p] - along[p] * along[p], 0.0)  # rounding may go below at absurd scales


@jit_apart
def _recompute_norms(regression: TableRegression, features: Floats) -> None:
    rows, tables, work = features.reshape((-1, features.shape[2])), regression.tables, regression.work.arms
    sq_norms, means = tables.sq_norms.reshape(-1), tables.means.reshape(-1)
    first = 0
    while first < rows.shape[0]:
        count = estimate_arms(regression, rows, first)
        for k in range(count):
            sq_norms[first + k], means[first + k] = work.sq_norms[k], work.means[k]
        first += count
    tables.log_det_ratio[()] = regression.estimator.log_det_ratio.item()
