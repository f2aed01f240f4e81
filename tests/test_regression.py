import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import solid_bandits as sb
from solid_bandits.regression import REFRESH_EVERY, make_regression, observe


def check_against_scratch(regression, view, ridge, rewards, tolerance):
    """Everything kept equals its definition, from the rewards seen: (context, arm, reward)."""
    dim = view.features.shape[2]
    phi = np.array([view.features[context, arm] for context, arm, _ in rewards]).reshape(-1, dim)
    y = np.array([reward for _, _, reward in rewards])
    V = ridge * np.eye(dim) + phi.T @ phi
    theta = np.linalg.solve(V, phi.T @ y)
    assert regression.gram == pytest.approx(V, rel=1e-10)
    assert regression.gram @ regression.inverse == pytest.approx(np.eye(dim), abs=tolerance)
    assert regression.theta == pytest.approx(theta, abs=tolerance)
    assert regression.log_det.item() == pytest.approx(np.linalg.slogdet(V)[1], abs=tolerance)
    assert regression.means == pytest.approx(view.features @ theta, abs=tolerance)
    norms = np.einsum("xai,ij,xaj->xa", view.features, np.linalg.inv(V), view.features)
    assert regression.sq_norms == pytest.approx(norms, abs=tolerance)
    assert regression.updates.item() == len(rewards)


@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 6),
    st.floats(1e-2, 50),
    st.integers(0, 60),
    st.integers(0, 10**6),
)
def test_rank_one_updates_are_least_squares(n_contexts, n_arms, dim, ridge, count, seed):
    rng = np.random.default_rng(seed)
    view = sb.make_view(rng.normal(size=(n_contexts, n_arms, dim)))
    regression, work = make_regression(view, ridge)
    rewards = [(int(rng.integers(n_contexts)), int(rng.integers(n_arms)), rng.normal()) for _ in range(count)]
    for context, arm, reward in rewards:
        observe(regression, work, view, context, arm, reward)
    check_against_scratch(regression, view, ridge, rewards, tolerance=1e-8)


@numba.njit
def observe_many(regression, work, view, arms, rewards):
    for i in range(arms.shape[0]):
        observe(regression, work, view, 0, arms[i], rewards[i])


@pytest.mark.parametrize("ridge", [0.5, 4.0])
def test_a_million_updates_do_not_drift(ridge):
    # Arms far from equally frequent, so that V is badly conditioned, as a policy that exploits makes it; and as many
    # updates beyond the last computation from scratch as there ever are.
    rng = np.random.default_rng(0)
    view = sb.make_view(rng.uniform(size=(1, 5, 4)))
    arms = rng.choice(
        5,
        p=[0.99, 0.01 - 3e-6, 1e-6, 1e-6, 1e-6],
        size=1_000_000 + 1_000_000 % (REFRESH_EVERY * 4) + REFRESH_EVERY * 4 - 1,
    )
    rewards = rng.normal(size=len(arms))
    regression, work = make_regression(view, ridge)
    observe_many(regression, work, view, arms, rewards)
    assert np.abs(regression.gram @ regression.inverse - np.eye(4)).max() < 1e-8
    assert np.linalg.cond(regression.gram) > 1e5
    inverse = np.linalg.inv(regression.gram)
    theta = inverse @ regression.moment
    assert regression.theta == pytest.approx(theta, abs=1e-8)
    assert regression.means == pytest.approx(view.features @ theta, abs=1e-8)
    norms = np.einsum("xai,ij,xaj->xa", view.features, inverse, view.features)
    assert regression.sq_norms == pytest.approx(norms, rel=1e-6, abs=1e-8)
    assert regression.log_det.item() == pytest.approx(np.linalg.slogdet(regression.gram)[1], abs=1e-8)
