"""The table of the terminal says what `Results` says."""

import pytest
from rich.console import Console

from made import LABELS, make_results
from solid_bandits.report import standings
from solid_bandits.report.table import final_table
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.summary import standings as ranked


@pytest.fixture(scope="module")
def results() -> Results:
    return make_results(LABELS, started="2026-01-01T00:00:00Z", wall_seconds=12.34, seconds={"SOLID": 8.1})


def printed(results: Results, width: int = 80) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(final_table(results))
    return capture.get()


def test_the_smallest_results_have_a_table():
    results = make_results(LABELS, runs=3)
    assert "best" in printed(Results(results.table.filter(step=1), results.manifest))


def test_table_lists_policies_in_order_of_regret(results):
    lines = [line for line in printed(results).splitlines() if line.strip()]
    best_first = ranked(results.table)["policy"].to_list()
    places = [
        next(i for i, line in enumerate(lines) if line.strip().startswith(policy)) for policy in best_first
    ]
    assert places == sorted(places)
    assert "best" in lines[places[0]]
    assert all("20" in lines[place] for place in places)
    assert max(map(len, lines)) <= 80


def test_table_marks_what_is_not_told_apart():
    results = make_results({"a": 1.0, "b [bold]": 1.0, "c": 5.0})
    marked = {row.policy: row.difference.startswith(standings.TIE) for row in standings.rows(results)}
    by_interval = {
        policy: low is not None and low <= 0 <= high
        for policy, low, high in ranked(results.table)
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
