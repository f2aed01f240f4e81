"""A ridge fit to all known rewards: the choices of the best linear model of the data."""

from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.estimator import Estimator, make_estimator, write_theta
from solid_bandits.streams.rounds import RoundArrays, sound_blocks


class RidgeFit(NamedTuple):
    """Result of the fit θ = argmin Σ (Y - φᵀθ)² + ν ‖θ‖² over all rounds and their available arms."""

    theta: Floats
    """θ, shape (dim,)."""
    noise_std: float
    """The standard deviation of the residuals."""
    r_squared: float
    """The share of the rewards' variance that the fit explains."""
    rewards: int
    """The number of fitted rewards."""


@jit
def observe_sparse(estimator: Estimator, features: Floats, reward: float, row: Floats) -> None:
    """Rotate in a reward as `estimator.observe` does, skipping zeros: joint features are mostly zeros, and every arm of
    every round is added. The sums that only policies need are omitted.
    """
    triangle, weights, targets = estimator.triangle, estimator.weights, estimator.targets
    dim = weights.shape[0]
    for i in range(dim):
        row[i] = features[i]
    rest, weight = reward, 1.0
    for i in range(dim):
        lead = row[i]
        if lead != 0.0:
            new = weights[i] + weight * lead * lead
            gain = weight * lead / new
            weight *= weights[i] / new
            weights[i] = new
            rest -= lead * targets[i]
            targets[i] += gain * rest
            line = triangle[i]
            for j in range(i + 1, dim):
                row[j] -= lead * line[j]
                line[j] += gain * row[j]
    estimator.residual[()] += weight * rest * rest
    estimator.rewards[()] += 1


@jit_apart
def observe_rounds(
    estimator: Estimator, rounds: RoundArrays, shift: float, sums: Floats, row: Floats
) -> None:
    """Add the mean reward of every available arm; Σ (Y - shift) and Σ (Y - shift)² are added to `sums`."""
    for t in range(rounds.counts.shape[0]):
        for arm in range(rounds.counts[t]):
            if rounds.available[t, arm]:
                reward = rounds.means[t, arm]
                observe_sparse(estimator, rounds.features[t][arm], reward, row)
                sums[0] += reward - shift
                sums[1] += (reward - shift) ** 2


def fit_rounds(blocks: Any, dim: int, n_arms: int, ridge: float, length: int | None = None) -> RidgeFit:
    """Return the fit to all rounds of these blocks, or to the first `length`, keeping one block in memory at a time."""
    estimator = make_estimator(dim, ridge)
    sums, row = np.zeros(2), np.zeros(dim)
    shift: float | None = None
    done = 0
    for whole in sound_blocks(blocks, dim, n_arms):
        block = whole if length is None else whole.first(length - done)
        if shift is None:  # near the mean, so that the variance is not a difference of large numbers
            shift = float(block.arrays.means[block.arrays.available].mean())
        observe_rounds(estimator, block.arrays, shift, sums, row)
        done += len(block)
        if done == length:
            break
    theta = np.zeros(dim)
    write_theta(estimator, theta)
    theta.flags.writeable = False
    count = max(int(estimator.rewards), 1)
    squares = max(float(estimator.residual) - ridge * float(theta @ theta), 0.0)
    total = max(float(sums[1] - sums[0] ** 2 / count), 0.0)
    # A perfect fit leaves no residuals, and policies need some σ: use a thousandth of the rewards' deviation.
    noise_std = max((squares / count) ** 0.5, 1e-3 * (total / count) ** 0.5) or 1.0
    return RidgeFit(theta, noise_std, 1.0 - squares / total if total > 0.0 else 1.0, int(estimator.rewards))
