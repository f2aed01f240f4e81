"""The problem as the convex programs need it: gaps without ties, decided spans, well-scaled coordinates."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from solid_bandits._internal import checks
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.bounds._exact import rank_at_most
from solid_bandits.bounds._rounding import EPS, TINY, Reals, norms, unit_of, upto
from solid_bandits.core.problem import Problem

# A direction whose relative size is below CLEAR is refused, unless exact arithmetic shows that it is zero; exact
# arithmetic is used only below ZERO.
_ZERO = 1e-12
_CLEAR = 1e-9
# Largest relative error of the gaps for which double precision is enough.
_FINE = 1e-11
# Features whose relative distance from dependence is below this are handled in extended precision.
_CLOSE = 1e-2


@dataclass(frozen=True)
class Gaps:
    """Gaps Δ(x, a), checked for ties."""

    values: Floats
    """Gaps, shape (contexts, arms); 0 at the optimal arms."""
    suboptimal: Ints
    """Flat indices x * arms + a of the suboptimal pairs."""
    error: float
    """Largest relative rounding error of a positive gap."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Features scaled by one power of two per coordinate, to size 1 and without rounding."""

    scale: Floats
    """(dim,)."""
    table: Floats
    """features / scale, shape (pairs, dim)."""
    sizes: Floats
    """Norms of its rows, rounded up, shape (pairs,)."""
    wide: Reals | None = None
    """The table in extended precision, where features are nearly dependent."""

    @property
    def sharp(self) -> Reals:
        """The table in the precision used wherever terms nearly cancel."""
        return self.table if self.wide is None else self.wide

    def differences(self, problem: Problem, pairs: Ints) -> Reals:
        """Return φ*(x) - φ(x, a) of pairs (flat indices), shape (pairs, dim)."""
        table = self.sharp
        return np.asarray(table[optimal_pairs(problem)[pairs // problem.n_arms]] - table[pairs])


@dataclass(frozen=True)
class Span:
    """Span of the optimal arms, as a basis made of their features (in a frame)."""

    rows: Floats
    """(rank, dim): features, each divided by a power of two; they span exactly what the optimal arms span."""
    inverse: Floats
    """(dim, rank): rows @ inverse is nearly the identity."""
    stiffness: float
    """Upper bound on ‖rows⁺‖: for every e there is a δ with rows @ δ = e and ‖δ‖ <= stiffness ‖e‖."""

    def project(self, vectors: Reals) -> tuple[Reals, Floats]:
        """Return rows projected on the complement of the span, in extended precision, and a bound on the error of
        each.
        """
        if len(self.rows) == 0:
            return vectors, np.zeros(len(vectors))
        rows: Reals = self.rows
        size = float(np.linalg.norm(self.rows))
        if vectors.dtype == np.longdouble:
            rows = self.rows.astype(np.longdouble)
            vectors = vectors - (vectors @ rows.T) @ self.inverse.T.astype(np.longdouble)
        seen = norms(vectors @ rows.T) + upto(vectors.shape[1], size * norms(vectors), unit_of(vectors))
        return vectors, np.asarray(self.stiffness * seen * (1 + 8 * EPS) + TINY)


@dataclass(frozen=True)
class Coordinates:
    """Coordinates β of the differences θ - θ' = basis @ β that an alternative may have."""

    basis: Floats
    """Basis, shape (dim, k), rounded."""
    axes: Reals
    """The same basis in the frame's units, shape (dim, k)."""
    blur: Floats
    """(k,): coordinate c of φ, as computed, has an error of at most ‖φ‖ blur_c with respect to axes exactly orthogonal
    to the span, with ‖φ‖ in the frame's units.
    """
    centre: Floats
    """(k,): θ in these coordinates where they are orthonormal (bounded alternatives), else zeros."""
    radius: float
    """Alternatives have ‖centre - β‖ <= radius; infinite where they are unbounded."""
    unseen: Floats
    """(dim,): the part of θ that no feature sees, where alternatives are bounded; those of least norm do not have
    it."""

    def of(self, vectors: Reals) -> Floats:
        """Return vectors of the frame (rows) in these coordinates."""
        return np.ascontiguousarray(vectors.astype(self.axes.dtype, copy=False) @ self.axes, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Whole:
    """Coordinates for (P_z) and pure exploration, covering every alternative that some feature can tell from θ."""

    frame: Frame
    where: Coordinates


@dataclass(frozen=True, eq=False)
class Reduction:
    """Reduction of (P) to coordinates of the alternatives that agree with θ on every optimal arm, with their
    features.
    """

    frame: Frame
    span: Span
    where: Coordinates
    pairs: Ints
    """Flat indices of the suboptimal pairs whose features leave the span of the optimal arms, increasing."""
    spread: Floats
    """Features of these pairs in the coordinates, shape (pairs, k); φ*(x) - φ(x, a) is the same with the other sign."""
    features: Floats
    """The problem it was made from, with its optimal arms."""
    optimal_arms: Ints

    def fits(self, problem: Problem) -> bool:
        """Return whether it also reduces `problem`: without a bound, θ matters only through the optimal arms."""
        return (
            problem.theta_bound is None
            and np.isinf(self.where.radius)
            and self.features.shape == problem.features.shape
            and bool((self.optimal_arms == problem.optimal_arms).all())
            and (self.features is problem.features or bool((self.features == problem.features).all()))
        )


def optimal_pairs(problem: Problem) -> Ints:
    """Return the flat index of each context's optimal pair."""
    return np.arange(problem.n_contexts) * problem.n_arms + problem.optimal_arms


def check_problem(problem: object) -> None:
    """Raise a ValueError unless `problem` is a Problem."""
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem, got {checks.short(problem)}")


def gaps(problem: Problem) -> Gaps:
    """Return the gaps (φ* - φ)ᵀθ with a bound on their rounding error, in fractions where doubles are too coarse.

    Subtracting two means would lose the digits of a small gap; subtracting features does not.

    Raises:
        ValueError: two arms of a context are equally good, or as far as floating point can tell.

    """
    check_problem(problem)
    rows = np.arange(problem.n_contexts)
    best = problem.features[rows, problem.optimal_arms][:, None, :]
    values = (best - problem.features) @ problem.theta
    # Magnitude of the terms summed for each gap.
    rounding = np.abs(problem.features) @ np.abs(problem.theta)
    rounding += rounding[rows, problem.optimal_arms][:, None]
    others = np.ones(values.shape, dtype=bool)
    others[rows, problem.optimal_arms] = False
    error = _rounding_error(problem, values, rounding, others)
    if not error <= _FINE:
        rough = others & ~((problem.dim + 3) * EPS * rounding <= _FINE * values)
        for x, a in np.argwhere(rough):
            values[x, a] = _exact_gap(best[x, 0], problem.features[x, a], problem.theta)
        error = _FINE + EPS
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


def _exact_gap(best: Floats, other: Floats, theta: Floats) -> float:
    terms = zip(best.tolist(), other.tolist(), theta.tolist(), strict=True)
    return float(sum((Fraction(b) - Fraction(o)) * Fraction(t) for b, o, t in terms))


def _rounding_error(problem: Problem, values: Floats, rounding: Floats, others: NDArray[np.bool_]) -> float:
    if not others.any():
        return 0.0
    least = float((values[others] / np.maximum(rounding[others], 1e-300)).min())
    return (problem.dim + 3) * EPS / least if least > 0 else np.inf


def make_frame(problem: Problem) -> Frame:
    """Return scales that bring every coordinate of the features to size 1, so that units do not decide what counts as
    zero.

    Without a bound on θ', features φ and Sφ with parameters θ and S⁻¹θ describe the same problem; with one, they do
    only if S is a multiple of the identity.
    """
    sizes = np.abs(problem.features).max(axis=(0, 1))
    if problem.theta_bound is not None:
        sizes = np.full(problem.dim, sizes.max())
    scale = np.ldexp(1.0, np.frexp(np.where(sizes > 0, sizes, 1.0))[1] - 1)
    table = (problem.features / scale).reshape(-1, problem.dim)
    return Frame(scale, table, norms(table))


def reduce(problem: Problem, known: Reduction | None = None) -> Reduction:
    """Return the reduction of (P): the alternatives that agree with θ on every optimal arm, and the pairs they
    concern.

    Pulls of optimal arms are free and their number goes to infinity in (P), so an alternative counts only if it
    gives each optimal arm the same mean: θ - θ' is orthogonal to their span. For bounded alternatives the set
    {θ' : ‖θ'‖ <= B} is compact, so the least information over it converges to the least over its part that
    agrees with θ on the span (+∞ where that part is empty): the same reduction, with the ball cut by the
    affine space. Its centre is θ projected on the orthogonal complement, its radius² is B² less the squared norm of
    θ's part in the span.

    Args:
        problem: the problem.
        known: a reduction of a problem that may have the same features and optimal arms; if so, it is returned.

    Returns:
        The coordinates, the suboptimal pairs whose features leave the span, and their features in the coordinates.

    Raises:
        ValueError: rounding does not say whether a direction or a pair is in the span.

    """
    if known is not None and known.fits(problem):
        return known
    frame = make_frame(problem)
    table = frame.table
    rows = optimal_pairs(problem)
    span, inside, outside = _split(table[rows], "the optimal arms' features")
    projected = table @ outside
    relative = np.linalg.norm(projected, axis=1) / frame.sizes
    relative[rows] = 0.0
    given = problem.features.reshape(-1, problem.dim)
    unclear = np.flatnonzero((relative > _ZERO) & (relative < _CLEAR))
    within = np.flatnonzero(relative < _CLEAR)
    if len(unclear) == 0 and not rank_at_most(given[within], len(span.rows)):
        # Index of the first pair that adds a dimension.
        basis = given[rows]
        if rank_at_most(basis, len(span.rows)):
            others = within[~np.isin(within, rows)]
            unclear = np.array(
                [next(i for i in others if not rank_at_most(np.vstack([basis, given[i]]), len(span.rows)))]
            )
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
    near = float(relative[pairs].min(initial=1.0))
    frame, where = _coordinates(problem, frame, span, outside, projected[pairs], inside, near)
    spread = where.of(frame.sharp[pairs])
    return Reduction(frame, span, where, pairs, spread, problem.features, problem.optimal_arms)


def whole(problem: Problem) -> Whole:
    """Return coordinates for every alternative that some feature can tell from θ: the span of all features."""
    frame = make_frame(problem)
    nothing = np.zeros((problem.dim, 0))
    vectors = frame.table[np.any(frame.table != 0, axis=1)]
    return Whole(
        *_coordinates(problem, frame, no_span(problem.dim), np.eye(problem.dim), vectors, nothing, 1.0)
    )


def no_span(dim: int) -> Span:
    """Return the span of no vectors."""
    return Span(np.zeros((0, dim)), np.zeros((dim, 0)), 0.0)


def _coordinates(
    problem: Problem, frame: Frame, span: Span, outer: Floats, vectors: Floats, inside: Floats, near: float
) -> tuple[Frame, Coordinates]:
    if len(vectors) == 0:
        empty = np.zeros((problem.dim, 0))
        return frame, Coordinates(empty, empty, np.zeros(0), np.zeros(0), np.inf, np.zeros(problem.dim))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    # The small triangular factor has the same singular values and right vectors, several times faster.
    triangle = np.linalg.qr(unit, mode="r") if len(unit) > unit.shape[1] else unit
    _, singular, right = np.linalg.svd(triangle, full_matrices=False)
    kept = singular > _ZERO * singular[0]
    if np.any(kept & (singular < _CLEAR * singular[0])):
        raise ValueError(
            "features span a direction only to within "
            f"{singular[kept].min() / singular[0]:.1e}, neither zero nor not at double precision; round the "
            "features, or drop nearly dependent coordinates"
        )
    k = int(kept.sum())
    if not rank_at_most(problem.features.reshape(-1, problem.dim), len(span.rows) + k):
        raise ValueError(
            f"features are dependent to within rounding ({_ZERO:g}), but not exactly: whether they span {k} directions "
            "or more is undecided at double precision; round the features, or drop nearly dependent coordinates"
        )
    basis = outer @ right[kept].T
    centre, radius, unseen = np.zeros(k), np.inf, np.zeros(problem.dim)
    if problem.theta_bound is None:
        # Whitening leaves the programs unchanged but improves their floating-point conditioning.
        basis = basis / singular[kept] / frame.scale[:, None]
    else:
        fixed = inside.T @ problem.theta
        radius = float(np.sqrt(max(problem.theta_bound**2 - float(fixed @ fixed), 0.0)))
        centre = basis.T @ problem.theta
        if k + inside.shape[1] < problem.dim:
            unseen = problem.theta - basis @ centre - inside @ fixed
    axes: Reals = basis * frame.scale[:, None]
    if min(near, singular[kept].min() / singular[0]) < _CLOSE:
        frame = replace(frame, wide=frame.table.astype(np.longdouble))
        axes = axes.astype(np.longdouble)
    rows, moved = span.project(axes.T)
    blur = upto(problem.dim + 1, norms(rows), unit_of(axes)) + moved
    return frame, Coordinates(np.ascontiguousarray(basis), rows.T, blur, centre, radius, unseen)


def _split(vectors: Floats, name: str) -> tuple[Span, Floats, Floats]:
    """Return the span of the rows, and orthonormal bases of it and of its complement, each (dim, .)."""
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
    """Return `rank` rows that span all rows, with a bound on their pseudo-inverse that holds under rounding."""
    dim = unit.shape[1]
    if rank == 0:
        return no_span(dim)
    chosen = np.arange(len(unit)) if len(unit) == rank else qr(unit.T, mode="r", pivoting=True)[1][:rank]
    rows = unit[chosen]
    inverse = np.asarray(np.linalg.pinv(rows), dtype=np.float64)
    size = float(np.linalg.norm(inverse))
    # rows @ inverse = I + E with ‖E‖ < 1 proves that rows have full rank and ‖rows⁺‖ <= ‖inverse‖ / (1 - ‖E‖).
    off = float(np.linalg.norm(rows @ inverse - np.eye(rank)) + upto(dim + rank, np.linalg.norm(rows) * size))
    if not off < 0.5:
        raise ValueError(
            f"features: {name} are too nearly dependent for their span to be computed at double precision; round the "
            "features, or move the arms apart"
        )
    return Span(rows, inverse, size / (1 - off) * (1 + 8 * EPS))
