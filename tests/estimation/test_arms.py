"""Means and norms of the arms on offer, however many they are: blocks of every width, dimensions around the tiles."""

import numpy as np
import pytest

from solid_bandits.estimation.arms import (
    MANY,
    NARROW,
    WIDE,
    best_available,
    block_size,
    count_available,
    estimate_arms,
    estimate_differences,
    make_arms_work,
)
from solid_bandits.estimation.estimator import make_estimator, observe

COUNTS = [*range(1, 10), 15, 16, 17, 63, 64, 65, 72, 73, 130]
DIMS = [*range(1, 10), 65]


def learnt(dim, seed):
    """An estimator that has seen something, and V and θ-hat by NumPy."""
    rng = np.random.default_rng(seed)
    features, rewards = rng.normal(size=(2 * dim + 3, dim)), rng.normal(size=2 * dim + 3)
    estimator = make_estimator(dim, 0.8)
    for phi, reward in zip(features, rewards, strict=True):
        observe(estimator, phi, reward, np.zeros(dim), np.zeros(dim))
    V = 0.8 * np.eye(dim) + features.T @ features
    return estimator, V, np.linalg.solve(V, features.T @ rewards), rng


def all_blocks(measure, n_arms, work):
    """Means and squared norms of all arms, block by block; `measure(first)` does one."""
    means, norms, first = np.full(n_arms, np.nan), np.full(n_arms, np.nan), 0
    while first < n_arms:
        count = measure(first)
        assert 1 <= count <= n_arms - first
        means[first : first + count] = work.means[:count]
        norms[first : first + count] = work.sq_norms[:count]
        first += count
    return means, norms


@pytest.mark.parametrize("dim", DIMS)
def test_means_and_norms_are_those_of_numpy(dim):
    estimator, V, theta, rng = learnt(dim, dim)
    work = make_arms_work(dim)
    for n_arms in COUNTS:
        arms = rng.normal(size=(n_arms, dim))
        for scratch in (work.columns, work.means, work.sq_norms):
            scratch[:] = np.nan  # nothing is taken from the last time
        means, norms = all_blocks(lambda k, arms=arms: estimate_arms(estimator, arms, k, work), n_arms, work)
        assert means == pytest.approx(arms @ theta, abs=1e-10), n_arms
        assert norms == pytest.approx((arms * np.linalg.solve(V, arms.T).T).sum(axis=1), rel=1e-9), n_arms

        best = int(rng.integers(n_arms))
        gaps, norms = all_blocks(
            lambda k, arms=arms, best=best: estimate_differences(estimator, arms, best, k, work), n_arms, work
        )
        differences = arms[best] - arms
        expected = (differences * np.linalg.solve(V, differences.T).T).sum(axis=1)
        assert gaps == pytest.approx(differences @ theta, abs=1e-10), n_arms
        assert norms == pytest.approx(expected, rel=1e-9), n_arms
        assert norms[best] == gaps[best] == 0


def test_blocks_are_as_wide_as_pays_and_leave_nothing_out():
    for left in range(1, 3 * WIDE):
        size = block_size(left)
        assert 1 <= size <= left
        assert size <= (NARROW if left < MANY else WIDE)


def test_the_best_available_arm_is_the_first_of_the_best():
    arms = np.array([[1.0], [3.0], [2.0], [3.0]])
    theta = np.ones(1)
    for available, best in [
        ([True, True, True, True], 1),
        ([True, False, True, True], 3),
        ([True, False, True, False], 2),
        ([True, False, False, False], 0),
    ]:
        mask = np.array(available)
        assert best_available(arms, mask, theta) == best
        assert count_available(mask) == sum(available)
        # All alike, and all worse than nothing: an available one all the same.
        assert best_available(arms, mask, np.zeros(1)) == available.index(True)
        assert mask[best_available(arms - 1e300, mask, theta)]
