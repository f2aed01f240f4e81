"""A primal-dual interior-point method for the design programs, compiled; nothing it says is trusted unverified."""

from typing import NamedTuple

import numpy as np

from solid_bandits._compile import jit_allocating
from solid_bandits._types import Floats, Ints
from solid_bandits.bounds._alternatives import bounded, curvature_factor, unbounded

FREE, FIXED, LEAST = 0, 1, 2
"""(P): no constraint on the contexts; (P_z): Σ_a η(x, a) = zρ(x); pure exploration: the same with z minimised."""

# Where the iterate to restart from is kept: a relative gap small enough to be near the solution, large enough to be
# well inside (an iterate at the boundary is a bad start for an interior-point method).
SNAPSHOT_GAP = 1e-4

# The least a product of complementary numbers may be, relative to their mean μ.
_CENTRED = 1e-3

# Pairs with lam / t above this multiple of Σ lam are kept as unknowns of the linear system.
_STRONG = 10.0


class Restricted(NamedTuple):
    """min costᵀy s.t. I_j(y) >= 1 for each pair j, equality @ y = rhs, y >= 0 (the notation of `_program`)."""

    u: Floats
    """(variables, k)."""
    v: Floats
    """(pairs, k)."""
    cost: Floats
    """(variables,)."""
    equality: Floats
    """(contexts, variables), zero rows for (P)."""
    rhs: Floats
    """(contexts,)."""
    group: Ints
    """(variables,): the context of each variable, -1 for none."""
    theta: Floats
    """(k,): centre of the ball of alternatives."""
    radius: float
    """Its radius, infinite where alternatives are unbounded."""
    slater_info: Floats
    """(pairs,): information of a strictly feasible point of (P_z)."""
    slater_cost: float
    kind: int


class Iterate(NamedTuple):
    """A point of the method: y and its multipliers s, slacks t of the pairs and their multipliers lam."""

    y: Floats
    s: Floats
    t: Floats
    lam: Floats


class Information(NamedTuple):
    """I_j at a point, with what its derivatives need."""

    values: Floats
    """I_j, shape (pairs,)."""
    along: Floats
    """u_iᵀβ_j, shape (variables, pairs); its square is ∂I_j/∂y_i."""
    w: Floats
    """W with W Wᵀ = u M⁻¹ uᵀ."""
    kappa: Floats
    """(pairs,): multiplier of the ball, 0 where it does not bind."""
    betas: Floats
    """Closest alternatives in the eigenbasis of M, (pairs, k); empty where alternatives are unbounded."""
    eigenvalues: Floats
    basis: Floats


@jit_allocating
def information(task: Restricted, y: Floats) -> Information:
    """Information against every pair at y, by the closed form or, inside a ball, pair by pair."""
    matrix = np.dot(np.ascontiguousarray(task.u.T), task.u * y.reshape(-1, 1))
    if np.isinf(task.radius):
        w, z, values = unbounded(task.u, task.v, matrix)
        along = np.dot(w, np.ascontiguousarray(z.T)) * values
        return Information(
            values, along, w, np.zeros(len(task.v)), np.empty((0, 0)), np.empty(0), np.empty((0, 0))
        )
    values, kappa, betas, eigenvalues, basis = bounded(task.v, matrix, task.theta, task.radius)
    u = np.dot(task.u, basis)
    along = np.dot(u, np.ascontiguousarray(betas.T))
    return Information(values, along, u / np.sqrt(eigenvalues), kappa, betas, eigenvalues, basis)


@jit_allocating
def curvature(task: Restricted, info: Information, lam: Floats) -> Floats:
    """-Σ_j lam_j ∇²I_j, shape (variables, variables), less the rank-one terms of the pairs the ball leaves free."""
    free = lam * (info.kappa == 0)
    hessian = np.dot(info.w, np.ascontiguousarray(info.w.T)) * np.dot(
        2.0 * info.along * free, np.ascontiguousarray(info.along.T)
    )
    if info.kappa.max() > 0:
        u = np.dot(task.u, info.basis)
        v = np.dot(task.v, info.basis)
        theta = np.dot(task.theta, info.basis)
        for j in range(len(lam)):
            if info.kappa[j] > 0:
                factor = curvature_factor(
                    v[j], theta, info.eigenvalues, info.kappa[j], info.betas[j], u, info.along[:, j].copy()
                )
                hessian += 2.0 * lam[j] * np.dot(factor, np.ascontiguousarray(factor.T))
    return hessian


