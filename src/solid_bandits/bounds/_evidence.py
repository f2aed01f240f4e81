"""Arithmetic of the certificate, with every rounding error bounded; it shares no code with the solver.

The analysis is in docs/lower-bound.md, under "What rounding can do".
"""

from typing import NamedTuple

import numpy as np

from solid_bandits._internal.types import Floats
from solid_bandits.bounds._geometry import Coordinates, Span
from solid_bandits.bounds._rounding import EPS, TINY, norms, upto


@np.errstate(all="ignore")
def confusion(
    spread: Floats, sizes: Floats, pulls: Floats, targets: Floats, widths: Floats, blur: Floats, fine: float
) -> Floats:
    """Return upper bounds on ‖v_j‖² in the norm of M⁻¹, M = Σ pulls u uᵀ; infinite where M is not proven definite.

    With R of √pulls u = QR and X = R⁻¹ as computed, W = √pulls u X is nearly orthonormal: if ‖WᵀW - 1‖ <= f < 1 then
    ‖v‖² in the norm of M⁻¹ is at most ‖vᵀX‖² / (1 - f), whatever X is. Where that loses more than `fine`, each pair is
    bounded with its own β = X Xᵀv: vᵀM⁻¹v = 2vᵀβ - βᵀMβ + ‖v - Mβ‖² in the same norm, whose last term is of second
    order.

    Args:
        spread: u, as computed, shape (variables, k).
        sizes: norms of the features they come from, shape (variables,).
        pulls: pulls of each variable, >= 0, shape (variables,).
        targets: v, as computed, shape (pairs, k).
        widths: norms of the vectors they come from, shape (pairs,).
        blur: coordinate c of every row of spread and targets has an error of at most its size times blur_c.
        fine: relative loss that is accepted without the closer bound.

    """
    k = spread.shape[1]
    used = np.flatnonzero(pulls > 0)
    nothing = np.full(len(targets), np.inf)
    if len(used) < k:
        return nothing
    roots = np.sqrt(pulls[used])
    rows = spread[used] * roots[:, None]
    weight = float(np.linalg.norm(roots * sizes[used])) * (1 + upto(len(used), 1.0))
    factor = np.asarray(np.linalg.qr(rows, mode="r"))
    if not np.isfinite(factor).all() or np.abs(factor.diagonal()).min() == 0:
        return nothing
    # The matrix is upper triangular, so LU elimination leaves it as it is and this is a back substitution.
    inverse = np.linalg.solve(factor, np.eye(k))
    w = rows @ inverse
    gram = w.T @ w
    deviation = float(np.linalg.norm(gram - np.eye(k))) + upto(len(used) + k, np.linalg.norm(w) ** 2)
    # A row x with error e becomes (x + e)X, where |eX| <= size blur |X|, and the product itself is rounded.
    error = float(norms((blur @ np.abs(inverse))[None])[0])
    rounding = upto(k, np.linalg.norm(inverse))
    mass = float(np.linalg.norm(rows))
    off = weight * error + mass * rounding
    f = (deviation + 2 * np.sqrt(1 + deviation) * off + off * off) * (1 + 16 * EPS)
    if not f < 0.5:
        return nothing
    y = targets @ inverse
    apart = norms(targets)
    slip = widths * error + apart * rounding
    lengths = norms(y) + slip
    bounds = lengths**2 / (1 - f) * (1 + 16 * EPS)
    if f <= fine:
        return np.asarray(bounds)
    betas = y @ inverse.T
    blurred = np.abs(betas) @ blur * (1 + upto(k, 1.0))
    rounded = upto(k, norms(betas))
    across = betas @ rows.T
    seen = np.sqrt(np.vecdot(across, across)) * (1 - upto(len(used), 1.0)) - weight * blurred - mass * rounded
    reach = np.vecdot(targets, betas) + widths * blurred + apart * rounded
    rest = slip + lengths * (f + 2 * (mass + weight * float(np.linalg.norm(blur))) * rounding)
    closer = 2 * reach - np.maximum(seen, 0.0) ** 2 + rest**2 / (1 - f)
    closer += 16 * EPS * (np.abs(reach) + seen**2)
    return np.minimum(bounds, np.where(np.isfinite(closer), closer, np.inf))


