import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import solid_bandits as sb


def test_toy_is_the_papers():
    problem = sb.problems.toy(xi=0.2, first_context_prob=0.9)
    assert problem.features[0].tolist() == [[1, 0, 0], [0, 1, 0], [0.8, 0.4, 0]]
    assert problem.features[1].tolist() == [[0, 0.6, 0.8], [0, 0, 1], [0, 0.02, 0.8]]
    assert problem.theta.tolist() == [1, 0, 1]
    assert problem.context_probs.tolist() == pytest.approx([0.9, 0.1])
    assert problem.gaps == pytest.approx(np.array([[0, 1, 0.2], [0.2, 0, 0.2]]))
    assert sb.problems.toy().noise_std == 0.5


@pytest.mark.parametrize(
    "bad", [{"xi": 0}, {"xi": 1}, {"first_context_prob": 0}, {"first_context_prob": 1}, {"noise_std": 0}]
)
def test_toy_refuses(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        sb.problems.toy(**bad)


@given(st.integers(1, 5), st.integers(2, 9), st.integers(2, 9), st.floats(0.3, 1), st.integers(0, 10**6))
def test_random_problems_keep_the_papers_promises(n_contexts, n_arms, dim, density, seed):
    assume(n_contexts * n_arms >= dim > n_contexts)
    problem = sb.problems.random(n_contexts, n_arms, dim, density, seed=seed)
    assert problem.features.shape == (n_contexts, n_arms, dim)
    assert problem.features.min() >= 0
    assert problem.features.max() <= 1
    assert problem.theta.min() >= 0
    assert problem.theta.max() <= 1
    optimal = problem.features[np.arange(n_contexts), problem.optimal_arms]
    assert np.linalg.matrix_rank(optimal) < dim
    assert np.linalg.matrix_rank(problem.features.reshape(-1, dim)) == dim
    assert ((problem.gaps == 0).sum(axis=1) == 1).all()


def test_the_seed_decides():
    first, again, other = (sb.problems.random(seed=seed) for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_density_is_the_share_of_entries_kept():
    # 160,000 entries: within 5 standard errors, a false alarm of 6e-7 if the seed were not fixed.
    problem = sb.problems.random(n_contexts=4, n_arms=5000, dim=8, density=0.3, seed=3)
    share = (problem.features != 0).mean()
    assert abs(share - 0.3) < 5 * np.sqrt(0.3 * 0.7 / problem.features.size)


def test_impossible_sizes_end_with_a_message():
    with pytest.raises(ValueError, match="too few features to span dimension 9"):
        sb.problems.random(n_contexts=2, n_arms=4, dim=9)
    with pytest.raises(ValueError, match="fewer contexts"):
        sb.problems.random(n_contexts=60, n_arms=3, dim=2, density=1.0)
    for bad in ({"n_arms": 1}, {"dim": 1}, {"n_contexts": 0}, {"density": 0}, {"density": 1.5}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            sb.problems.random(**bad)


def test_more_features_than_memory_are_refused_before_they_are_drawn():
    with pytest.raises(ValueError, match="n_arms must leave n_contexts \\* n_arms \\* dim at most"):
        sb.problems.random(n_contexts=100, n_arms=10**9, dim=5)
