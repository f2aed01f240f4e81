import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solid_bandits.estimation.linalg.vectors import (
    aligned_zeros,
    best_arm,
    dot,
    inner_products,
    sum_of_squares,
)


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_products_are_numpys(dim, seed):
    rng = np.random.default_rng(seed)
    vector, columns = rng.normal(size=dim), rng.normal(size=(dim, 5))
    products = np.empty(5)
    inner_products(columns, vector, products)
    assert products == pytest.approx(columns.T @ vector)
    squares = np.empty(5)
    sum_of_squares(columns, squares)
    assert squares == pytest.approx((columns**2).sum(axis=0))
    assert dot(columns[:, 0], vector) == pytest.approx(columns[:, 0] @ vector)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 7), (65, 256)])
def test_aligned_zeros_start_at_a_cache_line(rows, columns):
    zeros = aligned_zeros(rows, columns)
    assert zeros.shape == (rows, columns)
    assert zeros.ctypes.data % 64 == 0
    assert not zeros.any()


def test_the_best_arm_is_the_first_of_the_largest():
    assert best_arm(np.array([0.0, 2.0, 1.0, 2.0])) == 1
    assert best_arm(np.array([3.0])) == 0
