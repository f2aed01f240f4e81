"""What figure, page and table show of a simulation on a stream is what the tables of the results say."""

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from browser import PHONE, WIDE, Visit, chromium
from solid_bandits.report.page import page_data, write_page
from solid_bandits.report.stream_data import STREAM_HEADS, arm_name, stream_cells, stream_data
from solid_bandits.report.stream_figure import stream_figure
from solid_bandits.report.table import stream_table
from solid_bandits.simulation.results import Results
from solid_bandits.simulation.table_format import ARMS_COLUMNS, CALIBRATION_COLUMNS, STREAM_COLUMNS

STEPS = [1, 50, 100]


def made(arms=3, names=None, calibrated=True, runs=2):
    """Results of two policies: a pulls arm 0 only and gets 1 each time, b all arms alike and gets 0.5."""
    rows = [
        (policy, run, step, step * (1 - rate), 0, step * rate, step * (0.9 - rate))
        for policy, rate in (("a<b>", 1.0), ("b", 0.5))
        for run in range(runs)
        for step in STEPS
    ]
    pulls = [
        (policy, step, arm, runs * (step * (arm == 0) if policy == "a<b>" else step // max(arms, 1)))
        for policy in ("a<b>", "b")
        for step in STEPS
        for arm in range(arms)
    ]
    samples = [
        (policy, run, step, 0.01 * step, 0.02 * step)
        for policy in ("a<b>", "b")
        for run in range(runs)
        for step in range(1, 101)
    ]
    problem = {"description": "made up", "fingerprint": "0", **({} if names is None else {"arms": names})}
    configuration = {
        "policies": {"a<b>": {"kind": "Greedy"}, "b": {"kind": "Greedy"}},
        "horizon": 100,
        "runs": runs,
        "seed": 0,
        "stream": True,
        "problem": problem,
    }
    return Results(
        pl.DataFrame(rows, schema=STREAM_COLUMNS, orient="row"),
        {"format": 2, "configuration": configuration},
        arms=pl.DataFrame(pulls, schema=ARMS_COLUMNS, orient="row"),
        calibration=pl.DataFrame(samples if calibrated else [], schema=CALIBRATION_COLUMNS, orient="row"),
    )


def test_the_page_has_the_numbers_of_the_results(tmp_path):
    results = made(names=["tea", "milk", "<i>"])
    data = page_data(results)["stream"]
    first, second = data["policies"]
    assert first["mean"] == [1.0, 1.0, 1.0]
    assert second["mean"] == [0.5, 0.5, 0.5]
    assert data["arms"] == ["tea", "milk", "<i>"]
    assert first["shares"][0] == [1.0] * len(first["share_step"])
    assert np.allclose(np.sum(second["shares"], axis=0), 1)
    assert np.allclose(np.array(first["received"]) / first["predicted"], 2)
    write_page(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="stream-reward"' in page
    assert "<i>" not in page.split('id="data">')[1].split("</script>")[0]
    assert all(head in page for head in STREAM_HEADS)


def test_a_finite_problem_has_no_such_section(tmp_path):
    results = sb.Results(
        made().table.drop("reward", "ridge_regret"), {"configuration": made().manifest["configuration"]}
    )
    assert stream_data(results) is None
    assert stream_cells(results) == {}
    assert stream_table(results) is None
    write_page(results, tmp_path / "report.html")
    assert "stream-reward" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_cells_are_ordered_by_reward():
    cells = stream_cells(made())
    assert list(cells) == ["a<b>", "b"]
    assert cells["b"] == ("0.500 ± 0", "40.0", "0.76")
    assert cells["a<b>"][1] == "−10.0"


def test_arms_by_name_or_number():
    assert arm_name(made(), 2) == "arm 2"
    assert arm_name(made(names=["x", "y", "z"]), 2) == "z"
    assert arm_name(made(), -1) == "others"


@pytest.mark.parametrize(
    ("results", "panels"),
    [
        (made(), 3),
        (made(arms=0), 2),
        (made(calibrated=False), 2),
        (made(arms=0, calibrated=False, runs=1), 1),
        (made(arms=20), 3),
    ],
    ids=["all", "no arms", "no predictions", "neither", "many arms"],
)
def test_the_figure_draws_what_there_is(results, panels, tmp_path):
    figure = stream_figure(results)
    assert len(figure.axes) == panels
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].get_lines()}
    assert list(lines) == ["a<b>", "b"]
    assert list(lines["b"]) == [0.5] * 3
    figure.savefig(tmp_path / "stream.png")


@pytest.mark.parametrize("width", [PHONE, WIDE])
def test_the_section_is_drawn_in_a_browser(width, tmp_path):
    write_page(made(names=["tea", "milk", "<i>"]), tmp_path / "report.html")
    with chromium() as browser, Visit(browser, tmp_path / "report.html", width=width) as visit:
        for chart in ("reward", "calibration", "shares"):
            visit.until(f"document.querySelectorAll('#stream-{chart} .trace').length > 0")
        buttons = visit.page.locator("#stream-pick button")
        assert buttons.all_text_contents() == ["a<b>", "b"]
        pressed = "[...document.querySelectorAll('#stream-pick button')].map((one) => one.getAttribute('aria-pressed'))"
        assert visit.page.evaluate(pressed) == ["true", "false"]
        buttons.nth(1).click()
        assert visit.page.evaluate(pressed) == ["false", "true"]
        visit.check_quiet()
        visit.check_fits()
