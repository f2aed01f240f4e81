"""The figure draws what `Results` says."""

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex

from made import LABELS, STEPS, make_results
from solid_bandits._internal import wording
from solid_bandits.report import palette
from solid_bandits.report.figure import regret_figure
from solid_bandits.simulation.results import Results


@pytest.fixture(scope="module")
def results() -> Results:
    return make_results(LABELS, started="2026-01-01T00:00:00Z", wall_seconds=12.34, seconds={"SOLID": 8.1})


def curve(results, policy):
    return results.summary().filter(pl.col("policy") == policy)


def test_figure_draws_the_summary(results):
    figure = regret_figure(results)
    assert [axes.get_xscale() for axes in figure.axes] == ["linear", "log"]
    for axes in figure.axes:
        assert "step" in axes.get_xlabel()
        assert "regret" in axes.get_ylabel()
        assert len(axes.get_lines()) == len(axes.collections) == len(results.policies)
        for policy, line, band in zip(results.policies, axes.get_lines(), axes.collections, strict=True):
            wanted = curve(results, policy)
            np.testing.assert_array_equal(line.get_xdata(), wanted["step"])
            np.testing.assert_array_equal(line.get_ydata(), wanted["mean"])
            edge = {tuple(point) for point in band.get_paths()[0].vertices}
            for limit in ("low", "high"):
                assert set(zip(wanted["step"], wanted[limit], strict=True)) <= edge
            assert to_hex(line.get_color()) == palette.looks(results.policies)[policy].colour.lower()


def test_figure_names_every_policy_once(results):
    (legend,) = regret_figure(results).legends
    shown = [text.get_text().replace(r"\$", "$") for text in legend.get_texts()]
    assert shown == results.policies


def test_figure_draws_the_bound(results):
    for axes in regret_figure(results, bound=2.5).axes:
        bound = axes.get_lines()[-1]
        np.testing.assert_allclose(bound.get_ydata(), 2.5 * np.log(STEPS))
        assert "2.5" in bound.get_label()
        assert bound.get_linestyle() == "--"


def test_stuck_policy_leaves_the_axis_and_the_legend_says_so():
    results = make_results({**LABELS, "Greedy": 1.0}, stuck=("Greedy",))
    figure = regret_figure(results)
    kept = results.summary().filter(pl.col("policy") != "Greedy")["high"].max()
    for axes in figure.axes:
        assert kept < axes.get_ylim()[1] < 2 * kept
    final = curve(results, "Greedy")["mean"].max()
    assert f"Greedy (off scale: {wording.number(final)})" in [
        text.get_text() for text in figure.legends[0].get_texts()
    ]


def test_figure_of_a_single_run_has_no_bands():
    results = make_results(LABELS, runs=1)
    assert all(not axes.collections for axes in regret_figure(results).axes)
