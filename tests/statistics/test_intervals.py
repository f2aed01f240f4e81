"""Intervals are those of scipy, where it has them."""

import numpy as np
import pytest
from scipy import stats

from solid_bandits.statistics.estimate import UNKNOWN, Estimate
from solid_bandits.statistics.intervals import ratio, share, student, welch

RNG = np.random.default_rng(3)
ONE, TWO = RNG.normal(5, 2, size=9), RNG.normal(4, 1, size=14)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_student_and_welch(level):
    expected = stats.t.interval(level, 8, loc=ONE.mean(), scale=stats.sem(ONE))
    assert student(ONE, level) == pytest.approx((ONE.mean(), *expected))
    test = stats.ttest_ind(ONE, TWO, equal_var=False)
    expected = test.confidence_interval(level)
    assert welch(ONE, TWO, level) == pytest.approx((ONE.mean() - TWO.mean(), *expected))


@pytest.mark.parametrize(("hits", "count"), [(0, 5), (2, 7), (5, 5)])
def test_share(hits, count):
    expected = stats.binomtest(hits, count).proportion_ci(0.95, method="exact")
    assert share(hits, count) == pytest.approx((hits / count, expected.low, expected.high))


def test_the_ends_of_a_ratio_are_where_a_paired_test_is_indifferent():
    above, below = ONE, 3 + 0.3 * ONE + RNG.normal(size=9)
    estimate = ratio(above, below)
    assert estimate.value == pytest.approx(above.mean() / below.mean())
    assert estimate.low < estimate.value < estimate.high
    for end in estimate[1:]:
        assert stats.ttest_1samp(above - end * below, 0).pvalue == pytest.approx(0.05)


def test_little_data_has_no_interval():
    assert student(np.array([3.0])) == Estimate(3.0)
    assert welch(np.array([3.0]), TWO) == Estimate(3.0 - TWO.mean())
    assert ratio(np.array([3.0]), np.array([2.0])) == Estimate(1.5)
    assert ratio(ONE, np.zeros(9)) == UNKNOWN
    assert student(np.full(4, 2.0)) == Estimate(2.0, 2.0, 2.0)


def test_an_estimate_knows_its_half_width_and_whether_it_holds_zero():
    assert Estimate(1.0, -1.0, 3.0).half_width == 2
    assert Estimate(1.0, -1.0, 3.0).holds_zero
    assert not Estimate(1.0, 0.5, 1.5).holds_zero
    assert Estimate(1.0).half_width is None
    assert not Estimate(0.0).holds_zero
