"""β and γ of SOLID's experiments, shared by several policies, which then differ in how they explore, not in when."""

import math

from solid_bandits._internal.compiling import jit
from solid_bandits.core.setting import Setting


@jit
def log_horizon(setting: Setting, step: int) -> float:
    """Return `log n`, with the current step in place of an unknown horizon, and 3 in place of a smaller one."""
    return math.log(max(setting.horizon if setting.horizon > 0 else step, 3))


@jit
def squared_width(setting: Setting, noise_std: float, step: int, count: int) -> float:
    """Return σ² (log count + d log log n), with log 0 read as 0: β_{t-1} at count t - 1, γ_t at count S_t."""
    return noise_std**2 * (math.log(max(count, 1)) + setting.dim * math.log(log_horizon(setting, step)))


@jit
def exploitation_threshold(setting: Setting, step: int) -> float:
    """Return β_{t-1} = σ² (log(t-1) + d log log n) at t = `step`."""
    return squared_width(setting, setting.noise_std, step, step - 1)


@jit
def confidence_width(setting: Setting, step: int, explored: int) -> float:
    """Return γ_t = σ² (log s + d log log n), where s exploring rounds include this one."""
    return squared_width(setting, setting.noise_std, step, explored)
