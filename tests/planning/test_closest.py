import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given

from solid_bandits.planning.closest import closest_alternative
from tables import columns_of, sizes, spd


def closest(features, means, gram):
    dim = features.shape[2]
    columns = columns_of(features)
    delta = np.empty(dim)
    distance = closest_alternative(
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
