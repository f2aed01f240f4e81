import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.policies.contract import update as _update
from solid_bandits.policies.lints import sample_theta
from solid_bandits.stream import POLICY, make_stream


@pytest.mark.parametrize(("ridge", "spread"), [(0.3, 1.0), (5.0, 0.4)])
def test_draws_have_the_covariance_of_the_posterior(ridge, spread):
    """Mean θ-hat and covariance spread² V^-1, each entry within 5 standard errors (false alarm below 1e-5 in all)."""
    rng = np.random.default_rng(0)
    view = sb.make_view(rng.normal(size=(2, 3, 4)))
    agent = sb.LinTS(ridge=ridge).start(view, make_stream(0, 0, POLICY))
    for _ in range(30):
        _update(agent, int(rng.integers(2)), int(rng.integers(3)), rng.normal())
    V = agent.state.regression.gram
    assert agent.state.factor @ agent.state.factor.T == pytest.approx(V)
    count = 40_000
    draws = np.empty((count, 4))
    for row in draws:
        sample_theta(agent, spread)
        row[:] = agent.work.sample
    covariance = spread**2 * np.linalg.inv(V)
    theta = np.linalg.solve(V, agent.state.regression.moment)
    assert (np.abs(draws.mean(axis=0) - theta) < 5 * np.sqrt(np.diag(covariance) / count)).all()
    # The variance of a product of two centred Gaussians is C_ii C_jj + C_ij².
    centred = draws - theta
    error = centred.T @ centred / count - covariance
    variance = np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2
    assert (np.abs(error) < 5 * np.sqrt(variance / count)).all()
    # Unlike the Gram matrix as covariance, which is another matrix here by far.
    assert np.abs(V * spread**2 - covariance).max() > 50 * np.sqrt(variance / count).max()


def test_scales_differ_by_the_root_of_the_logarithm():
    problem = sb.problems.toy()
    arms = {}
    for scale, multiple in (("posterior", 1.0), ("paper", 1.0), ("paper", 0.0), ("posterior", 0.0)):
        trace = sb.simulate(
            problem, {"p": sb.LinTS(scale=scale, multiple=multiple)}, 5000, runs=10, seed=0, jobs=1
        )
        arms[scale, multiple] = trace.final()["mean"].item()
    greedy = sb.simulate(problem, {"p": sb.Greedy()}, 5000, runs=10, seed=0, jobs=1).final()["mean"].item()
    assert arms["paper", 0.0] == arms["posterior", 0.0] == pytest.approx(greedy)
    assert arms["paper", 1.0] > arms["posterior", 1.0]
