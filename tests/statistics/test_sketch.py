"""Quantiles from counts in bins, beside those of all the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from solid_bandits.statistics.sketch import PARTS, Moments, Sketch, bin_of, edge, quantile_ranks

NUMBERS = st.lists(st.one_of(st.just(0.0), st.floats(1e-300, 1e300)), min_size=1, max_size=60)


def sketch_of(values):
    sketch = Sketch()
    sketch.add(np.array(values))
    return sketch


@given(NUMBERS)
def test_every_rank_is_within_its_bounds(values):
    sketch = sketch_of(values)
    for rank, value in enumerate(sorted(values), start=1):
        low, high = sketch.ranked(rank)
        assert low <= value <= high
        assert high - low <= value / PARTS * (1 + 1e-12)


@given(st.floats(2.3e-308, 8e307))
def test_a_number_lies_in_its_bin(value):
    place = int(bin_of(np.array([value]))[0])
    assert edge(place) <= value < edge(place + 1)


@given(NUMBERS, NUMBERS)
def test_sketches_add_up(first, second):
    grown = sketch_of(first)
    grown.add(np.array(second))
    whole = sketch_of(first + second)
    assert (grown.zeros, grown.size) == (whole.zeros, whole.size)
    assert [grown.ranked(rank) for rank in range(1, whole.size + 1)] == [
        whole.ranked(rank) for rank in range(1, whole.size + 1)
    ]


def test_powers_of_two_shift_the_bins():
    values = np.random.default_rng(0).exponential(size=100)
    one, other = sketch_of(values), sketch_of(1024.0 * values)
    assert other.first - one.first == 10 * PARTS
    assert (one.counts == other.counts).all()


def test_survival():
    sketch = sketch_of([0.0, 1.0, 1.0, 4.0])
    edges, above = sketch.survival()
    shares = dict(zip(edges.tolist(), above.tolist(), strict=True))
    assert shares[1.0] == 0.75
    assert shares[4.0] == 0.25
    assert above[-1] == 0.0


@pytest.mark.parametrize("share", [0.001, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("count", [1, 10, 500, 20_000])
def test_ranks_of_a_quantile_have_the_stated_confidence_and_no_more(share, count):
    """P(X_(L) <= q < X_(H)) = P(L <= B < H), B binomial: each side misses by 2.5% at most, one rank further by more."""
    low, high = quantile_ranks(share, count, 0.95)
    miss_below = binom.cdf(low - 1, count, share)  # fewer than L numbers at or below the quantile
    miss_above = binom.sf(high - 1, count, share)  # H or more
    assert miss_below <= 0.025 + 1e-12
    assert miss_above <= 0.025 + 1e-12
    assert binom.cdf(low, count, share) > 0.025 - 1e-12
    if high > 1:
        assert binom.sf(high - 2, count, share) > 0.025 - 1e-12


def test_intervals_of_quantiles_cover():
    """In 400 samples the 90% quantile is missed in at most 5%: 20, and 4 standard errors more (false alarms: 3e-5)."""
    rng = np.random.default_rng(1)
    truth = -np.log(0.1)
    missed = 0
    for _ in range(400):
        found = sketch_of(rng.exponential(size=300)).quantile(0.9)
        missed += not found.low <= truth <= found.high
    assert missed <= 20 + 4 * np.sqrt(400 * 0.05 * 0.95)


def test_too_few_numbers_leave_a_side_open():
    found = sketch_of([1.0, 2.0, 3.0]).quantile(0.999)
    assert found.high is None
    assert found.value == pytest.approx(3.0, rel=1 / PARTS)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_what_is_no_regret_is_refused(bad):
    with pytest.raises(ValueError, match="values must be finite and >= 0"):
        sketch_of([1.0, bad])


@given(st.lists(st.integers(1, 8), min_size=1, max_size=5))
def test_moments_of_batches_are_those_of_all(sizes):
    rng = np.random.default_rng(2)
    batches = [1e6 + rng.standard_normal((size, 3)) for size in sizes]
    moments = Moments.none(3)
    for batch in batches:
        moments.add(batch)
    whole = np.concatenate(batches)
    np.testing.assert_allclose(moments.mean, whole.mean(axis=0), rtol=1e-14)
    if len(whole) > 1:
        np.testing.assert_allclose(moments.variance, whole.var(axis=0, ddof=1), rtol=1e-8)
