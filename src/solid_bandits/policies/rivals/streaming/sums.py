"""The exploration policy ω as a function of features, represented by O(d²) numbers.

Finite SOLID carries a row of log ω for every context, the sum of its steps q_s(x, ·) / ‖q_s(x, ·)‖. Here the row of any
context is computed from sums over the exploring rounds s, with w_s = 1 / ‖q_s(X_s, ·)‖, the norm in the current
context:

    log ω(x,a) = φᵀM + √(w φᵀNφ) + (√φᵀQφ + √φᵀRφ)² + a constant of x,
    M = Σ w_s θ_s, N = Σ w_s γ_s V_s^-1, Q = Σ w_s λ_s δ_s δ_sᵀ / 2σ², R = Σ w_s λ_s γ_s V_s^-1 / 2σ², w = Σ w_s.

By Cauchy and Schwarz this is at least the sum of the steps (docs/streaming-solid.md).
"""

import math

import numpy as np

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Bools, Floats
from solid_bandits.estimation.estimator import Estimator, squared_norm
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.regression import noise_deviation
from solid_bandits.policies.rivals.streaming.state import StreamingAgent, Sums
from solid_bandits.policies.solid.algorithm import LEAST_EXPONENT


@jit_apart
def log_weight(sums: Sums, features: Floats) -> float:
    """Return the logarithm of ω of an arm up to a constant of its context."""
    width = information = optimism = 0.0
    dim = features.shape[0]
    for i in range(dim):
        rows_width, rows_information, rows_optimism = sums.width[i], sums.information[i], sums.optimism[i]
        part_width = part_information = part_optimism = 0.0
        for j in range(dim):
            part_width += rows_width[j] * features[j]
            part_information += rows_information[j] * features[j]
            part_optimism += rows_optimism[j] * features[j]
        width += features[i] * part_width
        information += features[i] * part_information
        optimism += features[i] * part_optimism
    roots = math.sqrt(max(information, 0.0)) + math.sqrt(max(optimism, 0.0))
    return dot(sums.along, features) + math.sqrt(max(sums.weight.item() * width, 0.0)) + roots * roots


@jit
def normalise(agent: StreamingAgent, arms: Floats, available: Bools) -> tuple[float, float]:
    """Return the largest α^ω log ω among the available arms, and the sum of the exponentials relative to it."""
    largest, total = -np.inf, 0.0
    for arm in range(arms.shape[0]):
        if available[arm]:
            value = agent.params.policy_step * log_weight(agent.state.sums, arms[arm])
            if value > largest:
                total = total * math.exp(max(largest - value, LEAST_EXPONENT)) + 1.0
                largest = value
            else:
                total += math.exp(max(value - largest, LEAST_EXPONENT))
    return largest, total


@jit
def omega(agent: StreamingAgent, features: Floats, largest: float, total: float) -> float:
    """Return ω of an arm, given the two numbers of `normalise` for its context."""
    below = agent.params.policy_step * log_weight(agent.state.sums, features) - largest
    return 0.0 if below < LEAST_EXPONENT else math.exp(below) / total


@jit
def write_inverse(estimator: Estimator, rows: Floats, inverse: Floats) -> None:
    """Write V^-1 = U^-1 D^-1 U^-T; `rows` is scratch, shape (dim, dim)."""
    dim = inverse.shape[0]
    for i in range(dim):
        for j in range(dim):
            rows[i, j] = 1.0 if i == j else 0.0
        squared_norm(estimator, rows[i])
    for i in range(dim):
        for j in range(i + 1):
            total = 0.0
            for k in range(dim):
                total += rows[i, k] * rows[j, k] / estimator.weights[k]
            inverse[i, j] = total
            inverse[j, i] = total


@jit
def add_step(agent: StreamingAgent, width: float, norm: float) -> None:
    """Add the step q_t / ‖q_t(X_t, ·)‖, as a function of features, to the sums."""
    regression, sums, work = agent.state.regression, agent.state.sums, agent.work
    theta = regression.work.theta
    weight = 1.0 / norm
    informed = weight * agent.state.multiplier.item() * 0.5 / noise_deviation(regression) ** 2
    write_inverse(regression.estimator, work.rows, work.inverse)
    sums.weight[()] += weight
    for i in range(theta.shape[0]):
        sums.along[i] += weight * theta[i]
        for j in range(theta.shape[0]):
            sums.width[i, j] += weight * width * work.inverse[i, j]
            sums.information[i, j] += informed * work.delta[i] * work.delta[j]
            sums.optimism[i, j] += informed * width * work.inverse[i, j]
