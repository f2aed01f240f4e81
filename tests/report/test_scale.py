"""How high the regret axis goes."""

import polars as pl
import pytest

from solid_bandits.report.scale import regret_scale


def scale_of(*ends: float):
    policies = [str(index) for index in range(len(ends))]
    columns = {"policy": policies, "step": 100, "mean": list(ends), "high": [1.1 * end for end in ends]}
    return regret_scale(pl.DataFrame(columns))


@pytest.mark.parametrize(
    "ends", [(1, 5), (1, 17), (10, 12, 50), (1, 2, 15, 20), (0, 0), (0, 3), (0, 0, 5), (4,)]
)
def test_nothing_leaves_an_axis_on_which_all_can_be_read(ends):
    scale = scale_of(*ends)
    assert not scale.off_scale
    assert not scale.cut
    assert scale.top >= 1.1 * max(ends)
    assert scale.top > 0


@pytest.mark.parametrize("ends", [(1, 20), (700, 10, 12), (1, 2, 5, 900, 1000)])
def test_what_is_far_above_most_leaves_the_axis(ends):
    scale = scale_of(*ends)
    assert scale.off_scale == {str(i): end for i, end in enumerate(ends) if end > scale.top}
    assert 0 < len(scale.off_scale) <= len(ends) / 2


def test_a_band_of_few_runs_does_not_set_the_axis():
    summary = pl.DataFrame({"policy": ["a", "b"], "step": 10, "mean": [1.0, 2.0], "high": [40.0, 2.2]})
    scale = regret_scale(summary)
    assert 2.2 < scale.top < 10
    assert scale.cut == ("a",)
