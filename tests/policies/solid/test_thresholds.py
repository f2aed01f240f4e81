"""β_t and γ_t of SOLID, in both forms."""

import math

import pytest

import solid_bandits as sb
from solid_bandits.policies import thresholds
from solid_bandits.policies.solid.confidence import OfTheorem, WithoutConstants, threshold, width


def test_those_of_the_experiments_are_the_papers():
    setting = sb.problems.toy(noise_std=0.7).setting(horizon=1000)
    kind, log_log = WithoutConstants(3), math.log(math.log(1000))
    assert threshold(kind, setting, 1) == pytest.approx(0.49 * 3 * log_log)
    assert threshold(kind, setting, 51) == pytest.approx(0.49 * (math.log(50) + 3 * log_log))
    assert width(kind, setting, 51, 7) == pytest.approx(0.49 * (math.log(7) + 3 * log_log))
    unknown = sb.problems.toy(noise_std=0.7).setting()
    assert threshold(kind, unknown, 51) == pytest.approx(0.49 * (math.log(50) + 3 * math.log(math.log(51))))
    # Horizons below 3 have no log log worth the name.
    for horizon in (1, 2, 3):
        assert thresholds.log_horizon(sb.problems.toy().setting(horizon), 1) == pytest.approx(math.log(3))


def test_those_of_the_theorems_are_the_radius_with_all_its_constants():
    """β = c_{n,1/n} and γ_t = c_{n,1/S_t²}; the step in the place of an unknown horizon."""
    problem = sb.problems.toy(noise_std=0.7)
    kind = OfTheorem(problem.L, 1.5)

    def radius(n, delta):
        return sb.bounds.confidence_radius(n, delta, 3, 0.7, problem.B, problem.L, 1.5)

    assert threshold(kind, problem.setting(1000), 5) == pytest.approx(radius(1000, 1 / 1000))
    assert width(kind, problem.setting(1000), 5, 4) == pytest.approx(radius(1000, 1 / 16))
    assert threshold(kind, problem.setting(), 50) == pytest.approx(radius(50, 1 / 50))
