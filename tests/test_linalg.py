import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solid_bandits import linalg

sizes = st.tuples(st.integers(1, 4), st.integers(2, 6), st.integers(1, 7), st.integers(0, 10**6))


def spd(rng, dim):
    root = rng.normal(size=(dim, dim + 2))
    return root @ root.T + 0.1 * np.eye(dim)


def columns_of(features):
    return np.ascontiguousarray(features.reshape(-1, features.shape[2]).T)


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_factorisations_and_solves_are_numpys(dim, seed):
    rng = np.random.default_rng(seed)
    matrix, vector, factor = spd(rng, dim), rng.normal(size=dim), np.full((dim, dim), np.nan)
    linalg.cholesky(matrix, factor)
    assert factor == pytest.approx(np.linalg.cholesky(matrix))

    inverse = np.empty_like(matrix)
    linalg.inverse_from_factor(factor, inverse)
    assert inverse @ matrix == pytest.approx(np.eye(dim), abs=1e-9)

    solution = vector.copy()
    linalg.solve_transposed(factor, solution)
    assert factor.T @ solution == pytest.approx(vector)

    columns = rng.normal(size=(dim, 5))
    solved = columns.copy()
    linalg.solve_columns(factor, solved)
    assert factor @ solved == pytest.approx(columns)

    linalg.cholesky_update(factor, vector.copy())
    assert factor @ factor.T == pytest.approx(matrix + np.outer(vector, vector))

    out = np.empty(dim)
    linalg.symmetric_product(matrix, vector, out)
    assert out == pytest.approx(matrix @ vector)
    products = np.empty(5)
    linalg.inner_products(columns, vector, products)
    assert products == pytest.approx(columns.T @ vector)


@pytest.mark.parametrize(
    "matrix", [np.zeros((3, 3)), np.ones((3, 3)), -np.eye(3), np.diag([1.0, 1e-30, 0.0])]
)
def test_cholesky_of_a_singular_matrix_stays_finite(matrix):
    factor = np.empty((3, 3))
    linalg.cholesky(matrix, factor)
    assert np.isfinite(factor).all()
    assert (np.diag(factor) > 0).all()


@given(sizes)
def test_weighted_gram_is_the_sum_of_outer_products(size):
    n_contexts, n_arms, dim, seed = size
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(dim, n_contexts * n_arms))
    weights = rng.uniform(size=n_contexts * n_arms)
    gram = np.empty((dim, dim))
    linalg.weighted_gram(columns, weights, np.empty_like(columns), gram)
    exact = (columns * weights) @ columns.T
    assert gram == pytest.approx(exact + linalg.GRAM_RIDGE * np.trace(exact) / dim * np.eye(dim))


def closest(features, means, gram):
    dim = features.shape[2]
    columns = columns_of(features)
    delta = np.empty(dim)
    distance = linalg.closest_alternative(
        columns, means, gram, np.empty((dim, dim)), np.empty_like(columns), np.empty(columns.shape[1]), delta
    )
    return distance, delta


@given(sizes)
def test_closest_alternative_changes_an_optimal_arm_at_the_least_distance(size):
    n_contexts, n_arms, dim, seed = size
    rng = np.random.default_rng(seed)
    features, theta, gram = rng.normal(size=(n_contexts, n_arms, dim)), rng.normal(size=dim), spd(rng, dim)
    means = features @ theta
    distance, delta = closest(features, means, gram)
    assert delta @ gram @ delta == pytest.approx(distance)
    # At the alternative some other arm has just caught up ...
    other = features @ (theta - delta)
    rows = np.arange(n_contexts)
    best = means.argmax(axis=1)
    catch_up = other - other[rows, best][:, None]
    catch_up[rows, best] = -np.inf
    assert catch_up.max() == pytest.approx(0, abs=1e-8)
    # ... and no model at hand with another optimal arm is closer.
    for _ in range(50):
        rival = theta + rng.normal(size=dim) * rng.exponential(2)
        if ((features @ rival).argmax(axis=1) != best).any():
            assert (theta - rival) @ gram @ (theta - rival) >= distance * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_closest_alternative_agrees_with_a_conic_solver(seed):
    rng = np.random.default_rng(seed)
    features, theta, gram = rng.normal(size=(2, 3, 4)), rng.normal(size=4), spd(rng, 4)
    means = features @ theta
    values = []
    for x in range(2):
        best = means[x].argmax()
        for a in range(3):
            if a != best:
                rival = cp.Variable(4)
                away = cp.sum_squares(np.linalg.cholesky(gram).T @ (theta - rival))
                overtakes = (features[x, a] - features[x, best]) @ rival >= 0
                values.append(cp.Problem(cp.Minimize(away), [overtakes]).solve(solver=cp.CLARABEL))
    assert closest(features, means, gram)[0] == pytest.approx(min(values), rel=1e-6)


