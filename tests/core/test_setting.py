"""What a policy may know: a setting, a table, and no truth."""

import math

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.core.setting import LARGEST_FEATURE, check_features, make_setting, make_table

FEATURES = np.arange(12.0).reshape(2, 3, 2) + 1
JOINT = {"blocks": 0, "grows": False}


def test_a_policy_learns_no_truth_before_it_plays():
    problem = sb.Problem(FEATURES, [1.0, -0.5], noise_std=0.3)
    setting = problem.setting(horizon=10)
    assert setting._asdict() == {"dim": 2, "noise_std": 0.3, "theta_bound": problem.B, "horizon": 10} | JOINT
    assert set(problem.table._fields) == {"features", "columns", "feature_bound"}


def test_what_is_unknown_is_zero():
    assert (
        make_setting(3, 1.0)._asdict()
        == {"dim": 3, "noise_std": 1.0, "theta_bound": 0.0, "horizon": 0} | JOINT
    )
    assert sb.Problem(FEATURES, [0.0, 0.0]).setting().theta_bound == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dim", 0),
        ("dim", 2.0),
        ("noise_std", 0),
        ("noise_std", math.nan),
        ("theta_bound", 0),
        ("theta_bound", math.inf),
        ("horizon", 0),
        ("horizon", 1.5),
    ],
)
def test_bad_settings_are_named(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        make_setting(**{"dim": 2, "noise_std": 1.0, name: value})


def test_a_table_holds_the_features_twice_and_cannot_be_changed():
    features = FEATURES.copy()
    table = make_table(features)
    assert (table.columns.T.reshape(FEATURES.shape) == FEATURES).all()
    assert table.columns.flags.c_contiguous
    assert table.feature_bound == pytest.approx(np.sqrt((FEATURES**2).sum(axis=2)).max())
    features[0, 0, 0] = 99
    assert table.features[0, 0, 0] == 1
    for array in (table.features, table.columns):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    "bad",
    [[[[np.nan, 1.0]]], [[[np.inf, 1.0]]], [[1.0, 2.0]], np.zeros((2, 0, 3)), "abc", [[[1, 2], [3]]], None],
)
def test_bad_tables_are_named(bad):
    for name in ("features", "contexts"):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            make_table(bad, name)


def test_squares_of_features_stay_finite():
    large = np.full((1, 1, 2), LARGEST_FEATURE)
    assert np.isfinite(make_table(large).feature_bound)
    with pytest.raises(ValueError, match=r"^features must be at most 1e\+30 in size"):
        check_features("features", [[-2 * LARGEST_FEATURE]], "arms", "dim")
