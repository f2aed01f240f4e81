"""What SOLID's theorems need beyond its experiments: the projected estimate, and alternatives of bounded norm.

Each function takes `theory`, None in the experiments' form: numba then compiles the short branch alone.
"""

import numpy as np

from solid_bandits._compile import jit, jit_apart
from solid_bandits._types import Floats
from solid_bandits.linalg import (
    Bounds,
    ball_multiplier,
    best_arm,
    closest_alternative,
    dot,
    inner_products,
    pruned_alternative,
)
from solid_bandits.policies.solid_rules import exploitation_threshold
from solid_bandits.policies.solid_state import MANY_PAIRS, SolidParams, Theory
from solid_bandits.problem import View
from solid_bandits.regression import Regression

HALVINGS = 200
"""Of an interval in the search for a multiplier: enough for any interval of floats; it ends at rounding."""


@jit
def best_estimated_arm(theory: Theory | None, regression: Regression, context: int) -> int:
    """argmax_a μ_{θ-tilde}(x, a)."""
    if theory is None:
        return best_arm(regression.means[context])
    return best_arm(theory.means[context])


@jit
def project(
    theory: Theory | None, regression: Regression, view: View, params: SolidParams, step: int
) -> None:
    """θ-tilde_t = argmin ‖θ - θ-hat_t‖_V over ‖θ‖ <= B and ‖θ - θ-hat_t‖²_V <= β_t, t = `step` (Algorithm 1's end).

    The second condition only decides whether there is a solution: the nearest point of the ball is the nearest point of
    the intersection, or there is none and θ-tilde stays what it was.
    """
    if theory is not None:
        threshold = exploitation_threshold(params, view, step + 1)
        distance = ball_projection(
            regression.gram, regression.theta, view.theta_bound, theory.theta, threshold
        )
        if distance <= threshold:
            inner_products(view.features_by_dim, theory.theta, theory.means.reshape(-1))


@jit_apart
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


@jit
def bounded_statistic(
    theory: Theory,
    regression: Regression,
    view: View,
    factor: Floats,
    columns: Floats,
    norms: Floats,
    delta: Floats,
    only: int,
) -> float:
    """Least ‖θ-tilde - θ'‖²_V over ‖θ'‖ <= B with another optimal arm in context `only`, in any if -1."""
    means, gram = theory.means, regression.gram
    closest_alternative(view.features_by_dim, means, gram, factor, columns, norms, delta)
    if only >= 0:
        # A pair with norm 0 is no alternative.
        n_arms = means.shape[1]
        for pair in range(norms.shape[0]):
            if pair // n_arms != only:
                norms[pair] = 0.0
    return closest_in_ball(view, theory.theta, means, gram, norms, delta)


@jit
def closest_model(
    theory: Theory | None,
    view: View,
    means: Floats,
    gram: Floats,
    factor: Floats,
    columns: Floats,
    norms: Floats,
    bounds: Bounds,
    delta: Floats,
) -> float:
    """The closest alternative under W = `gram`: in all of R^d, or with ‖θ'‖ <= B in the theorems' form.

    Fills `delta` with θ - θ' and returns ‖θ - θ'‖²_W; the arguments are those of `linalg.closest_alternative` and
    `linalg.pruned_alternative`.
    """
    if theory is None and norms.shape[0] >= MANY_PAIRS:
        return pruned_alternative(view.features, view.features_by_dim, means, gram, factor, bounds, delta)
    least = closest_alternative(view.features_by_dim, means, gram, factor, columns, norms, delta)
    if theory is not None:
        return closest_in_ball(view, theory.theta, means, gram, norms, delta)
    return least


@jit_apart
def closest_in_ball(
    view: View, theta: Floats, means: Floats, gram: Floats, norms: Floats, delta: Floats
) -> float:
    """Least ‖θ - θ'‖²_W over ‖θ'‖ <= B and all pairs with θ'ᵀ(φ*(x) - φ(x,a)) <= 0; fills `delta` with θ - θ'.

    A pair's distance without the bound, Δ² / `norms`, is a lower bound on its distance with it, so pairs are visited in
    that order and the search ends, exactly, once the next lower bound is not below the best distance found.
    """
    values, vectors = np.linalg.eigh(gram)
    # Rounding may leave an eigenvalue of a nearly singular W at or below zero.
    values = np.maximum(values, 1e-15 * max(values[-1], 1e-300))
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
            # Two arms tie: the estimate itself is on the border.
            delta[:] = 0.0
            return 0.0
        normal = np.dot(vectors.T, view.features[context, optimal] - view.features[context, arm]) / gap
        ball_multiplier(normal, centre, values, view.theta_bound, shift)
        distance = 0.0
        for i in range(shift.shape[0]):
            distance += values[i] * shift[i] * shift[i]
        if distance < best:
            best = distance
            delta[:] = np.dot(vectors, shift)
    return best
