"""A primal-dual interior-point method for the design programs; its results are verified before they are used."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from solid_bandits._internal.types import Floats, Ints
from solid_bandits.bounds._alternatives import bounded, curvature_factor, unbounded

FREE, FIXED, LEAST = 0, 1, 2
"""Kind of program: (P) has no condition on totals, (P_z) and its variants have Σ_a η(x, a) = zρ(x), and pure
exploration has the same with z minimised."""

# Relative gap at which the iterate to restart from is kept: small enough to be near the solution, large enough to be
# well inside (an iterate at the boundary is a bad start for an interior-point method).
SNAPSHOT_GAP = 1e-4

# Smallest allowed product of complementary numbers, relative to their mean μ.
_CENTRED = 1e-3

# Pairs with lam / t above this multiple of Σ lam are kept as unknowns of the linear system.
_STRONG = 10.0

# Number of refinements of a Newton step: on the worst system, each reduced the relative error of the constraints a
# hundredfold.
_REFINEMENTS = 2

# Numbers per batch of pairs whose ball binds, so that a batch fits in a cache.
_BATCH = 1 << 18


class Restricted(NamedTuple):
    """The program min costᵀy s.t. I_j(y) >= 1 for each pair j, equality @ y = rhs, y >= 0 (notation of
    `_program`).
    """

    u: Floats
    """(variables, k)."""
    v: Floats
    """(pairs, k)."""
    cost: Floats
    """(variables,)."""
    equality: Floats
    """(groups, variables); rows of zeros for (P)."""
    rhs: Floats
    """(groups,)."""
    group: Ints
    """(variables,): group of each variable (its context in (P_z)), or -1 for none."""
    theta: Floats
    """(k,): centre of the ball of alternatives."""
    radius: float
    """Radius of the ball; infinite where alternatives are unbounded."""
    slater_info: Floats
    """(pairs,): information of a strictly feasible point of (P_z)."""
    slater_cost: float
    kind: int


class Iterate(NamedTuple):
    """An iterate: y and its multipliers s, slacks t of the pairs and their multipliers lam."""

    y: Floats
    s: Floats
    t: Floats
    lam: Floats


class Ball(NamedTuple):
    """Closest alternatives inside a ball, with the quantities that their derivatives need."""

    kappa: Floats
    """(pairs,): multiplier of the ball, 0 where it does not bind."""
    betas: Floats
    """Closest alternatives in the eigenbasis of M, shape (pairs, k)."""
    eigenvalues: Floats
    basis: Floats


class Information(NamedTuple):
    """Information I_j at a point, with the quantities that its derivatives need."""

    values: Floats
    """I_j, shape (pairs,)."""
    along: Floats
    """u_iᵀβ_j, shape (variables, pairs); its square is ∂I_j/∂y_i."""
    w: Floats
    """W with W Wᵀ = u M⁻¹ uᵀ."""
    ball: Ball | None
    """None where alternatives are unbounded."""


def information(task: Restricted, y: Floats) -> Information:
    """Return the information against every pair at y."""
    matrix = (task.u.T * y) @ task.u
    if math.isinf(task.radius):
        w, z, values = unbounded(task.u, task.v, matrix)
        along = w @ z.T
        along *= values
        return Information(values, along, w, None)
    values, kappa, betas, eigenvalues, basis = bounded(task.v, matrix, task.theta, task.radius)
    u = task.u @ basis
    return Information(values, u @ betas.T, u / np.sqrt(eigenvalues), Ball(kappa, betas, eigenvalues, basis))


def curvature(task: Restricted, info: Information, lam: Floats) -> Floats:
    """Return -Σ_j lam_j ∇²I_j, shape (variables, variables), less the rank-one terms of pairs whose ball does not
    bind.
    """
    ball = info.ball
    free = lam if ball is None else lam * (ball.kappa == 0)
    weighted = info.along * np.sqrt(2.0 * free)
    hessian = info.w @ info.w.T
    hessian *= weighted @ weighted.T
    if ball is not None and ball.kappa.max() > 0:
        u, v, theta = task.u @ ball.basis, task.v @ ball.basis, task.theta @ ball.basis
        binding = np.flatnonzero(ball.kappa)
        weighted = info.along * np.sqrt(2.0 * lam)
        amount = max(1, _BATCH // u.size)
        for start in range(0, len(binding), amount):
            j = binding[start : start + amount]
            factor = curvature_factor(
                v[j], theta, ball.eigenvalues, ball.kappa[j], ball.betas[j], u, weighted[:, j]
            )
            hessian += factor @ factor.T
    return np.asarray(hessian)


def lower_value(task: Restricted, prices: Floats, weight: float) -> float:
    """Return the weak-duality bound from Σ_j lam_j = weight and prices_i = Σ_j lam_j (u_iᵀβ_j)²."""
    if task.kind == FREE:
        return float(weight / (prices / task.cost).max())
    inside = task.group >= 0
    best = np.full(len(task.rhs), -np.inf)
    np.maximum.at(best, task.group[inside], (prices - task.cost)[inside])
    if task.kind == FIXED:
        return float(weight - best @ task.rhs)
    # The last variable of pure exploration is z; its column holds -ρ.
    return float(-weight / (best @ task.equality[:, -1]))


def upper_value(task: Restricted, y: Floats, info: Floats) -> float:
    """Return the cost of a feasible point near y: y scaled, or for (P_z) mixed with the strictly feasible point."""
    if task.kind == FREE:
        return float(task.cost @ y / info.min())
    totals = group_totals(task, y)
    if task.kind == LEAST:
        return float((totals / -task.equality[:, -1]).max() / info.min())
    # Totals may be off by rounding; reducing them to zρ loses information.
    values = info * min(1.0, (task.rhs / totals).min())
    short = np.flatnonzero(values < 1)
    mix = 0.0
    if len(short):
        values, safe = values[short], task.slater_info[short]
        if safe.min() <= 1:
            return np.inf
        mix = ((1 - values) / (safe - values)).max()
    return float((1 - mix) * (task.cost @ y) + mix * task.slater_cost)


def group_totals(task: Restricted, y: Floats) -> Floats:
    """Return the sum of y over each context's variables, shape (contexts,)."""
    inside = task.group >= 0
    totals = np.bincount(task.group[inside], weights=y[inside], minlength=len(task.rhs))
    return np.asarray(totals, dtype=np.float64)


