"""Verification of both sides of every answer, from the problem alone.

The upper end: an allocation is feasible if its information against the closest alternative of every pair is at
least 1; that is a closed form, recomputed here from a QR factorisation (the solver uses another). The lower end: for
alternatives θ_j' with weights w_j >= 0 and prices p(x, a) = Σ_j w_j d_{x,a}(θ, θ_j'), every feasible η has
Σ η p >= Σ w, so

    (P)                v*    >= Σ w · min Δ / p                     over suboptimal pairs, θ_j' = θ on optimal arms;
    (P_z)              u*(z) >= Σ w + z Σ_x ρ(x) min_a (Δ - p);
    pure exploration   z_min >= Σ w / Σ_x ρ(x) max_a p;
    (P̃_z)              ũ*_z  >= Σ w + z min_{x,a} (Δ - p);

    (P̃_α) is (P_z) with the minima and maxima over the pairs that the allocation pulls.

Nothing here depends on how the answer was found: any allocation and any weights give valid, perhaps poor, bounds.
The rounding of every operation is bounded and charged to the answer, including that of the reduced coordinates. What
floating point cannot decide (ranks) is decided in exact arithmetic, so an exact computation never refutes a bracket.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solid_bandits._internal.types import Floats, Ints
from solid_bandits.bounds import _geometry
from solid_bandits.bounds._evidence import Ball, ball_information, confusion, furthest, multipliers
from solid_bandits.bounds._rounding import EPS, Reals, norms, unit_of, upto
from solid_bandits.bounds._supply import Setup, Supply
from solid_bandits.bounds.results import Alternatives
from solid_bandits.core.problem import Problem

# Relative tolerance by which an answer made by hand may miss its own claims.
SLACK = 1e-9


class Proof(NamedTuple):
    """lower <= true value, and true value <= upper provided that information >= 1.

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.toy(noise_std=1.0)
        >>> proof = sb.bounds.verify(problem, sb.bounds.lower_bound(problem))
        >>> proof.lower <= 10.0 <= proof.upper
        True
    """

    lower: float
    upper: float
    information: float
    """Information of the allocation against its closest alternative."""


def prove_free(
    problem: Problem,
    gaps: _geometry.Gaps,
    allocation: Floats,
    alternatives: Alternatives,
    reduction: _geometry.Reduction | None = None,
    fine: float = 0.0,
) -> Proof:
    """Return what an allocation and alternatives prove about (P).

    Args:
        problem: the problem.
        gaps: its gaps.
        allocation: η, shape (contexts, arms), >= 0.
        alternatives: alternatives, each with θ's mean on every optimal arm.
        reduction: `_geometry.reduce(problem)`, where it is known.
        fine: relative widening of the bracket that is accepted in exchange for a simpler bound on rounding.

    """
    eta = nonnegative("allocation", allocation, problem).ravel()
    known = _geometry.reduce(problem) if reduction is None else reduction
    pairs, frame = known.pairs, known.frame
    information = _least(
        problem, gaps, frame, known.where, known.span, eta[pairs], known.spread, pairs, -known.spread,
        frame.sizes[pairs], pairs, fine,
    )  # fmt: skip
    upper = float(eta @ gaps.values.ravel()) * (1 + gaps.error + upto(len(eta), 1.0))
    if len(alternatives.weights) == 0:
        return Proof(0.0, upper, information)
    cuts = _cuts(problem, gaps, frame, known.span, alternatives)
    best = frame.table[_geometry.optimal_pairs(problem)]
    given = alternatives.shifts * frame.scale
    seen = np.abs(best @ given.T) > SLACK * norms(best)[:, None] * norms(given)
    if seen.any():
        raise ValueError(
            f"certificate: alternative {int(seen.any(axis=0).argmax())} changes the mean of an optimal arm, so (P) "
            "excludes it"
        )
    # Outside `pairs` prices are zero, because such arms lie in the span of the optimal ones.
    prices = _prices(frame, cuts, pairs)
    least = gaps.values.ravel()[pairs] * (1 - gaps.error - 4 * EPS)
    price = float((prices / least).max(initial=0.0))
    total = 2 * problem.noise_std**2 * float(cuts.weights.sum()) * (1 - upto(len(cuts.weights), 1.0))
    lower = total / price * (1 - 8 * EPS) if price > 0 else 0.0
    return Proof(max(0.0, lower), upper, information)


def prove_at(setup: Setup, policy: Floats, z: float, alternatives: Alternatives) -> Proof:
    """Return what a policy ω (rows sum to 1) and alternatives prove about (P_z), or about another supply of z
    steps.
    """
    problem, gaps, whole, supply = setup
    omega, off = _policy(policy, supply)
    information = z * policy_information(setup, policy) * (1 - 4 * EPS)
    mass = z * supply.share
    values = gaps.values.reshape(omega.shape)
    upper = float(mass @ (omega * values).sum(axis=1))
    upper *= 1 + gaps.error + 2 * off + upto(omega.size, 1.0)
    if len(alternatives.weights) == 0:
        return Proof(0.0, upper, information)
    cuts = _cuts(problem, gaps, whole.frame, _geometry.no_span(problem.dim), alternatives)
    prices = _prices(whole.frame, cuts, slice(None)) / (2 * problem.noise_std**2) * (1 + 8 * EPS)
    least = gaps.values.ravel() * (1 - gaps.error - 4 * EPS)
    terms = -mass * supply.largest(prices - least)
    total = float(cuts.weights.sum())
    size = total + float(np.abs(terms).sum())
    lower = total + float(terms.sum()) - upto(len(terms) + len(cuts.weights), size)
    return Proof(max(0.0, lower), upper, information)


def prove_least(setup: Setup, policy: Floats, alternatives: Alternatives) -> Proof:
    """Return what a policy ω (rows sum to 1) and alternatives prove about z_min; `information` is 1 by definition."""
    worst = policy_information(setup, policy)
    upper = (1 + 4 * EPS) / worst if worst > 0 else np.inf
    return Proof(least_steps(setup, alternatives), upper, 1.0)


def least_steps(setup: Setup, alternatives: Alternatives) -> float:
    """Return the number of steps that the alternatives prove to be necessary."""
    problem, gaps, whole, supply = setup
    if len(alternatives.weights) == 0:
        return 0.0
    cuts = _cuts(problem, gaps, whole.frame, _geometry.no_span(problem.dim), alternatives)
    prices = _prices(whole.frame, cuts, slice(None))
    size = float(supply.share @ supply.largest(prices))
    total = 2 * problem.noise_std**2 * float(cuts.weights.sum())
    return total / size * (1 - upto(len(supply.share) + len(cuts.weights), 1.0)) if size > 0 else 0.0


def policy_information(setup: Setup, policy: Floats) -> float:
    """Return the least E_ρ[Σ_a ω(x, a) d_{x,a}(θ, θ')] over all alternatives θ', rounded down; infinite if there are
    none.

    It holds for the policy as it is and for its rows divided by their exact sums.
    """
    problem, gaps, whole, supply = setup
    omega, off = _policy(policy, supply)
    pulls = supply.pulls(omega).ravel() * (1 - 2 * EPS)
    where, frame = whole.where, whole.frame
    spread = where.of(frame.sharp)
    differences = frame.differences(problem, gaps.suboptimal)
    least = _least(
        problem, gaps, frame, where, _geometry.no_span(problem.dim), pulls, spread, np.arange(len(spread)),
        where.of(differences), norms(differences), gaps.suboptimal,
    )  # fmt: skip
    return least * (1 - off)


def _least(
    problem: Problem,
    gaps: _geometry.Gaps,
    frame: _geometry.Frame,
    where: _geometry.Coordinates,
    span: _geometry.Span,
    pulls: Floats,
    spread: Floats,
    variables: Ints,
    targets: Floats,
    widths: Floats,
    pairs: Ints,
    fine: float = 0.0,
) -> float:
    """Return the information against the closest alternative of every pair, rounded down; infinite where none has
    one.

    Args:
        problem: the problem.
        gaps: its gaps.
        frame: units of the features.
        where: coordinates of the alternatives.
        span: the span that they are orthogonal to.
        pulls: pulls of each variable.
        spread: features in these coordinates, shape (variables, k).
        variables: flat indices of the pairs that are pulled.
        targets: φ* - φ of the pairs in these coordinates, shape (pairs, k).
        widths: the norms of φ* - φ in the frame's units, shape (pairs,).
        pairs: flat indices of the suboptimal pairs to look at.
        fine: relative loss of information that is accepted in exchange for a simpler bound on rounding.

    """
    if len(pairs) == 0 or where.basis.shape[1] == 0:
        return np.inf
    sizes = frame.sizes[variables]
    bounds = confusion(spread, sizes, pulls, targets, widths, where.blur, fine)
    values = gaps.values.ravel()[pairs] * (1 - gaps.error - 4 * EPS)
    values = np.maximum(values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        squares = np.where(np.isfinite(bounds), values**2 / bounds * (1 - 8 * EPS), 0.0)
    ball = make_ball(problem, frame)
    if ball is not None:
        scale = float(frame.scale[0])
        kappa, tau, betas = multipliers(
            spread * np.sqrt(pulls)[:, None], targets / values[:, None], where.centre, where.radius
        )
        normals = np.asarray(frame.differences(problem, pairs), dtype=np.float64)
        inside = ball_information(
            frame.table[variables], sizes, pulls, normals, values, ball, span, kappa / scale**2, tau / values,
            (betas @ where.basis.T + where.unseen) * scale,
        )  # fmt: skip
        missed = furthest(normals, ball, span, where, scale) < values
        squares = np.where(missed, np.inf, np.maximum(squares, inside))
    return float(squares.min()) / (2 * problem.noise_std**2) * (1 - 8 * EPS)


def make_ball(problem: Problem, frame: _geometry.Frame) -> Ball | None:
    """Return the ball of the alternatives in the frame's units; None where they are unbounded."""
    if problem.theta_bound is None:
        return None
    scale = float(frame.scale[0])
    spare = Fraction(problem.theta_bound) ** 2 - sum(Fraction(float(value)) ** 2 for value in problem.theta)
    return Ball(problem.theta * scale, problem.theta_bound * scale, float(spare * Fraction(scale) ** 2))


class Cuts(NamedTuple):
    """Alternatives in the frame's units: the exact one of each is its shift, projected, divided by its reach."""

    shifts: Reals
    """(alternatives, dim)."""
    moved: Floats
    """Upper bound on the distance of each from its projection on the complement of the span."""
    reach: Floats
    """(φ* - φ)ᵀ(θ - θ') / Δ at each alternative's pair, rounded down, > 0."""
    weights: Floats
    """Dual weights; 0 where rounding leaves it open whether there is such an alternative."""


def _cuts(
    problem: Problem,
    gaps: _geometry.Gaps,
    frame: _geometry.Frame,
    span: _geometry.Span,
    alternatives: Alternatives,
) -> Cuts:
    """Return the alternatives as far as they are proven to be alternatives; raise a ValueError if one is not."""
    weights = alternatives.weights
    if np.any(weights < 0) or not np.isfinite(weights).all():
        raise ValueError("certificate: a weight is negative or not finite")
    x, a = alternatives.contexts, alternatives.arms
    there = (x >= 0) & (x < problem.n_contexts) & (a >= 0) & (a < problem.n_arms)
    cuts, seen, excess = _examine(
        problem, gaps, frame, span, alternatives.shifts, np.where(there, x * problem.n_arms + a, 0)
    )
    limit = 0.0 if problem.theta_bound is None else 1 - SLACK
    if not np.all((seen > limit) & there):
        j = int(np.argmin(np.where(there, seen, -np.inf)))
        raise ValueError(
            f"certificate: alternative {j} leaves the optimal arm of context {int(x[j])} the better one by "
            f"{1 - seen[j]:.3g} of its gap; it is not an alternative"
        )
    if problem.theta_bound is not None:
        most = float(excess.max()) / float(frame.scale[0]) ** 2
        if most > 2 * SLACK * problem.theta_bound**2:
            raise ValueError(
                f"certificate: an alternative has norm {np.sqrt(problem.theta_bound**2 + most):.9g}, over theta_bound "
                f"{problem.theta_bound:.9g}"
            )
    return cuts._replace(weights=np.where(cuts.weights > 0, weights, 0.0))


def counts(
    problem: Problem,
    gaps: _geometry.Gaps,
    frame: _geometry.Frame,
    span: _geometry.Span | None,
    shifts: Floats,
    pairs: Ints,
) -> NDArray[np.bool_]:
    """Return whether each shift is proven to make its pair's arm at least as good as the best one."""
    span = _geometry.no_span(problem.dim) if span is None else span
    cuts, _, _ = _examine(problem, gaps, frame, span, shifts, pairs)
    return np.asarray(cuts.weights > 0)


def _examine(
    problem: Problem,
    gaps: _geometry.Gaps,
    frame: _geometry.Frame,
    span: _geometry.Span,
    shifts: Floats,
    pairs: Ints,
) -> tuple[Cuts, Floats, Floats]:
    """Return cuts of weight 1 (0 where not proven), their reach as computed, and ‖θ'‖² - bound² rounded up."""
    sharp = frame.sharp
    scaled, moved = span.project((shifts * frame.scale).astype(sharp.dtype, copy=False))
    lengths = norms(scaled)
    differences = frame.differences(problem, pairs)
    ahead = np.vecdot(differences, scaled).astype(np.float64)
    values = gaps.values.ravel()[pairs]
    with np.errstate(all="ignore"):
        seen = ahead / values
        error = norms(differences) * (upto(problem.dim + 1, lengths, unit_of(sharp)) + moved)
        reach = (ahead - error) / (values * (1 + gaps.error)) * (1 - 8 * EPS)
    proven = (reach > 0) & np.isfinite(reach)
    reach = np.where(proven, reach, 1.0)
    ball = make_ball(problem, frame)
    excess = np.full(len(shifts), -np.inf)
    if ball is not None:
        excess = ball.excess(
            scaled.astype(np.float64) / reach[:, None], (moved + 2 * EPS * lengths) / reach * (1 + 4 * EPS)
        )
        proven &= excess <= 0
    return Cuts(scaled, moved, reach, proven.astype(np.float64)), seen, excess


def _prices(frame: _geometry.Frame, cuts: Cuts, pairs: Ints | slice) -> Floats:
    """Return 2σ² p(x, a) = Σ_j w_j (φᵀ(θ - θ_j'))² for some pairs, rounded up."""
    table = frame.sharp[pairs]
    error = upto(table.shape[1], norms(cuts.shifts), unit_of(table)) + cuts.moved
    means = np.abs(table @ cuts.shifts.T).astype(np.float64) + frame.sizes[pairs][:, None] * error
    means /= cuts.reach
    return np.asarray((means * means) @ cuts.weights * (1 + upto(len(cuts.weights) + 8, 1.0)))


def nonnegative(name: str, values: Floats, problem: Problem) -> Floats:
    """Return a table of pulls; raise a ValueError unless it is one."""
    shape = (problem.n_contexts, problem.n_arms)
    if values.shape != shape or not np.isfinite(values).all() or values.min() < 0:
        raise ValueError(f"certificate: {name} must be finite, >= 0 and of shape {shape}")
    return values


def _policy(policy: Floats, supply: Supply) -> tuple[Floats, float]:
    """Return the policy with a row for each group, and the largest distance of a row's sum from 1."""
    if policy.shape != supply.allowed.shape or not np.isfinite(policy).all() or policy.min() < 0:
        raise ValueError(f"certificate: policy must be finite, >= 0 and of shape {supply.allowed.shape}")
    if policy[~supply.allowed].any():
        raise ValueError("certificate: policy pulls a pair that may not be pulled")
    off = float(np.abs(policy.sum(axis=1) - 1).max())
    if off > SLACK:
        raise ValueError("certificate: each row of policy must sum to 1")
    return policy, off + upto(policy.shape[1], 1.0)
