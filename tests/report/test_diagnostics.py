"""What the page shows of SOLID's diagnostics."""

import math
import re

import numpy as np
import polars as pl
import pytest

from browser import PHONE, WIDE, Visit, chromium
from made import AWKWARD, LABELS, make_results
from pages import LOADS, embedded, without_library
from solid_bandits.report.diagnostics import MOST_CHECKPOINTS, Targets, diagnostics_data, distances
from solid_bandits.report.page import write_page
from solid_bandits.simulation.results import Results

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


def diagnostics_row(policy, run, step, z=LARGE_Z, omega=(*UNIFORM, *UNIFORM), **columns):
    usual = {"multiplier": 1.0, "phase": 0, "normalisation": z, "explored": step, "statistic": 1.0}
    usual |= {"threshold": 2.0, "omega": list(map(float, omega))}
    return {"policy": policy, "run": run, "step": step, **usual, **columns}


def with_diagnostics(rows, runs=3, **manifest) -> Results:
    results = make_results(LABELS, runs=runs, **manifest)
    return Results(results.table, results.manifest, pl.DataFrame(rows, infer_schema_length=None))


@pytest.fixture(scope="module")
def looked_into() -> Results:
    """Three runs of SOLID and one of the policy with the awkward label, at steps 1 and 5000."""
    rows = [
        diagnostics_row("SOLID", 0, 1, SMALL_Z, multiplier=1.0, statistic=0.0, explored=1),
        diagnostics_row("SOLID", 1, 1, SMALL_Z, multiplier=2.0, statistic=1.0, explored=1),
        diagnostics_row("SOLID", 2, 1, SMALL_Z, multiplier=6.0, statistic=2.0, explored=1),
        diagnostics_row("SOLID", 0, 5000, SMALL_Z, (*FIRST, *SECOND), statistic=3.0, explored=1000),
        diagnostics_row("SOLID", 1, 5000, LARGE_Z, (*FIRST, *SECOND), statistic=math.inf, explored=2000),
        diagnostics_row("SOLID", 2, 5000, LARGE_Z, (*SECOND, *UNIFORM), statistic=math.inf, explored=3000),
        diagnostics_row(AWKWARD, 0, 1),
        diagnostics_row(AWKWARD, 0, 5000),
    ]
    return with_diagnostics(rows, targets=TARGETS, lower_bound={"value": 5.0, "lower": 4.9, "upper": 5.1})


def test_diagnostics_are_averaged_over_runs(looked_into):
    solid, awkward = diagnostics_data(looked_into)["policies"]
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
    statistic = diagnostics_data(looked_into)["policies"][0]["statistic"]
    # Of 3, inf, inf the middle one is infinite; of 0, 1, 2 nothing is.
    assert statistic["median"] == [1.0, None]
    assert statistic["low"][0] == pytest.approx(0.5)
    assert statistic["high"] == [pytest.approx(1.5), None]


def test_diagnostics_are_set_beside_their_targets(looked_into):
    data = diagnostics_data(looked_into)
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
    rows = [diagnostics_row("SOLID", 0, 1, omega=same), diagnostics_row("SOLID", 1, 1, omega=disjoint)]
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


def test_diagnostics_without_targets(looked_into):
    bare = with_diagnostics(looked_into.diagnostics.rows(named=True))
    data = diagnostics_data(bare)
    assert data["targets"] == []
    assert data["lower_bound"] is data["context_probs"] is None
    for policy in data["policies"]:
        assert policy["distance"] is None
        assert set(policy["multiplier_target"]) == set(policy["omega"]["target"]) == {None}
        assert np.shape(policy["omega"]["mean"]) == (2, 2, 2)


def test_policies_without_diagnostics_are_skipped(looked_into):
    # Another policy may show diagnostics of its own: SOLID's columns are null there.
    rows = [
        {"policy": "LinUCB", "run": 0, "step": 1, "width": 1.0},
        *looked_into.diagnostics.rows(named=True),
    ]
    data = diagnostics_data(with_diagnostics(rows))
    assert [list(LABELS)[policy["policy"]] for policy in data["policies"]] == ["SOLID", AWKWARD]


def test_embedded_policies_are_few():
    rows = [diagnostics_row("SOLID", 0, int(step)) for step in range(1, 200)]
    omega = diagnostics_data(with_diagnostics(rows))["policies"][0]["omega"]
    assert len(omega["step"]) == len(omega["mean"]) == MOST_CHECKPOINTS
    assert omega["step"][0] == 1
    assert omega["step"][-1] == 199
    wide = [diagnostics_row("SOLID", 0, step, omega=[1 / 50] * 5000) for step in range(1, 20)]
    assert np.shape(diagnostics_data(with_diagnostics(wide))["policies"][0]["omega"]["mean"]) == (4, 100, 50)


@pytest.mark.parametrize("rows", [None, [], [{"policy": "LinUCB", "run": 0, "step": 1, "width": 1.0}]])
def test_section_is_absent_without_diagnostics(rows, tmp_path):
    results = make_results(LABELS) if rows is None else with_diagnostics(rows)
    write_page(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert embedded(page)["diagnostics"] is None
    assert "Diagnostics of SOLID" not in without_library(page)


def test_section_is_shown_with_diagnostics(looked_into, tmp_path):
    write_page(looked_into, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    own = without_library(page)
    assert embedded(page)["diagnostics"] == diagnostics_data(looked_into)
    assert "<h2>Diagnostics of SOLID</h2>" in own
    assert AWKWARD not in own
    assert not LOADS.search(own)
    assert own.count("<script") == page.count("</script") == 3
    # Every element that the script draws into is there, once.
    for name in set(re.findall(r'(?:element|chart|heatMap)\("(\w+)"', own)):
        assert own.count(f'id="diagnostics-{name}"') == 1


@pytest.mark.parametrize("width", [PHONE, WIDE])
def test_the_section_is_drawn_in_a_browser(looked_into, width, tmp_path):
    write_page(looked_into, tmp_path / "report.html")
    with chromium() as browser, Visit(browser, tmp_path / "report.html", width=width) as visit:
        for chart in ("multiplier", "statistic", "z", "exploring", "distance", "omega"):
            visit.until(f"document.querySelectorAll('#diagnostics-{chart} .main-svg').length > 0")
        buttons = visit.page.locator("#diagnostics-pick button")
        assert buttons.all_text_contents() == ["SOLID", AWKWARD]
        assert visit.page.locator("#diagnostics-pick line").count() == 2
        buttons.nth(1).click()
        pressed = visit.page.locator('#diagnostics-pick button[aria-pressed="true"]')
        assert pressed.all_text_contents() == [AWKWARD]
        visit.check_quiet()
        visit.check_fits()