def _step(values: Floats, change: Floats) -> float:
    """Return the longest step, up to 1, that keeps positive values nonnegative."""
    steepest = (change / values).min()
    return float(-1.0 / steepest) if steepest < -1 else 1.0


def _recentre(small: Floats, large: Floats, mu: float) -> None:
    """Lift products that have fallen far below μ, in place, by enlarging the factor that is smaller relative to its
    kind.

    A single product near zero stops all further steps at its boundary, and enlarging a factor that is tiny anyway
    hardly disturbs the other conditions.
    """
    (low,) = (small * large < _CENTRED * mu).nonzero()
    first = small[low] * large.max() < large[low] * small.max()
    one, other = low[first], low[~first]
    small[one] = _CENTRED * mu / large[one]
    large[other] = _CENTRED * mu / small[other]


class _Newton:
    """Newton steps at a point: one factorisation, then a step for any target of the complementary products.

    The unknowns are dy and the new lam of the `strong` pairs. The other pairs are already eliminated into `hessian`,
    which is overwritten. Eliminating the strong ones too (huge lam / t) would leave a system in which they swamp the
    equalities, and near the solution its answers would lose every digit.
    """

    def __init__(
        self,
        task: Restricted,
        hessian: Floats,
        gradient: Floats,
        residual: Floats,
        strong: Ints,
        x: Floats,
        d: Floats,
    ) -> None:
        self.task, self.gradient, self.residual, self.strong = task, gradient, residual, strong
        self.x, self.d = x, d
        n, q, size = len(gradient), len(strong), len(gradient) + len(strong) + len(task.rhs)
        self.place = n + strong
        diagonal = hessian.reshape(-1)[:: n + 1]
        diagonal += d[:n] / x[:n]
        self.scale = np.empty(size)
        self.scale[:n] = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300))
        system = hessian
        if size > n:
            border = np.empty((size - n, n))
            border[:q] = gradient[:, strong].T
            border[q:] = task.equality
            self.scale[n:] = 1.0 / np.linalg.norm(border * self.scale[:n], axis=1)
            # LAPACK reads column by column, so the array written here is the transpose.
            system = np.zeros((size, size))
            system[:n, :n] = hessian
            system[:n, n:] = border.T
            system[n:, :n] = -border
            diagonal = system.reshape(-1)[:: size + 1]
            diagonal[n : n + q] = x[self.place] / d[self.place]
        system *= self.scale
        system *= self.scale[:, None]
        diagonal[:n] += 1e-15
        self.system = system.T
        self.factors, self.pivots, failed = dgetrf(self.system)
        if failed:
            # A pivot was exactly zero, for instance in the block of the equalities. Shifting the whole diagonal costs
            # digits, so it is not done from the start, but an error would lose the iterates already found.
            self.factors, self.pivots, _ = dgetrf(self.system + 1e-12 * np.eye(size))

    def _solve(self, right: Floats) -> Floats:
        """Solve the scaled system with refinement, since the accuracy of the factors depends on the processor's
        summation order.

        Without refinement the linearised constraints of strong pairs can be missed by more than the residual that the
        step is to remove; the slacks, which follow from their lam, then drive the iterate away from the constraints.
        """
        solved = dgetrs(self.factors, self.pivots, right)[0]
        for _ in range(_REFINEMENTS):
            solved += dgetrs(self.factors, self.pivots, right - self.system @ solved)[0]
        return np.asarray(solved)

    def step(self, goal: Floats) -> tuple[Floats, Floats]:
        """Return the changes of x = (y, t) and multipliers d = (s, lam) after which x_i d_i = goal_i to first
        order.
        """
        task, gradient, strong = self.task, self.gradient, self.strong
        x, d, place = self.x, self.d, self.place
        n, q = len(gradient), len(strong)
        wanted = goal / x
        share = wanted[n:] - d[n:] * self.residual / x[n:]
        share[strong] = 0.0
        right = np.empty(len(self.scale))
        right[:n] = gradient @ share
        right[:n] += wanted[:n]
        right[:n] -= task.cost
        right[n : n + q] = goal[place] / d[place] - self.residual[strong]
        right[n + q :] = task.rhs - task.equality @ x[:n]
        solved = self._solve(right * self.scale)
        solved *= self.scale
        if len(task.rhs):
            # The remaining rounding error of the equalities goes where the curvature is least, so that totals never
            # drift.
            (inside,) = (task.group >= 0).nonzero()
            group = task.group[inside]
            rest = right[n + q :] - task.equality @ solved[:n]
            room = self.scale[inside] ** 2
            totals = np.bincount(group, weights=room, minlength=len(rest))
            solved[inside] += rest[group] * (room / totals[group])
        dx = np.empty(len(x))
        dx[:n] = solved[:n]
        np.matmul(solved[:n], gradient, out=dx[n:])
        dx[n:] += self.residual
        new = solved[n : n + q]
        dx[place] = (goal[place] - x[place] * new) / d[place]
        dd = (goal - d * dx) / x - d
        dd[place] = new - d[place]
        return dx, dd