@given(sizes)
def test_the_information_at_the_closest_alternative_is_the_gradient_of_the_infimum(size):
    """Envelope theorem: d/dω inf_θ' ‖θ - θ'‖²_{V_ω} = (φᵀδ)², by central differences where the minimiser is unique."""
    n_contexts, n_arms, dim, seed = size
    rng = np.random.default_rng(seed)
    features, theta = rng.normal(size=(n_contexts, n_arms, dim)), rng.normal(size=dim)
    means, columns = features @ theta, columns_of(features)
    weights = rng.uniform(0.5, 1.5, size=n_contexts * n_arms)

    def value(weights):
        return closest(features, means, (columns * weights) @ columns.T + 0.1 * np.eye(dim))

    _, delta = value(weights)
    direction = rng.normal(size=len(weights))
    step = 1e-5
    above, below = value(weights + step * direction), value(weights - step * direction)
    if np.linalg.norm(above[1] - below[1]) > 1e-2 * np.linalg.norm(delta):
        return  # the minimiser changes here: a kink
    slope = (above[0] - below[0]) / (2 * step)
    assert direction @ (columns.T @ delta) ** 2 == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_without_an_alternative_the_distance_is_infinite():
    copies = np.repeat(np.array([[[1.0, 2.0]]]), 3, axis=1)
    distance, delta = closest(copies, copies @ np.ones(2), np.eye(2))
    assert distance == np.inf
    assert (delta == 0).all()


@given(sizes)
def test_difference_norms_survive_cancellation(size):
    _, _, dim, seed = size
    rng = np.random.default_rng(seed)
    matrix, first = spd(rng, dim), rng.normal(size=dim)
    for distance in (0.0, 1e-9, 1e-4, 1.0):
        second = first + distance * rng.normal(size=dim)
        parts = first @ matrix @ first + second @ matrix @ second
        cross = first @ matrix @ second
        norm = linalg.difference_norm(matrix, first, second, parts, cross)
        exact = (first - second) @ matrix @ (first - second)
        assert norm == pytest.approx(exact, rel=1e-8, abs=0)


def gram_reference(columns, weights):
    exact = (columns * weights) @ columns.T
    return exact + linalg.GRAM_RIDGE * np.trace(exact) / len(exact) * np.eye(len(exact))


def same_gram(gram, reference):
    return np.abs(gram - reference).max() <= 1e-13 * np.trace(reference)


# Around multiples of the rows and columns that are taken at once.
@pytest.mark.parametrize("dim", [1, 3, 4, 5, 8, 13])
@pytest.mark.parametrize(
    "pairs", [1, 7, linalg.BLOCK - 1, linalg.BLOCK, linalg.BLOCK + 1, 2 * linalg.BLOCK + 9]
)
@pytest.mark.parametrize("width", [1, 10, linalg.BLOCK, 3 * linalg.BLOCK])
def test_grams_by_blocks_are_the_sum_of_outer_products(dim, pairs, width):
    rng = np.random.default_rng(dim * pairs * width)
    columns, weights = rng.normal(size=(dim, pairs)), rng.uniform(size=pairs)
    gram, block = np.full((dim, dim), np.nan), linalg.aligned_zeros(dim, width)
    linalg.weighted_gram(columns, weights, block, gram)
    assert same_gram(gram, gram_reference(columns, weights))
    weights[rng.uniform(size=pairs) < 0.8] = 0
    linalg.sparse_weighted_gram(columns, weights, 10.0, np.zeros(pairs, dtype=np.int64), block, gram)
    assert same_gram(gram, gram_reference(columns, weights))


def sparse_gram(columns, weights):
    dim, pairs = columns.shape
    gram, chosen = np.full((dim, dim), np.nan), np.zeros(pairs, dtype=np.int64)
    bound = np.sqrt((columns**2).sum(axis=0).max())
    linalg.sparse_weighted_gram(columns, weights, bound, chosen, np.zeros((dim, 16)), gram)
    return gram


@pytest.mark.parametrize("seed", range(20))
def test_weights_left_out_move_no_norm_by_more_than_rounding(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(5, 100))
    weights = 10.0 ** -rng.uniform(0, 60, size=100)
    weights[:3] = 1 / 3  # of which the rest leaves two directions out
    gram, reference = sparse_gram(columns, weights), gram_reference(columns, weights)
    assert same_gram(gram, reference)
    ratios = np.linalg.eigvals(np.linalg.solve(reference, gram)).real
    assert ratios == pytest.approx(np.ones(5), abs=1e-5)


