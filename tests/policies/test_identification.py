"""The tests by which policies stop exploring, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solid_bandits.estimation.regression import observe_reward, write_theta
from solid_bandits.estimation.ridge import make_regression
from solid_bandits.policies.identification import (
    alternative_distance,
    best_of_rows,
    is_identified,
    least_positive_gap,
    make_past_norms,
    matched_distance,
)


@given(st.integers(1, 20), st.integers(1, 6), st.integers(0, 10**6))
def test_the_distance_is_that_of_the_nearest_model_with_another_best_arm(n_arms, dim, seed):
    """min Δ² / ‖φ* - φ‖²_{V^-1}: where it ends, θ' makes the two arms tie, and nothing nearer does."""
    rng = np.random.default_rng(seed)
    arms, regression = rng.normal(size=(n_arms, dim)), make_regression(dim, 1.0, 0.5, norms=True)
    if seed % 4 == 0:
        arms[-1] = arms[0]  # a copy is no alternative to what it copies
    V, theta = 0.5 * np.eye(dim), regression.work.theta
    for phi in rng.normal(size=(15, dim)):
        observe_reward(regression, phi, rng.normal(), 0)
        V += np.outer(phi, phi)
    write_theta(regression, theta)
    best = best_of_rows(arms, theta)
    assert best == int(np.argmax(arms @ theta))
    distances = [np.inf]
    for arm in range(n_arms):
        d = arms[best] - arms[arm]
        if d.any():
            shift = (d @ theta) / (d @ np.linalg.solve(V, d)) * np.linalg.solve(V, d)
            assert d @ (theta - shift) == pytest.approx(0, abs=1e-9)
            distances.append(shift @ V @ shift)
    exact = alternative_distance(regression, arms, -np.inf)
    assert exact == pytest.approx(min(distances), rel=1e-7)
    # The search may end early, and then with a value that is enough to know that the arm is not identified.
    for threshold in (0.3 * exact, 0.99 * exact, 1.01 * exact, 3 * exact):
        if np.isfinite(threshold):
            found = alternative_distance(regression, arms, threshold)
            assert found >= exact * (1 - 1e-12)
            assert found <= max(exact * (1 + 1e-12), threshold)
            past = make_past_norms(1, n_arms)
            for _ in range(2):  # without norms of the past, and with them
                identified = is_identified(regression, arms, past, 0, threshold)
                assert identified == (exact > threshold)


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 10**6))
def test_oams_statistic_matches_its_definition(n_contexts, n_arms, seed):
    rng = np.random.default_rng(seed)
    means = rng.integers(-3, 3, size=(n_contexts, n_arms)).astype(float)
    norms = rng.exponential(size=(n_contexts, n_arms))
    gaps = means.max(axis=1, keepdims=True) - means
    least = gaps[gaps > 0].min() if (gaps > 0).any() else 0.0
    assert least_positive_gap(means) == least
    for context in range(n_contexts):
        exact = (np.maximum(gaps[context], least) ** 2 / norms[context]).min()
        assert matched_distance(means[context], norms[context], least, -np.inf) == pytest.approx(exact)
        for enough in (0.5 * exact, 2 * exact + 1e-9):
            found = matched_distance(means[context], norms[context], least, enough)
            assert (found < enough) == (exact < enough)


def test_arms_without_a_norm_are_left_out():
    """Features of zeros: nothing could be learnt of them."""
    assert matched_distance(np.array([0.0, -1.0]), np.zeros(2), 0.1, -np.inf) == np.inf
    assert matched_distance(np.array([0.0, -1.0]), np.array([0.0, 0.5]), 0.1, -np.inf) == 2
