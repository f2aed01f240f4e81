"""Solution of a program and proof of the result: the part that the public functions share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.bounds import _geometry, certificate
from solid_bandits.bounds._program import Program, context_program
from solid_bandits.bounds._search import Restart, Solution, closest, search
from solid_bandits.bounds._supply import Setup, Supply
from solid_bandits.bounds.results import Alternatives, PureExploration
from solid_bandits.core.problem import Problem

# Relative tolerance of the first, rough solve for z_min; only a z near z_min needs a finer one.
ROUGH, FINE = 1e-3, 1e-7
# Largest relative excess of information that a mixture may keep before it is reduced, and the number of attempts to
# do so.
_ROOM, _SHORTER = 1e-8, 4
BADLY_SCALED = (
    "problem is too badly scaled for double precision: no allocation could be verified; bring features and gaps closer "
    "together in size"
)


class Found(NamedTuple):
    """A policy with its proof."""

    policy: Floats
    """(groups, pairs of a group): each row sums to 1."""
    proof: certificate.Proof
    alternatives: Alternatives
    restart: Restart | None


def explore(setup: Setup, tol: float, warm_start: PureExploration | None) -> PureExploration:
    """Solve pure exploration with a supply: the fewest steps, and a policy (a row for each group) that needs no
    more.
    """
    problem, gaps, whole, supply = setup
    program = context_program(setup, None)
    if len(program.pairs) == 0:
        even = normalised(supply.allowed.astype(np.float64))
        return PureExploration(0.0, 0.0, 0.0, even, True, Alternatives.none(problem.dim), None)
    found = search(program, 0.9 * tol, None if warm_start is None else warm_start.restart)
    policy = _policy(supply, program.variables[:-1], found.y[:-1])
    alternatives = evidence(problem, gaps, program, whole, found)
    proof = prove(certificate.prove_least, setup, policy, alternatives)
    require(proof)
    known = bracket(proof, tol)
    z_min = known.pop("value")
    return PureExploration(z_min, policy=policy, alternatives=alternatives, restart=found.restart, **known)


def feasible(
    setup: Setup, z: float, warm_start: PureExploration | None, known: PureExploration | None
) -> PureExploration:
    """Return a policy with information to spare in z steps; raise a ValueError if there is none."""
    pure = explore(setup, ROUGH, warm_start) if known is None else known
    if pure.lower <= z < pure.upper * (1 + ROUGH):
        pure = explore(setup, FINE, pure)
    if z < pure.lower:
        raise ValueError(
            f"z is {z!r}: no policy tells theta from its alternatives in so few steps; give z >= {pure.upper:.9g}"
        )
    if z <= pure.upper:
        raise ValueError(
            f"z is {z!r}, too close to z_min (in [{pure.lower:.9g}, {pure.upper:.9g}]) to be resolved; "
            f"give z > {pure.upper:.9g}"
        )
    return pure


def solve_at(setup: Setup, z: float, tol: float, pure: PureExploration, restart: Restart | None) -> Found:
    """Return the least regret of z steps, given a `pure` that has information to spare in that many."""
    problem, gaps, whole, supply = setup
    program = context_program(setup, z)
    safe = z * supply.pulls(pure.policy).ravel()[program.variables]
    task = program.task
    information, _ = closest(task.v, task.u.T @ (task.u * safe[:, None]), task.theta, task.radius)
    task = task._replace(slater_info=information, slater_cost=float(task.cost @ safe))
    program = Program(task, program.basis, program.variables, program.pairs, program.optimal)
    found = search(program, 0.9 * tol, restart)
    policy = _policy(supply, program.variables, found.y)
    alternatives = evidence(problem, gaps, program, whole, found)
    return with_enough_information(setup, z, policy, alternatives, program, pure, found.restart)


def with_enough_information(
    setup: Setup,
    z: float,
    policy: Floats,
    alternatives: Alternatives,
    program: Program,
    pure: PureExploration,
    restart: Restart,
) -> Found:
    """Return a policy proven to have enough information in z steps, mixing in `pure` to make up for any shortfall.

    Information is concave, so mixing with a policy that has more than enough makes up for a shortfall: pair by pair
    according to the solver, or for the worst pair according to the proof of all.
    """
    supply, task = setup.supply, program.task
    proof = prove(certificate.prove_at, setup, policy, z, alternatives)
    if proof.information < 1:
        pulls = z * supply.pulls(policy).ravel()[program.variables]
        known, _ = closest(task.v, task.u.T @ (task.u * pulls[:, None]), task.theta, task.radius)
        information = task.slater_info
        short = (known < 1) & (information > 1)
        each = float(((1 - known[short]) / (information[short] - known[short])).max(initial=0.0))
        spare = z * certificate.policy_information(setup, pure.policy)
        every = (1 - proof.information) / max(spare - proof.information, 1e-300)
        for mix in (1.001 * each, 2.0 * each, every, 1.001 * every, 2.0 * every, 1.0):
            mixed = _mix(policy, pure.policy, mix)
            tried = prove(certificate.prove_at, setup, mixed, z, alternatives)
            if tried.information >= 1:
                break
        for _ in range(_SHORTER):
            if not tried.information > 1 + _ROOM:
                break
            # Information is concave in the mixing share, so it lies above its chord, which shows where no more than 1
            # is left. The excess of the first mixture costs regret, by an amount that depends on how short of
            # information the solver stopped.
            less = mix * (1 + 0.1 * _ROOM - proof.information) / (tried.information - proof.information)
            leaner = _mix(policy, pure.policy, less)
            proven = prove(certificate.prove_at, setup, leaner, z, alternatives)
            if proven.information < 1:
                break
            mix, mixed, tried = less, leaner, proven
        policy, proof = mixed, tried
    require(proof)
    if proof.information < 1:
        raise ValueError(BADLY_SCALED)
    return Found(policy, proof._replace(lower=min(proof.lower, proof.upper)), alternatives, restart)


def _mix(policy: Floats, other: Floats, share: float) -> Floats:
    """Return this policy with `share` (at most 1) of another mixed in."""
    share = min(1.0, share)
    return normalised((1 - share) * policy + share * other)


def _policy(supply: Supply, variables: Ints, pulls: Floats) -> Floats:
    every = np.zeros(supply.allowed.size)
    every[variables] = pulls
    return normalised(every.reshape(supply.allowed.shape))


def tidy(program: Program, found: Solution, tol: float) -> Floats:
    """Return the allocation without the dust that an interior point leaves on every pair."""
    share = program.task.cost * found.y / found.upper
    return np.where(share > 1e-2 * tol / len(share), found.y, 0.0)


def evidence(
    problem: Problem,
    gaps: _geometry.Gaps,
    program: Program,
    known: _geometry.Whole | _geometry.Reduction,
    found: Solution,
) -> Alternatives:
    """Return the alternatives of the search that have weight, as far as they are proven to be alternatives."""
    kept = found.weights > 1e-12 * found.weights.sum()
    pairs, weights = program.pairs[found.pairs[kept]], found.weights[kept]
    shifts = np.ascontiguousarray(found.betas[kept] @ program.basis.T)
    if problem.theta_bound is not None:
        shifts, inside = _inwards(problem, gaps, known, shifts, pairs)
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
    shifts: Floats,
    pairs: Ints,
) -> tuple[Floats, Bools]:
    """Move alternatives on the sphere or on the half-space's face inside, by as much as rounding may have moved them
    out.

    Between a point of the ball and the one furthest beyond the face, both conditions are strict. Also returns, for
    each alternative, whether the move was enough.
    """
    where, span = known.where, known.span if isinstance(known, _geometry.Reduction) else None
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


def normalised(pulls: Floats) -> Floats:
    return np.asarray(pulls / pulls.sum(axis=1, keepdims=True))


def prove(proving: Callable[..., certificate.Proof], *evidence: Any) -> certificate.Proof:
    """Return the proof that the solver's evidence gives; raise a ValueError where rounding has left none."""
    try:
        return proving(*evidence)
    except ValueError as error:
        raise ValueError(BADLY_SCALED) from error


def require(proof: certificate.Proof) -> None:
    """Raise a ValueError where double precision yields nothing that can be proven."""
    if not (proof.information > 0 and np.isfinite(proof.upper) and np.isfinite(proof.lower)):
        raise ValueError(BADLY_SCALED)


def bracket(proof: certificate.Proof, tol: float) -> dict[str, Any]:
    """Return the fields that every answer has: the middle, the bracket, and whether it is as narrow as requested."""
    lower, upper = min(proof.lower, proof.upper), proof.upper
    converged = bool(upper - lower <= tol * upper)
    return {"value": 0.5 * (lower + upper), "lower": lower, "upper": upper, "converged": converged}


def tolerance(tol: float) -> float:
    return checks.number("tol", tol, least=1e-10, most=0.5)