@jit_allocating
def lower_value(task: Restricted, prices: Floats, weight: float) -> float:
    """The bound that weak duality gives from Σ_j lam_j = weight and prices_i = Σ_j lam_j (u_iᵀβ_j)²."""
    if task.kind == FREE:
        worst = 0.0
        for i in range(len(prices)):
            worst = max(worst, prices[i] / task.cost[i])
        return weight / worst
    best = np.full(len(task.rhs), -np.inf)
    for i in range(len(prices)):
        x = task.group[i]
        if x >= 0:
            best[x] = max(best[x], prices[i] - task.cost[i])
    if task.kind == FIXED:
        return weight - (best * task.rhs).sum()
    # The last variable of pure exploration is z; its column holds -ρ.
    return -weight / (best * task.equality[:, -1]).sum()


@jit_allocating
def upper_value(task: Restricted, y: Floats, info: Floats) -> float:
    """Cost of a feasible point near y: scaled, or for (P_z) mixed with the strictly feasible point."""
    if task.kind == FREE:
        return (task.cost * y).sum() / info.min()
    totals = np.zeros(len(task.rhs))
    for i in range(len(y)):
        if task.group[i] >= 0:
            totals[task.group[i]] += y[i]
    if task.kind == LEAST:
        return (totals / -task.equality[:, -1]).max() / info.min()
    # Totals may be off by rounding; bringing them down to zρ takes information away.
    shrink = min(1.0, (task.rhs / totals).min())
    mix = 0.0
    for j in range(len(info)):
        value = shrink * info[j]
        if value < 1:
            if task.slater_info[j] <= 1:
                return np.inf
            mix = max(mix, (1 - value) / (task.slater_info[j] - value))
    return (1 - mix) * (task.cost * y).sum() + mix * task.slater_cost


@jit_allocating
def _step(values: Floats, change: Floats) -> float:
    longest = 1.0
    for i in range(len(values)):
        if change[i] < 0:
            longest = min(longest, -values[i] / change[i])
    return longest


@jit_allocating
def _recentre(small: Floats, large: Floats, mu: float) -> None:
    """Lift products that have fallen far under μ, in place: the smaller factor, relative to its kind, is enlarged.

    A lone product near zero stops all further steps at the boundary it stands for; enlarging a factor that is
    tiny anyway disturbs the other conditions by as little.
    """
    first = small.max()
    second = large.max()
    for i in range(len(small)):
        if small[i] * large[i] < _CENTRED * mu:
            if small[i] * second < large[i] * first:
                small[i] = _CENTRED * mu / large[i]
            else:
                large[i] = _CENTRED * mu / small[i]


