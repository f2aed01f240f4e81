"""Results that show themselves: figures, pages, data frames, and what a notebook prints."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from made import AWKWARD, LABELS, make_results

RESULTS = make_results(LABELS, lower_bound={"value": 2.5})


@pytest.fixture(autouse=True)
def _closed():
    pyplot.close("all")  # what other tests have left open
    yield
    pyplot.close("all")


def test_the_plot_draws_the_summary_in_one_panel_that_pyplot_shows():
    axes = RESULTS.plot()
    assert pyplot.get_fignums() == [axes.figure.number]
    assert axes.figure.axes == [axes]
    lines = axes.get_lines()
    for policy, line in zip(RESULTS.policies, lines[:-1], strict=True):
        wanted = RESULTS.summary().filter(pl.col("policy") == policy)
        np.testing.assert_array_equal(line.get_ydata(), wanted["mean"])
    assert len(axes.collections) == len(RESULTS.policies)
    assert axes.get_xscale() == "linear"
    (legend,) = axes.figure.legends
    assert len(legend.get_texts()) == len(lines)


def test_the_bound_is_drawn_where_it_is_known_and_said_to_be_asymptotic():
    steps = np.sort(RESULTS.table["step"].unique())
    known = RESULTS.plot().get_lines()[-1]
    np.testing.assert_allclose(known.get_ydata(), 2.5 * np.log(steps))
    assert known.get_label().startswith("asymptotic bound")
    given = RESULTS.plot(bound=4.0).get_lines()[-1]
    np.testing.assert_allclose(given.get_ydata(), 4 * np.log(steps))
    assert len(make_results(LABELS).plot().get_lines()) == len(LABELS)


def test_options_of_the_plot():
    axes = RESULTS.plot(log=True, bands=False, title="$5 [a]")
    assert axes.get_xscale() == "log"
    assert len(axes.collections) == 0
    assert axes.get_title("left") == r"\$5 [a]"


def test_the_plot_goes_into_the_axes_that_are_given():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert RESULTS.plot(axes=left) is left
    assert RESULTS.plot(axes=right, log=True) is right
    assert left.get_legend() is not None
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(("suffix", "head"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_the_plot_is_written_in_the_format_of_its_suffix(tmp_path, suffix, head):
    axes = RESULTS.plot(tmp_path / f"regret.{suffix}")
    assert (tmp_path / f"regret.{suffix}").read_bytes().startswith(head)
    assert axes.figure.axes == [axes]
    assert pyplot.get_fignums() == []  # nobody has to close what went to a file


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "regret.jpg"}, r"path must end in .png, .pdf, .svg, got 'regret.jpg'"),
        ({"path": 3}, "path must be a path, got 3"),
        ({"log": "x"}, "log must be True or False, got 'x'"),
        ({"axes": 3}, "axes must be axes of matplotlib, got 3"),
        ({"bound": "2"}, "bound must be a"),
    ],
)
def test_what_cannot_be_drawn_says_so(arguments, message):
    with pytest.raises(ValueError, match=message):
        RESULTS.plot(**arguments)


def test_the_page_is_one_file(tmp_path):
    RESULTS.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "asymptotic lower bound v* log t, v* = 2.50" in text


def test_pandas_gets_the_same_numbers():
    for what, frame in [
        ("table", RESULTS.table),
        ("summary", RESULTS.summary()),
        ("final", RESULTS.final()),
    ]:
        found = RESULTS.to_pandas(what)
        assert isinstance(found, pd.DataFrame)
        assert list(found.columns) == frame.columns
        for name in frame.columns:
            assert found[name].to_list() == frame[name].to_list()
    one = make_results(LABELS, runs=1).to_pandas("final")
    assert one["low"].isna().all()


def test_pandas_gets_only_what_there_is():
    with pytest.raises(ValueError, match="got 'arms', which was not recorded"):
        RESULTS.to_pandas("arms")
    with pytest.raises(ValueError, match=r"what must be one of table, summary, .*, got 'tables'"):
        RESULTS.to_pandas("tables")


def test_a_notebook_shows_the_standings_and_no_markup_of_labels():
    shown = RESULTS._repr_html_()
    assert shown.count("<tr>") == 1 + len(LABELS) + 1  # heads, policies, the bound
    assert AWKWARD not in shown
    assert "the lower bound is asymptotic" in shown
    assert "<script" not in shown


def test_printed_results_are_one_line():
    text = repr(make_results({"SOLID": 2.0, "LinUCB": 9.0}))
    assert "\n" not in text
    assert text.startswith("Results(20 runs of 5,000 steps; mean regret: SOLID 1")


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("matplotlib", "plotly", "pandas", "typer", "rich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
import polars as pl
import solid_bandits as sb
row = {"policy": "A", "run": 0, "step": 1, "regret": 0.5, "explored": 0}
results = sb.Results(pl.DataFrame([row]), {"configuration": {"policies": {"A": {}}, "horizon": 1, "runs": 1}})
assert "<table>" in results._repr_html_()
for call in (results.plot, lambda: results.report("x.html"), results.to_pandas):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def test_what_lacks_an_extra_names_it():
    ended = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        f"results.{method} needs {package}, which is not installed; run: pip install 'solid-bandits[{extra}]'"
        for method, package, extra in [
            ("plot", "matplotlib", "plot"),
            ("report", "plotly", "report"),
            ("to_pandas", "pandas", "pandas"),
        ]
    ]
