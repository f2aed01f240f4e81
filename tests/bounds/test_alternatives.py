"""The closest alternatives inside the solver of the lower bound: all pairs at once against one at a time."""

import numpy as np
import pytest

from solid_bandits.bounds._alternatives import bounded, inverse_factor
from solid_bandits.planning.ball import ball_multiplier


@pytest.mark.parametrize("seed", range(20))
def test_closest_in_a_ball_is_what_bisection_finds(seed):
    rng = np.random.default_rng(seed)
    pairs, k = 30, int(rng.integers(2, 9))
    root = rng.normal(size=(k, k)) * 10.0 ** rng.integers(-5, 2, size=k)
    theta = rng.normal(size=k)
    radius = np.linalg.norm(theta) * (1 + 10.0 ** -rng.integers(0, 6))
    v = rng.normal(size=(pairs, k))
    v *= (rng.uniform(0.02, 1.0, size=pairs) ** -1 / (v @ theta + radius * np.linalg.norm(v, axis=1)))[
        :, None
    ]
    values, kappa, betas, eigenvalues, basis = bounded(v, root.T @ root, theta, radius)
    assert (kappa > 0).any()
    rotated, centre, beta = v @ basis, theta @ basis, np.empty(k)
    for j in range(pairs):
        other = ball_multiplier(rotated[j], centre, eigenvalues, radius, beta)
        assert kappa[j] == pytest.approx(other, rel=1e-6)
        assert values[j] == pytest.approx((eigenvalues * beta * beta).sum(), rel=1e-7)
    np.testing.assert_allclose(np.vecdot(rotated, betas), 1.0, rtol=1e-9)
    assert np.linalg.norm(centre - betas, axis=1).max() <= radius * (1 + 1e-12)


def test_a_matrix_without_full_rank_has_a_factor_with_lifted_pivots():
    rows = np.random.default_rng(0).normal(size=(3, 5))
    inverse = inverse_factor(rows.T @ rows)
    assert np.isfinite(inverse).all()
    assert np.abs(inverse).max() > 1e5
    whole = np.random.default_rng(1).normal(size=(9, 5))
    np.testing.assert_allclose(
        inverse_factor(whole.T @ whole), np.linalg.inv(np.linalg.cholesky(whole.T @ whole)).T
    )
    assert np.isnan(inverse_factor(np.full((2, 2), np.nan))).any()
