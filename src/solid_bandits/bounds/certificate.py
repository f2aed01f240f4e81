"""Both sides of every answer, verified from the problem alone.

From above: an allocation is feasible if its information against the closest alternative of every pair is at least 1;
that is a closed form, recomputed here from a QR factorisation (the solver uses another). From below: for alternatives
θ_j' with weights w_j >= 0 and prices p(x, a) = Σ_j w_j d_{x,a}(θ, θ_j'), every feasible η has Σ η p >= Σ w, so

    (P)                v*    >= Σ w · min Δ / p                     over suboptimal pairs, θ_j' = θ on optimal arms;
    (P_z)              u*(z) >= Σ w + z Σ_x ρ(x) min_a (Δ - p);
    pure exploration   z_min >= Σ w / Σ_x ρ(x) max_a p.

Nothing here depends on how the answer was found: any allocation and any weights give true, perhaps poor, bounds.
Rounding is charged against the answer: the factorisation and the gaps each widen the bracket by their error bounds.
"""

from typing import NamedTuple

import numpy as np

from solid_bandits._types import Floats, Ints
from solid_bandits.bounds import _geometry
from solid_bandits.bounds._evidence import largest_price, least_unbounded, reaches
from solid_bandits.bounds.results import Alternatives, LowerBound, LowerBoundAt, PureExploration
from solid_bandits.problem import Problem

_EPS = float(np.finfo(np.float64).eps)
# What an answer may miss its own claims by, relatively: rounding of a different order of summation, no more.
_SLACK = 1e-9


class Proof(NamedTuple):
    """lower <= true value, and true value <= upper provided that information >= 1."""

    lower: float
    upper: float
    information: float
    """Of the allocation, against its closest alternative."""


def verify(problem: Problem, answer: LowerBound | LowerBoundAt | PureExploration) -> Proof:
    """Recompute what the evidence inside an answer proves, and reject the answer if it claims more.

    Args:
        problem: the problem the answer is about.
        answer: of `lower_bound`, `lower_bound_at` or `pure_exploration`, or one made by hand.

    Returns:
        The bracket that the allocation (or policy) and the alternatives prove.

    Raises:
        ValueError: the allocation is infeasible, an alternative is none, or the claimed bracket is not proven.

    Example:
        >>> from solid_bandits.problems import toy
        >>> from solid_bandits.bounds import lower_bound
        >>> proof = verify(toy(noise_std=1), lower_bound(toy(noise_std=1)))
        >>> bool(proof.lower <= 10 <= proof.upper)
        True

    Reference: (P), (P_z) and the first statement of Lemma 1.

    """
    gaps = _geometry.gaps(problem)
    if isinstance(answer, LowerBound):
        if answer.exploration_free and not _is_exploration_free(problem, gaps):
            raise ValueError(
                "certificate: exploration_free is claimed, but some alternative agrees on optimal arms"
            )
        proven = prove_free(problem, gaps, answer.allocation, answer.alternatives)
    elif isinstance(answer, LowerBoundAt):
        proven = prove_at(problem, gaps, answer.policy, answer.z, answer.alternatives)
    else:
        proven = prove_least(problem, gaps, answer.policy, answer.alternatives)
    if proven.information < 1 - _SLACK:
        raise ValueError(
            f"certificate: the answer gives information {proven.information:.9g} against its closest alternative; "
            "it needs 1"
        )
    value = answer.z_min if isinstance(answer, PureExploration) else answer.value
    scale = _SLACK * max(abs(answer.upper), abs(answer.lower))
    if not answer.lower <= proven.lower + scale:
        raise ValueError(
            f"certificate: lower is {answer.lower!r}; the alternatives prove only {proven.lower!r}"
        )
    if not answer.upper >= proven.upper - scale:
        raise ValueError(
            f"certificate: upper is {answer.upper!r}; the allocation proves only {proven.upper!r}"
        )
    if not answer.lower - scale <= value <= answer.upper + scale:
        raise ValueError(f"certificate: the value {value!r} is outside [{answer.lower!r}, {answer.upper!r}]")
    return proven


