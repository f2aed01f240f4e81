"""What a problem looks like to the convex programs: gaps without ties, spans decided, coordinates well scaled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from solid_bandits._types import Floats, Ints
from solid_bandits.bounds._exact import rank_at_most
from solid_bandits.bounds._rounding import EPS, TINY, norms, upto
from solid_bandits.problem import Problem

# A direction whose relative size is under CLEAR is refused, unless exact arithmetic says that it is nothing; exact
# arithmetic is asked only where it is under ZERO.
_ZERO = 1e-12
_CLEAR = 1e-9
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


@dataclass(frozen=True, eq=False)
class Frame:
    """The features in units of powers of two, one for each coordinate: of size 1, and not rounded."""

    scale: Floats
    """(dim,)."""
    table: Floats
    """features / scale, shape (pairs, dim)."""
    sizes: Floats
    """Norms of its rows, rounded up, shape (pairs,)."""


@dataclass(frozen=True)
class Span:
    """The span of the optimal arms, decided: a basis of it out of their features (in a frame)."""

    rows: Floats
    """(rank, dim): features, each divided by a power of two; exactly, they span what the optimal arms span."""
    inverse: Floats
    """(dim, rank): rows @ inverse is nearly 1."""
    stiffness: float
    """At least ‖rows⁺‖: a vector δ with rows @ δ = e can be had with ‖δ‖ <= stiffness ‖e‖."""

    def miss(self, vectors: Floats) -> Floats:
        """How far each column at most is from its projection on the complement of the span."""
        if len(self.rows) == 0:
            return np.zeros(vectors.shape[1])
        seen = norms((self.rows @ vectors).T) + upto(len(vectors), np.linalg.norm(self.rows)) * norms(
            vectors.T
        )
        return np.asarray(self.stiffness * seen * (1 + 8 * EPS) + TINY)


@dataclass(frozen=True)
class Coordinates:
    """Coordinates β of the differences θ - θ' = basis @ β that an alternative may have."""

    basis: Floats
    """(dim, k)."""
    blur: Floats
    """(k,): where basis is meant exactly (projected on the complement of the span), (φᵀbasis)β as computed is off by at
    most ‖φ‖ blurᵀ|β|, with ‖φ‖ in the frame's units."""
    centre: Floats
    """(k,): θ in these coordinates where they are orthonormal (bounded alternatives), else zeros."""
    radius: float
    """Alternatives have ‖centre - β‖ <= radius; infinite where they are unbounded."""


@dataclass(frozen=True, eq=False)
class Whole:
    """(P_z) and pure exploration: coordinates of every alternative that some feature can tell from θ."""

    frame: Frame
    where: Coordinates


@dataclass(frozen=True, eq=False)
class Reduction:
    """(P) without the optimal arms: coordinates of the alternatives that agree with θ on them, and what they tell."""

    frame: Frame
    span: Span
    where: Coordinates
    pairs: Ints
    """Flat indices of the suboptimal pairs whose features leave the span of the optimal arms, increasing."""
    spread: Floats
    """Features of these pairs in the coordinates, shape (pairs, k); φ*(x) - φ(x, a) is the same with the other sign."""
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
    error = _rounding_error(problem, values, rounding, others, EPS)
    if not error <= _FINE:
        wide = problem.features.astype(np.longdouble)
        exact = wide[rows, problem.optimal_arms][:, None, :] - wide
        values = (exact * problem.theta.astype(np.longdouble)).sum(axis=2).astype(np.float64)
        error = (
            _rounding_error(problem, values, rounding, others, float(np.finfo(np.longdouble).eps)) + 4 * EPS
        )
    tied = others & (values <= (problem.dim + 8) * EPS * rounding + TINY)
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
    return (problem.dim + 3) * eps / least if least > 0 else np.inf


