"""One form for the three convex programs of the paper.

With y the pulls of the pairs (variables) and M(y) = Σ_i y_i u_i u_iᵀ, all of them read

    min costᵀ y   s.t.   I_j(y) = min { βᵀ M(y) β : v_jᵀ β >= 1, ‖centre - β‖ <= radius } >= 1  for every pair j,

with a condition on totals: none for (P), Σ_a η(x, a) = zρ(x) for (P_z), Σ_{x,a} η(x, a) = z for (P̃_z), and the same
with z a variable, the only one that costs, for pure exploration. β is (θ - θ') / (σ√2) in the coordinates of
`_geometry`, v_j is the difference φ*(x) - φ(x, a) divided by Δ(x, a) / (σ√2): βᵀMβ is the information Σ η d(θ, θ') and
v_jᵀβ >= 1 says that under θ' arm a is at least as good as a*(x).
"""

from dataclasses import dataclass

import numpy as np

from solid_bandits._internal.types import Floats, Ints
from solid_bandits.bounds._geometry import Gaps, Reduction, optimal_pairs
from solid_bandits.bounds._interior import FIXED, FREE, LEAST, Restricted
from solid_bandits.bounds._supply import Setup
from solid_bandits.core.problem import Problem


@dataclass(frozen=True)
class Program:
    """A complete program, with every variable and every pair that has an alternative."""

    task: Restricted
    basis: Floats
    """Basis with θ - θ' = basis @ β, including the factor σ√2; shape (dim, k)."""
    variables: Ints
    """Flat index of the pair each variable pulls, increasing; for pure exploration the last is z (one past the end)."""
    pairs: Ints
    """Flat index of the pair of each constraint, increasing."""
    optimal: Ints
    """Flat indices of the optimal pairs."""
    reduction: Reduction | None = None
    """The reduction of (P); None for the other programs."""


def free_program(problem: Problem, gaps: Gaps, reduction: Reduction) -> Program:
    """Return (P) after the reduction: only suboptimal pairs, seen in the complement of the optimal arms' span."""
    where, pairs = reduction.where, reduction.pairs
    unit = np.sqrt(2.0) * problem.noise_std
    cost = gaps.values.ravel()[pairs]
    v = reduction.spread * (-unit / cost)[:, None]
    theta, radius = where.centre / unit, where.radius / unit
    constraints = pairs
    if not np.isinf(radius):
        kept = _has_alternative(v, theta, radius)
        v, constraints = v[kept], pairs[kept]
    task = Restricted(
        reduction.spread, v, cost, np.zeros((0, len(pairs))), np.zeros(0), np.full(len(pairs), -1), theta, radius,
        np.zeros(len(v)), 0.0, FREE,
    )  # fmt: skip
    return Program(task, where.basis * unit, pairs, constraints, optimal_pairs(problem), reduction)


def context_program(setup: Setup, z: float | None) -> Program:
    """Return (P_z) or a variant, or pure exploration if z is None, over every pair that may be pulled, optimal ones
    too.
    """
    problem, gaps, whole, supply = setup
    where = whole.where
    size = problem.n_contexts * problem.n_arms
    unit = np.sqrt(2.0) * problem.noise_std
    u = where.of(whole.frame.sharp)
    v = where.of(whole.frame.differences(problem, gaps.suboptimal))
    v *= unit / gaps.values.ravel()[gaps.suboptimal][:, None]
    theta, radius = where.centre / unit, where.radius / unit
    kept = _has_alternative(v, theta, radius)
    groups = len(supply.share)
    variables = np.flatnonzero(supply.allowed)
    group = np.repeat(np.arange(groups), size // groups)[variables]
    equality = (group == np.arange(groups)[:, None]).astype(np.float64)
    u, cost = u[variables], gaps.values.ravel()[variables]
    rhs = np.zeros(groups)
    if z is None:
        u = np.vstack([u, np.zeros((1, u.shape[1]))])
        cost = np.append(np.zeros(len(variables)), 1.0)
        group = np.append(group, -1)
        equality = np.hstack([equality, -supply.share[:, None]])
        variables = np.append(variables, size)
    else:
        rhs = z * supply.share
    task = Restricted(
        u, v[kept], cost, equality, rhs, group, theta, radius,
        np.zeros(int(kept.sum())), np.inf, LEAST if z is None else FIXED,
    )  # fmt: skip
    return Program(task, where.basis * unit, variables, gaps.suboptimal[kept], optimal_pairs(problem))


def restrict(task: Restricted, variables: Ints, pairs: Ints) -> Restricted:
    """Return the program with only some of its variables and pairs (positions, not flat indices)."""
    if len(variables) == len(task.cost) and len(pairs) == len(task.v):
        return task
    return task._replace(
        u=task.u[variables],
        v=task.v[pairs],
        cost=task.cost[variables],
        equality=np.ascontiguousarray(task.equality[:, variables]),
        group=task.group[variables],
        slater_info=task.slater_info[pairs],
    )


def _has_alternative(v: Floats, theta: Floats, radius: float) -> np.ndarray:
    """Return whether the half-space vᵀβ >= 1 meets the interior of the ball, so that an alternative exists."""
    if np.isinf(radius):
        return np.ones(len(v), dtype=bool)
    reach = v @ theta + radius * np.linalg.norm(v, axis=1)
    return np.asarray(reach > 1 + 1e-9)
