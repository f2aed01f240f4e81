"""When to explore: while it is open which arm is best, and as long as exploring costs less than what is at stake."""

import math

from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats
from solid_bandits.estimation.arms import best_available, estimate_differences
from solid_bandits.estimation.estimator import write_theta
from solid_bandits.estimation.noise import noise_variance
from solid_bandits.policies.streaming.state import NO_LIMIT, StreamingAgent
from solid_bandits.policies.thresholds import log_horizon


@jit
def expected_excess(gap: float, spread: float) -> float:
    """E[(N(-gap, spread²))_+]: what an arm that looks worse by `gap` is expected to be better by, where it is."""
    u = gap / spread
    density = math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    return max(spread * (density - 0.5 * u * math.erfc(u / math.sqrt(2.0))), 0.0)


@jit
def squared_width(agent: StreamingAgent, count: int) -> float:
    """σ² (log count + d log log n), the logarithm of 0 read as 0: β_{t-1} at count t - 1, γ_t at count S_t."""
    setting, state = agent.setting, agent.state
    log_n = log_horizon(setting, state.step.item() + 1)
    variance = noise_variance(setting.noise_std, state.estimator)
    return variance * (math.log(max(count, 1)) + setting.dim * math.log(log_n))


@jit
def survey(agent: StreamingAgent, arms: Floats, available: Bools) -> tuple[int, bool, float]:
    """The arm that looks best, whether the test leaves it open that it is, and what is at stake in this round.

    The test is Algorithm 1's in the context at hand: open where Δ(a)² <= β ‖φ* - φ(a)‖²_{V^-1} for some arm. The stake
    bounds the regret that the arm is expected to have under the posterior: Σ_a E[(φ(a) - φ*)ᵀθ]_+. Leaves θ-hat in
    `work.theta`.
    """
    estimator, work = agent.state.estimator, agent.work
    write_theta(estimator, work.theta)
    best = best_available(arms, available, work.theta)
    deviation = math.sqrt(noise_variance(agent.setting.noise_std, estimator))
    limit = agent.params.threshold_scale * squared_width(agent, agent.state.step.item())
    is_open, stake, first = False, 0.0, 0
    while first < arms.shape[0]:
        count = estimate_differences(estimator, arms, best, first, work.arms)
        for k in range(count):
            gap, sq_norm = work.arms.means[k], work.arms.sq_norms[k]
            # A copy of the best arm (norm 0) is best in every model in which the best one is.
            if available[first + k] and sq_norm > 0.0:
                is_open = is_open or not gap * gap > limit * sq_norm
                stake += expected_excess(gap, deviation * math.sqrt(sq_norm))
        first += count
    return best, is_open, stake


@jit
def may_explore(agent: StreamingAgent, stake: float) -> bool:
    """Whether what exploring has cost is within `budget` times what was at stake, this round included."""
    budget, state = agent.params.budget, agent.state
    return budget == NO_LIMIT or not state.spent.item() > budget * (state.stake.item() + stake)
