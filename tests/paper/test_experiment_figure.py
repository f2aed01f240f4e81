"""The figure of an experiment shows what the results say, a panel per part, readable in a column."""

import itertools

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text
from PIL import Image

from made import BOUND, FOUR, make_outcome, make_part
from solid_bandits.paper.outcome import Outcome
from solid_bandits.paper.report.experiment_figure import experiment_figure
from solid_bandits.report.figure import save_figure
from solid_bandits.report.palette import looks


def same_parts(count, slopes=FOUR, **options) -> Outcome:
    return make_outcome({f"|A| = {2**k}": make_part(slopes, seed=k, **options) for k in range(count)})


def bounds_of(axes):
    return [line for line in axes.get_lines() if line.get_linestyle() == "--"]


def notes(axes):
    return " ".join(text.get_text() for text in axes.texts)


# What is drawn


def test_each_panel_draws_the_summary_of_its_part():
    outcome = same_parts(3)
    for axes, results in zip(experiment_figure(outcome).axes, outcome.parts.values(), strict=True):
        summary = results.summary()
        assert len(axes.collections) == len(results.policies)
        for policy, line, band in zip(results.policies, axes.get_lines(), axes.collections, strict=False):
            wanted = summary.filter(pl.col("policy") == policy)
            np.testing.assert_array_equal(line.get_xdata(), wanted["step"])
            np.testing.assert_array_equal(line.get_ydata(), wanted["mean"])
            edge = {tuple(point) for point in band.get_paths()[0].vertices}
            for limit in ("low", "high"):
                assert set(zip(wanted["step"], wanted[limit], strict=True)) <= edge
        (bound,) = bounds_of(axes)
        np.testing.assert_allclose(bound.get_ydata(), 2.5 * np.log(bound.get_xdata()))
        assert list(bound.get_xdata()) == summary["step"].unique().sort().to_list()


def test_panels_have_titles_and_the_constant_of_their_bound():
    outcome = make_outcome(
        {
            "ρ = 0.5": make_part(FOUR),
            "$ρ$ = 0.9": make_part(FOUR, bound={**BOUND, "value": 1234.0}),
            "tied": make_part(FOUR, bound={"reason": "two best arms"}),
        }
    )
    panels = experiment_figure(outcome).axes
    assert [axes.get_title(loc="left").replace(r"\$", "$") for axes in panels] == list(outcome.parts)
    assert [axes.get_title(loc="right") for axes in panels] == ["$v^*$ = 2.50", "$v^*$ = 1,234", ""]
    assert [len(bounds_of(axes)) for axes in panels] == [1, 1, 0]


@pytest.mark.parametrize("bound", [{"reason": "two best arms"}, {}])
@pytest.mark.parametrize("count", [1, 2])
def test_without_a_bound_there_is_no_dashed_line(bound, count):
    figure = experiment_figure(same_parts(count, bound=bound))
    assert not any(bounds_of(axes) for axes in figure.axes)
    assert len(figure.legends[0].get_texts()) == len(FOUR)


def test_a_policy_looks_the_same_in_every_part_and_stands_once_in_the_legend():
    few = {policy: FOUR[policy] for policy in list(FOUR)[1:]}
    outcome = make_outcome(
        {"all": make_part(FOUR), "few": make_part(few), "more": make_part({"X": 1.0, **few})}
    )
    figure = experiment_figure(outcome)
    wanted = looks(outcome.policies)
    for axes, results in zip(figure.axes, outcome.parts.values(), strict=True):
        drawn = {line.get_label(): to_hex(line.get_color()).upper() for line in axes.get_lines()[:-1]}
        assert drawn == {
            policy.replace("$", r"\$"): wanted[policy].colour.upper() for policy in results.policies
        }
    (legend,) = figure.legends
    shown = [text.get_text().replace(r"\$", "$") for text in legend.get_texts()]
    assert shown[:-1] == outcome.policies == [*FOUR, "X"]
    assert "lower bound" in shown[-1]
    for line, policy in zip(legend.get_lines(), outcome.policies, strict=False):
        assert to_hex(line.get_color()).upper() == wanted[policy].colour.upper()


def test_a_single_part_is_shown_in_both_times():
    figure = experiment_figure(same_parts(1))
    assert [axes.get_xscale() for axes in figure.axes] == ["linear", "log"]
    assert figure.axes[0].get_title(loc="left") == "|A| = 1"
    assert all(bounds_of(axes) for axes in figure.axes)


def test_time_is_linear_unless_horizons_differ():
    assert {axes.get_xscale() for axes in experiment_figure(same_parts(3)).axes} == {"linear"}
    outcome = make_outcome({f"n = {n}": make_part(FOUR, horizon=n) for n in (100, 1000, 10_000)})
    figure = experiment_figure(outcome)
    assert [axes.get_xscale() for axes in figure.axes] == ["log"] * 3
    assert [axes.get_xlim()[1] for axes in figure.axes] == [100, 1000, 10_000]
    assert "logarithmic" in figure.axes[-1].get_xlabel()


