"""The three programs of the paper, solved and certified: (P), (P_z) and pure exploration."""

from collections.abc import Callable
from typing import Any

import numpy as np

from solid_bandits import _check
from solid_bandits._types import Bools, Floats, Ints
from solid_bandits.bounds import _geometry, certificate
from solid_bandits.bounds._program import Program, context_program, free_program
from solid_bandits.bounds._rounding import EPS
from solid_bandits.bounds._search import Solution, closest, search
from solid_bandits.bounds.results import Alternatives, LowerBound, LowerBoundAt, PureExploration
from solid_bandits.problem import Problem

# A first, rough look at z_min; only a z near it needs a finer one.
_ROUGH, _FINE = 1e-3, 1e-7
_BADLY_SCALED = (
    "problem is too badly scaled for double precision: no allocation could be verified; bring features and gaps closer "
    "together in size"
)
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
        >>> from solid_bandits.problems import toy
        >>> bound = lower_bound(toy(noise_std=1))
        >>> round(bound.value, 4), bound.exploration_free
        (10.0, False)

    Reference: Proposition 1, eq. (P); the notation of Lemma 1.

    """
    tol = _tolerance(tol)
    gaps = _geometry.gaps(problem)
    restart = None if warm_start is None else warm_start.restart
    reduction = _geometry.reduce(problem, None if restart is None else restart.reduction)
    program = free_program(problem, gaps, reduction)
    allocation = np.zeros((problem.n_contexts, problem.n_arms))
    if len(program.pairs) == 0:
        nothing = _prove(
            certificate.prove_free, problem, gaps, allocation, _no_alternatives(problem), reduction
        )
        if nothing.information != np.inf:
            raise ValueError(_UNDECIDED)
        return LowerBound(0.0, 0.0, 0.0, allocation, 0.0, 0.0, True, True, _no_alternatives(problem), None)
    found = search(program, 0.9 * tol, restart)
    allocation.flat[program.variables] = _tidy(program, found, tol)
    alternatives = _alternatives(problem, gaps, program, reduction, reduction.span, found)
    proof = _prove(certificate.prove_free, problem, gaps, allocation, alternatives, reduction, 1e-3 * tol)
    if not proof.information > 0.5:
        # Tidying took away pulls that a badly scaled problem needs.
        allocation.flat[program.variables] = found.y
        proof = _prove(certificate.prove_free, problem, gaps, allocation, alternatives, reduction, 1e-3 * tol)
    _require(proof)
    # Information is linear along rays, so this has 1; rounded up.
    allocation *= (1 + 8 * EPS) / proof.information
    upper = proof.upper / proof.information * (1 + 16 * EPS)
    lower = min(proof.lower, upper)
    totals = allocation.sum(axis=1)
    return LowerBound(
        value=0.5 * (lower + upper),
        lower=lower,
        upper=upper,
        allocation=allocation,
        pulls=float(totals.sum()),
        z_bar=float((totals / problem.context_probs).max()),
        exploration_free=False,
        converged=bool(upper - lower <= tol * upper),
        alternatives=alternatives,
        restart=found.restart,
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
        >>> from solid_bandits.problem import Problem
        >>> pure = pure_exploration(Problem([[[1, 0], [0, 1]]], theta=[1, 0]))
        >>> round(pure.z_min, 4), pure.policy.round(3).tolist()
        (8.0, [[0.5, 0.5]])

    Reference: the first statement of Lemma 1.

    """
    tol = _tolerance(tol)
    return _explore(problem, _geometry.gaps(problem), _geometry.whole(problem), tol, warm_start)


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
        exploration: the answer of `pure_exploration` for this very problem, where it is known: saves solving it.

    Returns:
        The value, its certified bracket, the policy ω*_z and the multiplier λ*.

    Raises:
        ValueError: z is below z_min (the message says what z_min is), or a context has several optimal arms.

    Example:
        >>> from solid_bandits.problems import toy
        >>> round(lower_bound_at(toy(noise_std=1), z=1e4).value, 2)
        10.1

    Reference: eq. (P_z) and Lemma 1; λ* is the multiplier of (P_λ).

    """
    tol = _tolerance(tol)
    z = _check.number("z", z, above=0)
    gaps = _geometry.gaps(problem)
    whole = _geometry.whole(problem)
    greedy = np.zeros((problem.n_contexts, problem.n_arms))
    greedy[np.arange(problem.n_contexts), problem.optimal_arms] = 1.0
    if z * certificate.policy_information(problem, gaps, greedy, whole) >= 1:
        pure = exploration or _explore(problem, gaps, whole, _ROUGH, None)
        return LowerBoundAt(z, 0.0, 0.0, 0.0, greedy, 0.0, True, _no_alternatives(problem), pure, None)
    pure = _feasible(problem, gaps, whole, z, warm_start.exploration if warm_start else None, exploration)
    program = context_program(problem, gaps, whole, z)
    mass = z * problem.context_probs[:, None]
    safe = (mass * pure.policy).ravel()
    task = program.task
    information, _ = closest(task.v, task.u.T @ (task.u * safe[:, None]), task.theta, task.radius)
    task = task._replace(slater_info=information, slater_cost=float(task.cost @ safe))
    program = Program(task, program.basis, program.variables, program.pairs, program.optimal)
    found = search(program, 0.9 * tol, None if warm_start is None else warm_start.restart)
    policy = _normalised(found.y.reshape(mass.shape[0], -1))
    alternatives = _alternatives(problem, gaps, program, whole, None, found)
    proof = _prove(certificate.prove_at, problem, gaps, policy, z, alternatives, whole)
    if proof.information < 1:
        # Information is concave: mixing with a policy that has more than enough makes up for what is short, for each
        # pair by what the solver says of it, or for the worst by what is proven of all.
        pulls = (mass * policy).ravel()
        known, _ = closest(task.v, task.u.T @ (task.u * pulls[:, None]), task.theta, task.radius)
        short = (known < 1) & (information > 1)
        each = float(((1 - known[short]) / (information[short] - known[short])).max(initial=0.0))
        spare = z * certificate.policy_information(problem, gaps, pure.policy, whole)
        every = (1 - proof.information) / max(spare - proof.information, 1e-300)
        for mix in (1.001 * each, 2.0 * each, every, 1.001 * every, 2.0 * every):
            mix = min(1.0, mix)
            mixed = _normalised((1 - mix) * policy + mix * pure.policy)
            proof = _prove(certificate.prove_at, problem, gaps, mixed, z, alternatives, whole)
            if proof.information >= 1:
                policy = mixed
                break
        else:
            policy = pure.policy
            proof = _prove(certificate.prove_at, problem, gaps, policy, z, alternatives, whole)
    _require(proof)
    if proof.information < 1:
        raise ValueError(_BADLY_SCALED)
    lower = min(proof.lower, proof.upper)
    return LowerBoundAt(
        z=z,
        value=0.5 * (lower + proof.upper),
        lower=lower,
        upper=proof.upper,
        policy=policy,
        multiplier=float(alternatives.weights.sum()),
        converged=bool(proof.upper - lower <= tol * proof.upper),
        alternatives=alternatives,
        exploration=pure,
        restart=found.restart,
    )


def _explore(
    problem: Problem,
    gaps: _geometry.Gaps,
    whole: _geometry.Whole,
    tol: float,
    warm_start: PureExploration | None,
) -> PureExploration:
    shape = (problem.n_contexts, problem.n_arms)
    program = context_program(problem, gaps, whole, None)
    if len(program.pairs) == 0:
        return PureExploration(
            0.0, 0.0, 0.0, np.full(shape, 1.0 / shape[1]), True, _no_alternatives(problem), None
        )
    found = search(program, 0.9 * tol, None if warm_start is None else warm_start.restart)
    policy = _normalised(found.y[:-1].reshape(shape))
    alternatives = _alternatives(problem, gaps, program, whole, None, found)
    proof = _prove(certificate.prove_least, problem, gaps, policy, alternatives, whole)
    _require(proof)
    lower = min(proof.lower, proof.upper)
    return PureExploration(
        z_min=0.5 * (lower + proof.upper),
        lower=lower,
        upper=proof.upper,
        policy=policy,
        converged=bool(proof.upper - lower <= tol * proof.upper),
        alternatives=alternatives,
        restart=found.restart,
    )


def _feasible(
    problem: Problem,
    gaps: _geometry.Gaps,
    whole: _geometry.Whole,
    z: float,
    warm_start: PureExploration | None,
    known: PureExploration | None,
) -> PureExploration:
    """A policy with information to spare in z steps; ValueError where there is none."""
    pure = _explore(problem, gaps, whole, _ROUGH, warm_start) if known is None else known
    if pure.lower <= z < pure.upper * (1 + _ROUGH):
        pure = _explore(problem, gaps, whole, _FINE, pure)
    if z < pure.lower:
        raise ValueError(
            f"z is {z!r}: no policy tells theta from its alternatives so soon; give z >= {pure.upper:.9g}"
        )
    if z <= pure.upper:
        raise ValueError(
            f"z is {z!r}, as close to z_min (in [{pure.lower:.9g}, {pure.upper:.9g}]) as can be resolved; "
            f"give z > {pure.upper:.9g}"
        )
    return pure


def _tidy(program: Program, found: Solution, tol: float) -> Floats:
    """The allocation without the dust that an interior point leaves everywhere."""
    share = program.task.cost * found.y / found.upper
    return np.where(share > 1e-2 * tol / len(share), found.y, 0.0)


def _alternatives(
    problem: Problem,
    gaps: _geometry.Gaps,
    program: Program,
    known: _geometry.Whole | _geometry.Reduction,
    span: _geometry.Span | None,
    found: Solution,
) -> Alternatives:
    kept = found.weights > 1e-12 * found.weights.sum()
    pairs, weights = program.pairs[found.pairs[kept]], found.weights[kept]
    shifts = np.ascontiguousarray(found.betas[kept] @ program.basis.T)
    if problem.theta_bound is not None:
        shifts, inside = _inwards(problem, gaps, known, span, shifts, pairs)
        shifts, pairs, weights = shifts[inside], pairs[inside], weights[inside]
    return Alternatives(
        shifts=shifts,
        contexts=pairs // problem.n_arms,
        arms=pairs % problem.n_arms,
        weights=weights,
    )


def _inwards(
    problem: Problem,
    gaps: _geometry.Gaps,
    known: _geometry.Whole | _geometry.Reduction,
    span: _geometry.Span | None,
    shifts: Floats,
    pairs: Ints,
) -> tuple[Floats, Bools]:
    """Alternatives on the sphere or the half-space's face, moved inside by what rounding may have put them out.

    Between a point of the ball and the one furthest beyond the face, both conditions are strict. Also whether that
    was enough for each.
    """
    where = known.where
    across = where.of(known.frame.differences(problem, pairs))
    ends = (
        where.centre + where.radius * across / np.linalg.norm(across, axis=1, keepdims=True)
    ) @ where.basis.T
    inside = certificate.counts(problem, gaps, known.frame, span, shifts, pairs)
    result = shifts.copy()
    for step in np.append(0.0, 10.0 ** np.arange(-15, -5)):
        if inside.all():
            break
        result[~inside] = (shifts + where.unseen + step * (ends - shifts))[~inside]
        inside = certificate.counts(problem, gaps, known.frame, span, result, pairs)
    return result, inside


def _no_alternatives(problem: Problem) -> Alternatives:
    none = np.zeros(0, dtype=np.int64)
    return Alternatives(np.zeros((0, problem.dim)), none, none, np.zeros(0))


def _normalised(pulls: Floats) -> Floats:
    return np.asarray(pulls / pulls.sum(axis=1, keepdims=True))


def _prove(proving: Callable[..., certificate.Proof], *evidence: Any) -> certificate.Proof:
    """What the solver's evidence proves; where rounding has left none, say so."""
    try:
        return proving(*evidence)
    except ValueError as error:
        raise ValueError(_BADLY_SCALED) from error


def _require(proof: certificate.Proof) -> None:
    """Where double precision gives nothing that can be proven, say so."""
    if not (proof.information > 0 and np.isfinite(proof.upper) and np.isfinite(proof.lower)):
        raise ValueError(_BADLY_SCALED)


def _tolerance(tol: float) -> float:
    return _check.number("tol", tol, least=1e-10, most=0.5)
