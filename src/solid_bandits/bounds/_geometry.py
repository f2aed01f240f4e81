"""What a problem looks like to the convex programs: gaps without ties, spans decided, coordinates well scaled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solid_bandits._types import Floats, Ints
from solid_bandits.problem import Problem

# A direction whose relative size is under ZERO is rounding; over CLEAR it is real; between, the floats do not say.
_ZERO = 1e-12
_CLEAR = 1e-9
_EPS = float(np.finfo(np.float64).eps)
# Relative error of the gaps under which double precision will do.
_FINE = 1e-11


@dataclass(frozen=True)
class Gaps:
    """Δ(x, a), checked."""

    values: Floats
    """(contexts, arms); 0 at the optimal arms."""
    suboptimal: Ints
    """Flat indices x * arms + a of the suboptimal pairs."""
    error: float
    """Largest relative rounding error of a positive gap."""


@dataclass(frozen=True)
class Coordinates:
    """Coordinates β of the differences θ - θ' = basis @ β that an alternative may have."""

    basis: Floats
    """(dim, k)."""
    centre: Floats
    """(k,): θ in these coordinates where they are orthonormal (bounded alternatives), else zeros."""
    radius: float
    """Alternatives have ‖centre - β‖ <= radius; infinite where they are unbounded."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """(P) without the optimal arms: coordinates of the alternatives that agree with θ on them, and what they tell."""

    where: Coordinates
    pairs: Ints
    """Flat indices of the suboptimal pairs whose features leave the span of the optimal arms, increasing."""
    spread: Floats
    """Features of these pairs in the coordinates, shape (pairs, k)."""
    apart: Floats
    """φ*(x) - φ(x, a) of these pairs in the coordinates, shape (pairs, k)."""
    scale: Floats
    """`column_scales`."""
    features: Floats
    """What it was made from, with the optimal arms."""
    optimal_arms: Ints

    def fits(self, problem: Problem) -> bool:
        """Whether it is the reduction of `problem` too: without a bound, θ matters only through the optimal arms."""
        return (
            problem.theta_bound is None
            and np.isinf(self.where.radius)
            and self.features.shape == problem.features.shape
            and bool((self.optimal_arms == problem.optimal_arms).all())
            and (self.features is problem.features or bool((self.features == problem.features).all()))
        )


def gaps(problem: Problem) -> Gaps:
    """Gaps computed as (φ* - φ)ᵀθ, with their rounding error bounded; extended precision where double is too coarse.

    A difference of two means loses what a small gap has left; a difference of features does not.

    Raises:
        ValueError: two arms of a context are equally good, or as far as floating point can tell.

    """
    rows = np.arange(problem.n_contexts)
    best = problem.features[rows, problem.optimal_arms][:, None, :]
    values = (best - problem.features) @ problem.theta
    # The size of what was summed for each.
    rounding = np.abs(problem.features) @ np.abs(problem.theta)
    rounding += rounding[rows, problem.optimal_arms][:, None]
    others = np.ones(values.shape, dtype=bool)
    others[rows, problem.optimal_arms] = False
    error = _rounding_error(problem, values, rounding, others, _EPS)
    if not error <= _FINE:
        wide = problem.features.astype(np.longdouble)
        exact = wide[rows, problem.optimal_arms][:, None, :] - wide
        values = (exact * problem.theta.astype(np.longdouble)).sum(axis=2).astype(np.float64)
        error = (
            _rounding_error(problem, values, rounding, others, float(np.finfo(np.longdouble).eps)) + 4 * _EPS
        )
    tied = others & (values <= 8 * _EPS * rounding)
    if tied.any():
        x, a = (int(i) for i in np.argwhere(tied)[0])
        raise ValueError(
            f"context {x} has several optimal arms: {int(problem.optimal_arms[x])} and {a} have equal means "
            f"(they differ by {float(values[x, a]):.3g}); the lower bound needs one optimal arm per context, so "
            "change theta or leave out one of the arms"
        )
    values[~others] = 0.0
    return Gaps(values, np.flatnonzero(others), float(error))


def differences(problem: Problem, pairs: Ints) -> Floats:
    """φ*(x) - φ(x, a) of pairs (flat indices), shape (pairs, dim)."""
    contexts = pairs // problem.n_arms
    best = contexts * problem.n_arms + problem.optimal_arms[contexts]
    table = problem.features.reshape(-1, problem.dim)
    return np.asarray(table[best] - table[pairs])


def _rounding_error(
    problem: Problem, values: Floats, rounding: Floats, others: NDArray[np.bool_], eps: float
) -> float:
    if not others.any():
        return 0.0
    least = float((values[others] / np.maximum(rounding[others], 1e-300)).min())
    return problem.dim * eps / least if least > 0 else np.inf


def column_scales(problem: Problem) -> Floats:
    """Factors that bring every coordinate of the features to size 1, so that units do not decide what is zero.

    Without a bound on θ', features φ and Sφ with parameters θ and S⁻¹θ are the same problem; with one, they are
    not, and the factors are 1.
    """
    if problem.theta_bound is not None:
        return np.ones(problem.dim)
    sizes = np.abs(problem.features).max(axis=(0, 1))
    return np.where(sizes > 0, sizes, 1.0)


def reduce(problem: Problem, known: Reduction | None = None) -> Reduction:
    """Coordinates of the alternatives that agree with θ on every optimal arm, and the pairs they can tell from θ.

    Pulls of optimal arms are free and their number goes to infinity in (P), so an alternative counts only if it
    gives each optimal arm the same mean: θ - θ' is orthogonal to their span. For bounded alternatives the set
    {θ' : ‖θ'‖ <= B} is compact, so the least information over it converges to the least over its part that
    agrees with θ on the span (+∞ where that part is empty): the same reduction, with the ball cut by the
    affine space. Its centre is θ projected on the orthogonal complement, its radius² is B² less the squared norm of
    θ's part in the span.

    Args:
        problem: the problem.
        known: the reduction of a problem with perhaps the same features and optimal arms: then there is nothing to do.

    Returns:
        The coordinates, the suboptimal pairs whose features leave the span, and their features in the coordinates.

    Raises:
        ValueError: rounding does not say whether a direction or a pair is in the span.

    """
    if known is not None and known.fits(problem):
        return known
    scale = column_scales(problem)
    table = (problem.features / scale).reshape(-1, problem.dim)
    rows = np.arange(problem.n_contexts) * problem.n_arms + problem.optimal_arms
    inside, outside = _split(table[rows], "the optimal arms' features")
    projected = table @ outside
    sizes = np.linalg.norm(table, axis=1)
    relative = np.linalg.norm(projected, axis=1) / np.where(sizes > 0, sizes, 1.0)
    relative[rows] = 0.0
    unclear = np.flatnonzero((relative > _ZERO) & (relative < _CLEAR))
    if len(unclear):
        x, a = divmod(int(unclear[0]), problem.n_arms)
        raise ValueError(
            f"features: arm {a} of context {x} is within {relative[unclear[0]]:.1e} of the span of the optimal "
            "arms, neither in it nor out of it at double precision, so its gap cannot be called detectable; "
            "round the features, or move the arm away from the span"
        )
    pairs = np.flatnonzero(relative >= _CLEAR).astype(np.int64)
    where = _coordinates(problem, scale, outside, projected[pairs], inside)
    spread = problem.features.reshape(-1, problem.dim)[pairs] @ where.basis
    apart = differences(problem, pairs) @ where.basis
    return Reduction(where, pairs, spread, apart, scale, problem.features, problem.optimal_arms)


def full_coordinates(problem: Problem) -> Coordinates:
    """Coordinates of every alternative that some feature can tell from θ: the span of all features."""
    scale = column_scales(problem)
    table = (problem.features / scale).reshape(-1, problem.dim)
    nothing = np.zeros((problem.dim, 0))
    return _coordinates(problem, scale, np.eye(problem.dim), table[np.any(table != 0, axis=1)], nothing)


def _coordinates(
    problem: Problem, scale: Floats, outer: Floats, vectors: Floats, inside: Floats
) -> Coordinates:
    if len(vectors) == 0:
        return Coordinates(np.zeros((problem.dim, 0)), np.zeros(0), np.inf)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    # The same singular values and right vectors from the small triangular factor, several times faster.
    triangle = np.linalg.qr(unit, mode="r") if len(unit) > unit.shape[1] else unit
    _, singular, right = np.linalg.svd(triangle, full_matrices=False)
    kept = singular > _ZERO * singular[0]
    if np.any(kept & (singular < _CLEAR * singular[0])):
        raise ValueError(
            "features span a direction only to within "
            f"{singular[kept].min() / singular[0]:.1e}, neither zero nor not at double precision; rescale or drop "
            "nearly dependent coordinates"
        )
    axes = outer @ right[kept].T
    if problem.theta_bound is None:
        # Whitened: the programs do not depend on the coordinates, their floating-point conditioning does.
        basis = (axes / singular[kept]) / scale[:, None]
        return Coordinates(np.ascontiguousarray(basis), np.zeros(basis.shape[1]), np.inf)
    fixed = inside.T @ problem.theta
    radius = np.sqrt(max(problem.theta_bound**2 - float(fixed @ fixed), 0.0))
    return Coordinates(np.ascontiguousarray(axes), axes.T @ problem.theta, float(radius))


def _split(vectors: Floats, name: str) -> tuple[Floats, Floats]:
    """Orthonormal bases of the span of the rows and of its complement, each (dim, .)."""
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(sizes > 0, sizes, 1.0)
    triangle = np.linalg.qr(unit, mode="r") if len(unit) > unit.shape[1] else unit
    _, singular, right = np.linalg.svd(triangle, full_matrices=True)
    largest = singular[0] if singular[0] > 0 else 1.0
    relative = singular / largest
    if np.any((relative > _ZERO) & (relative < _CLEAR)):
        bad = relative[(relative > _ZERO) & (relative < _CLEAR)][0]
        raise ValueError(
            f"features: a singular value of {name} is {bad:.1e} of the largest, neither zero nor not at double "
            "precision, so their span is undecided; round the features, or move the arms apart"
        )
    rank = int((relative >= _CLEAR).sum())
    return right[:rank].T, right[rank:].T
