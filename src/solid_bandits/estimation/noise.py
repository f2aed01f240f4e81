"""Noise of the rewards: σ if it is told, otherwise its estimate from the rewards.

Under a normal-inverse-gamma prior worth one observation, θ given σ² being N(θ-hat, σ² V^-1), the posterior of θ is a
Student distribution with n + 1 degrees of freedom around θ-hat, of scale σ-hat V^-½:

    σ-hat² = (Σ (Y - φᵀθ-hat)² + ν ‖θ-hat‖² + s²) / (n + 1),     s² = Σ (Y - Ȳ)² / n.

n is the sum of the rewards' weights where evidence fades. The one observation is worth the *centred* variance s² of the
rewards, because their second moment would be dominated by an offset of the rewards.
"""

import math

from solid_bandits._internal.compiling import jit
from solid_bandits.estimation.estimator import Estimator


@jit
def noise_variance(noise_std: float, estimator: Estimator) -> float:
    """Return σ² if it is told (`noise_std` > 0), else σ-hat².

    It is 1 until there is a reward other than 0: every mean is 0 then, and any scale leads to the same choices.
    """
    if noise_std > 0.0:
        return noise_std * noise_std
    mass = estimator.mass.item()
    if mass == 0.0:
        return 1.0
    found = (estimator.residual.item() + estimator.reward_scatter.item() / mass) / (mass + 1.0)
    return found if found > 0.0 else 1.0


@jit
def noise_deviation(noise_std: float, estimator: Estimator) -> float:
    """Return the root of `noise_variance`."""
    return noise_std if noise_std > 0.0 else math.sqrt(noise_variance(noise_std, estimator))


@jit
def degrees_of_freedom(noise_std: float, estimator: Estimator) -> float:
    """Return the number of rewards + 1 if σ is not told; 0 stands for a normal distribution."""
    return 0.0 if noise_std > 0.0 else estimator.mass.item() + 1.0
