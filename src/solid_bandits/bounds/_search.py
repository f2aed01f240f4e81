"""Solution of a program on a growing set of its variables and pairs, with the bracket taken over all of them."""

from dataclasses import dataclass

import numpy as np

from solid_bandits._internal.types import Floats, Ints
from solid_bandits.bounds._alternatives import bounded, inverse_factor, row_products
from solid_bandits.bounds._geometry import Reduction
from solid_bandits.bounds._interior import (
    FIXED,
    FREE,
    LEAST,
    Iterate,
    Restricted,
    group_totals,
    lower_value,
    solve,
    upper_value,
)
from solid_bandits.bounds._program import Program, restrict

# Largest number of variables and pairs together for which one interior-point solve is faster than choosing among
# them.
_WHOLE = 400
_MAX_STEPS = 120
_MAX_ROUNDS = 60


@dataclass(frozen=True)
class Restart:
    """Starting point for a later solve of a nearby problem: the set that mattered, and a point well inside."""

    kind: int
    variables: Ints
    """Flat pair indices."""
    pairs: Ints
    point: Iterate
    reduction: Reduction | None
    """The reduction of (P); it holds for every θ with the same optimal arms."""


@dataclass(frozen=True)
class Solution:
    """Result of the search; the certificate decides what it proves."""

    y: Floats
    """(variables,): pulls, feasible up to rounding (scaled, except for (P_z))."""
    betas: Floats
    """(cuts, k): the alternatives."""
    weights: Floats
    """(cuts,): their dual weights."""
    pairs: Ints
    """(cuts,): positions of their pairs in the program."""
    lower: float
    upper: float
    restart: Restart


@np.errstate(all="ignore")
def closest(
    v: Floats, matrix: Floats, theta: Floats, radius: float, rows: Ints | slice = slice(None)
) -> tuple[Floats, Floats]:
    """Return information I_j for every row of v and the closest alternative β_j for some `rows`, at M = matrix."""
    if np.isinf(radius):
        # β = I M⁻¹ v and M⁻¹ v = L⁻ᵀ z with z = L⁻¹ v.
        factor = inverse_factor(matrix)
        z = v @ factor
        info = 1.0 / row_products(z, z)
        return info, (z[rows] * info[rows][:, None]) @ factor.T
    info, _, betas, _, basis = bounded(v, matrix, theta, radius)
    return info, betas[rows] @ basis.T


def _prices(u: Floats, betas: Floats, weights: Floats) -> Floats:
    """Return Σ_j weight_j (u_iᵀβ_j)² for each row of u."""
    return row_products(u @ ((betas.T * weights) @ betas), u)


@np.errstate(all="ignore")
def warm_up(task: Restricted, rounds: int) -> tuple[Floats, Floats]:
    """Return a rough allocation by multiplicative updates, used to choose the first variables and pairs.

    Each variable's share of its budget is multiplied by the square root of its price under the alternatives that are
    currently closest (the classical algorithm for optimal designs); the weight of each pair by 1 / information.

    Returns:
        Shares, shape (variables,), and information at them, shape (pairs,).

    """
    free = task.kind == FREE
    cost = task.cost if free else np.ones(len(task.cost))
    share = 1.0 / cost if free else (task.group >= 0).astype(np.float64)
    budget = -task.equality[:, -1] if task.kind == LEAST else np.ones(len(task.rhs))
    weight = np.ones(len(task.v)) / len(task.v)
    info = weight
    for _ in range(rounds):
        share = share / (cost @ share) if free else share * (budget / group_totals(task, share))[task.group]
        info, betas = closest(task.v, (task.u.T * share) @ task.u, task.theta, task.radius)
        weight = weight * (info.min() / info)
        weight = weight / weight.sum()
        # Keep every share positive, so that nothing is ruled out early.
        share = share * np.sqrt(np.maximum(_prices(task.u, betas, weight / info) / cost, 1e-12))
    return share, info


@np.errstate(all="ignore")
def search(program: Program, tol: float, restart: Restart | None = None) -> Solution:
    """Bracket a program's value to relative gap `tol`, or as near as double precision comes.

    The interior-point method works on some of the variables and pairs. The point it finds is priced over all the
    others, at one product each, and those that violate optimality join. At most a few hundred ever matter.

    Args:
        program: the program.
        tol: relative gap.
        restart: the starting point left by a nearby problem of the same kind; used where it fits.

    """
    task = program.task
    started = None if restart is None else _resume(program, restart)
    if started is None:
        return _search(program, tol, *_begin(program))
    # The set is probably right: solve on it to full accuracy at once.
    solution = _search(program, tol, *started, gap=0.0)
    if solution.upper - solution.lower <= tol * solution.upper or len(task.cost) + len(task.v) == len(
        started[0]
    ) + len(started[1]):
        return solution
    cold = _search(program, tol, *_begin(program))
    return cold if cold.upper - cold.lower <= solution.upper - solution.lower else solution


