"""The confidence radius of the paper's concentration theorem."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import solid_bandits as sb
from solid_bandits.estimation.confidence import squared_radius

sizes = st.floats(0.1, 10)


@given(st.floats(3, 1e12), st.floats(1e-12, 1), st.integers(1, 60), sizes, st.floats(0, 10), sizes, sizes)
def test_the_radius_is_the_theorems(n, delta, dim, noise_std, theta_bound, feature_bound, ridge):
    ours = sb.bounds.confidence_radius(n, delta, dim, noise_std, theta_bound, feature_bound, ridge)
    assert ours == pytest.approx(
        naive.confidence_radius(n, delta, dim, noise_std, theta_bound, feature_bound, ridge)
    )


@pytest.mark.parametrize("noise_std", [0.5, 1.0, 2.0])
def test_the_radius_tends_to_twice_the_variance_times_log_n(noise_std):
    """c_{n,1/n} / (2 σ² log n) -> 1, so slowly (d log log n) that n = e^(10^k) is needed to see it."""
    ratios = [
        squared_radius(10.0**k, 10.0**k, 3, noise_std, 1.0, 1.0, 1.0) / (2 * noise_std**2 * 10.0**k)
        for k in range(1, 14)
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert 1 < ratios[-1] < 1 + 1e-4


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 2},
        {"delta": 0},
        {"delta": 1.5},
        {"dim": 0},
        {"noise_std": 0},
        {"theta_bound": -1},
        {"ridge": 0},
        {"feature_bound": 0},
    ],
)
def test_bad_arguments_are_named(bad):
    with pytest.raises(ValueError, match=f"^{next(iter(bad))} must be"):
        sb.bounds.confidence_radius(**{"n": 100, "delta": 0.1, "dim": 2, **bad})
