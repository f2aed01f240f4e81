"""The three programs of the paper, solved and certified: (P), (P_z) and pure exploration."""

import numpy as np

from solid_bandits._internal import checks
from solid_bandits.bounds import _geometry, certificate
from solid_bandits.bounds._program import free_program
from solid_bandits.bounds._rounding import EPS
from solid_bandits.bounds._search import search
from solid_bandits.bounds._solving import (
    ROUGH,
    bracket,
    evidence,
    explore,
    feasible,
    prove,
    require,
    solve_at,
    tidy,
    tolerance,
)
from solid_bandits.bounds._supply import greedy, set_up
from solid_bandits.bounds.results import Alternatives, LowerBound, LowerBoundAt, PureExploration
from solid_bandits.bounds.verification import check_kind
from solid_bandits.core.problem import Problem

_UNDECIDED = (
    "theta_bound is so close to where alternatives begin that double precision cannot decide whether there are any; "
    "give a slightly larger or smaller one"
)


def lower_bound(problem: Problem, tol: float = 1e-6, warm_start: LowerBound | None = None) -> LowerBound:
    """Solve (P): the constant in front of log n that no uniformly good policy can beat.

        v*(θ) = inf_{η >= 0} Σ η(x, a) Δ(x, a)   s.t.   inf_{θ' ∈ Θ_alt} Σ η(x, a) d_{x,a}(θ, θ') >= 1

    The infimum is attained once pulls of optimal arms, which cost nothing, are taken to infinity: then only θ' that
    agree with θ on every optimal arm count, and η lives on the suboptimal arms. If the optimal arms span R^d no such
    θ' is left, and the value is 0. Where the problem declares a `theta_bound` B, only ‖θ'‖ <= B count.

    Args:
        problem: the problem.
        tol: the relative width of the bracket to reach.
        warm_start: the answer for a nearby problem of the same shape; changes the time, never the guarantee.

    Returns:
        The value, its certified bracket and the allocation η*.

    Raises:
        ValueError: a context has several optimal arms, or rounding leaves the span of the optimal arms undecided.

    Example:
        >>> import solid_bandits as sb
        >>> bound = sb.bounds.lower_bound(sb.problems.toy(noise_std=1))
        >>> round(bound.value, 4), bound.exploration_free
        (10.0, False)

    Reference: Proposition 1, eq. (P); the notation of Lemma 1.

    """
    tol = tolerance(tol)
    check_kind("warm_start", warm_start, LowerBound)
    gaps = _geometry.gaps(problem)
    restart = None if warm_start is None else warm_start.restart
    reduction = _geometry.reduce(problem, None if restart is None else restart.reduction)
    program = free_program(problem, gaps, reduction)
    allocation = np.zeros((problem.n_contexts, problem.n_arms))
    if len(program.pairs) == 0:
        nothing = prove(
            certificate.prove_free, problem, gaps, allocation, Alternatives.none(problem.dim), reduction
        )
        if nothing.information != np.inf:
            raise ValueError(_UNDECIDED)
        return LowerBound(
            0.0, 0.0, 0.0, allocation, 0.0, 0.0, True, True, Alternatives.none(problem.dim), None
        )
    found = search(program, 0.9 * tol, restart)
    allocation.flat[program.variables] = tidy(program, found, tol)
    alternatives = evidence(problem, gaps, program, reduction, found)
    proof = prove(certificate.prove_free, problem, gaps, allocation, alternatives, reduction, 1e-3 * tol)
    if not proof.information > 0.5:
        # Tidying removed pulls that a badly scaled problem needs.
        allocation.flat[program.variables] = found.y
        proof = prove(certificate.prove_free, problem, gaps, allocation, alternatives, reduction, 1e-3 * tol)
    require(proof)
    # Information is linear along rays, so the scaled allocation has information 1; rounded up.
    allocation *= (1 + 8 * EPS) / proof.information
    proof = proof._replace(upper=proof.upper / proof.information * (1 + 16 * EPS))
    totals = allocation.sum(axis=1)
    return LowerBound(
        allocation=allocation,
        pulls=float(totals.sum()),
        z_bar=float((totals / problem.context_probs).max()),
        exploration_free=False,
        alternatives=alternatives,
        restart=found.restart,
        **bracket(proof, tol),
    )


