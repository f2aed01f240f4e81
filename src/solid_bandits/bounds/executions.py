"""The lower bound without the context distribution, and what it is worth when contexts are drawn nevertheless.

The appendix on the lower bound discusses (P_z) in this way. With a single total, (P̃_z), it prescribes pulls that may
not be possible; the mismatch α_z says by how much each context is off, and (P̃_α) asks for the best correction.
"""

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.types import Floats
from solid_bandits.bounds import _geometry, certificate
from solid_bandits.bounds._rounding import upto
from solid_bandits.bounds._solving import (
    ROUGH,
    Found,
    bracket,
    explore,
    feasible,
    normalised,
    solve_at,
    tolerance,
)
from solid_bandits.bounds._supply import Setup, Supply, by_context, greedy, in_total, set_up
from solid_bandits.bounds.results import (
    Alternatives,
    BestExecution,
    Execution,
    LowerBoundInTotal,
    PureExploration,
)
from solid_bandits.core.problem import Problem

# Fraction of an even share. Pulls that every optimal allocation is proven to have less of than this are set to zero.
_IDLE = 1e-3


def lower_bound_in_total(problem: Problem, z: float, tol: float = 1e-6) -> LowerBoundInTotal:
    """Solve (P̃_z): the least regret of z pulls when contexts can be chosen.

        ũ*_z = inf_{η >= 0} Σ η(x, a) Δ(x, a)   s.t.   inf_{θ'} Σ η(x, a) d_{x,a}(θ, θ') >= 1,   Σ_{x,a} η(x, a) = z

    It has one constraint on the total where (P_z) has one for each context, so v* <= ũ*_z <= u*(z): contexts, too, can
    be chosen. An optimal η̃*_z need not be unique (two contexts with the same optimal features can share their pulls in
    any proportion). Pulls that no optimal allocation needs, as far as the evidence shows, are exactly 0 in the one
    returned.

    Args:
        problem: the problem.
        z: the number of pulls, at least `z_min` of the answer.
        tol: the relative width of the bracket to reach.

    Returns:
        The value, its certified bracket and the allocation η̃*_z.

    Raises:
        ValueError: z pulls are not enough (the message says how many are), or a context has several optimal arms.

    Example:
        >>> import solid_bandits as sb
        >>> rare = sb.problems.toy(first_context_prob=0.99, noise_std=1)
        >>> bool(sb.bounds.lower_bound_in_total(rare, z=2000).upper < sb.bounds.lower_bound_at(rare, z=2000).lower)
        True

    Reference: eq. (P̃_z) of the appendix on the lower bound, "Discussion About Problem (P_z)".

    """
    tol = tolerance(tol)
    z = checks.number("z", z, above=0)
    _geometry.check_problem(problem)
    setup = set_up(problem, in_total(problem))
    shape = (problem.n_contexts, problem.n_arms)
    free = _without_regret(setup, z)
    if free is not None:
        pure = explore(setup, ROUGH, None)
        allocation = z * free.reshape(shape)
        return LowerBoundInTotal(
            z, 0.0, 0.0, 0.0, allocation, 0.0, pure.upper, True, Alternatives.none(problem.dim), pure
        )
    pure = feasible(setup, z, None, None)
    found = _tidied(setup, z, tol, solve_at(setup, z, 0.5 * tol, pure, None))
    return LowerBoundInTotal(
        z=z,
        allocation=z * found.policy.reshape(shape),
        multiplier=float(found.alternatives.weights.sum()),
        z_min=pure.upper,
        alternatives=found.alternatives,
        exploration=pure,
        **bracket(found.proof, tol),
    )