def test_small_weights_of_long_features_are_not_left_out():
    columns = np.zeros((2, 10))
    columns[0, 0], columns[1, 1:] = 1e-12, 1.0
    weights = np.array([1.0] + [1e-23] * 9)
    # A weight of 1e-23 looks negligible and is not: what it multiplies is longer than the rest by more than that.
    assert sparse_gram(columns, weights)[1, 1] == pytest.approx(9e-23)


def test_no_weights_at_all_give_the_zero_matrix():
    assert (sparse_gram(np.ones((3, 40)), np.zeros(40)) == 0).all()


def test_a_context_never_seen_has_no_part_in_the_gram():
    rng = np.random.default_rng(0)
    columns, weights = rng.normal(size=(4, 60)), rng.uniform(size=60)
    weights[10:] = 0
    poisoned = columns.copy()
    poisoned[:, 10:] = np.nan
    gram = np.empty((4, 4))
    linalg.sparse_weighted_gram(poisoned, weights, 5.0, np.zeros(60, dtype=np.int64), np.zeros((4, 60)), gram)
    assert same_gram(gram, gram_reference(columns, weights))


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_dominance_is_a_positive_definite_difference(dim, seed):
    rng = np.random.default_rng(seed)
    matrix, other = spd(rng, dim), spd(rng, dim)
    least = np.linalg.eigvals(np.linalg.solve(other, matrix)).real.min()
    scratch = np.full((dim, dim), np.nan)
    assert linalg.dominates(matrix, other, least * (1 - 1e-6), scratch)
    assert not linalg.dominates(matrix, other, least * (1 + 1e-6), scratch)
    assert not linalg.dominates(np.zeros((dim, dim)), np.zeros((dim, dim)), 0.5, scratch)


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_whitened_differences_have_the_norm_of_the_inverse(dim, seed):
    rng = np.random.default_rng(seed)
    matrix, first, second, out = spd(rng, dim), rng.normal(size=dim), rng.normal(size=dim), np.empty(dim)
    factor = np.linalg.cholesky(matrix)
    norm = linalg.whiten_difference(first, second, factor, out)
    assert factor @ out == pytest.approx(first - second)
    assert norm == pytest.approx((first - second) @ np.linalg.inv(matrix) @ (first - second))


def no_bounds(features, means):
    """Bounds that leave no pair out: W_s = 0, under which all norms are infinite."""
    bounds = linalg.make_bounds(*features.shape)
    bounds.computed[()] = -(10**9)
    bounds.norms[:] = np.inf
    bounds.best[:] = means.argmax(axis=1)
    return bounds


def pruned(features, means, gram, bounds):
    delta = np.full(features.shape[2], np.nan)
    columns = columns_of(features)
    distance = linalg.pruned_alternative(features, columns, means, gram, np.empty_like(gram), bounds, delta)
    return distance, delta.tolist()


def check_pruning(features, means, gram, bounds):
    """Kept bounds, new bounds and no bounds: the same minimiser to the last bit, and the one that NumPy finds."""
    found = pruned(features, means, gram, bounds)
    assert found == pruned(features, means, gram, linalg.make_bounds(*features.shape))
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
    bounds = linalg.make_bounds(6, 5, 4)
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
    bounds = linalg.make_bounds(40, 20, 6)
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
    bounds = linalg.make_bounds(3, 3, 3)
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
    found = pruned(features, means, np.eye(2), linalg.make_bounds(3, 4, 2))
    assert found == pruned(features, means, np.eye(2), no_bounds(features, means))
    assert found[0] == 0


def test_pruning_without_an_alternative_or_without_weights():
    copies = np.repeat(np.array([[[1.0, 2.0]]]), 3, axis=1)
    assert pruned(copies, copies @ np.ones(2), np.eye(2), linalg.make_bounds(1, 3, 2)) == (np.inf, [0.0, 0.0])
    features, bounds = np.eye(3)[None], linalg.make_bounds(1, 3, 3)
    for gram in (np.zeros((3, 3)), np.eye(3), np.zeros((3, 3)), 1e-9 * np.eye(3)):
        found = pruned(features, np.array([[1.0, 0.5, 0.0]]), gram, bounds)
        assert np.isfinite(found[1]).all()
        assert found == pruned(features, np.array([[1.0, 0.5, 0.0]]), gram, linalg.make_bounds(1, 3, 3))