def pure_exploration(
    problem: Problem, tol: float = 1e-6, warm_start: PureExploration | None = None
) -> PureExploration:
    """Solve pure exploration: the fewest steps in which some policy tells θ from every alternative.

        1 / z_min(θ) = max_{ω ∈ Ω} inf_{θ' ∈ Θ_alt} E_ρ[Σ_a ω(x, a) d_{x,a}(θ, θ')]

    Args:
        problem: the problem.
        tol: the relative width of the bracket to reach.
        warm_start: the answer for a nearby problem of the same shape.

    Returns:
        z_min, its certified bracket and the policy ω. With one arm per context z_min is 0.

    Raises:
        ValueError: a context has several optimal arms.

    Example:
        >>> import solid_bandits as sb
        >>> pure = sb.bounds.pure_exploration(sb.Problem([[[1, 0], [0, 1]]], theta=[1, 0]))
        >>> round(pure.z_min, 4), pure.policy.round(3).tolist()
        (8.0, [[0.5, 0.5]])

    Reference: the first statement of Lemma 1.

    """
    tol = tolerance(tol)
    check_kind("warm_start", warm_start, PureExploration)
    return explore(set_up(problem), tol, warm_start)


def lower_bound_at(
    problem: Problem,
    z: float,
    tol: float = 1e-6,
    warm_start: LowerBoundAt | None = None,
    exploration: PureExploration | None = None,
) -> LowerBoundAt:
    """Solve (P_z): the least regret of an exploration policy that has z steps, contexts coming as ρ draws them.

        u*(z, θ) = min_{ω ∈ Ω} z E_ρ[Σ_a ω(x, a) Δ(x, a)]   s.t.   inf_{θ'} E_ρ[Σ_a ω(x, a) d_{x,a}(θ, θ')] >= 1/z

    u* falls in z, is convex, and goes to v* (Lemma 1).

    Args:
        problem: the problem.
        z: the number of steps, at least z_min.
        tol: the relative width of the bracket to reach.
        warm_start: the answer for a nearby problem or z.
        exploration: the answer of `pure_exploration` for the same problem, if known, which saves solving it.

    Returns:
        The value, its certified bracket, the policy ω*_z and the multiplier λ*.

    Raises:
        ValueError: z is below z_min (the message says what z_min is), or a context has several optimal arms.

    Example:
        >>> import solid_bandits as sb
        >>> round(sb.bounds.lower_bound_at(sb.problems.toy(noise_std=1), z=1e4).value, 2)
        10.1

    Reference: eq. (P_z) and Lemma 1; λ* is the multiplier of (P_λ).

    """
    tol = tolerance(tol)
    z = checks.number("z", z, above=0)
    check_kind("warm_start", warm_start, LowerBoundAt)
    check_kind("exploration", exploration, PureExploration)
    setup = set_up(problem)
    best = greedy(problem).astype(np.float64)
    if z * certificate.policy_information(setup, best) >= 1:
        pure = exploration or explore(setup, ROUGH, None)
        return LowerBoundAt(z, 0.0, 0.0, 0.0, best, 0.0, True, Alternatives.none(problem.dim), pure, None)
    pure = feasible(setup, z, warm_start.exploration if warm_start else None, exploration)
    policy, proof, alternatives, restart = solve_at(
        setup, z, tol, pure, None if warm_start is None else warm_start.restart
    )
    return LowerBoundAt(
        z=z,
        policy=policy,
        multiplier=float(alternatives.weights.sum()),
        alternatives=alternatives,
        exploration=pure,
        restart=restart,
        **bracket(proof, tol),
    )
