import cvxpy as cp
import numpy as np
import pytest

import naive
from solid_bandits.planning.ball import ball_projection, closest_in_ball
from solid_bandits.planning.closest import closest_alternative
from tables import columns_of


def spd(rng, dim, condition):
    vectors = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    return (vectors * np.geomspace(1, condition, dim)) @ vectors.T


@pytest.mark.parametrize("seed", range(12))
def test_projections_agree_with_a_conic_solver(seed):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 7))
    V, point, bound = spd(rng, dim, 10.0 ** rng.integers(0, 4)), 3 * rng.normal(size=dim), rng.uniform(0.2, 2)
    projected = np.full(dim, np.nan)
    distance = ball_projection(V, point, bound, projected, np.inf)
    target = cp.Variable(dim)
    objective = cp.Minimize(cp.sum_squares(np.linalg.cholesky(V).T @ (target - point)))
    value = cp.Problem(objective, [cp.norm(target) <= bound]).solve(solver=cp.CLARABEL)
    assert distance == pytest.approx(value, rel=1e-6, abs=1e-7)
    assert projected == pytest.approx(
        target.value, abs=1e-4
    )  # the solver's argument is as sharp as √ of its value
    assert np.linalg.norm(projected) <= bound * (1 + 1e-12)
    assert projected == pytest.approx(naive.project(V, point, bound), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_bounded_alternatives_agree_with_a_conic_solver(seed):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(2, 6))
    features, theta = rng.normal(size=(2, 3, dim)), rng.normal(size=dim)
    bound = np.linalg.norm(theta) * rng.uniform(1, 1.3)
    W, means = spd(rng, dim, 10.0 ** rng.integers(0, 5)), features @ theta
    norms, delta = np.empty(6), np.empty(dim)
    free = closest_alternative(
        columns_of(features), means, W, np.empty((dim, dim)), np.empty((dim, 6)), norms, delta
    )
    bounded = closest_in_ball(features, bound, theta, means, W, norms, delta)
    values = []
    for x in range(2):
        best = means[x].argmax()
        for a in set(range(3)) - {best}:
            rival = cp.Variable(dim)
            away = cp.sum_squares(np.linalg.cholesky(W).T @ (theta - rival))
            allowed = [(features[x, a] - features[x, best]) @ rival >= 0, cp.norm(rival) <= bound]
            values.append(cp.Problem(cp.Minimize(away), allowed).solve(solver=cp.CLARABEL))
    assert bounded == pytest.approx(min(values), rel=1e-6, abs=1e-8)
    assert bounded >= free * (1 - 1e-9)
    # The alternative itself: inside the ball, on the border of the half-space, at that distance.
    rival = theta - delta
    assert np.linalg.norm(rival) <= bound * (1 + 1e-9)
    other = features @ rival
    optimal = means.argmax(axis=1)
    catch_up = other - other[np.arange(2), optimal][:, None]
    catch_up[np.arange(2), optimal] = -np.inf
    assert catch_up.max() == pytest.approx(0, abs=1e-7)
    assert delta @ W @ delta == pytest.approx(bounded)
