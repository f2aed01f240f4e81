"""Student's distribution against scipy's."""

import numpy as np
import pytest
from scipy import stats

from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.estimation.student import student, student_below, student_next

DEGREES = [1, 2, 3, 7, 50, 999, 1000, 10**6]


@pytest.mark.parametrize("degrees", DEGREES)
def test_probabilities_are_those_of_the_distribution(degrees):
    """To 1e-10 of the smaller tail, down to 1e-100; scipy is asked for tails, where it has all digits."""
    for point in (0.0, 1e-3, 0.1, 0.7, 1.0, 3.0, 12.0):
        tail = stats.t.sf(point, degrees)
        if tail > 1e-100:
            assert student_below(float(degrees), -point) == pytest.approx(tail, rel=1e-10)
            assert student_below(float(degrees), point) == pytest.approx(1 - tail, rel=1e-12)


def test_no_degrees_of_freedom_are_a_normal_distribution():
    for point in (-5.0, -1.0, 0.0, 2.0):
        assert student_below(0.0, point) == pytest.approx(stats.norm.cdf(point), rel=1e-12)


@pytest.mark.parametrize("degrees", [0, 1, 4, 300])
def test_draws_are_of_the_distribution(degrees):
    """Kolmogorov-Smirnov on 20,000 draws at level 1e-4: a false alarm of 4e-4 over the four, were seeds not fixed."""
    rng = make_rng(3, degrees, POLICY)
    drawn = [student(float(degrees), rng) for _ in range(20_000)]
    wanted = stats.t(degrees) if degrees else stats.norm()
    assert stats.kstest(drawn, wanted.cdf).pvalue > 1e-4


@pytest.mark.parametrize("degrees", [1, 5])
def test_coordinates_together_are_of_one_student_distribution(degrees):
    """‖z‖²/d of the standard one in d dimensions is F(d, degrees), and every coordinate Student; level 1e-4 each."""
    rng, dim = make_rng(5, degrees, POLICY), 4
    draws = np.zeros((20_000, dim))
    for row in draws:
        squares = 0.0
        for i in range(dim):
            row[i] = student_next(float(degrees), i, squares, rng)
            squares += row[i] ** 2
    assert stats.kstest((draws**2).sum(axis=1) / dim, stats.f(dim, degrees).cdf).pvalue > 1e-4
    for i in range(dim):
        assert stats.kstest(draws[:, i], stats.t(degrees).cdf).pvalue > 1e-4
    # Not independent: large coordinates come together, as they do not where each is drawn by itself.
    large = np.abs(draws) > 3
    both, alone = (large[:, 0] & large[:, 3]).mean(), large[:, 0].mean() * large[:, 3].mean()
    assert both > 1.5 * alone