class Ball(NamedTuple):
    """Ball of alternatives ‖θ'‖ <= bound, relative to θ; all in the frame's units, in which features are of size
    1.
    """

    theta: Floats
    bound: float
    spare: float
    """bound² - ‖θ‖², rounded from its exact value."""

    def excess(self, shifts: Floats, moved: Floats) -> Floats:
        """Return an upper bound on ‖θ - t‖² - bound² for t within `moved` of each row; <= 0 proves that an
        alternative counts.
        """
        lengths, size = norms(shifts), float(norms(self.theta[None])[0])
        inner = np.vecdot(shifts, shifts - 2 * self.theta)
        inner = inner + upto(len(self.theta), lengths * (lengths + 2 * size))
        return np.asarray(
            inner
            - self.spare
            + 4 * EPS * abs(self.spare)
            + moved * (2 * (size + lengths) + moved) * (1 + 16 * EPS)
        )


@np.errstate(all="ignore")
def ball_information(
    table: Floats,
    sizes: Floats,
    pulls: Floats,
    normals: Floats,
    gaps: Floats,
    ball: Ball,
    span: Span,
    kappa: Floats,
    tau: Floats,
    shifts: Floats,
) -> Floats:
    """Return lower bounds on min Σ pulls (φᵀt)² over t orthogonal to the span, normalᵀt >= gap and ‖θ - t‖ <= bound.

    Weak duality, in the coordinates of the frame: for κ, τ >= 0 and any λ the Lagrangian

        L(t) = Σ pulls (φᵀt)² + κ(‖θ - t‖² - bound²) + 2τ(gap - normalᵀt) + 2λᵀ rows t

    is a lower bound where t is feasible, and L(t) >= L(t̂) - ‖∇L(t̂)/2‖² / κ for any t̂. So no input needs to be
    trusted.

    Args:
        table: φ, shape (variables, dim).
        sizes: their norms.
        pulls: pulls of each variable.
        normals: φ* - φ, shape (pairs, dim).
        gaps: gaps of the pairs, rounded down.
        ball: the ball.
        span: span of the optimal arms, possibly empty.
        kappa: multipliers of the ball, shape (pairs,).
        tau: multipliers of the half-spaces, shape (pairs,).
        shifts: t̂, shape (pairs, dim).

    """
    dim = table.shape[1]
    used = np.flatnonzero(pulls > 0)
    phi, weights = table[used], pulls[used]
    terms = 2 * dim + len(used) + 8
    seen = shifts @ phi.T
    lengths, across = norms(shifts), norms(normals)
    heavy = float((weights * sizes[used] ** 2).sum())
    theta_size = float(norms(ball.theta[None])[0])
    pull = kappa[:, None] * (shifts - ball.theta) - tau[:, None] * normals
    gradient = (seen * weights) @ phi + pull
    lam = -(gradient @ span.inverse)
    gradient = gradient + lam @ span.rows
    lam_size = norms(lam) * float(np.linalg.norm(span.rows)) if len(span.rows) else np.zeros(len(shifts))
    total = heavy * lengths + kappa * (lengths + theta_size) + tau * across + lam_size
    slope = norms(gradient) + upto(terms, total)
    squares = (seen * seen) @ weights
    # The error of (φᵀt)² is at most 2 |φᵀt| times the error of φᵀt, plus that error squared.
    each = upto(dim, 1.0) * lengths
    rough = 2 * ((np.abs(seen) * weights) @ sizes[used]) * each + heavy * each**2
    inner = np.vecdot(shifts, shifts - 2 * ball.theta)
    rough = rough + kappa * (upto(dim, lengths * (lengths + 2 * theta_size)) + 8 * EPS * abs(ball.spare))
    ahead = np.vecdot(normals, shifts)
    rough = rough + 2 * tau * (upto(dim, across * lengths) + 8 * EPS * gaps)
    fixed = np.vecdot(lam @ span.rows, shifts)
    rough = rough + 4 * upto(dim + len(span.rows), lam_size * lengths)
    value = squares + kappa * (inner - ball.spare) + 2 * tau * (gaps - ahead) + 2 * fixed
    rough = rough + upto(
        terms,
        squares + kappa * np.abs(inner - ball.spare) + 2 * tau * (gaps + np.abs(ahead)) + 2 * np.abs(fixed),
    )
    bounds = value - rough - slope**2 / kappa * (1 + 16 * EPS)
    return np.where((kappa > 0) & np.isfinite(bounds), np.maximum(bounds, 0.0), 0.0)


