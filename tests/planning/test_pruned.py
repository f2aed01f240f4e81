import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solid_bandits.planning.pruned import dominates, make_bounds, pruned_alternative, whiten_difference
from tables import columns_of, gram_reference, spd


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_dominance_is_a_positive_definite_difference(dim, seed):
    rng = np.random.default_rng(seed)
    matrix, other = spd(rng, dim), spd(rng, dim)
    least = np.linalg.eigvals(np.linalg.solve(other, matrix)).real.min()
    scratch = np.full((dim, dim), np.nan)
    assert dominates(matrix, other, least * (1 - 1e-6), scratch)
    assert not dominates(matrix, other, least * (1 + 1e-6), scratch)
    assert not dominates(np.zeros((dim, dim)), np.zeros((dim, dim)), 0.5, scratch)


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_whitened_differences_have_the_norm_of_the_inverse(dim, seed):
    rng = np.random.default_rng(seed)
    matrix, first, second, out = spd(rng, dim), rng.normal(size=dim), rng.normal(size=dim), np.empty(dim)
    factor = np.linalg.cholesky(matrix)
    norm = whiten_difference(first, second, factor, out)
    assert factor @ out == pytest.approx(first - second)
    assert norm == pytest.approx((first - second) @ np.linalg.inv(matrix) @ (first - second))


def no_bounds(features, means):
    """Bounds that leave no pair out: W_s = 0, under which all norms are infinite."""
    bounds = make_bounds(*features.shape)
    bounds.computed[()] = -(10**9)
    bounds.norms[:] = np.inf
    bounds.best[:] = means.argmax(axis=1)
    return bounds


def pruned(features, means, gram, bounds):
    delta = np.full(features.shape[2], np.nan)
    columns = columns_of(features)
    distance = pruned_alternative(features, columns, means, gram, np.empty_like(gram), bounds, delta)
    return distance, delta.tolist()


def check_pruning(features, means, gram, bounds):
    """Kept bounds, new bounds and no bounds: the same minimiser to the last bit, and the one that NumPy finds."""
    found = pruned(features, means, gram, bounds)
    assert found == pruned(features, means, gram, make_bounds(*features.shape))
    assert found == pruned(features, means, gram, no_bounds(features, means))
    rows, best = np.arange(len(means)), means.argmax(axis=1)
    differences = features[rows, best][:, None, :] - features
    gaps = means[rows, best][:, None] - means
    norms = np.einsum("xai,ij,xaj->xa", differences, np.linalg.inv(gram), differences)
    distances = np.full(gaps.shape, np.inf)
    distinct = (differences != 0).any(axis=2)
    distances[distinct] = gaps[distinct] ** 2 / norms[distinct]
    assert found[0] == pytest.approx(distances.min(), rel=1e-3)
    x, a = np.unravel_index(np.argmin(distances), distances.shape)
    if (distances < distances[x, a] * 1.01).sum() == 1:
        delta = gaps[x, a] / norms[x, a] * np.linalg.inv(gram) @ differences[x, a]
        assert found[1] == pytest.approx(delta, rel=1e-3, abs=1e-3 * np.abs(delta).max())


def exploring_weights(logits, counts):
    omega = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (counts / counts.sum())[:, None] * omega / omega.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("pace", [0.01, 0.5, 5.0])
