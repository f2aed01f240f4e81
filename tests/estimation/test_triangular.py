import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solid_bandits.estimation.linalg.triangular import (
    cholesky,
    cholesky_of_block,
    solve_block,
    solve_columns,
    solve_lower,
    solve_transposed,
)
from tables import spd


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_factorisations_and_solves_are_numpys(dim, seed):
    rng = np.random.default_rng(seed)
    matrix, vector, factor = spd(rng, dim), rng.normal(size=dim), np.full((dim, dim), np.nan)
    cholesky(matrix, factor)
    assert factor == pytest.approx(np.linalg.cholesky(matrix))

    solution = vector.copy()
    solve_transposed(factor, solution)
    assert factor.T @ solution == pytest.approx(vector)

    solution = vector.copy()
    solve_lower(factor, solution)
    assert factor @ solution == pytest.approx(vector)

    columns = rng.normal(size=(dim, 5))
    solved = columns.copy()
    solve_columns(factor, solved)
    assert factor @ solved == pytest.approx(columns)


@pytest.mark.parametrize(
    "matrix", [np.zeros((3, 3)), np.ones((3, 3)), -np.eye(3), np.diag([1.0, 1e-30, 0.0])]
)
def test_cholesky_of_a_singular_matrix_stays_finite(matrix):
    factor = np.empty((3, 3))
    cholesky(matrix, factor)
    assert np.isfinite(factor).all()
    assert (np.diag(factor) > 0).all()


@given(st.integers(1, 9), st.integers(0, 3), st.integers(0, 10**6))
def test_a_leading_block_is_worked_on_alone(dim, beyond, seed):
    rng = np.random.default_rng(seed)
    matrix, factor = np.full((2, dim + beyond, dim + beyond), np.nan)
    matrix[:dim, :dim] = np.tril(spd(rng, dim))  # what lies above the diagonal is not read
    cholesky_of_block(matrix, factor, dim)
    whole = matrix[:dim, :dim] + np.tril(matrix[:dim, :dim], -1).T
    assert factor[:dim, :dim] == pytest.approx(np.linalg.cholesky(whole))
    assert np.isnan(factor[dim:]).all()
    assert np.isnan(factor[:, dim:]).all()

    columns = np.full((dim + beyond, 5 + beyond), np.nan)
    columns[:dim, :5] = right = rng.normal(size=(dim, 5))
    solve_block(factor, columns, dim, 5)
    assert factor[:dim, :dim] @ columns[:dim, :5] == pytest.approx(right)
    assert np.isnan(columns[dim:]).all()

    solution = right[:, 0].copy()
    solve_lower(factor, solution)
    solve_transposed(factor, solution)
    assert whole @ solution == pytest.approx(right[:, 0])


@given(st.integers(2, 9), st.integers(0, 10**6))
def test_rows_of_very_different_scales_keep_their_digits(dim, seed):
    rng = np.random.default_rng(seed)
    matrix, factor = spd(rng, dim), np.empty((dim, dim))
    scale = 10.0 ** rng.integers(-20, 20, size=dim)
    cholesky(matrix * scale * scale[:, None], factor)
    assert factor / scale[:, None] == pytest.approx(np.linalg.cholesky(matrix), rel=1e-9, abs=1e-12)