def furthest(normals: Floats, ball: Ball, span: Span, where: Coordinates, scale: float) -> Floats:
    """Return upper bounds on normalᵀt over t orthogonal to the span with ‖θ - t‖ <= bound.

    normalᵀt = wᵀt with w = normal + rowsᵀλ for any λ, so it is at most wᵀθ + ‖w‖ bound. The best w is the normal's
    part outside the span plus a multiple of θ's part inside.
    """
    axes = where.basis
    outside = (normals @ axes) @ axes.T
    known = ball.theta - axes @ (axes.T @ ball.theta) if len(span.rows) else np.zeros_like(ball.theta)
    radius = max(where.radius * scale, 1e-8 * ball.bound)
    w = outside - (norms(outside) / radius)[:, None] * known
    lam = (w - normals) @ span.inverse
    w = normals + lam @ span.rows
    error = upto(len(span.rows) + 2, norms(normals) + norms(lam) * float(np.linalg.norm(span.rows)))
    lengths = norms(w) + error
    size = float(norms(ball.theta[None])[0])
    reach = w @ ball.theta + error * size + upto(len(ball.theta), norms(w) * size)
    return np.asarray(reach + lengths * ball.bound * (1 + 8 * EPS) + TINY)


def multipliers(rows: Floats, v: Floats, theta: Floats, radius: float) -> tuple[Floats, Floats, Floats]:
    """Return multipliers and the minimiser of min ‖rows β‖² s.t. vᵀβ >= 1, ‖θ - β‖ <= R, for each row of v.

    The result is κ (of the ball), τ (of the half-space) and β(κ). The dual
    h(κ) = κ(‖θ‖² - R²) - κ²θᵀA⁻¹θ + max(0, 1 - κθᵀA⁻¹v)² / (vᵀA⁻¹v) with A = M + κI is concave in κ; its maximum is
    found by golden section in log κ. Rounding is not controlled here: any multipliers prove a valid bound.
    """
    k = len(theta)
    factor = np.asarray(np.linalg.qr(rows, mode="r"))
    if len(factor) < k:
        factor = np.vstack([factor, np.zeros((k - len(factor), k))])
    _, singular, axes = np.linalg.svd(factor)
    spectrum = singular**2
    across, centre = v @ axes.T, axes @ theta
    top = max(float(spectrum[0]), 1e-300)

    def dual(log_kappa: Floats) -> Floats:
        kappa = np.exp(log_kappa)
        weight = 1.0 / (spectrum + kappa[:, None])
        ahead = np.maximum(1 - kappa * ((across * centre) * weight).sum(axis=1), 0.0)
        # κ‖θ‖² - κ²θᵀA⁻¹θ = κ θᵀ M A⁻¹ θ, written without the cancellation.
        inner = kappa * ((centre**2 * spectrum) * weight).sum(axis=1)
        return np.asarray(inner - kappa * radius**2 + ahead**2 / ((across**2) * weight).sum(axis=1))

    low, high = np.full(len(v), np.log(top) - 46.0), np.full(len(v), np.log(top) + 46.0)
    ratio = (np.sqrt(5.0) - 1) / 2
    with np.errstate(all="ignore"):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        at_left, at_right = dual(left), dual(right)
        for _ in range(80):
            up = at_left < at_right
            low, high = np.where(up, left, low), np.where(up, high, right)
            left, right = high - ratio * (high - low), low + ratio * (high - low)
            at_left, at_right = dual(left), dual(right)
        kappa = np.exp(np.where(at_left < at_right, right, left))
        weight = 1.0 / (spectrum + kappa[:, None])
        pull = (1 - kappa * (across * centre * weight).sum(axis=1)) / (across**2 * weight).sum(axis=1)
        tau = np.maximum(pull, 0.0)
        betas = (kappa[:, None] * centre + tau[:, None] * across) * weight
    return kappa, tau, betas @ axes