def prove_free(
    problem: Problem,
    gaps: _geometry.Gaps,
    allocation: Floats,
    alternatives: Alternatives,
    reduction: _geometry.Reduction | None = None,
    fine: float = 0.0,
) -> Proof:
    """What an allocation and alternatives prove about (P).

    Args:
        problem: the problem.
        gaps: its gaps.
        allocation: η, shape (contexts, arms), >= 0.
        alternatives: each equal to θ on every optimal arm.
        reduction: `_geometry.reduce(problem)`, where it is known.
        fine: how much the bracket may widen, relatively, by a simpler charge for rounding.

    """
    eta = _nonnegative("allocation", allocation, problem).ravel()
    known = _geometry.reduce(problem) if reduction is None else reduction
    information = least_information(
        problem, gaps, known.where, known.spread, eta[known.pairs], known.apart, known.pairs, fine
    )
    # Gaps off by a relative error e change the value by at most 3e: once in the cost, twice in the constraints.
    charge = 3 * gaps.error
    upper = float(eta @ gaps.values.ravel()) * (1 + charge)
    shifts = _checked(problem, gaps, alternatives)
    if len(shifts) == 0:
        return Proof(0.0, upper, information)
    # Outside `pairs` prices are rounding: such arms lie in the span of the optimal ones.
    price, changed = largest_price(
        problem.features, problem.optimal_arms, gaps.values, known.pairs, known.scale, shifts,
        alternatives.weights, _SLACK,
    )  # fmt: skip
    if changed >= 0:
        raise ValueError(
            f"certificate: alternative {changed} changes the mean of an optimal arm, so (P) excludes it"
        )
    total = 2 * problem.noise_std**2 * float(alternatives.weights.sum())
    lower = total / price if price > 0 else 0.0
    return Proof(lower * (1 - charge), upper, information)


def prove_at(
    problem: Problem, gaps: _geometry.Gaps, policy: Floats, z: float, alternatives: Alternatives
) -> Proof:
    """What a policy ω (rows sum to 1) and alternatives prove about (P_z)."""
    omega = _policy(policy, problem)
    mass = z * problem.context_probs
    information = z * policy_information(problem, gaps, omega)
    charge = 3 * gaps.error
    upper = float(mass @ (omega * gaps.values).sum(axis=1)) * (1 + charge)
    shifts = _checked(problem, gaps, alternatives)
    if len(shifts) == 0:
        return Proof(0.0, upper, information)
    prices = _prices(problem, shifts, alternatives.weights).reshape(omega.shape)
    total = float(alternatives.weights.sum())
    lower = total + float(mass @ (gaps.values - prices).min(axis=1))
    return Proof(max(0.0, lower - charge * total), upper, information)


def prove_least(problem: Problem, gaps: _geometry.Gaps, policy: Floats, alternatives: Alternatives) -> Proof:
    """What a policy ω (rows sum to 1) and alternatives prove about z_min; `information` is 1 by definition."""
    omega = _policy(policy, problem)
    worst = policy_information(problem, gaps, omega)
    charge = 3 * gaps.error
    upper = (1 + charge) / worst if worst > 0 else np.inf
    shifts = _checked(problem, gaps, alternatives)
    if len(shifts) == 0:
        return Proof(0.0, upper, 1.0)
    prices = _prices(problem, shifts, alternatives.weights).reshape(omega.shape)
    lower = float(alternatives.weights.sum() / (problem.context_probs @ prices.max(axis=1)))
    return Proof(lower * (1 - charge), upper, 1.0)