def make_frame(problem: Problem) -> Frame:
    """Units that bring every coordinate of the features to size 1, so that those given do not decide what is zero.

    Without a bound on θ', features φ and Sφ with parameters θ and S⁻¹θ are the same problem; with one, they are
    only if S is a multiple of 1.
    """
    sizes = np.abs(problem.features).max(axis=(0, 1))
    if problem.theta_bound is not None:
        sizes = np.full(problem.dim, sizes.max())
    scale = np.ldexp(1.0, np.frexp(np.where(sizes > 0, sizes, 1.0))[1] - 1)
    table = (problem.features / scale).reshape(-1, problem.dim)
    return Frame(scale, table, norms(table))


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
    frame = make_frame(problem)
    table = frame.table
    rows = np.arange(problem.n_contexts) * problem.n_arms + problem.optimal_arms
    span, inside, outside = _split(table[rows], "the optimal arms' features")
    projected = table @ outside
    relative = np.linalg.norm(projected, axis=1) / frame.sizes
    relative[rows] = 0.0
    unclear = np.flatnonzero((relative > _ZERO) & (relative < _CLEAR))
    within = np.flatnonzero(relative < _CLEAR)
    if len(unclear) == 0 and not rank_at_most(table[within], len(span.rows)):
        # Which one: the first that adds a dimension.
        basis = table[rows]
        if rank_at_most(basis, len(span.rows)):
            others = within[~np.isin(within, rows)]
            unclear = others[[not rank_at_most(np.vstack([basis, table[i]]), len(span.rows)) for i in others]]
        else:
            raise ValueError(
                "features: the optimal arms' features are dependent to within rounding, but not exactly, so their "
                "span is undecided; round the features, or move the arms apart"
            )
    if len(unclear):
        x, a = divmod(int(unclear[0]), problem.n_arms)
        raise ValueError(
            f"features: arm {a} of context {x} is within {max(relative[unclear[0]], EPS):.1e} of the span of the "
            "optimal arms, neither in it nor out of it at double precision, so its gap cannot be called detectable; "
            "round the features, or move the arm away from the span"
        )
    pairs = np.flatnonzero(relative >= _CLEAR).astype(np.int64)
    where = _coordinates(problem, frame, span, outside, projected[pairs], inside)
    spread = problem.features.reshape(-1, problem.dim)[pairs] @ where.basis
    return Reduction(frame, span, where, pairs, spread, problem.features, problem.optimal_arms)


def whole(problem: Problem) -> Whole:
    """Coordinates of every alternative that some feature can tell from θ: the span of all features."""
    frame = make_frame(problem)
    nothing = np.zeros((problem.dim, 0))
    vectors = frame.table[np.any(frame.table != 0, axis=1)]
    return Whole(
        frame, _coordinates(problem, frame, no_span(problem.dim), np.eye(problem.dim), vectors, nothing)
    )


def no_span(dim: int) -> Span:
    """Of no vectors."""
    return Span(np.zeros((0, dim)), np.zeros((dim, 0)), 0.0)


def _coordinates(
    problem: Problem, frame: Frame, span: Span, outer: Floats, vectors: Floats, inside: Floats
) -> Coordinates:
    if len(vectors) == 0:
        return Coordinates(np.zeros((problem.dim, 0)), np.zeros(0), np.zeros(0), np.inf)
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
    k = int(kept.sum())
    if not rank_at_most(frame.table, len(span.rows) + k):
        raise ValueError(
            f"features are dependent to within rounding ({_ZERO:g}), but not exactly: whether they span {k} directions "
            "or more is undecided at double precision; round the features, or drop nearly dependent coordinates"
        )
    axes = outer @ right[kept].T
    if problem.theta_bound is None:
        # Whitened: the programs do not depend on the coordinates, their floating-point conditioning does.
        axes = axes / singular[kept]
    blur = upto(problem.dim + k, norms(axes.T)) + span.miss(axes)
    if problem.theta_bound is None:
        return Coordinates(np.ascontiguousarray(axes / frame.scale[:, None]), blur, np.zeros(k), np.inf)
    fixed = inside.T @ problem.theta
    radius = np.sqrt(max(problem.theta_bound**2 - float(fixed @ fixed), 0.0))
    return Coordinates(
        np.ascontiguousarray(axes), blur * frame.scale[0], axes.T @ problem.theta, float(radius)
    )


def _split(vectors: Floats, name: str) -> tuple[Span, Floats, Floats]:
    """The span of the rows, and orthonormal bases of it and of its complement, each (dim, .)."""
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(sizes > 0, np.ldexp(1.0, np.frexp(sizes)[1]), 1.0)
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
    return _span(unit, rank, name), right[:rank].T, right[rank:].T


def _span(unit: Floats, rank: int, name: str) -> Span:
    """`rank` rows that span all of them, with a bound on their pseudo-inverse that rounding cannot break."""
    dim = unit.shape[1]
    if rank == 0:
        return no_span(dim)
    chosen = np.arange(len(unit)) if len(unit) == rank else qr(unit.T, mode="r", pivoting=True)[1][:rank]
    rows = unit[chosen]
    inverse = np.asarray(np.linalg.pinv(rows), dtype=np.float64)
    size = float(np.linalg.norm(inverse))
    # rows @ inverse = 1 + E with ‖E‖ < 1 proves that rows have full rank and ‖rows⁺‖ <= ‖inverse‖ / (1 - ‖E‖).
    off = float(np.linalg.norm(rows @ inverse - np.eye(rank)) + upto(dim + rank, np.linalg.norm(rows) * size))
    if not off < 0.5:
        raise ValueError(
            f"features: {name} are too nearly dependent for their span to be computed at double precision; round the "
            "features, or move the arms apart"
        )
    return Span(rows, inverse, size / (1 - off) * (1 + 8 * EPS))