def execute(problem: Problem, allocation: ArrayLike) -> Execution:
    """Return what an allocation gives when it is played: in each context an arm is drawn in proportion to its pulls.

        ζ̃_z(x, a) = η(x, a) α_z(x),   α_z(x) = zρ(x) / Σ_a' η(x, a'),   z = Σ_{x,a} η(x, a)

    are the expected pulls of z steps. Where α_z is not 1 the allocation cannot be realised: a context with α_z < 1
    comes too rarely, and the allocation's regret and information are not attained. The paper does not define this for a
    context that the allocation leaves out; here its best arm is pulled, at no regret, and α_z is infinite.

    Args:
        problem: the problem.
        allocation: η, shape (contexts, arms), such as that of `lower_bound_in_total`.

    Returns:
        The mismatch, the pulls, their regret and their information, the last rounded down.

    Example:
        >>> import solid_bandits as sb
        >>> rare = sb.problems.toy(first_context_prob=0.99, noise_std=1)
        >>> played = sb.bounds.execute(rare, sb.bounds.lower_bound_in_total(rare, z=2000).allocation)
        >>> bool(played.mismatch[1] < 1), bool(played.information < 1)
        (True, True)

    Reference: eq. (eta.mismatch) of the appendix on the lower bound.

    """
    eta = _allocation(problem, allocation)
    z = float(eta.sum())
    totals = eta.sum(axis=1)
    visited = totals > 0
    with np.errstate(divide="ignore"):
        mismatch = z * problem.context_probs / totals
    policy = greedy(problem).astype(np.float64)
    policy[visited] = normalised(eta[visited])
    pulls = z * problem.context_probs[:, None] * policy
    information = z * certificate.policy_information(set_up(problem), policy)
    return Execution(
        z=z,
        mismatch=mismatch,
        pulls=pulls,
        regret=float((pulls * problem.gaps).sum()),
        information=information * (1 - upto(eta.size, 1.0)),
    )


def best_execution(problem: Problem, allocation: ArrayLike, tol: float = 1e-6) -> BestExecution:
    """Solve (P̃_α): the realisable correction of an allocation that has the least regret.

        inf_{α >= 0} Σ η α Δ   s.t.   inf_{θ'} Σ η α d_{x,a}(θ, θ') >= 1,   Σ_a η(x, a) α(x, a) = zρ(x) for every x

    with z = Σ η. A correction multiplies, so pairs that η leaves out stay out. The paper says that a change of
    variables makes this (P_z), with α = η*_z / η̃*_z. That holds where η̃*_z pulls every pair that η*_z pulls. Where it
    does not, the least regret is larger than u*(z), or there is no correction at all: then the value is infinite, and
    the evidence proves that more than z steps are needed, or that a context is left out.

    Args:
        problem: the problem.
        allocation: η, shape (contexts, arms), such as that of `lower_bound_in_total`.
        tol: the relative width of the bracket to reach.

    Returns:
        The value, its certified bracket, the policy and α.

    Raises:
        ValueError: a context has several optimal arms, or double precision cannot decide whether there is a correction.

    Example:
        >>> import solid_bandits as sb
        >>> rare = sb.problems.toy(first_context_prob=0.99, noise_std=1)
        >>> sb.bounds.best_execution(rare, sb.bounds.lower_bound_in_total(rare, z=2000).allocation).value
        inf

    Reference: eq. (P̃_α) of the appendix on the lower bound.

    """
    tol = tolerance(tol)
    eta = _allocation(problem, allocation)
    z = float(eta.sum())
    support = eta > 0
    setup = set_up(problem, by_context(problem, support))
    if not support.any(axis=1).all():
        return _impossible(z, eta, Alternatives.none(problem.dim))
    unseen = _unseen(setup)
    if unseen is not None:
        if certificate.least_steps(setup, unseen) > z:
            return _impossible(z, eta, unseen)
        raise ValueError(
            "allocation must pull arms whose features span those of all arms, or clearly fail to; got "
            "one for which double precision cannot decide whether a correction has enough information"
        )
    pure = explore(setup, ROUGH, None)
    if z < pure.lower:
        return _impossible(z, eta, pure.alternatives)
    pure = feasible(setup, z, None, pure)
    best = greedy(problem)
    policy = best.astype(np.float64)
    if support[best].all() and z * certificate.policy_information(setup, policy) >= 1:
        found = Found(policy, certificate.Proof(0.0, 0.0, 1.0), Alternatives.none(problem.dim), None)
    else:
        found = solve_at(setup, z, tol, pure, None)
    pulls = z * problem.context_probs[:, None] * found.policy
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(support, pulls / eta, np.nan)
    return BestExecution(
        z=z,
        policy=found.policy,
        factors=factors,
        support=support,
        alternatives=found.alternatives,
        **bracket(found.proof, tol),
    )