def policy_information(problem: Problem, gaps: _geometry.Gaps, omega: Floats) -> float:
    """Least E_ρ[Σ_a ω(x, a) d_{x,a}(θ, θ')] over all alternatives θ'; infinite where there is none."""
    where = _geometry.full_coordinates(problem)
    pulls = (problem.context_probs[:, None] * omega).ravel()
    spread = problem.features.reshape(-1, problem.dim) @ where.basis
    apart = _geometry.differences(problem, gaps.suboptimal) @ where.basis
    return least_information(problem, gaps, where, spread, pulls, apart, gaps.suboptimal)


def least_information(
    problem: Problem,
    gaps: _geometry.Gaps,
    where: _geometry.Coordinates,
    spread: Floats,
    pulls: Floats,
    apart: Floats,
    pairs: Ints,
    fine: float = 0.0,
) -> float:
    """Information against the closest alternative of every pair, rounding charged.

    With A = diag(√pulls) · spread = QR, information is min ‖Rβ‖² over vᵀβ >= 1, that is 1 / ‖R⁻ᵀv‖²; inside a ball,
    the dual function at any multiplier κ >= 0 is a true lower bound (weak duality), so its search needs no trust.

    Args:
        problem: the problem.
        gaps: its gaps.
        where: coordinates of the alternatives.
        spread: features in these coordinates, shape (variables, k).
        pulls: of each, shape (variables,).
        apart: φ* - φ of the pairs in these coordinates, shape (pairs, k).
        pairs: flat indices of the suboptimal pairs to look at.
        fine: how much information may be lost, relatively, to a simpler charge for rounding.

    Returns:
        The least over the pairs; infinity where none has an alternative.

    """
    if len(pairs) == 0 or where.basis.shape[1] == 0:
        return np.inf
    unit = np.sqrt(2.0) * problem.noise_std
    stretch = unit / gaps.values.ravel()[pairs]
    if np.isinf(where.radius):
        return float(least_unbounded(spread, pulls, apart, stretch, fine))
    factor = np.asarray(np.linalg.qr(spread * np.sqrt(pulls)[:, None], mode="r"))
    k = where.basis.shape[1]
    if factor.shape[0] < k:
        factor = np.vstack([factor, np.zeros((k - factor.shape[0], k))])
    return float(
        _inside_ball(factor, apart * stretch[:, None], where.centre / unit, where.radius / unit).min()
    )


