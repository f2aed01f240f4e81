"""The report reads tables: what it draws, embeds and prints is what `Results` says."""

import json
import math
import re
from html import escape, unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex
from plotly.offline import get_plotlyjs
from rich.console import Console

from solid_bandits.report import palette, standings
from solid_bandits.report.figure import regret_figure, write_figure
from solid_bandits.report.insides import MOST_CHECKPOINTS, Targets, distances, insides_data
from solid_bandits.report.page import page_data, write_page
from solid_bandits.report.scale import regret_scale
from solid_bandits.report.table import final_table
from solid_bandits.results import COLUMNS, Results

AWKWARD = '<b>&"$x$</script>'
LOADS = re.compile(r"https?:|//cdn|\bsrc=|\bhref=|@import|url\(|<link|<iframe")
STEPS = np.unique(np.geomspace(1, 5000, 40).astype(np.int64))


def make_results(
    slopes: dict[str, float], runs: int = 20, stuck: tuple[str, ...] = (), **manifest
) -> Results:
    """Random walks around slope * log t; the stuck policies' regret is linear."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=runs)  # what a run has in common between policies
    frames = []
    for policy, slope in slopes.items():
        growth = STEPS * 0.5 if policy in stuck else np.log1p(STEPS)
        for run in range(runs):
            regret = slope * growth + np.abs(common[run]) + np.cumsum(rng.random(len(STEPS))) * 0.05
            columns = {"policy": policy, "run": run, "step": STEPS, "regret": regret, "explored": STEPS // 2}
            frames.append(pl.DataFrame(columns, schema=COLUMNS))
    configuration = {
        "problem": {"name": "toy", "description": "Problem(contexts=2, L<1)", "fingerprint": "ab12"},
        "policies": {policy: {"kind": "Solid", "z0": 1.0} for policy in slopes},
        "horizon": 5000,
        "runs": runs,
        "seed": 7,
    }
    versions = {"solid-bandits": "0.1.0"}
    return Results(
        pl.concat(frames), {"format": 1, "configuration": configuration, "versions": versions, **manifest}
    )


FOUR = {"SOLID": 2.0, "LinUCB": 9.0, AWKWARD: 12.0, "LinTS posterior": 2.1}


@pytest.fixture(scope="module")
def results() -> Results:
    return make_results(FOUR, started="2026-01-01T00:00:00Z", wall_seconds=12.34, seconds={"SOLID": 8.1})


def curve(results: Results, policy: str) -> pl.DataFrame:
    return results.summary().filter(pl.col("policy") == policy)


def embedded(page: str):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def without_library(page: str) -> str:
    return page.replace(get_plotlyjs(), "")


def printed(results: Results, width: int = 80) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(final_table(results))
    return capture.get()


# The figure


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
    results = make_results({**FOUR, "Greedy": 1.0}, stuck=("Greedy",))
    figure = regret_figure(results)
    kept = results.summary().filter(pl.col("policy") != "Greedy")["high"].max()
    for axes in figure.axes:
        assert kept < axes.get_ylim()[1] < 2 * kept
    final = curve(results, "Greedy")["mean"].max()
    assert f"Greedy (off scale: {final:,.0f})" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_figure_of_a_single_run_has_no_bands():
    results = make_results(FOUR, runs=1)
    assert all(not axes.collections for axes in regret_figure(results).axes)


@pytest.mark.parametrize(("last", "slopes"), [(1, FOUR), (2, FOUR), (5000, {"SOLID": 1.0})])
def test_the_smallest_results_are_shown(last, slopes, tmp_path):
    results = make_results(slopes, runs=3)
    short = Results(results.table.filter(pl.col("step") <= last), results.manifest)
    write_figure(short, tmp_path / "regret.png", bound=1.0)
    write_page(short, tmp_path / "report.html", bound=1.0)
    assert "best" in printed(short)


# The scale


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


# The page


def test_page_embeds_the_summary(results, tmp_path):
    write_page(results, tmp_path / "report.html", bound=2.5)
    data = embedded((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert data == page_data(results, bound=2.5)
    assert [entry["label"] for entry in data["policies"]] == results.policies
    last = results.table.filter(pl.col("step") == 5000)
    for entry in data["policies"]:
        wanted = curve(results, entry["label"])
        for column in ("step", "mean", "low", "high"):
            assert entry[column] == wanted[column].to_list()
        assert entry["final"] == last.filter(pl.col("policy") == entry["label"])["regret"].to_list()
        assert entry["colour"] == palette.looks(results.policies)[entry["label"]].colour
    assert data["bound"]["value"] == [2.5 * math.log(step) for step in data["bound"]["step"]]


def test_page_asks_the_network_for_nothing(results, tmp_path):
    write_page(results, tmp_path / "report.html", bound=2.5)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert get_plotlyjs() in page
    own = without_library(page)
    assert not LOADS.search(own)
    assert "default-src 'none'" in own


def test_page_escapes_all_text(results, tmp_path):
    write_page(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    own = without_library(page)
    assert AWKWARD not in own
    heads = re.findall(r'<th scope="row"><div><svg.*?</svg><span>(.*?)</span>', own)
    assert {unescape(head) for head in heads} == set(FOUR)
    assert "<title>Regret on toy: Problem(contexts=2, L&lt;1)</title>" in own
    # The data, the library and the script of the page: no label has opened or closed another one.
    assert own.count("<script") == page.count("</script") == 3


def test_page_shows_the_manifest_and_the_standings(results, tmp_path):
    write_page(results, tmp_path / "report.html")
    own = without_library((tmp_path / "report.html").read_text(encoding="utf-8"))
    for text in ("5,000 steps", "20 runs", "seed 7", "z0 = 1.0", "12.3 s", "ab12", "CPU seconds", ">8.1<"):
        assert text in own
    for row in standings.rows(results):
        for cell in row:
            assert f">{escape(cell)}<" in own


def test_page_copes_with_a_bare_manifest_and_a_single_run(tmp_path):
    results = make_results({"SOLID": 1.0, "LinUCB": 3.0}, runs=1)
    write_page(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "CPU seconds" not in without_library(page)
    assert [entry["low"] for entry in embedded(page)["policies"]] == [None, None]


@pytest.mark.parametrize(("write", "name"), [(write_figure, "regret.png"), (write_page, "report.html")])
def test_files_are_written_whole(results, tmp_path, monkeypatch, write, name):
    path = tmp_path / name
    path.write_text("earlier")
    write(results, str(path))
    assert path.stat().st_size > 10_000
    assert list(tmp_path.iterdir()) == [path]

    def fail(*_):
        raise OSError("no space left")

    before = path.read_bytes()
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write(results, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# Inside SOLID


UNIFORM, FIRST, SECOND = [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]
SMALL_Z, LARGE_Z = 3.0, 9.0
TARGETS = {
    "context_probs": [0.75, 0.25],
    "n_arms": 2,
    "at": [
        {"z": SMALL_Z, "omega": None, "multiplier": None, "value": None},
        {"z": LARGE_Z * (1 + 1e-9), "omega": [FIRST, UNIFORM], "multiplier": 4.0, "value": 6.0},
    ],
}


def inside_row(policy, run, step, z=LARGE_Z, omega=(*UNIFORM, *UNIFORM), **columns):
    usual = {"multiplier": 1.0, "phase": 0, "normalisation": z, "explored": step, "statistic": 1.0}
    usual |= {"threshold": 2.0, "omega": list(map(float, omega))}
    return {"policy": policy, "run": run, "step": step, **usual, **columns}


def with_insides(rows, runs=3, **manifest) -> Results:
    results = make_results(FOUR, runs=runs, **manifest)
    return Results(results.table, results.manifest, pl.DataFrame(rows, infer_schema_length=None))


@pytest.fixture(scope="module")
def looked_into() -> Results:
    """Three runs of SOLID and one of the policy with the awkward label, at steps 1 and 5000."""
    rows = [
        inside_row("SOLID", 0, 1, SMALL_Z, multiplier=1.0, statistic=0.0, explored=1),
        inside_row("SOLID", 1, 1, SMALL_Z, multiplier=2.0, statistic=1.0, explored=1),
        inside_row("SOLID", 2, 1, SMALL_Z, multiplier=6.0, statistic=2.0, explored=1),
        inside_row("SOLID", 0, 5000, SMALL_Z, (*FIRST, *SECOND), statistic=3.0, explored=1000),
        inside_row("SOLID", 1, 5000, LARGE_Z, (*FIRST, *SECOND), statistic=math.inf, explored=2000),
        inside_row("SOLID", 2, 5000, LARGE_Z, (*SECOND, *UNIFORM), statistic=math.inf, explored=3000),
        inside_row(AWKWARD, 0, 1),
        inside_row(AWKWARD, 0, 5000),
    ]
    return with_insides(rows, targets=TARGETS, lower_bound={"value": 5.0, "lower": 4.9, "upper": 5.1})


def test_insides_are_averaged_over_runs(looked_into):
    solid, awkward = insides_data(looked_into)["policies"]
    half = 4.302653 * math.sqrt(7) / math.sqrt(3)  # Student's 97.5% quantile, 2 degrees of freedom
    assert solid["step"] == solid["multiplier"]["step"] == [1, 5000]
    first = [solid["multiplier"][name][0] for name in ("mean", "low", "high")]
    assert first == pytest.approx([3.0, 3.0 - half, 3.0 + half], rel=1e-5)
    assert solid["multiplier"]["mean"][1] == solid["multiplier"]["low"][1] == 1.0
    assert solid["threshold"] == [2.0, 2.0]
    assert solid["exploring"]["mean"] == [1.0, 0.4]
    assert solid["exploring_lately"] == [1.0, pytest.approx(1999 / 4999, rel=1e-5)]
    assert solid["z"] == {"median": [3.0, 9.0], "low": [3.0, 3.0], "high": [3.0, 9.0]}
    assert awkward["multiplier"]["low"] == [None, None]  # one run has no interval


def test_infinite_statistics_are_null(looked_into):
    statistic = insides_data(looked_into)["policies"][0]["statistic"]
    # Of 3, inf, inf the middle one is infinite; of 0, 1, 2 nothing is.
    assert statistic["median"] == [1.0, None]
    assert statistic["low"][0] == pytest.approx(0.5)
    assert statistic["high"] == [pytest.approx(1.5), None]


def test_insides_are_set_beside_their_targets(looked_into):
    data = insides_data(looked_into)
    solid = data["policies"][0]
    assert solid["multiplier_target"] == [None, 4.0]
    # Runs 1 and 2 at the last step: 1/4 * 1/2 and 3/4 * 1; run 0 is where (P_z) is infeasible.
    assert solid["distance"]["step"] == [5000]
    assert solid["distance"]["mean"] == [pytest.approx((0.125 + 0.75) / 2)]
    assert solid["omega"]["target"] == [0, 1]
    assert data["targets"] == [
        {"omega": None, "value": None},
        {"omega": [FIRST, UNIFORM], "value": 6.0},
    ]
    assert solid["omega"]["mean"][0] == [UNIFORM, UNIFORM]
    np.testing.assert_allclose(solid["omega"]["mean"][1], [[2 / 3, 1 / 3], [1 / 6, 5 / 6]], atol=1e-4)
    assert data["lower_bound"] == 5.0


def test_distances_run_from_none_to_one():
    same, disjoint = (*FIRST, *UNIFORM), (*SECOND, *UNIFORM)
    rows = [inside_row("SOLID", 0, 1, omega=same), inside_row("SOLID", 1, 1, omega=disjoint)]
    only_first = {**TARGETS, "context_probs": [1.0, 0.0]}
    found = distances(pl.DataFrame(rows), Targets({"targets": only_first}))
    assert found["distance"].to_list() == [0.0, 1.0]


def test_targets_are_found_by_their_z():
    targets = Targets({"targets": TARGETS})
    assert targets.multiplier(LARGE_Z) == 4.0
    assert targets.multiplier(SMALL_Z) is None
    assert targets.omega(SMALL_Z) is None
    assert targets.nearest(5.0) is None  # a z at which nothing was solved
    assert Targets({}).nearest(LARGE_Z) is None


def test_insides_without_targets(looked_into):
    bare = with_insides(looked_into.insides.rows(named=True))
    data = insides_data(bare)
    assert data["targets"] == []
    assert data["lower_bound"] is data["context_probs"] is None
    for policy in data["policies"]:
        assert policy["distance"] is None
        assert set(policy["multiplier_target"]) == set(policy["omega"]["target"]) == {None}
        assert np.shape(policy["omega"]["mean"]) == (2, 2, 2)


def test_policies_without_insides_are_skipped(looked_into):
    # Another policy may show insides of its own: SOLID's columns are null there.
    rows = [{"policy": "LinUCB", "run": 0, "step": 1, "width": 1.0}, *looked_into.insides.rows(named=True)]
    data = insides_data(with_insides(rows))
    assert [list(FOUR)[policy["policy"]] for policy in data["policies"]] == ["SOLID", AWKWARD]


def test_embedded_policies_are_few():
    rows = [inside_row("SOLID", 0, int(step)) for step in range(1, 200)]
    omega = insides_data(with_insides(rows))["policies"][0]["omega"]
    assert len(omega["step"]) == len(omega["mean"]) == MOST_CHECKPOINTS
    assert omega["step"][0] == 1
    assert omega["step"][-1] == 199
    wide = [inside_row("SOLID", 0, step, omega=[1 / 50] * 5000) for step in range(1, 20)]
    assert np.shape(insides_data(with_insides(wide))["policies"][0]["omega"]["mean"]) == (4, 100, 50)


@pytest.mark.parametrize("rows", [None, [], [{"policy": "LinUCB", "run": 0, "step": 1, "width": 1.0}]])
def test_section_is_absent_without_insides(rows, tmp_path):
    results = make_results(FOUR) if rows is None else with_insides(rows)
    write_page(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert embedded(page)["insides"] is None
    assert "Inside SOLID" not in without_library(page)


def test_section_is_shown_with_insides(looked_into, tmp_path):
    write_page(looked_into, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    own = without_library(page)
    assert embedded(page)["insides"] == insides_data(looked_into)
    assert "<h2>Inside SOLID</h2>" in own
    assert AWKWARD not in own
    assert not LOADS.search(own)
    assert own.count("<script") == page.count("</script") == 3
    # Every element that the script draws into is there, once.
    for name in set(re.findall(r'(?:element|chart|heatMap)\("(\w+)"', own)):
        assert own.count(f'id="inside-{name}"') == 1


# The table


def test_standings_are_the_final_summary_in_order(results):
    table = standings.standings(results)
    assert table["mean"].is_sorted()
    columns = ["policy", "mean", "low", "high", "runs", "explored"]
    assert table.select(columns).sort("policy").equals(results.final().select(columns).sort("policy"))


def test_paired_differences_drop_what_runs_share(results):
    differences = standings.paired_differences(results, to="SOLID")
    final = results.table.filter(pl.col("step") == 5000).pivot("policy", index="run", values="regret")
    assert differences["policy"].to_list() == [policy for policy in FOUR if policy != "SOLID"]
    for policy, mean, low, high in differences.iter_rows():
        paired = (final[policy] - final["SOLID"]).to_numpy()
        half = (
            2.093024 * paired.std(ddof=1) / math.sqrt(20)
        )  # Student's 97.5% quantile, 19 degrees of freedom
        np.testing.assert_allclose([mean, low, high], paired.mean() + half * np.array([0, -1, 1]), rtol=1e-6)
        own = curve(results, policy).row(-1, named=True)
        assert high - low < own["high"] - own["low"]


def test_table_lists_policies_in_order_of_regret(results):
    lines = [line for line in printed(results).splitlines() if line.strip()]
    ranked = standings.standings(results)["policy"].to_list()
    places = [next(i for i, line in enumerate(lines) if line.strip().startswith(policy)) for policy in ranked]
    assert places == sorted(places)
    assert "best" in lines[places[0]]
    assert all("20" in lines[place] for place in places)
    assert max(map(len, lines)) <= 80


def test_table_marks_what_is_not_told_apart():
    results = make_results({"a": 1.0, "b [bold]": 1.0, "c": 5.0})
    marked = {row.policy: row.difference.startswith(standings.TIE) for row in standings.rows(results)}
    by_interval = {
        policy: low is not None and low <= 0 <= high
        for policy, low, high in standings.standings(results)
        .select("policy", "difference_low", "difference_high")
        .iter_rows()
    }
    assert marked == by_interval
    assert sorted(marked.values()) == [False, False, True]
    text = printed(results)
    assert standings.TIE_NOTE in text
    assert "b [bold]" in text


def test_table_of_a_single_run_claims_no_interval():
    text = printed(make_results({"SOLID": 1.0, "LinUCB": 3.0}, runs=1))
    assert text.count("one run") == 2
    assert "±" not in text


# The palette


def test_ten_policies_look_different():
    looks = list(palette.looks(map(str, range(10))).values())
    assert len({(look.colour, look.dash) for look in looks}) == 10
    assert len({(look.colour, str(look.linestyle)) for look in looks}) == 10
    assert all(look.dash != "dash" for look in looks)