def test_pruning_never_loses_the_closest_alternative(seed, pace):
    """A policy that drifts or leaps, contexts seen one after another, best arms that change, weights that vanish."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(6, 5, 4)) * 10.0 ** rng.uniform(-1, 1, size=(6, 5, 1))
    if seed % 3 == 1:
        features[:, :, 3] = features[:, :, 2]  # W singular but for its ridge
    if seed % 3 == 2:
        features[:, 1] = features[:, 0]  # copies of an arm, at times of the best one
    theta, logits, counts = rng.normal(size=4), np.zeros((6, 5)), np.zeros(6)
    bounds = make_bounds(6, 5, 4)
    kept = 0
    for step in range(60):
        counts[rng.integers(1 + step // 5) % 6] += 1
        logits += pace * rng.normal(size=(6, 5))
        theta += 0.05 * rng.normal(size=4)
        if step % 20 == 19:
            logits = 300 * rng.normal(size=(6, 5))  # a leap: one arm per context
        weights = exploring_weights(logits, counts)
        before = bounds.gram.copy()
        gram = gram_reference(columns_of(features), weights.ravel())
        check_pruning(features, features @ theta, gram, bounds)
        kept += (bounds.gram == before).all()
    if pace == 0.01:
        assert kept > 10  # the bounds were at work


def test_pruning_computes_few_pairs_while_the_weights_settle():
    rng = np.random.default_rng(0)
    features, theta = rng.normal(size=(40, 20, 6)), rng.normal(size=6)
    bounds = make_bounds(40, 20, 6)
    logits, computed = np.zeros((40, 20)), []
    for _ in range(50):
        logits += 0.01 * rng.normal(size=logits.shape)
        gram = gram_reference(columns_of(features), exploring_weights(logits, np.ones(40)).ravel())
        before, old = bounds.computed.item(), bounds.gram.copy()
        pruned(features, features @ theta, gram, bounds)
        renewed = not np.array_equal(bounds.gram, old)
        # Bounds that are renewed compute every pair anew, and the count starts again.
        computed.append(features.shape[0] * features.shape[1] if renewed else bounds.computed.item() - before)
    assert sum(one == 800 for one in computed) <= 5
    assert np.mean([one for one in computed if one < 800]) < 40
    assert np.mean(computed) < 120


def test_ties_go_to_the_first_pair_with_and_without_pruning():
    # Gaps of 1 in the directions e1 + e2, e1 - e2, ... whose norms are equal to the last bit.
    features = np.zeros((3, 3, 3))
    features[0, 1:, 0], features[0, 1:, 1] = -1.0, [1.0, -1.0]
    features[1, 1:, 1], features[1, 1:, 2] = -1.0, [1.0, -1.0]
    features[2, 1:, 0], features[2, 1:, 2] = -1.0, [1.0, -1.0]
    means = np.array([[1.0, 0.0, 0.0]] * 3)
    bounds = make_bounds(3, 3, 3)
    for gram in (np.eye(3), 4 * np.eye(3), 0.25 * np.eye(3)):  # whose roots are exact
        found = pruned(features, means, gram, bounds)
        assert found == pruned(features, means, gram, no_bounds(features, means))
        assert found == (0.5 * gram[0, 0], [0.5, -0.5, 0.0])


@pytest.mark.parametrize("gap", [0.0, 1e-200])
def test_pruning_with_gaps_that_vanish(gap):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(3, 4, 2))
    means = np.full((3, 4), -gap)
    means[:, 2] = 0.0
    found = pruned(features, means, np.eye(2), make_bounds(3, 4, 2))
    assert found == pruned(features, means, np.eye(2), no_bounds(features, means))
    assert found[0] == 0


def test_pruning_without_an_alternative_or_without_weights():
    copies = np.repeat(np.array([[[1.0, 2.0]]]), 3, axis=1)
    assert pruned(copies, copies @ np.ones(2), np.eye(2), make_bounds(1, 3, 2)) == (np.inf, [0.0, 0.0])
    features, bounds = np.eye(3)[None], make_bounds(1, 3, 3)
    for gram in (np.zeros((3, 3)), np.eye(3), np.zeros((3, 3)), 1e-9 * np.eye(3)):
        found = pruned(features, np.array([[1.0, 0.5, 0.0]]), gram, bounds)
        assert np.isfinite(found[1]).all()
        assert found == pruned(features, np.array([[1.0, 0.5, 0.0]]), gram, make_bounds(1, 3, 3))
