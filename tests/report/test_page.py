"""The page embeds and shows what `Results` says."""

import math
import re
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from markupsafe import escape
from plotly.offline import get_plotlyjs

from made import AWKWARD, LABELS, make_results
from pages import LOADS, embedded, without_library
from solid_bandits.report import palette, standings
from solid_bandits.report.figure import write_figure
from solid_bandits.report.page import page_data, write_page
from solid_bandits.simulation.results import Results


@pytest.fixture(scope="module")
def results() -> Results:
    return make_results(LABELS, started="2026-01-01T00:00:00Z", wall_seconds=12.34, seconds={"SOLID": 8.1})


def curve(results, policy):
    return results.summary().filter(pl.col("policy") == policy)


@pytest.mark.parametrize(("last", "slopes"), [(1, LABELS), (2, LABELS), (5000, {"SOLID": 1.0})])
def test_the_smallest_results_are_shown(last, slopes, tmp_path):
    results = make_results(slopes, runs=3)
    short = Results(results.table.filter(pl.col("step") <= last), results.manifest)
    write_figure(short, tmp_path / "regret.png", bound=1.0)
    write_page(short, tmp_path / "report.html", bound=1.0)
    assert (tmp_path / "report.html").stat().st_size > 10_000


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
    assert {unescape(head) for head in heads} == set(LABELS)
    assert "<title>Regret on toy: Problem(contexts=2, L&lt;1)</title>" in own
    # The data, the library and the script of the page: no label has opened or closed another one.
    assert own.count("<script") == page.count("</script") == 3


def test_page_shows_the_manifest_and_the_standings(results, tmp_path):
    write_page(results, tmp_path / "report.html")
    own = without_library((tmp_path / "report.html").read_text(encoding="utf-8"))
    for text in ("5,000 steps", "20 runs", "seed 7", "z0 = 1.0", "12 s", "ab12", "CPU time", ">8.1 s<"):
        assert text in own
    for row in standings.rows(results):
        for cell in row:
            assert f">{escape(cell)}<" in own


def test_page_copes_with_a_bare_manifest_and_a_single_run(tmp_path):
    results = make_results({"SOLID": 1.0, "LinUCB": 3.0}, runs=1)
    write_page(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "CPU time" not in without_library(page)
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