def _search(
    program: Program, tol: float, variables: Ints, pairs: Ints, point: Iterate, gap: float = np.inf
) -> Solution:
    task = program.task
    best: Solution | None = None
    for _ in range(_MAX_ROUNDS):
        whole = len(variables) == len(task.cost) and len(pairs) == len(task.v)
        part = restrict(task, variables, pairs)
        # Rough answers are enough while the set is still wrong.
        aim = 0.5 * tol if whole else max(0.3 * tol, min(0.03, 0.03 * gap))
        inner, snapshot, _, _ = solve(part, point, aim, _MAX_STEPS)
        found, info, prices = _survey(program, part, variables, pairs, inner, snapshot)
        if best is None or found.upper - found.lower < best.upper - best.lower:
            best = found
        gap = (found.upper - found.lower) / found.upper if found.upper > 0 else 0.0
        if best.upper - best.lower <= tol * best.upper or whole:
            break
        new_variables, new_pairs = _violators(task, variables, pairs, info, prices, tol)
        if len(new_variables) + len(new_pairs) == 0 and aim <= 0.31 * tol:
            break
        point = _grow(
            task, part, snapshot if gap > 1e-3 else inner, variables, new_variables, info, new_pairs
        )
        order, rank = np.argsort(np.append(variables, new_variables)), np.argsort(np.append(pairs, new_pairs))
        variables = np.append(variables, new_variables)[order]
        pairs = np.append(pairs, new_pairs)[rank]
        point = Iterate(point.y[order], point.s[order], point.t[rank], point.lam[rank])
    assert best is not None
    return best


@np.errstate(all="ignore")
def _survey(
    program: Program, part: Restricted, variables: Ints, pairs: Ints, point: Iterate, snapshot: Iterate
) -> tuple[Solution, Floats, Floats]:
    """Evaluate a point of a part on the whole program: the information of every pair, the price of every variable."""
    task = program.task
    y = np.zeros(len(task.cost))
    y[variables] = point.y
    matrix = (part.u.T * point.y) @ part.u
    info, betas = closest(task.v, matrix, task.theta, task.radius, pairs)
    prices = _prices(task.u, betas, point.lam)
    lower = lower_value(task, prices, float(point.lam.sum()))
    upper = upper_value(task, y, info)
    if task.kind != FIXED:
        y /= info.min()
    # The barrier leaves small pulls and weights on pairs that do not matter.
    active_v = (_share(part, point.y) > 1e-7) | (point.s < 0.05 * part.cost)
    active_p = (point.lam > 1e-7 * point.lam.sum()) | (point.t < 0.1)
    restart = Restart(
        task.kind,
        program.variables[variables[active_v]],
        program.pairs[pairs[active_p]],
        Iterate(snapshot.y[active_v], snapshot.s[active_v], snapshot.t[active_p], snapshot.lam[active_p]),
        program.reduction,
    )
    return Solution(y, betas, point.lam, pairs, lower, upper, restart), info, prices


def _share(part: Restricted, y: Floats) -> Floats:
    """Return each variable's fraction of its budget: of the whole cost for (P), of the context's total otherwise."""
    if part.kind == FREE:
        return np.asarray(part.cost * y / (part.cost @ y))
    result = np.ones(len(y))
    inside = part.group >= 0
    result[inside] = y[inside] / group_totals(part, y)[part.group[inside]]
    return result


def _violators(
    task: Restricted, variables: Ints, pairs: Ints, info: Floats, prices: Floats, tol: float
) -> tuple[Ints, Ints]:
    """Return the variables and pairs outside the set that keep the bracket open, worst first, one batch of positions
    each.
    """
    batch = max(32, 2 * task.u.shape[1])
    limit = 1.0 if task.kind == FIXED else info[pairs].min()
    outside = np.ones(len(info), dtype=bool)
    outside[pairs] = False
    short = np.where(outside, info / limit, np.inf)
    order = np.argsort(short)[:batch]
    new_pairs = order[short[order] < 1 - 0.05 * tol]
    if task.kind == FREE:
        ratio = prices / task.cost
        excess = ratio / ratio[variables].max() - 1
    else:
        inside = variables[task.group[variables] >= 0]
        best = np.full(len(task.rhs), -np.inf)
        np.maximum.at(best, task.group[inside], prices[inside] - task.cost[inside])
        excess = (prices - task.cost - best[task.group]) / max(float(np.abs(best).max()), 1e-300)
        excess[task.group < 0] = -1.0
    excess[variables] = -1.0
    order = np.argsort(-excess)[:batch]
    return order[excess[order] > 0.05 * tol], new_pairs


