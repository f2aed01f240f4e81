"""The triangle against least squares solved by NumPy from all rewards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solid_bandits.estimation.estimator import (
    make_estimator,
    observe,
    set_ridge,
    solve_triangle,
    squared_norm,
    write_gram,
    write_theta,
)

cases = given(
    dim=st.integers(1, 8), ridge=st.floats(1e-2, 50), count=st.integers(0, 60), seed=st.integers(0, 10**6)
)


def drawn(dim, count, seed):
    """Features, rewards and a generator for more."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, dim)), rng.normal(size=count), rng


def learnt(dim, ridge, features, rewards):
    estimator = make_estimator(dim, ridge)
    for phi, reward in zip(features, rewards, strict=True):
        observe(estimator, phi, reward, np.zeros(dim), np.zeros(dim))
    return estimator


def theta_of(estimator):
    theta = np.zeros(len(estimator.weights))
    write_theta(estimator, theta)
    return theta


@cases
def test_what_is_kept_is_least_squares(dim, ridge, count, seed):
    features, rewards, rng = drawn(dim, count, seed)
    estimator = learnt(dim, ridge, features, rewards)
    V = ridge * np.eye(dim) + features.T @ features
    theta = np.linalg.solve(V, features.T @ rewards)
    gram = np.zeros((dim, dim))
    write_gram(estimator, gram)
    assert gram == pytest.approx(V, rel=1e-10, abs=1e-10)
    assert theta_of(estimator) == pytest.approx(theta, abs=1e-9)
    assert estimator.log_det_ratio.item() == pytest.approx(np.linalg.slogdet(V / ridge)[1], abs=1e-9)
    loss = ((rewards - features @ theta) ** 2).sum() + ridge * theta @ theta
    assert estimator.residual.item() == pytest.approx(loss, abs=1e-9)
    assert estimator.reward_sum.item() == pytest.approx(rewards.sum(), abs=1e-9)
    assert estimator.rewards.item() == count
    assert (np.tril(estimator.triangle) == np.eye(dim)).all()

    vector = rng.normal(size=dim)
    inside = np.linalg.solve(V, vector)
    assert squared_norm(estimator, vector.copy()) == pytest.approx(vector @ inside, rel=1e-9)


@cases
def test_a_reward_tells_how_much_v_grew_and_in_which_direction(dim, ridge, count, seed):
    """1 + ‖φ‖² under the V^-1 of before, and U^-1 gains = V^-1 φ under the V of after."""
    features, rewards, rng = drawn(dim, count, seed)
    estimator = learnt(dim, ridge, features, rewards)
    V = ridge * np.eye(dim) + features.T @ features
    phi, gains = rng.normal(size=dim), np.zeros(dim)
    growth = observe(estimator, phi, 1.0, np.zeros(dim), gains)
    assert growth == pytest.approx(1 + phi @ np.linalg.solve(V, phi), rel=1e-9)
    solve_triangle(estimator, gains)
    assert gains == pytest.approx(np.linalg.solve(V + np.outer(phi, phi), phi), abs=1e-9)


@cases
def test_the_order_of_rewards_does_not_matter(dim, ridge, count, seed):
    features, rewards, rng = drawn(dim, count, seed)
    first = learnt(dim, ridge, features, rewards)
    order = rng.permutation(count)
    second = learnt(dim, ridge, features[order], rewards[order])
    for name in first._fields:
        assert getattr(first, name) == pytest.approx(getattr(second, name), rel=1e-8, abs=1e-9), name


def test_features_are_read_and_not_written():
    features = np.array([1.0, 2.0, 3.0])
    observe(make_estimator(3, 1.0), features, 1.0, np.zeros(3), np.zeros(3))
    assert features.tolist() == [1.0, 2.0, 3.0]


def test_features_of_zeros_tell_nothing_but_that_a_reward_came():
    estimator = learnt(3, 2.0, np.zeros((4, 3)), [1.0, 2.0, 3.0, 4.0])
    assert (theta_of(estimator) == 0).all()
    assert (estimator.weights == 2.0).all()
    assert estimator.log_det_ratio.item() == 0
    assert estimator.residual.item() == pytest.approx(30)
    assert (estimator.rewards.item(), estimator.reward_sum.item()) == (4, 10)


def test_a_ridge_may_be_set_before_the_first_reward():
    features, rewards, _ = drawn(4, 20, 0)
    estimator = make_estimator(4, 0.0)
    assert (estimator.weights == 0).all()
    set_ridge(estimator, 0.7)
    for phi, reward in zip(features, rewards, strict=True):
        observe(estimator, phi, reward, np.zeros(4), np.zeros(4))
    expected = learnt(4, 0.7, features, rewards)
    for name in expected._fields:
        assert (getattr(estimator, name) == getattr(expected, name)).all(), name