def _impossible(z: float, eta: Floats, alternatives: Alternatives) -> BestExecution:
    nothing = np.full(eta.shape, np.nan)
    return BestExecution(z, np.inf, np.inf, np.inf, nothing, nothing.copy(), eta > 0, True, alternatives)


def _unseen(setup: Setup) -> Alternatives | None:
    """Return an alternative that no pair of the support tells from θ, where the support does not span all features.

    Returns None where it does span them, and an empty set of alternatives where none was found.
    """
    problem, gaps, whole, supply = setup
    where, frame = whole.where, whole.frame
    pulled = where.of(frame.sharp)[supply.allowed.ravel()]
    _, singular, axes = np.linalg.svd(pulled)
    rank = int((singular > 1e-9 * singular[0]).sum())
    if rank == pulled.shape[1]:
        return None
    free = axes[rank:]
    across = where.of(frame.differences(problem, gaps.suboptimal)) @ free.T
    sizes = np.einsum("ij,ij->i", across, across)
    best = int(sizes.argmax())
    if not sizes[best] > 0:
        return Alternatives.none(problem.dim)
    pair = gaps.suboptimal[best : best + 1]
    # The smallest change of θ in these directions that makes the pair's arm as good as the best, enlarged a little.
    size = gaps.values.ravel()[pair] / sizes[best] * (1 + 1e-9)
    shift = (where.basis @ (free.T @ across[best] * size))[None]
    if not certificate.counts(problem, gaps, frame, None, shift, pair).all():
        return Alternatives.none(problem.dim)
    return Alternatives(shift, pair // problem.n_arms, pair % problem.n_arms, np.ones(1))


def _without_regret(setup: Setup, z: float) -> Floats | None:
    """Return a distribution over the optimal pairs with enough information in z pulls; None if there is none.

    Cases too close to call count as none: the bracket of the whole program then decides.
    """
    supply = setup.supply
    only = Supply(supply.share, greedy(setup.problem).reshape(supply.allowed.shape))
    even = normalised(only.allowed.astype(np.float64))
    information = certificate.policy_information(setup._replace(supply=only), even)
    if z * information >= 1:
        return even
    if information <= 0:
        return None
    best: PureExploration = explore(setup._replace(supply=only), 1e-6, None)
    return best.policy if z >= best.upper else None


def _tidied(setup: Setup, z: float, tol: float, found: Found) -> Found:
    """Return the allocation without the pulls that no optimal one needs, as far as the evidence shows.

    With prices p of the alternatives, pair i costs r_i = (Δ - p)_i - min (Δ - p) more than the cheapest. Every optimal
    η̃ has Σ η̃ r <= upper - lower: where (upper - lower) / r_i is small it hardly pulls the pair, although an interior
    point does.
    """
    problem, gaps, _, supply = setup
    table = problem.features.reshape(-1, problem.dim)
    means = table @ found.alternatives.shifts.T
    cost = gaps.values.ravel() - means**2 @ found.alternatives.weights / (2 * problem.noise_std**2)
    reduced = (cost - cost.min()).reshape(supply.allowed.shape)
    needed = found.proof.upper - found.proof.lower > reduced * (_IDLE * z / reduced.size)
    if needed.all():
        return found
    only = setup._replace(supply=Supply(supply.share, needed))
    try:
        again = solve_at(only, z, tol, feasible(only, z, None, None), None)
    except ValueError:
        return found  # too few pairs are left to prove anything: keep the dust
    proof = certificate.prove_at(setup, again.policy, z, found.alternatives)
    better = Found(
        again.policy, proof._replace(lower=min(proof.lower, proof.upper)), found.alternatives, None
    )
    width = better.proof.upper - better.proof.lower
    return better if width <= max(tol * proof.upper, found.proof.upper - found.proof.lower) else found


def _allocation(problem: Problem, allocation: ArrayLike) -> Floats:
    _geometry.check_problem(problem)
    eta = checks.array("allocation", allocation, "contexts", "arms")
    shape = (problem.n_contexts, problem.n_arms)
    if eta.shape != shape or eta.min() < 0 or not eta.sum() > 0:
        raise ValueError(
            f"allocation must be pulls >= 0, some of them > 0, of shape {shape}, got {checks.short(eta)}"
        )
    return eta
