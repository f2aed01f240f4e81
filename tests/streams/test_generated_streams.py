"""Generated streams: what they are said to be."""

from itertools import islice

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.streams.generated import walk, write_blocks


def some(stream, blocks=3, seed=0, run=0):
    """The first rounds: features, counts, available, means, noise."""
    found = [[one.copy() for one in block.arrays] for block in islice(stream.blocks(seed, run), blocks)]
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


@pytest.mark.parametrize(
    "stream",
    [
        sb.streams.gaussian(4, 3, seed=1),
        sb.streams.gaussian(4, 3, fresh=0.5, availability=0.5),
        sb.streams.sparse(5, 20, 0.2),
        sb.streams.joint(4, 2),
    ],
    ids=repr,
)
def test_means_are_linear_and_runs_differ(stream):
    features, counts, available, means, noise = some(stream)
    assert np.allclose(means, features @ stream.theta)
    assert available.any(axis=1).all()
    assert (counts == stream.n_arms).all()
    again, other = some(stream), some(stream, run=1)
    assert all(
        np.array_equal(one, two)
        for one, two in zip(again, (features, counts, available, means, noise), strict=True)
    )
    assert not np.array_equal(other[0], features)
    assert stream.theta_bound == pytest.approx(np.linalg.norm(stream.theta))


def test_gaussian_features_have_their_moments():
    features, _, _, _, noise = some(sb.streams.gaussian(5, 4, noise_std=0.5), blocks=4)
    count = features.size
    assert abs(features.mean()) < 4 * (0.25 / count) ** 0.5  # false alarms of each: 6e-5
    assert abs(features.var() - 0.25) < 4 * 0.25 * (2 / count) ** 0.5
    assert abs(noise.var() - 0.25) < 4 * 0.25 * (2 / len(noise)) ** 0.5


def test_sparse_features_have_their_density():
    features, *_ = some(sb.streams.sparse(5, 40, 0.3))
    share = (features != 0).mean()
    assert abs(share - 0.3) < 4 * (0.21 / features.size) ** 0.5  # false alarms: 6e-5
    assert features.var() == pytest.approx(1 / 40, rel=0.05)


def test_blocks_hold_the_context_and_nothing_else():
    features, *_ = some(sb.streams.joint(4, 3), blocks=1)
    context = features[:, 0, :3]
    for arm in range(4):
        expected = np.zeros((len(features), 12))
        expected[:, 3 * arm : 3 * arm + 3] = context
        assert np.array_equal(features[:, arm], expected)


def test_blocks_after_other_features():
    features = np.full((2, 2, 5), 7.0)
    features[:, :, 1:] = 0.0
    write_blocks(np.array([[1.0, 2.0], [3.0, 4.0]]), features, first=1)
    assert features[0].tolist() == [[7, 1, 2, 0, 0], [7, 0, 0, 1, 2]]
    assert features[1].tolist() == [[7, 3, 4, 0, 0], [7, 0, 0, 3, 4]]


def test_a_share_of_the_contexts_is_fresh():
    stream = sb.streams.gaussian(2, 2, fresh=0.25, n_contexts=3)
    features, *_ = some(stream, blocks=2)
    old = (features[:, None] == stream.old[None]).all(axis=(2, 3))
    assert set(np.flatnonzero(old.any(axis=0))) == {0, 1, 2}
    fresh = 1 - old.any(axis=1).mean()
    assert abs(fresh - 0.25) < 4 * (0.1875 / len(features)) ** 0.5  # false alarms: 6e-5


def test_available_arms_have_their_share():
    """P(available) = p + (1 - p) / K, as one arm always is."""
    _, _, available, _, _ = some(sb.streams.gaussian(4, 2, availability=0.3))
    share = 0.3 + 0.7 / 4
    # Arms of a round are almost independent: twice the deviation of independent ones is more than enough.
    assert abs(available.mean() - share) < 8 * (share * (1 - share) / available.size) ** 0.5


def test_the_walk_is_the_recursion_and_stays_standard_normal():
    rng = np.random.default_rng(0)
    theta, steps = rng.normal(size=3), rng.normal(size=(50, 3))
    slow, at = [], theta.copy()
    for one in steps:
        at = 0.8 * at + 0.6 * one
        slow.append(at)
    walk(theta, 0.8, steps)
    assert np.allclose(steps, slow)
    assert np.array_equal(theta, steps[-1])


def test_a_drifting_truth_is_followed_by_the_means():
    still, moving = sb.streams.gaussian(3, 2), sb.streams.gaussian(3, 2, drift=0.01)
    features, _, _, means, _ = some(moving)
    assert moving.theta_bound is None
    assert np.allclose(means[0], features[0] @ still.theta, atol=0.6)
    thetas = np.stack(
        [np.linalg.lstsq(phi, mu, rcond=None)[0] for phi, mu in zip(features, means, strict=True)]
    )
    assert np.allclose(np.einsum("tad,td->ta", features, thetas), means)  # linear in each round
    # AR(1) with variance 1: each step has variance 2 (1 - 0.99).
    moves = np.diff(thetas, axis=0).ravel()
    assert abs(moves.var() / 0.02 - 1) < 4 * (2 / moves.size) ** 0.5  # false alarms: 6e-5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_arms": 0}, "n_arms must be an integer >= 1, got 0"),
        ({"fresh": 1.5}, "fresh must be >= 0 and <= 1, got 1.5"),
        ({"drift": -1}, "drift must be >= 0 and <= 1, got -1"),
        ({"noise_std": 0}, "noise_std must be > 0, got 0"),
        ({"availability": 0}, "availability must be > 0 and <= 1, got 0"),
    ],
)
def test_what_will_not_do(arguments, message):
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        sb.streams.gaussian(**arguments)
