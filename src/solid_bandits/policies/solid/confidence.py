"""β_t and γ_t: those of the experiments, without numerical constants, and those of the concentration theorem."""

import math
from typing import NamedTuple

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.dispatch import by_type, variant
from solid_bandits.core.setting import Setting
from solid_bandits.estimation import confidence
from solid_bandits.policies import thresholds


@by_type
def threshold(kind: object, setting: Setting, step: int) -> float:
    """Return β_{t-1} at t = `step`, with which the exploitation test's statistic is compared."""
    raise NotImplementedError


@by_type
def width(kind: object, setting: Setting, step: int, explored: int) -> float:
    """Return γ_t, the squared width of the optimism in f_t and g_t; S_t = `explored` includes this round."""
    raise NotImplementedError


class WithoutConstants(NamedTuple):
    """β_t = σ² (log t + d log log n), γ_t = σ² (log S_t + d log log n), as in the experiments."""

    dim: int


@jit
def _plain_threshold(kind: WithoutConstants, setting: Setting, step: int) -> float:
    return thresholds.exploitation_threshold(setting, step)


@jit
def _plain_width(kind: WithoutConstants, setting: Setting, step: int, explored: int) -> float:
    return thresholds.confidence_width(setting, step, explored)


class OfTheorem(NamedTuple):
    """β = c_{n,1/n} and γ_t = c_{n,1/S_t²} of the concentration theorem, with all its constants."""

    feature_bound: float
    ridge: float


@jit
def _radius(kind: OfTheorem, setting: Setting, log_n: float, log_inverse_delta: float) -> float:
    return confidence.squared_radius(
        log_n,
        log_inverse_delta,
        setting.dim,
        setting.noise_std,
        setting.theta_bound,
        kind.feature_bound,
        kind.ridge,
    )


@jit
def _theorem_threshold(kind: OfTheorem, setting: Setting, step: int) -> float:
    log_n = thresholds.log_horizon(setting, step)
    return _radius(kind, setting, log_n, log_n)


@jit
def _theorem_width(kind: OfTheorem, setting: Setting, step: int, explored: int) -> float:
    return _radius(kind, setting, thresholds.log_horizon(setting, step), 2.0 * math.log(explored))


variant(threshold, WithoutConstants, _plain_threshold)
variant(width, WithoutConstants, _plain_width)
variant(threshold, OfTheorem, _theorem_threshold)
variant(width, OfTheorem, _theorem_width)
