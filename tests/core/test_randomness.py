import numpy as np
from scipy import stats

from solid_bandits.core import randomness


def test_uniforms_are_numpys():
    ours = randomness.make_rng(seed=5, run=3, role=1)
    theirs = np.random.Generator(np.random.SFC64(randomness.seed_sequence(5, 3, 1)))
    assert [randomness.uniform(ours) for _ in range(1000)] == theirs.random(1000).tolist()


def test_seed_run_and_role_each_give_another_stream():
    keys = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2**70, 0, 0)]
    assert len({randomness.uniform(randomness.make_rng(*key)) for key in keys}) == len(keys)


def test_normals_are_normal():
    # Kolmogorov-Smirnov at level 1e-4: the false-alarm rate, were the seed not fixed.
    words = randomness.make_rng(0, 0, 0)
    draws = np.array([randomness.normal(words) for _ in range(100_000)])
    assert stats.kstest(draws, "norm").pvalue > 1e-4
    # Successive draws are not correlated: 4 standard errors.
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 4 / np.sqrt(len(draws))


def test_choices_have_their_probabilities():
    probabilities = np.array([0.2, 0.0, 0.5, 0.3])
    words = randomness.make_rng(0, 0, 1)
    counts = np.bincount([randomness.choose(probabilities, words) for _ in range(100_000)], minlength=4)
    assert counts[1] == 0
    kept = probabilities > 0
    assert stats.chisquare(counts[kept], 100_000 * probabilities[kept]).pvalue > 1e-4


def test_rounding_never_leaves_the_range():
    # Sums to less than 1, and ends with an impossible arm: the last possible one is chosen.
    for _ in range(100):
        assert randomness.choose(np.array([1e-300, 0.0]), randomness.make_rng(0, _, 0)) == 0
