"""Kernels: shapes, forms, counts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench.rates.compiled import BLOCK
from bench.rates.draws import log_loop, normals_loop, uniform_loop
from bench.rates.entries import (
    bounds_loop,
    exp_loop,
    exp_numpy,
    gradient_loop,
    information_loop,
    mixtures_loop,
    normalise_loop,
    top_loop,
    top_passes,
    upper_loop,
)
from bench.rates.estimate import (
    rotate_pairs,
    rotate_rows,
    unit_blas,
    unit_columns,
    unit_dots,
    unit_pairs,
)
from bench.rates.gram import gram_blas, gram_dots, gram_sixteens, gram_tiles
from bench.rates.products import (
    columns_fours,
    columns_rows,
    cross_blas,
    cross_fours,
    cross_rows,
    learn_fours,
    learn_rows,
    matvec_rows,
)
from bench.rates.solves import (
    alternatives_blas,
    alternatives_blocks,
    alternatives_sweep,
    cholesky_dots,
    cholesky_lapack,
    norms_blas,
    norms_blocks,
    norms_eights,
    norms_sweep,
    solves_blas,
    solves_sweep,
    triangular_rows,
)


class Kernel(NamedTuple):
    """A piece of work of one shape."""

    what: str
    setup: Callable[..., tuple[Any, ...]]
    """Function from the shape to the arguments of a form, without the number of repetitions."""
    forms: tuple[Callable[..., None], ...]
    """Forms; the first does exactly what the counts say, others may do more and be faster."""
    madds: Callable[..., float]
    """Multiplications, each with the addition that follows it, as a function of the shape."""
    specials: Callable[..., float]
    """Divisions, roots, logarithms and exponentials, as a function of the shape."""
    floats: Callable[..., float]
    """Numbers read or written, each counted once per direction, as a function of the shape."""


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape) if shape else np.random.default_rng(0).normal()


def _positive(*shape: int) -> Any:
    return np.random.default_rng(1).uniform(0.5, 1.5, size=shape)


def _spd(dim: int) -> Any:
    half = _numbers(dim, 2 * dim)
    return half @ half.T / dim + np.eye(dim)


def _factor(dim: int) -> Any:
    return np.ascontiguousarray(np.linalg.cholesky(_spd(dim)))


def _unit(dim: int) -> Any:
    return np.triu(0.3 * _numbers(dim, dim) / np.sqrt(dim), 1) + np.eye(dim)


def _stream() -> Any:
    return np.random.default_rng(2).integers(1, 2**63, size=4).astype(np.uint64)


KERNELS = {
    "columns": Kernel(
        "inner products of a vector with n columns of length d",
        lambda d, n: (_numbers(d, n), _numbers(d), np.zeros(n)),
        (columns_rows, columns_fours),
        lambda d, n: d * n,
        lambda d, n: 0,
        lambda d, n: d * n + n,
    ),
    "learn": Kernel(
        "products of n columns with u, means and squared norms moved by them",
        lambda d, n: (_numbers(d, n), _numbers(d), np.zeros(n), _numbers(n), _numbers(n), 1e-3, 1e-3),
        (learn_rows, learn_fours),
        lambda d, n: d * n + 3 * n,
        lambda d, n: 0,
        lambda d, n: d * n + 4 * n,
    ),
    "rotate": Kernel(
        "U, D and t after one reward: d²/2 rotations without square roots",
        lambda d: (_unit(d), _positive(d), _numbers(d), _numbers(d), np.zeros(d), 1.0),
        (rotate_rows, rotate_pairs),
        lambda d: d * (d - 1) + 7 * d,
        lambda d: d,
        lambda d: d * (d - 1) + 6 * d,
    ),
    "unit": Kernel(
        "U^-1 times a vector, U with ones on its diagonal",
        lambda d: (_unit(d), _numbers(d), np.zeros(d)),
        (unit_columns, unit_dots, unit_pairs, unit_blas),
        lambda d: d * (d - 1) / 2,
        lambda d: 0,
        lambda d: d * (d - 1) / 2 + 2 * d,
    ),
    "norms": Kernel(
        "w = U^-T φ of n columns φ, tᵀw and wᵀ D^-1 w",
        lambda d, n: (
            _numbers(d, n),
            _unit(d),
            _positive(d),
            _numbers(d),
            np.zeros((d, n)),
            np.zeros(n),
            np.zeros(n),
        ),
        (norms_sweep, norms_blocks, norms_eights, norms_blas),
        lambda d, n: n * (d * (d - 1) / 2 + 3 * d),
        lambda d, n: d,
        lambda d, n: d * n + 2 * n + d * (d + 1) / 2 + d,
    ),
    "solves": Kernel(
        "V^-1 φ of n columns φ",
        lambda d, n: (_numbers(d, n), _unit(d), _positive(d), np.zeros((d, n))),
        (solves_sweep, solves_blas),
        lambda d, n: n * (d * (d - 1) + d),
        lambda d, n: d,
        lambda d, n: 2 * d * n + d * (d + 1) / 2,
    ),
    "matvec": Kernel(
        "a symmetric matrix times a vector",
        lambda d: (_spd(d), _numbers(d), np.zeros(d)),
        (matvec_rows,),
        lambda d: d * d,
        lambda d: 0,
        lambda d: d * d + 2 * d,
    ),
    "top": Kernel(
        "the largest of n values",
        lambda n: (_numbers(n),),
        (top_loop, top_passes),
        lambda n: 0,
        lambda n: 0,
        lambda n: n,
    ),
    "bounds": Kernel(
        "the largest of n values a + w b, and of n values a",
        lambda n: (_numbers(n), _positive(n), np.ones(1), np.zeros(n)),
        (bounds_loop,),
        lambda n: n,
        lambda n: 0,
        lambda n: 2 * n,
    ),
    "upper": Kernel(
        "the largest of n values a + w √b, and of n values a",
        lambda n: (_numbers(n), _positive(n), np.ones(1), np.zeros(n)),
        (upper_loop,),
        lambda n: n,
        lambda n: n,
        lambda n: 2 * n,
    ),
    "gram": Kernel(
        "Σ w φφᵀ over n columns of length d, lower triangle",
        lambda d, n: (_numbers(d, n), _positive(n), np.zeros((d, n)), np.zeros((d, d), order="F")),
        (gram_dots, gram_tiles, gram_sixteens, gram_blas),
        lambda d, n: d * n + n * d * (d + 1) / 2,
        lambda d, n: 0,
        lambda d, n: d * n + n + d * (d + 1) / 2,
    ),
    "cholesky": Kernel(
        "the triangular factor of a (d, d) matrix",
        lambda d: (_spd(d), np.zeros((d, d))),
        (cholesky_dots, cholesky_lapack),
        lambda d: (d**3 + 3 * d**2 - 4 * d) / 6,
        lambda d: 2 * d,
        lambda d: d * (d + 1),
    ),
    "alternatives": Kernel(
        "the least gap² / ‖L^-1 (φ* - φ)‖² over n columns φ of length d: a triangular solve with each",
        lambda d, n: (
            _numbers(d, n),
            _factor(d),
            2.0 + _positive(d),
            _positive(n),
            np.zeros((d, n)),
            np.zeros((d + 2, BLOCK)),
            np.zeros(n),
        ),
        (alternatives_sweep, alternatives_blocks, alternatives_blas),
        lambda d, n: n * (d * (d - 1) / 2 + 2 * d + 1),
        lambda d, n: d + n,
        lambda d, n: d * n + 2 * n + d * (d + 1) / 2,
    ),
    "triangular": Kernel(
        "a triangular solve with one vector",
        lambda d: (_factor(d), _numbers(d), np.zeros(d)),
        (triangular_rows,),
        lambda d: d * (d - 1) / 2,
        lambda d: d,
        lambda d: d * (d + 1) / 2 + 2 * d,
    ),
    "gradient": Kernel(
        "the optimistic gradient of n pairs, with a root each",
        lambda n: (_numbers(n), _positive(n), _numbers(n), _positive(n), np.ones(3), np.zeros(n)),
        (gradient_loop,),
        lambda n: 5 * n,
        lambda n: n,
        lambda n: 5 * n,
    ),
    "exp": Kernel(
        "n exponentials",
        lambda n: (-30.0 * np.random.default_rng(3).uniform(size=n), np.zeros(n)),
        (exp_loop, exp_numpy),
        lambda n: 0,
        lambda n: n,
        lambda n: 2 * n,
    ),
    "normalise": Kernel(
        "gradients scaled and added to logits, probabilities scaled, per context",
        lambda x, a: (_numbers(x, a), _numbers(x, a), _positive(x, a)),
        (normalise_loop,),
        lambda x, a: 3 * x * a,
        lambda x, a: 3 * x,
        lambda x, a: 5 * x * a,
    ),
    "cross": Kernel(
        "the product of an (a, d) and a (d, n) matrix",
        lambda a, d, n: (_numbers(a, d), _numbers(d, n), np.zeros((a, n))),
        (cross_rows, cross_fours, cross_blas),
        lambda a, d, n: a * d * n,
        lambda a, d, n: 0,
        lambda a, d, n: a * d + d * n + a * n,
    ),
    "information": Kernel(
        "Σ q (|p| + c)² over n alternatives for each of a arms",
        lambda a, n: (_numbers(a, n), _positive(n), _positive(a), np.zeros(a)),
        (information_loop,),
        lambda a, n: 2 * a * n,
        lambda a, n: 0,
        lambda a, n: a * n + n + 2 * a,
    ),
    "mixtures": Kernel(
        "the best mixture of two of a arms, over all pairs of arms",
        lambda a: (np.sort(_positive(a)), np.sort(_positive(a) ** 2), np.zeros(1)),
        (mixtures_loop,),
        lambda a: 4 * a * (a - 1) / 2,
        lambda a: 3 * a * (a - 1) / 2,
        lambda a: 2 * a,
    ),
    "log": Kernel(
        "a logarithm", lambda: (np.ones(1), np.zeros(1)), (log_loop,), lambda: 0, lambda: 1, lambda: 0
    ),
    "uniform": Kernel(
        "a uniform number",
        lambda: (_stream(), np.zeros(1)),
        (uniform_loop,),
        lambda: 0,
        lambda: 0,
        lambda: 8,
    ),
    "normals": Kernel(
        "n normal numbers",
        lambda n: (_stream(), np.zeros(n)),
        (normals_loop,),
        lambda n: 3 * n,
        lambda n: 2 * n,
        lambda n: n,
    ),
}
