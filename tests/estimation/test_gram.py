import numpy as np
import pytest
from hypothesis import given

from solid_bandits.estimation.linalg.gram import GRAM_RIDGE, sparse_weighted_gram, weighted_gram
from solid_bandits.estimation.linalg.vectors import BLOCK, aligned_zeros
from tables import gram_reference, sizes


@given(sizes)
def test_weighted_gram_is_the_sum_of_outer_products(size):
    n_contexts, n_arms, dim, seed = size
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(dim, n_contexts * n_arms))
    weights = rng.uniform(size=n_contexts * n_arms)
    gram = np.empty((dim, dim))
    weighted_gram(columns, weights, np.empty_like(columns), gram)
    exact = (columns * weights) @ columns.T
    assert gram == pytest.approx(exact + GRAM_RIDGE * np.trace(exact) / dim * np.eye(dim))


def same_gram(gram, reference):
    return np.abs(gram - reference).max() <= 1e-13 * np.trace(reference)


# Around multiples of the rows and columns that are taken at once.
@pytest.mark.parametrize("dim", [1, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("pairs", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 9])
@pytest.mark.parametrize("width", [1, 10, BLOCK, 3 * BLOCK])
def test_grams_by_blocks_are_the_sum_of_outer_products(dim, pairs, width):
    rng = np.random.default_rng(dim * pairs * width)
    columns, weights = rng.normal(size=(dim, pairs)), rng.uniform(size=pairs)
    gram, block = np.full((dim, dim), np.nan), aligned_zeros(dim, width)
    weighted_gram(columns, weights, block, gram)
    assert same_gram(gram, gram_reference(columns, weights))
    weights[rng.uniform(size=pairs) < 0.8] = 0
    sparse_weighted_gram(columns, weights, 10.0, np.zeros(pairs, dtype=np.int64), block, gram)
    assert same_gram(gram, gram_reference(columns, weights))


def sparse_gram(columns, weights):
    dim, pairs = columns.shape
    gram, chosen = np.full((dim, dim), np.nan), np.zeros(pairs, dtype=np.int64)
    bound = np.sqrt((columns**2).sum(axis=0).max())
    sparse_weighted_gram(columns, weights, bound, chosen, np.zeros((dim, 16)), gram)
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
    sparse_weighted_gram(poisoned, weights, 5.0, np.zeros(60, dtype=np.int64), np.zeros((4, 60)), gram)
    assert same_gram(gram, gram_reference(columns, weights))