def _grow(
    task: Restricted,
    part: Restricted,
    point: Iterate,
    variables: Ints,
    new_variables: Ints,
    info: Floats,
    new_pairs: Ints,
) -> Iterate:
    """Return the point with new variables (at a tenth of an average share) and pairs, at the same complementarity
    μ.
    """
    mu = float(point.y @ point.s + point.t @ point.lam) / (len(point.y) + len(point.t))
    if task.kind == FREE:
        y = 0.1 * float(part.cost @ point.y) / (len(point.y) * task.cost[new_variables])
    else:
        y = 0.1 * group_totals(part, point.y)[task.group[new_variables]] / task.u.shape[0] * len(task.rhs)
    t = np.maximum(info[new_pairs] - 1, 0.1)
    return Iterate(
        np.append(point.y, y), np.append(point.s, mu / y), np.append(point.t, t), np.append(point.lam, mu / t)
    )


def _begin(program: Program) -> tuple[Ints, Ints, Iterate]:
    """Return the initial set and a point inside."""
    task = program.task
    variables, pairs = np.arange(len(task.cost)), np.arange(len(task.v))
    if len(variables) + len(pairs) > _WHOLE:
        share, info = warm_up(task, 30)
        amount = max(48, 3 * task.u.shape[1])
        pairs = np.sort(np.argsort(info)[:amount])
        weight = share * task.cost if task.kind == FREE else _share(task, share)
        chosen = set(np.argsort(-weight)[:amount].tolist())
        chosen |= _spanning(task.u * np.sqrt(share)[:, None])
        if task.kind != FREE:
            chosen |= set(np.flatnonzero(np.isin(program.variables, program.optimal)).tolist())
            # A group without any of its optimal pairs still needs a pair that can take its steps.
            chosen |= {
                int(np.where(task.group == one, weight, -1.0).argmax()) for one in range(len(task.rhs))
            }
        if task.kind == LEAST:
            chosen.add(len(task.cost) - 1)
        variables = np.array(sorted(chosen))
    return variables, pairs, _centre(restrict(task, variables, pairs), program, variables)


def _spanning(vectors: Floats) -> set[int]:
    """Return positions of vectors with the same span as all, adding each time the one furthest outside the span so
    far.
    """
    left = vectors.copy()
    found: set[int] = set()
    for _ in range(vectors.shape[1]):
        sizes = (left * left).sum(axis=1)
        i = int(sizes.argmax())
        if sizes[i] == 0 or i in found:
            break
        found.add(i)
        left = left - np.outer(left @ left[i], left[i] / sizes[i])
    return found


def _centre(part: Restricted, program: Program, variables: Ints) -> Iterate:
    n, m = len(part.cost), len(part.v)
    if part.kind == FREE:
        y = 1.0 / part.cost
    else:
        counts = np.bincount(part.group[part.group >= 0], minlength=len(part.rhs))
        mass = part.rhs if part.kind == FIXED else -part.equality[:, -1]
        y = np.where(part.group >= 0, (mass / counts)[part.group], 1.0)
        if part.kind == FIXED:
            greedy = np.isin(program.variables[variables], program.optimal)
            best = np.bincount(part.group[greedy], minlength=len(part.rhs))[part.group]
            y = 0.5 * y + 0.5 * np.where(
                best == 0, y, np.where(greedy, mass[part.group] / np.maximum(best, 1), 0.0)
            )
    info, _ = closest(part.v, part.u.T @ (part.u * y[:, None]), part.theta, part.radius)
    if part.kind != FIXED:
        y, info = y * 2 / info.min(), info * 2 / info.min()
    t = np.maximum(info - 1, 0.5)
    mu = float(part.cost @ y) / (n + m)
    return Iterate(y, mu / y, t, mu / t)


def _resume(program: Program, restart: Restart) -> tuple[Ints, Ints, Iterate] | None:
    """Return the set and point of an earlier solve as far as they exist in this program; None if too little does."""
    task = program.task
    if restart.kind != task.kind:
        return None
    variables = np.searchsorted(program.variables, restart.variables)
    if (
        restart.reduction is not None
        and restart.reduction is program.reduction
        and len(variables) >= task.u.shape[1]
    ):
        # The variables and pairs are exactly the same.
        return variables, np.searchsorted(program.pairs, restart.pairs), restart.point
    variables = np.minimum(variables, len(program.variables) - 1)
    pairs = np.minimum(np.searchsorted(program.pairs, restart.pairs), len(program.pairs) - 1)
    same_v = program.variables[variables] == restart.variables
    same_p = program.pairs[pairs] == restart.pairs
    if same_v.mean() < 0.5 or same_p.mean() < 0.5:
        return None
    variables, pairs = variables[same_v], pairs[same_p]
    if len(variables) < task.u.shape[1]:
        return None
    point = restart.point
    return variables, pairs, Iterate(point.y[same_v], point.s[same_v], point.t[same_p], point.lam[same_p])
