"""Models of bounded norm: the closest alternative in a ball, and the nearest point of a ball."""

import numpy as np

from solid_bandits._internal.compiling import jit, jit_part
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.linalg.triangular import PIVOT_FLOOR
from solid_bandits.estimation.linalg.vectors import best_arm, dot

LOG_HALVINGS = 64
"""Steps of a bisection of a multiplier's logarithm: from 400 decimal orders down to one unit in the last place."""
HALVINGS = 200
"""Steps of the search for a multiplier in an interval: enough for any interval of floats; it ends at rounding."""


@jit_part
def closest_in_ball(
    features: Floats,
    theta_bound: float,
    theta: Floats,
    means: Floats,
    gram: Floats,
    norms: Floats,
    delta: Floats,
) -> float:
    """Return the least ‖θ - θ'‖²_W over ‖θ'‖ <= B and pairs with θ'ᵀ(φ*(x) - φ(x,a)) <= 0; fill `delta` with θ - θ'.

    A pair's distance without the bound, Δ² / `norms`, is a lower bound on its distance with it, so pairs are visited in
    that order, and the search ends, with the exact minimum, once the next lower bound reaches the best distance found.
    """
    values, vectors = eigenbasis(gram)
    centre = np.dot(vectors.T, theta)
    n_arms = means.shape[1]
    bounds = np.full(norms.shape[0], np.inf)
    for pair in range(norms.shape[0]):
        if norms[pair] > 0.0:
            context = pair // n_arms
            gap = means[context, best_arm(means[context])] - means[context, pair % n_arms]
            bounds[pair] = gap * gap / norms[pair]
    best = np.inf
    shift = np.empty(theta.shape[0])
    delta[:] = 0.0
    for _ in range(norms.shape[0]):
        pair = int(np.argmin(bounds))
        if bounds[pair] >= best:
            break
        bounds[pair] = np.inf
        context, arm = pair // n_arms, pair % n_arms
        optimal = best_arm(means[context])
        gap = means[context, optimal] - means[context, arm]
        if gap == 0.0:
            # Two arms tie, so the estimate itself is on the boundary.
            delta[:] = 0.0
            return 0.0
        normal = np.dot(vectors.T, features[context, optimal] - features[context, arm]) / gap
        ball_multiplier(normal, centre, values, theta_bound, shift)
        distance = 0.0
        for i in range(shift.shape[0]):
            distance += values[i] * shift[i] * shift[i]
        if distance < best:
            best = distance
            delta[:] = np.dot(vectors, shift)
    return best


@jit_part
def eigenbasis(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors of W; eigenvalues that rounding made zero or negative are raised."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, PIVOT_FLOOR * max(values[-1], 1e-300)), np.ascontiguousarray(vectors)


@jit_part
def ball_multiplier(v: Floats, theta: Floats, eigenvalues: Floats, radius: float, beta: Floats) -> float:
    """Write the closest alternative inside a ball, in the eigenbasis of M, and return its multiplier.

    min βᵀMβ s.t. vᵀβ >= 1 and ‖θ - β‖ <= R. With a multiplier κ >= 0 for the ball and A = M + κI, stationarity
    gives β(κ) = A⁻¹(κθ + τv) with τ chosen so that vᵀβ = 1 (the half-space is always active: without it β = 0 would
    be optimal). ‖θ - β(κ)‖ falls as κ grows, from the unbounded solution (κ = 0) to the projection of θ on the
    hyperplane (κ = ∞), so κ is found by bisection of its logarithm.

    Args:
        v: normal, shape (k,), in the eigenbasis.
        theta: centre of the ball, shape (k,), in the eigenbasis.
        eigenvalues: of M, positive, shape (k,).
        radius: R, large enough for the half-space to meet the ball.
        beta: filled with the closest alternative, on the inner side of the bisection.

    Returns:
        κ; 0 where the ball does not bind.

    """
    if _ball_excess(0.0, v, theta, eigenvalues, radius, beta) <= 0:
        return 0.0
    top = eigenvalues.max()
    low = np.log(top) - 80.0
    high = np.log(top) + 10.0
    while _ball_excess(np.exp(high), v, theta, eigenvalues, radius, beta) > 0 and high < np.log(top) + 60.0:
        high += 10.0
    for _ in range(LOG_HALVINGS):
        middle = 0.5 * (low + high)
        if _ball_excess(np.exp(middle), v, theta, eigenvalues, radius, beta) > 0:
            low = middle
        else:
            high = middle
        if high - low < 1e-14:
            break
    kappa = np.exp(high)
    _ball_excess(kappa, v, theta, eigenvalues, radius, beta)
    return float(kappa)


@jit
def _ball_excess(
    kappa: float, v: Floats, theta: Floats, eigenvalues: Floats, radius: float, beta: Floats
) -> float:
    """Write β(κ) and return ‖θ - β(κ)‖² - R²."""
    along = 0.0
    norm = 0.0
    for i in range(v.shape[0]):
        scaled = v[i] / (eigenvalues[i] + kappa)
        along += theta[i] * scaled
        norm += v[i] * scaled
    tau = (1.0 - kappa * along) / norm
    excess = -radius * radius
    for i in range(v.shape[0]):
        beta[i] = (kappa * theta[i] + tau * v[i]) / (eigenvalues[i] + kappa)
        excess += (theta[i] - beta[i]) ** 2
    return excess


@jit_part
def ball_projection(matrix: Floats, point: Floats, bound: float, out: Floats, limit: float) -> float:
    """Write argmin ‖θ - point‖_matrix over ‖θ‖ <= bound into `out` if its squared distance, returned, is <= limit.

    The minimiser is (V + μI)^-1 V point with the μ >= 0 at which its norm is `bound`, a root of a decreasing function.
    """
    if dot(point, point) <= bound * bound:
        out[:] = point
        return 0.0
    values, vectors = np.linalg.eigh(matrix)
    coordinates = np.dot(vectors.T, point)
    low, high = 0.0, values[-1]
    while _shrunk_norm(values, coordinates, high) > bound * bound:
        low, high = high, 4.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if _shrunk_norm(values, coordinates, middle) > bound * bound:
            low = middle
        else:
            high = middle
    distance = 0.0
    for i in range(point.shape[0]):
        moved = coordinates[i] * high / (values[i] + high)
        distance += values[i] * moved * moved
        coordinates[i] -= moved
    if distance <= limit:
        out[:] = np.dot(vectors, coordinates)
    return distance


@jit
def _shrunk_norm(values: Floats, coordinates: Floats, multiplier: float) -> float:
    total = 0.0
    for i in range(values.shape[0]):
        shrunk = values[i] * coordinates[i] / (values[i] + multiplier)
        total += shrunk * shrunk
    return total