@jit_allocating
def _newton(
    task: Restricted, hessian: Floats, gradient: Floats, point: Iterate, residual: Floats, strong: Ints
) -> Floats:
    """Solve for (dy, new lam of the `strong` pairs), shape (variables + strong, 2): column 0 plus μ times column 1.

    The other pairs are already eliminated into `hessian`. Eliminating the strong ones too (huge lam / t) would
    leave a system in which they drown the equalities: near the solution its answers lose every digit.
    """
    y, s, t, lam = point
    n, q, p = len(y), len(strong), len(task.rhs)
    size = n + q + p
    system = np.zeros((size, size))
    right = np.zeros((size, 2))
    scale = np.ones(size)
    for i in range(n):
        hessian[i, i] += s[i] / y[i]
        scale[i] = 1.0 / np.sqrt(max(hessian[i, i], 1e-300))
        right[i, 0] = -task.cost[i]
        right[i, 1] = 1.0 / y[i]
    weak = np.ones(len(lam))
    for a in range(q):
        weak[strong[a]] = 0.0
    right[:n, 0] -= np.dot(gradient, weak * lam * residual / t)
    right[:n, 1] += np.dot(gradient, weak / t)
    system[:n, :n] = hessian
    for a in range(q):
        j = strong[a]
        column = gradient[:, j]
        scale[n + a] = 1.0 / np.sqrt(((column * scale[:n]) ** 2).sum())
        system[:n, n + a] = -column
        system[n + a, :n] = column
        system[n + a, n + a] = t[j] / lam[j]
        right[n + a, 0] = -residual[j]
        right[n + a, 1] = 1.0 / lam[j]
    for x in range(p):
        row = task.equality[x]
        scale[n + q + x] = 1.0 / np.sqrt(((row * scale[:n]) ** 2).sum())
        system[:n, n + q + x] = -row
        system[n + q + x, :n] = row
    right[n + q :, 0] = task.rhs - np.dot(task.equality, y)
    system *= scale * scale.reshape(-1, 1)
    for i in range(n):
        system[i, i] += 1e-15
    right_scaled = right * scale.reshape(-1, 1)
    try:
        solved = np.linalg.solve(system, right_scaled)
    except Exception:
        # A pivot was exactly zero, in the equalities' block, say. A shift of all of the diagonal costs digits, which is
        # why it is not there from the start, but an error would lose the iterates already found.
        solved = np.linalg.solve(system + 1e-12 * np.eye(size), right_scaled)
    solved = solved * scale.reshape(-1, 1)
    if p > 0:
        # What rounding left of the equalities is put where the curvature is least, so that totals never drift.
        rest = right[n + q :] - np.dot(task.equality, np.ascontiguousarray(solved[:n]))
        room = scale[:n] ** 2 * (task.group >= 0)
        totals = np.dot(task.equality, room)
        for i in range(n):
            if task.group[i] >= 0:
                solved[i] += rest[task.group[i]] * (room[i] / totals[task.group[i]])
    return solved[: n + q]


@jit_allocating
def _complementarity(point: Iterate) -> float:
    """μ: the mean of the products s_i y_i and lam_j t_j."""
    total = np.dot(point.y, point.s) + np.dot(point.t, point.lam)
    return float(total / (len(point.y) + len(point.t)))


@jit_allocating
def _change(
    gradient: Floats, residual: Floats, direction: Floats, strong: Ints, point: Iterate, target: float
) -> Iterate:
    """The Newton step of every part of the point, aiming at μ = target."""
    y, s, t, lam = point
    n = len(y)
    dy = np.empty(n)
    ds = np.empty(n)
    for i in range(n):
        dy[i] = direction[i, 0] + target * direction[i, 1]
        ds[i] = (target - s[i] * dy[i]) / y[i] - s[i]
    dt = np.dot(dy, gradient)
    dlam = np.empty(len(lam))
    for j in range(len(lam)):
        dt[j] += residual[j]
        dlam[j] = (target - lam[j] * dt[j]) / t[j] - lam[j]
    for a in range(len(strong)):
        j = strong[a]
        new = direction[n + a, 0] + target * direction[n + a, 1]
        dlam[j] = new - lam[j]
        dt[j] = (target - t[j] * new) / lam[j]
    return Iterate(dy, ds, dt, dlam)


@jit_allocating
def _move(point: Iterate, change: Iterate, fraction: float) -> Iterate:
    """The point moved by `fraction` of the longest step that keeps it positive, y and t apart from s and lam."""
    primal = min(1.0, fraction * min(_step(point.y, change.y), _step(point.t, change.t)))
    dual = min(1.0, fraction * min(_step(point.s, change.s), _step(point.lam, change.lam)))
    return Iterate(
        point.y + primal * change.y,
        point.s + dual * change.s,
        point.t + primal * change.t,
        point.lam + dual * change.lam,
    )


