"""Every tutorial is executed, cell by cell, and what its text says of the outcome is so."""

import re

import numpy as np
import pytest

import solid_bandits as sb
from page_code import DOCS

TUTORIALS = sorted(path.stem for path in (DOCS / "tutorials").glob("*.md") if path.stem != "index")


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Run the cells of a tutorial in an empty folder, and give the names they leave."""
    monkeypatch.chdir(tmp_path)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")

    def execute(name):
        text = (DOCS / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
        cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
        names = {"__name__": "__main__"}  # as in a notebook: classes of a cell reach other processes by value
        for number, cell in enumerate(cells):
            exec(compile(cell, f"{name}.md, cell {number}", "exec"), names)
        pyplot.close("all")
        return names

    return execute


def test_there_is_a_test_for_each_tutorial():
    assert TUTORIALS == ["compare", "live", "lower-bound", "named", "own-policy", "paper"]
    text = (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in text for name in TUTORIALS)


def test_a_person_not_a_matrix(play):
    names = play("named")
    assert set(names["bandit"].design.arms) == {"climate", "football", "science", "travel"}
    assert names["shares"]["tv"][1] > 0.5 > names["shares"]["ios"][1]  # football is for televisions
    assert names["why"].estimate == pytest.approx(sum(part.estimate for part in names["why"].parts.values()))
    assert all(0.1 < one.value("snips") < 0.9 for one in names["found"].values())


@pytest.mark.long
def test_compare_policies(play):
    names = play("compare")
    assert names["results"].compare("RandUCB", "LinUCB").better == "RandUCB"
    table = names["final"].set_index(["policy", "run"])["regret"]
    greedy = table["Greedy"]
    assert greedy.quantile(0.25) < min(
        table[label].quantile(0.25) for label in ("RandUCB", "LinTS", "LinUCB")
    )
    assert greedy.max() > 10 * table["LinUCB"].max()
    assert names["many"].runs == 40


def test_your_own_policy(play):
    names = play("own-policy")
    assert names["largest_difference"] == 0.0
    assert names["decision"].arm in (0, 2)


def test_live_decisions_and_their_evaluation(play):
    names = play("live")
    assert not names["receipt"].counted
    assert np.abs(names["bandit"].agent.theta - names["THETA"]).max() < 0.15
    # Four standard errors (false alarms: 6e-5 for each): the interval is two to either side.
    for found, truth in ((names["rule"], names["truth"]), (names["at_random"], 0.5)):
        low, high = found.interval("cadr")
        assert abs(found.value("cadr") - truth) < high - low
    fitted = names["learned"].interval("cadr")
    assert fitted[1] > names["truth"]  # a fitted policy is not worse than the simple rule


def test_the_lower_bound_and_what_it_means(play):
    names = play("lower-bound")
    allocation = names["bound"].allocation
    assert np.flatnonzero(allocation > 1e-3).tolist() == [
        allocation[0].size
    ]  # the first arm of the second context
    assert (allocation * names["gaps"]).sum() == pytest.approx(names["bound"].value, rel=1e-5)
    values = [sb.bounds.lower_bound(sb.problems.toy(noise_std=sigma)).value for sigma in (0.5, 1.0, 2.0)]
    assert values == pytest.approx([2.5, 10.0, 40.0], rel=1e-5)
    assert sb.bounds.lower_bound(names["free"]).value == 0
    curve, bound = names["curve"], names["bound"]
    assert (np.diff(curve.value) < 1e-6).all()
    assert curve.value[-1] == pytest.approx(bound.value, rel=0.05)
    early = names["results"].summary().filter(policy="RandUCB")
    assert (early["mean"] < bound.value * np.log(early["step"].to_numpy())).any()


@pytest.mark.long
def test_the_paper_in_an_hour(play):
    names = play("paper")
    assert names["largest"] == 0.0
    assert names["multiplier"].max() > 0
    explored = dict(names["results"].final().select("policy", "explored").iter_rows())
    assert explored["Solid"] < 0.2 * 5_000