def test_what_leaves_an_axis_is_said_in_that_panel_only():
    slopes = {**FOUR, "Greedy": 1.0}
    outcome = make_outcome({"a": make_part(slopes, stuck=("Greedy",)), "b": make_part(slopes)})
    stuck, fine = experiment_figure(outcome).axes
    most = outcome.parts["a"].summary().filter(pl.col("policy") == "Greedy")["mean"].max()
    assert notes(stuck) == f"off scale: Greedy ({most:,.0f})"
    assert stuck.get_ylim()[1] < most
    assert not notes(fine)
    # Its line is seen leaving; its band would only tint the others.
    assert len(stuck.collections) == len(fine.collections) - 1 == len(slopes) - 1
    assert len(stuck.get_lines()) == len(fine.get_lines())


def test_a_bound_above_the_axis_is_said():
    outcome = same_parts(2, bound={**BOUND, "value": 500.0})
    for axes in experiment_figure(outcome).axes:
        assert notes(axes) == rf"off scale: $v^* \log t$ ({500 * np.log(2000):,.0f})"


def test_most_of_many_policies_are_readable():
    # Each is less than six times the next: of a few policies, all would be drawn.
    slopes = {f"p{place}": slope for place, slope in enumerate([1, 1.1, 1.2, 1.3, 1.4, 1.5, 2, 9, 40, 200])}
    (axes, *_) = experiment_figure(same_parts(2, slopes)).axes
    ends = [line.get_ydata()[-1] for line in axes.get_lines()[:-1]]
    assert axes.get_ylim()[1] < 5 * np.median(ends)
    assert all(f"{policy} (" in notes(axes) for policy in ("p8", "p9"))
    (alone, _) = experiment_figure(same_parts(1, slopes)).axes
    assert alone.get_ylim() == axes.get_ylim()
    few = same_parts(2, {policy: slopes[policy] for policy in ("p0", "p6", "p7", "p8")})
    assert not notes(experiment_figure(few).axes[0])


def test_one_run_has_no_bands():
    assert not any(axes.collections for axes in experiment_figure(same_parts(3, runs=1)).axes)


# How it looks on paper


FIFTEEN = {f"Policy number {place} (posterior)": 1.0 + place / 4 for place in range(15)}
LONG = {"SOLID with a label that is much too long for any legend": 1.0, "LinUCB": 2.0, "Greedy": 1.0}
SHAPES = [
    same_parts(1, FIFTEEN),
    same_parts(2, FIFTEEN),
    same_parts(3, LONG, stuck=("Greedy",)),
    same_parts(4, LONG, stuck=("Greedy",), bound={**BOUND, "value": 12345.0}),
    same_parts(5),
    make_outcome({f"part {k}, whose label is too long for its panel": make_part(FOUR) for k in range(6)}),
    same_parts(2, FIFTEEN, stuck=tuple(FIFTEEN)[9:]),
    make_outcome({f"n = {n}": make_part(FOUR, horizon=n) for n in (10**3, 10**4, 10**5, 10**6)}),
]


@pytest.mark.parametrize("outcome", SHAPES, ids=range(len(SHAPES)))
def test_nothing_overlaps_or_leaves_the_figure(outcome):
    figure = experiment_figure(outcome)
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()  # in inches
    assert drawn.x0 >= -0.01
    assert drawn.y0 >= -0.01
    assert drawn.x1 <= figure.get_figwidth() + 0.01
    assert drawn.y1 <= figure.get_figheight() + 0.01
    heads = [
        text
        for axes in figure.axes
        for text in (axes.title, axes._left_title, axes._right_title, *axes.texts)
        if text.get_text()
    ]
    boxes = [artist.get_window_extent() for artist in (*heads, *figure.legends, *figure.axes)]
    for one, other in itertools.combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        along = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(across, along) < 1.5, "overlap, in pixels"


@pytest.mark.parametrize("outcome", SHAPES, ids=range(len(SHAPES)))
def test_text_has_its_final_size_and_panels_have_room(outcome):
    figure = experiment_figure(outcome)
    figure.draw_without_rendering()
    assert figure.get_figwidth() == (3.4 if len(outcome.parts) <= 3 else 7.0)
    assert figure.get_figheight() < 9  # of a page
    sizes = {text.get_fontsize() for text in figure.findobj(Text) if text.get_text() and text.get_visible()}
    assert sizes <= {7.0, 8.0}
    for axes in figure.axes:
        box = axes.get_window_extent()
        assert box.height / figure.dpi > 0.9
        assert box.width / figure.dpi > 1.5


def test_panels_lie_in_a_column_or_in_a_grid():
    def places(count):
        figure = experiment_figure(same_parts(count))
        return [
            (axes.get_subplotspec().rowspan.start, axes.get_subplotspec().colspan.start)
            for axes in figure.axes
        ]

    assert places(2) == [(0, 0), (1, 0)]
    assert places(3) == [(0, 0), (1, 0), (2, 0)]
    assert places(4) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert places(5) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_the_lowest_panels_say_what_the_time_is():
    figure = experiment_figure(same_parts(5))
    figure.draw_without_rendering()
    named = [bool(axes.get_xlabel()) for axes in figure.axes]
    ticked = [any(tick.label1.get_visible() for tick in axes.xaxis.get_major_ticks()) for axes in figure.axes]
    assert named == ticked == [False, False, True, True, True]


def test_the_file_has_the_size_on_paper(tmp_path):
    path = tmp_path / "toy.png"
    save_figure(experiment_figure(same_parts(2)), path)
    with Image.open(path) as image:
        assert image.width == 3.4 * 300
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)
    assert list(tmp_path.iterdir()) == [path]
    before = path.read_bytes()
    save_figure(experiment_figure(same_parts(2)), path)
    assert path.read_bytes() == before