@jit_allocating
def _eliminate(hessian: Floats, gradient: Floats, point: Iterate, info: Information, strong: Ints) -> None:
    """Add to the curvature, in place, the pairs that are not strong and the rank-one terms it left out."""
    weights = np.empty(len(point.lam))
    for j in range(len(weights)):
        weights[j] = point.lam[j] / point.t[j]
    for a in range(len(strong)):
        weights[strong[a]] = 0.0
    for j in range(len(weights)):
        if info.kappa[j] == 0:
            weights[j] -= 2 * point.lam[j] / info.values[j]
    hessian += np.dot(gradient * weights, np.ascontiguousarray(gradient.T))


@jit_allocating
def solve(
    task: Restricted, start: Iterate, tol: float, max_steps: int
) -> tuple[Iterate, Iterate, float, float]:
    """Minimise costᵀy subject to I_j(y) >= 1, the equalities and y >= 0, by Newton steps along the central path.

    The perturbed optimality conditions, with G_ij = ∂I_j/∂y_i = (u_iᵀβ_j)² and multipliers lam, s, ν,

        cost - G lam - Eᵀν - s = 0,   I(y) - 1 - t = 0,   Ey = rhs,   lam_j t_j = μ,   s_i y_i = μ,

    are reduced to one system in dy, solved once for the predictor (μ = 0) and the centring direction together. I is
    linear along rays and concave, which suits Newton's method; the slack t keeps steps from jamming at the curved
    boundary. Every iterate gives a bracket: from above by repairing y, from below by weak duality from lam.

    Args:
        task: the program, restricted to the variables and pairs at work.
        start: a positive point.
        tol: the relative gap to stop at.
        max_steps: Newton steps at most.

    Returns:
        The iterate with the best bracket, an earlier one to restart from, and that bracket (lower, upper).

    """
    y, s, t, lam = start
    count = len(y) + len(lam)
    best = Iterate(y, s, t, lam)
    snapshot = best
    best_low, best_high = -np.inf, np.inf
    stalled = 0
    for _ in range(max_steps):
        info = information(task, y)
        gradient = info.along * info.along
        low = lower_value(task, np.dot(gradient, lam), lam.sum())
        high = upper_value(task, y, info.values)
        mu = _complementarity(Iterate(y, s, t, lam))
        if not (np.isfinite(low) and np.isfinite(mu)):
            break
        stalled += 1
        if high - low < best_high - best_low or not np.isfinite(best_high):
            if high - low < 0.9 * (best_high - best_low):
                stalled = 0
            best = Iterate(y, s, t, lam)
            best_low, best_high = low, high
            if high - low > SNAPSHOT_GAP * high:
                snapshot = best
        if best_high - best_low <= tol * best_high or stalled > 12:
            break
        residual = info.values - 1 - t
        hessian = curvature(task, info, lam)
        # Pairs whose slack is small beside their share of the weight.
        strong = np.flatnonzero(lam / t > _STRONG * lam.sum())
        _eliminate(hessian, gradient, Iterate(y, s, t, lam), info, strong)
        if not np.isfinite(hessian.sum()):
            break
        direction = _newton(task, hessian, gradient, Iterate(y, s, t, lam), residual, strong)
        change = _change(gradient, residual, direction, strong, Iterate(y, s, t, lam), 0.0)
        after = _move(Iterate(y, s, t, lam), change, 1.0)
        target = mu * min(1.0, max((_complementarity(after) / mu) ** 3, 1e-4))
        if np.isfinite(high):
            # No closer to the boundary than the gap asks for: beyond, rounding takes over.
            target = max(target, 0.2 * tol * abs(high) / count)
        change = _change(gradient, residual, direction, strong, Iterate(y, s, t, lam), target)
        fraction = min(max(0.9, 1 - mu * count / max(np.dot(task.cost, y), 1e-300)), 1 - 1e-9)
        y, s, t, lam = _move(Iterate(y, s, t, lam), change, fraction)
        mu = _complementarity(Iterate(y, s, t, lam))
        if not np.isfinite(mu):
            break
        _recentre(y, s, mu)
        _recentre(t, lam, mu)
    return best, snapshot, best_low, best_high
