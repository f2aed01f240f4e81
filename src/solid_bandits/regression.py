"""The regularised least-squares estimator of Section 2, kept by rank-one updates."""

import math
from typing import NamedTuple

import numpy as np

from solid_bandits._compile import jit, jit_apart
from solid_bandits._types import Floats, Ints
from solid_bandits.linalg.triangular import cholesky, inverse_from_factor
from solid_bandits.linalg.vectors import dot, inner_products, symmetric_product
from solid_bandits.problem import View

REFRESH_EVERY = 16
"""Updates per dimension between computations from scratch, each of which costs about `dim` updates. Every update adds
a rounding error of about 1e-16 times V's condition, so the interval is kept as short as costs a few per cent."""


class Regression(NamedTuple):
    """The estimate and, for every known pair, what policies ask of it. All arrays are updated in place."""

    gram: Floats
    """V = νI + Σ φφᵀ, shape (dim, dim)."""
    inverse: Floats
    """V^-1."""
    moment: Floats
    """U = Σ φ Y, shape (dim,)."""
    theta: Floats
    """θ-hat = V^-1 U."""
    log_det: Floats
    """log det V, shape ()."""
    updates: Ints
    """Rewards seen, shape ()."""
    means: Floats
    """φ(x,a)ᵀθ-hat, shape (contexts, arms)."""
    sq_norms: Floats
    """‖φ(x,a)‖²_{V^-1}, shape (contexts, arms)."""


class RegressionWork(NamedTuple):
    """Scratch of an update; nothing is carried in it."""

    direction: Floats
    products: Floats
    factor: Floats


def make_regression(view: View, ridge: float) -> tuple[Regression, RegressionWork]:
    """The estimator before any reward: V = ridge * I, θ-hat = 0."""
    n_contexts, n_arms, dim = view.features.shape
    regression = Regression(
        gram=ridge * np.eye(dim),
        inverse=np.eye(dim) / ridge,
        moment=np.zeros(dim),
        theta=np.zeros(dim),
        log_det=np.array(dim * math.log(ridge)),
        updates=np.array(0),
        means=np.zeros((n_contexts, n_arms)),
        sq_norms=(view.features**2).sum(axis=2) / ridge,
    )
    work = RegressionWork(
        direction=np.zeros(dim), products=np.zeros(n_contexts * n_arms), factor=np.zeros((dim, dim))
    )
    return regression, work


@jit
def observe(
    regression: Regression, work: RegressionWork, view: View, context: int, arm: int, reward: float
) -> None:
    """Take in one reward: V += φφᵀ, U += φY, and all that follows from them, by Sherman and Morrison's formula.

    With u = V^-1 φ, one inner product p = φ(x,a)ᵀu per pair moves both its mean (by p times the scaled error) and its
    squared norm (by p² / (1 + φᵀu)), so neither is ever computed anew.
    """
    feature = view.features[context, arm]
    dim = feature.shape[0]
    direction, products = work.direction, work.products
    symmetric_product(regression.inverse, feature, direction)
    growth = 1.0 + dot(feature, direction)
    error = (reward - dot(feature, regression.theta)) / growth
    for i in range(dim):
        scaled = direction[i] / growth
        regression.moment[i] += feature[i] * reward
        regression.theta[i] += error * direction[i]
        for j in range(dim):
            regression.gram[i, j] += feature[i] * feature[j]
            regression.inverse[i, j] -= scaled * direction[j]
    regression.log_det[()] += math.log(growth)
    inner_products(view.features_by_dim, direction, products)
    means, sq_norms = regression.means.reshape(-1), regression.sq_norms.reshape(-1)
    shrinkage = 1.0 / growth
    for pair in range(products.shape[0]):
        means[pair] += error * products[pair]
        sq_norms[pair] -= shrinkage * products[pair] * products[pair]
    regression.updates[()] += 1
    if regression.updates.item() % (REFRESH_EVERY * dim) == 0:
        refresh(regression, work, view)


@jit_apart
def refresh(regression: Regression, work: RegressionWork, view: View) -> None:
    """Compute everything again from V and U, which sums keep accurate, so that rounding does not build up."""
    dim = regression.theta.shape[0]
    cholesky(regression.gram, work.factor)
    inverse_from_factor(work.factor, regression.inverse)
    symmetric_product(regression.inverse, regression.moment, regression.theta)
    log_det = 0.0
    for i in range(dim):
        log_det += 2.0 * math.log(work.factor[i, i])
    regression.log_det[()] = log_det
    n_contexts, n_arms = regression.means.shape
    for context in range(n_contexts):
        for arm in range(n_arms):
            feature = view.features[context, arm]
            regression.means[context, arm] = dot(feature, regression.theta)
            symmetric_product(regression.inverse, feature, work.direction)
            regression.sq_norms[context, arm] = dot(feature, work.direction)
