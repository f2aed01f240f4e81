"""Means and norms of every pair, kept up to date, against those computed anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact import LeastSquares
from solid_bandits.core.setting import make_table
from solid_bandits.estimation.estimator import make_estimator, observe
from solid_bandits.estimation.regression import observe_reward
from solid_bandits.estimation.tables import ANEW, LOSS, bring_up_to_date, make_table_regression


class Tabled:
    """Tables, and the rewards that they have seen."""

    def __init__(self, features, ridge):
        self.table, self.ridge = make_table(features), ridge
        self.regression = make_table_regression(self.table, 1.0, ridge)
        self.estimator, self.tables = self.regression.estimator, self.regression.tables
        dim = self.table.features.shape[2]
        self.V, self.U = ridge * np.eye(dim), np.zeros(dim)

    def observe(self, context, arm, reward):
        phi = self.table.features[context, arm]
        observe_reward(self.regression, phi, reward, 0)
        self.V += np.outer(phi, phi)
        self.U += phi * reward

    def check(self, rel=1e-9):
        """Bring up to date, and compare with means and norms from V and U."""
        bring_up_to_date(self.regression, self.table)
        features = self.table.features
        means = features @ np.linalg.solve(self.V, self.U)
        norms = np.einsum("xai,ij,xaj->xa", features, np.linalg.inv(self.V), features)
        assert self.tables.means == pytest.approx(means, rel=rel, abs=rel * max(np.abs(means).max(), 1e-12))
        assert self.tables.sq_norms == pytest.approx(norms, rel=rel)
        assert self.tables.waiting.item() == 0


@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 9),
    st.floats(0.05, 50),
    st.lists(st.integers(0, 7), min_size=1, max_size=25),
    st.integers(0, 10**6),
)
def test_tables_are_what_they_would_be_anew(n_contexts, n_arms, dim, ridge, gaps, seed):
    """After any number of rewards between one time of asking and the next: none, fewer than are kept, more."""
    rng = np.random.default_rng(seed)
    tabled = Tabled(rng.normal(size=(n_contexts, n_arms, dim)), ridge)
    for gap in gaps:
        for _ in range(gap):
            tabled.observe(int(rng.integers(n_contexts)), int(rng.integers(n_arms)), rng.normal())
        tabled.check()


@pytest.mark.parametrize("dim", [2, 6, 30])
def test_thousands_of_rewards_with_gaps_of_exploitation(dim):
    """Ten rounds that ask at every reward, then a long one that does not, again and again."""
    rng = np.random.default_rng(dim)
    tabled = Tabled(rng.normal(size=(3, 5, dim)), 1.0)
    capacity = len(tabled.tables.directions)
    assert capacity == max(dim // ANEW, 1)
    kept = anew = 0
    for gap in np.tile([1] * 10 + [capacity, capacity + 1, 100], 20):
        before = tabled.tables.log_det_ratio.item()
        for _ in range(gap):
            tabled.observe(int(rng.integers(3)), int(rng.integers(5)), rng.normal())
        tabled.check()
        computed = tabled.tables.log_det_ratio.item() != before
        assert computed or gap <= capacity
        kept, anew = kept + (not computed), anew + computed
    assert kept > 100
    assert anew >= 40


def test_norms_are_computed_anew_before_differences_cost_their_digits():
    """Norms fall by a factor of 1e12 with the first rewards: taken as differences they would be rounding errors."""
    rng = np.random.default_rng(0)
    features = 1e3 * rng.normal(size=(2, 4, 6))
    rows = features.reshape(-1, 6)
    tabled, exact = Tabled(features, 1e-6), LeastSquares(6, 1e-6)
    largest = tabled.tables.sq_norms.max()
    for step in range(60):
        context, arm, reward = step % 2, step // 2 % 4, rng.normal()
        tabled.observe(context, arm, reward)
        exact.observe(features[context, arm], reward)
        bring_up_to_date(tabled.regression, tabled.table)
        norms = exact.norms(rows)
        assert tabled.tables.sq_norms.ravel() == pytest.approx(norms**2, rel=1e-6)
        assert (np.abs(tabled.tables.means.ravel() - exact.means(rows)) < 1e-6 * norms).all()
        assert tabled.estimator.log_det_ratio.item() - tabled.tables.log_det_ratio.item() <= LOSS
    assert tabled.tables.sq_norms.max() < 1e-11 * largest


def test_the_estimator_below_is_the_one_without_tables():
    rng = np.random.default_rng(1)
    tabled = Tabled(rng.normal(size=(2, 3, 4)), 0.5)
    plain = make_estimator(4, 0.5)
    for _ in range(40):
        context, arm, reward = int(rng.integers(2)), int(rng.integers(3)), rng.normal()
        tabled.observe(context, arm, reward)
        observe(plain, tabled.table.features[context, arm], reward, np.zeros(4), np.zeros(4))
        if rng.random() < 0.3:
            tabled.check()
    for name in plain._fields:
        assert (getattr(plain, name) == getattr(tabled.estimator, name)).all(), name


def test_asking_twice_changes_nothing():
    rng = np.random.default_rng(2)
    tabled = Tabled(rng.normal(size=(2, 3, 4)), 0.5)
    for _ in range(5):
        tabled.observe(0, 1, rng.normal())
    tabled.check()
    before = [array.copy() for array in tabled.tables]
    tabled.check()
    assert all((array == old).all() for array, old in zip(tabled.tables, before, strict=True))
