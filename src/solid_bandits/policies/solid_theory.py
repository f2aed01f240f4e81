"""What SOLID's theorems need beyond its experiments: the projected estimate, and alternatives of bounded norm.

Each function takes `theory`, None in the experiments' form: numba then compiles the short branch alone.
"""

from solid_bandits._compile import jit
from solid_bandits._types import Floats
from solid_bandits.alternatives.ball import ball_projection, closest_in_ball
from solid_bandits.alternatives.closest import closest_alternative
from solid_bandits.alternatives.pruned import Bounds, pruned_alternative
from solid_bandits.linalg.vectors import best_arm, inner_products
from solid_bandits.policies.solid_rules import exploitation_threshold
from solid_bandits.policies.solid_state import MANY_PAIRS, SolidParams, Theory
from solid_bandits.problem import View
from solid_bandits.regression import Regression


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
    return closest_in_ball(view.features, view.theta_bound, theory.theta, means, gram, norms, delta)


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

    Fills `delta` with θ - θ' and returns ‖θ - θ'‖²_W; the arguments are those of `closest_alternative` and of
    `pruned_alternative`.
    """
    if theory is None and norms.shape[0] >= MANY_PAIRS:
        return pruned_alternative(view.features, view.features_by_dim, means, gram, factor, bounds, delta)
    least = closest_alternative(view.features_by_dim, means, gram, factor, columns, norms, delta)
    if theory is not None:
        return closest_in_ball(view.features, view.theta_bound, theory.theta, means, gram, norms, delta)
    return least