def _eliminate(hessian: Floats, gradient: Floats, point: Iterate, info: Information, strong: Ints) -> None:
    """Add to the curvature, in place, the pairs that are not strong and the rank-one terms it omitted."""
    weights = point.lam / point.t
    weights[strong] = 0.0
    rank_one = 2 * point.lam / info.values
    weights -= rank_one if info.ball is None else np.where(info.ball.kappa == 0, rank_one, 0.0)
    hessian += (gradient * weights) @ gradient.T


@np.errstate(all="ignore")
def solve(
    task: Restricted, start: Iterate, tol: float, max_steps: int
) -> tuple[Iterate, Iterate, float, float]:
    """Minimise costᵀy subject to I_j(y) >= 1, the equalities and y >= 0, by Newton steps along the central path.

    The perturbed optimality conditions, with G_ij = ∂I_j/∂y_i = (u_iᵀβ_j)² and multipliers lam, s, ν,

        cost - G lam - Eᵀν - s = 0,   I(y) - 1 - t = 0,   Ey = rhs,   lam_j t_j = μ,   s_i y_i = μ,

    are reduced to one system in dy, factorised once for the predictor (μ = 0) and for the step, whose products aim at
    μ less the second-order term that the predictor shows (Mehrotra 1992). I is concave and linear along rays, which
    suits Newton's method; the slack t keeps steps from jamming at the curved boundary. Every iterate gives a bracket:
    an upper end by repairing y, a lower end from lam by weak duality.

    Args:
        task: the program, restricted to the variables and pairs at work.
        start: a positive point.
        tol: the relative gap to stop at.
        max_steps: largest number of Newton steps.

    Returns:
        The iterate with the best bracket, an earlier one to restart from, and that bracket (lower, upper).

    """
    n, count = len(start.y), len(start.y) + len(start.t)
    x, d = np.concatenate([start.y, start.t]), np.concatenate([start.s, start.lam])
    best = snapshot = start
    best_low, best_high = -np.inf, np.inf
    stalled = 0
    for _ in range(max_steps):
        point = Iterate(x[:n], d[:n], x[n:], d[n:])
        info = information(task, point.y)
        gradient = info.along * info.along
        weight = float(point.lam.sum())
        low = lower_value(task, gradient @ point.lam, weight)
        high = upper_value(task, point.y, info.values)
        mu = float(x @ d) / count
        if not (math.isfinite(low) and 0 < mu < math.inf):
            break
        stalled += 1
        if high - low < best_high - best_low or not math.isfinite(best_high):
            if high - low < 0.9 * (best_high - best_low):
                stalled = 0
            best = point
            best_low, best_high = low, high
            if high - low > SNAPSHOT_GAP * high:
                snapshot = best
        if best_high - best_low <= tol * best_high or stalled > 12:
            break
        residual = info.values - 1 - point.t
        hessian = curvature(task, info, point.lam)
        # Pairs whose slack is small compared with their share of the weight.
        (strong,) = (point.lam > _STRONG * weight * point.t).nonzero()
        _eliminate(hessian, gradient, point, info, strong)
        if not math.isfinite(hessian.sum()):
            break
        newton = _Newton(task, hessian, gradient, residual, strong, x, d)
        dx, dd = newton.step(np.zeros(count))
        primal, dual = _step(x, dx), _step(d, dd)
        after = float((x + primal * dx) @ (d + dual * dd)) / count
        target = mu * max(min(after / mu, 1.0) ** 3, 1e-4)
        if math.isfinite(high):
            # Stay as far from the boundary as the gap allows; closer to it, rounding dominates.
            target = max(target, 0.2 * tol * abs(high) / count)
        # Subtract the second-order error of the predictor's products, as far as it can be corrected.
        dx, dd = newton.step(target - primal * dual * dx * dd)
        fraction = min(max(0.9, 1 - mu * count / max(float(task.cost @ point.y), 1e-300)), 1 - 1e-9)
        x = x + min(1.0, fraction * _step(x, dx)) * dx
        d = d + min(1.0, fraction * _step(d, dd)) * dd
        products = x * d
        mu = float(products.sum()) / count
        if not math.isfinite(mu):
            break
        if products.min() < _CENTRED * mu:
            _recentre(x[:n], d[:n], mu)
            _recentre(x[n:], d[n:], mu)
    return best, snapshot, best_low, best_high