def _inside_ball(factor: Floats, v: Floats, theta: Floats, radius: float) -> Floats:
    """Lower bounds on min βᵀMβ s.t. vᵀβ >= 1, ‖θ - β‖ <= R, one for each row of v, by maximising the dual function.

    h(κ) = κ(‖θ‖² - R²) - κ²θᵀA⁻¹θ + max(0, 1 - κθᵀA⁻¹v)² / (vᵀA⁻¹v) with A = M + κI is concave in κ; its best
    value is found by golden section in log κ. A pair whose half-space misses the ball has no alternative.
    """
    _, singular, axes = np.linalg.svd(factor)
    spectrum = singular**2
    rows, centre = v @ axes.T, axes @ theta
    reach = v @ theta + radius * np.linalg.norm(v, axis=1)
    missed = reach <= 1 + 1e-9
    if spectrum[0] == 0:
        return np.where(missed, np.inf, 0.0)
    top = float(spectrum[0])

    def dual(log_kappa: Floats) -> Floats:
        kappa = np.exp(log_kappa)
        weight = 1.0 / (spectrum + kappa[:, None])
        ahead = np.maximum(1 - kappa * ((rows * centre) * weight).sum(axis=1), 0.0)
        # κ‖θ‖² - κ²θᵀA⁻¹θ = κ θᵀ M A⁻¹ θ, written without the cancellation.
        inner = kappa * ((centre**2 * spectrum) * weight).sum(axis=1)
        return np.asarray(inner - kappa * radius**2 + ahead**2 / ((rows**2) * weight).sum(axis=1))

    low, high = np.full(len(v), np.log(top) - 46.0), np.full(len(v), np.log(top) + 46.0)
    ratio = (np.sqrt(5.0) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = dual(left), dual(right)
    for _ in range(80):
        up = at_left < at_right
        low, high = np.where(up, left, low), np.where(up, high, right)
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        at_left, at_right = dual(left), dual(right)
    best = np.where(at_left < at_right, right, left)
    # Rounding is charged as without a ball, at the minimiser of the Lagrangian, plus that of the ball's own term.
    kappa = np.exp(best)[:, None]
    weight = 1.0 / (spectrum + kappa)
    pull = (1 - kappa[:, 0] * (rows * centre * weight).sum(axis=1)) / (rows**2 * weight).sum(axis=1)
    betas = (kappa * centre + np.maximum(pull, 0.0)[:, None] * rows) * weight
    value = dual(best) - 16 * _EPS * kappa[:, 0] * (radius**2 + float(centre @ centre))
    root = np.sqrt(np.maximum(value, 0.0))
    root -= 4 * len(theta) * _EPS * float(np.linalg.norm(singular)) * np.linalg.norm(betas, axis=1)
    return np.where(missed, np.inf, np.maximum(root, 0.0) ** 2)


def _checked(problem: Problem, gaps: _geometry.Gaps, alternatives: Alternatives) -> Floats:
    """θ - θ', each stretched or shrunk to the nearest that makes its arm exactly as good; ValueError if none is."""
    if np.any(alternatives.weights < 0) or not np.isfinite(alternatives.weights).all():
        raise ValueError("certificate: a weight is negative or not finite")
    reach = reaches(
        problem.features, problem.optimal_arms, gaps.values, alternatives.contexts, alternatives.arms,
        alternatives.shifts,
    )  # fmt: skip
    limit = 0.0 if problem.theta_bound is None else 1 - _SLACK
    if not np.all(reach > limit):
        j = int(np.argmin(reach))
        raise ValueError(
            f"certificate: alternative {j} leaves the optimal arm of context {int(alternatives.contexts[j])} the "
            f"better one by {1 - reach[j]:.3g} of its gap; it is no alternative"
        )
    shifts = np.asarray(alternatives.shifts / reach[:, None])
    if problem.theta_bound is not None and len(shifts):
        where = _geometry.full_coordinates(problem)
        norms = np.linalg.norm((problem.theta - shifts) @ where.basis, axis=1)
        if norms.max() > problem.theta_bound * (1 + _SLACK):
            raise ValueError(
                f"certificate: an alternative has norm {norms.max():.9g}, over theta_bound {problem.theta_bound:.9g}"
            )
    return shifts


def _prices(problem: Problem, shifts: Floats, weights: Floats) -> Floats:
    """p(x, a) = Σ_j w_j d_{x,a}(θ, θ_j'), flat."""
    means = problem.features.reshape(-1, problem.dim) @ shifts.T
    return np.asarray((means * means) @ weights / (2 * problem.noise_std**2))


def _is_exploration_free(problem: Problem, gaps: _geometry.Gaps) -> bool:
    known = _geometry.reduce(problem)
    nothing = np.zeros((0, known.where.basis.shape[1]))
    information = least_information(
        problem, gaps, known.where, nothing, np.zeros(0), known.apart, known.pairs
    )
    return information == np.inf


def _nonnegative(name: str, values: Floats, problem: Problem) -> Floats:
    shape = (problem.n_contexts, problem.n_arms)
    if values.shape != shape or not np.isfinite(values).all() or values.min() < 0:
        raise ValueError(f"certificate: {name} must be finite, >= 0 and of shape {shape}")
    return values


def _policy(policy: Floats, problem: Problem) -> Floats:
    omega = _nonnegative("policy", policy, problem)
    if np.abs(omega.sum(axis=1) - 1).max() > _SLACK:
        raise ValueError("certificate: each row of policy must sum to 1")
    return omega
