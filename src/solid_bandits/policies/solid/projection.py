"""Parts that only SOLID's theorems need: the projected estimate, and alternatives of bounded norm.

`projected` is None in the experiments' form, so that numba compiles only the short branch.
"""

from solid_bandits._internal.compiling import jit
from solid_bandits.estimation.estimator import write_gram
from solid_bandits.estimation.linalg.vectors import best_arm, inner_products
from solid_bandits.estimation.regression import write_theta
from solid_bandits.planning.ball import ball_projection, closest_in_ball
from solid_bandits.planning.closest import closest_alternative
from solid_bandits.policies.identification import best_of_rows
from solid_bandits.policies.solid.confidence import threshold
from solid_bandits.policies.solid.state import Projected, SolidAgent


@jit
def best_estimated_arm(projected: Projected | None, agent: SolidAgent, context: int) -> int:
    """Return argmax_a μ_{θ-tilde}(x, a); θ-hat is in `regression.work.theta`."""
    if projected is None:
        return best_of_rows(agent.table.features[context], agent.state.regression.work.theta)
    return best_arm(projected.means[context])


@jit
def project(projected: Projected | None, agent: SolidAgent) -> None:
    """Set θ-tilde_t = argmin ‖θ - θ-hat_t‖_V over ‖θ‖ <= B and ‖θ - θ-hat_t‖²_V <= β_t (Algorithm 1's end).

    The second condition only decides whether there is a solution: the nearest point of the ball is the nearest point of
    the intersection, or there is none and θ-tilde keeps its value.
    """
    if projected is not None:
        params, setting, work, regression = agent.params, agent.setting, agent.work, agent.state.regression
        step = agent.state.step.item()
        limit = params.threshold_scale * threshold(params.confidence, setting, step + 1)
        theta = regression.work.theta
        write_theta(regression, theta)
        write_gram(regression.estimator, work.gram)
        distance = ball_projection(work.gram, theta, setting.theta_bound, projected.theta, limit)
        if distance <= limit:
            inner_products(agent.table.columns, projected.theta, projected.means.reshape(-1))


@jit
def bounded_statistic(agent: SolidAgent, only: int) -> float:
    """Return the least ‖θ-tilde - θ'‖²_V over ‖θ'‖ <= B with another optimal arm in context `only`, in any if -1."""
    work, projected = agent.work, agent.state.projected
    assert projected is not None  # this is the theorems' form
    means = projected.means
    write_gram(agent.state.regression.estimator, work.gram)
    closest_alternative(
        agent.table.columns, means, work.gram, work.factor, work.columns, work.norms, work.delta
    )
    if only >= 0:
        # A pair with norm 0 gives no alternative.
        n_arms = means.shape[1]
        for pair in range(work.norms.shape[0]):
            if pair // n_arms != only:
                work.norms[pair] = 0.0
    return closest_in_ball(
        agent.table.features,
        agent.setting.theta_bound,
        projected.theta,
        means,
        work.gram,
        work.norms,
        work.delta,
    )
