"""The page of a directory of experiments: what it embeds is what the outcomes say, and a browser shows it."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from plotly.offline import get_plotlyjs
from scipy.stats import t as student

import solid_bandits as sb
from browser import PHONE, WIDE, Visit, chromium
from pages import LOADS, embedded, embedded_text, without_library
from solid_bandits._internal import wording
from solid_bandits.paper.outcome import Answer, Claim, Comparison, Outcome, Verdict
from solid_bandits.paper.report.experiments_data import MOST_CHECKPOINTS, experiments_data
from solid_bandits.paper.report.experiments_page import write_experiments_page
from solid_bandits.report import palette
from solid_bandits.simulation.results import Results
from solid_bandits.simulation.table_format import COLUMNS
from solid_bandits.statistics.estimate import UNKNOWN, Estimate
from solid_bandits.statistics.measures import measures

AWKWARD = 'LinTS <b>&"$x$</script>'
OTHER = "LinTS, posterior, with a label as long as labels get to be"
HORIZON, RUNS = 400, 4
FACTS = {"scale": "quick", "machine": "a <fast> one", "cores": 2, "versions": {"numpy & co": "2.0"}}
C, R, U = Answer.CONFIRMED, Answer.REFUTED, Answer.UNDECIDED


def play(policies, runs=RUNS, first=0.5, bound=None) -> Results:
    results = sb.simulate(sb.problems.toy(first_context_prob=first), policies, HORIZON, runs=runs, jobs=1)
    results.manifest["lower_bound"] = bound or {"value": 9.5, "lower": 9.4, "upper": 9.6}
    return results


def compared(what, answer, counted=True, estimate=1.25, low=0.5, high=2.0) -> Comparison:
    return Comparison(what, Estimate(estimate, low, high), answer, counted)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    solid, rest = {"SOLID": sb.Solid()}, {"LinUCB": sb.LinUCB(), AWKWARD: sb.LinTS()}
    posterior = {OTHER: sb.LinTS(scale="posterior")}
    toy = Outcome(
        name="toy",
        title="Toy problem",
        about="Two contexts, <three> arms.",
        scale="quick",
        parts={"ρ(x₁) = 0.5": play(solid | rest), "ρ(x₁) <= 0.9": play(solid | rest | posterior, first=0.9)},
        verdicts=(
            Verdict(
                Claim("SOLID is <below> LinUCB & others.", "Section 6, toy", "less"),
                C,
                "Every interval lies above 0 & level 0.95.",
                (
                    compared("regret of LinUCB - regret of SOLID", C, estimate=12.5, low=11.0, high=14.0),
                    compared(f"regret of {AWKWARD} - regret of SOLID", R, counted=False),
                ),
            ),
            Verdict(
                Claim("Regret does not grow.", "Section 6, toy", "not growing"),
                R,
                "No interval lies above 0.",
                (compared("growth of SOLID", R), compared("growth of LinUCB", C), compared("of LinTS", U)),
            ),
        ),
    )
    single = Outcome(
        name="one run/1",  # a name that has to be quoted in an address
        title="A single run",
        about="",
        scale="own",
        parts={"alone": play(solid | rest, runs=1, bound={"reason": "each run has its <own> problem"})},
        verdicts=(
            Verdict(
                Claim("Something that nobody measured.", "ours", "below"),
                U,
                "Undecided where nothing was measured.",
                (Comparison("slope of OAM", UNKNOWN, U),),
            ),
        ),
    )
    quiet = replace(single, name="quiet", title="Without claims", verdicts=())
    return [toy, single, quiet]


@pytest.fixture(scope="module")
def path(outcomes, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    write_experiments_page(outcomes, file, FACTS)
    return file


@pytest.fixture(scope="module")
def own(path) -> str:
    """The page without the library."""
    return without_library(path.read_text(encoding="utf-8"))


class Text(HTMLParser):
    """The words of a page, and its tables row by row."""

    def __init__(self, page: str):
        super().__init__()
        self.rows, self.words, self.inside, self.open = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        if tag == "tr":  # within another one where tables lie in tables
            self.open.append([])
            self.rows.append(self.open[-1])
        elif tag in ("th", "td"):
            self.open[-1].append("")

    def handle_endtag(self, tag):
        while self.inside.pop() != tag:
            pass
        if tag == "tr":
            self.open.pop()

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.words.append(data)
            if self.open and self.open[-1]:
                self.open[-1][-1] += data


@pytest.fixture(scope="module")
def text(own) -> Text:
    found = Text(own)
    found.rows = [[" ".join(cell.split()) for cell in row] for row in found.rows]
    return found


def student_interval(values) -> list[float]:
    mean = np.mean(values)
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return [mean, mean - half, mean + half]


def runs_at(results: Results, policy: str, step: int, column: str = "regret") -> np.ndarray:
    rows = results.table.filter((pl.col("policy") == policy) & (pl.col("step") == step))
    return rows.sort("run")[column].to_numpy()


# The numbers


def test_data_are_the_thinned_summary(outcomes):
    for entry, outcome in zip(experiments_data(outcomes)["experiments"], outcomes, strict=True):
        assert [policy["label"] for policy in entry["policies"]] == outcome.policies
        styles = palette.looks(outcome.policies)
        assert [policy["colour"] for policy in entry["policies"]] == [look.colour for look in styles.values()]
        assert [part["label"] for part in entry["parts"]] == list(outcome.parts)
        for part, results in zip(entry["parts"], outcome.parts.values(), strict=True):
            steps = results.table["step"].unique().sort().to_list()
            assert len(part["step"]) == min(MOST_CHECKPOINTS, len(steps))
            assert {part["step"][0], part["step"][-1]} == {1, HORIZON}
            assert [outcome.policies[curve["policy"]] for curve in part["policies"]] == results.policies
            summary = results.summary().filter(pl.col("step").is_in(part["step"]))
            for curve in part["policies"]:
                wanted = summary.filter(pl.col("policy") == outcome.policies[curve["policy"]])
                for column in ("mean", "low", "high"):
                    if wanted[column].null_count():
                        assert curve[column] is None
                    else:
                        np.testing.assert_allclose(curve[column], wanted[column], rtol=1e-4, atol=1e-9)
            for key, find in {
                "regret": lambda one: one.regret,
                "difference": lambda one: one.difference,
                "slope": lambda one: one.slope,
                "exploring": lambda one: one.exploring,
                "time": lambda one: None if one.step_seconds is None else (one.step_seconds, None, None),
            }.items():
                shown = part["measures"][key]["values"]
                for one in measures(results, outcome.reference):
                    value = shown.get(str(outcome.policies.index(one.policy)))
                    np.testing.assert_allclose(
                        np.array(value or [], float), np.array(find(one) or [], float), rtol=1e-4, atol=1e-9
                    )


def test_bound_is_drawn_where_there_is_one(outcomes):
    toy, single, _ = experiments_data(outcomes)["experiments"]
    for part in toy["parts"]:
        np.testing.assert_allclose(part["bound"], 9.5 * np.log(part["step"]), rtol=1e-4)
        assert part["measures"]["slope"]["bound"] == 9.5
        assert part["measures"]["regret"]["bound"] == pytest.approx(9.5 * math.log(HORIZON), rel=1e-4)
    assert single["parts"][0]["bound"] is None


@pytest.mark.parametrize("spoil", ["regret", "bound", "policy", "bare"])
def test_what_is_no_number_is_null(outcomes, tmp_path, spoil):
    """A diverged run, a bound without an optimum, a policy without a run, a bare manifest: the page is written."""
    results = outcomes[0].parts["ρ(x₁) = 0.5"]
    table, manifest = results.table, dict(results.manifest)
    if spoil == "regret":
        late = (pl.col("policy") == "LinUCB") & (pl.col("step") > 100)
        table = table.with_columns(pl.when(late).then(math.nan).otherwise(pl.col("regret")).alias("regret"))
    elif spoil == "bound":
        manifest["lower_bound"] = {"value": math.inf}
    elif spoil == "policy":
        table = table.filter(pl.col("policy") != "LinUCB")
    else:
        manifest = {"configuration": manifest["configuration"]}
    outcome = replace(outcomes[0], parts={"spoilt": Results(table, manifest)})
    write_experiments_page([outcome], tmp_path / "report.html", {})
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"\b(NaN|nan|Infinity|inf)\b", embedded_text(page))


def test_embedded_curves_are_small(outcomes):
    steps = np.arange(1, 2001)
    frame = {"policy": "SOLID", "run": 0, "step": steps, "regret": np.log(steps) / 7, "explored": 0}
    results = Results(pl.DataFrame(frame, schema=COLUMNS), outcomes[0].parts["ρ(x₁) = 0.5"].manifest)
    (entry,) = experiments_data([replace(outcomes[0], parts={"long": results})])["experiments"]
    (curve,) = entry["parts"][0]["policies"]
    assert len(curve["mean"]) == MOST_CHECKPOINTS
    assert max(len(str(value)) for value in curve["mean"]) <= 8


# The text


def test_page_shows_every_claim_and_comparison(outcomes, text):
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    shown = [row for row in text.rows if len(row) == 3 and row[0].strip("✓✗? ") in set(Answer)]
    assert [row[0].split()[1] for row in shown] == [verdict.answer for verdict in verdicts]
    whole = " ".join(text.words)
    for verdict, row in zip(verdicts, shown, strict=True):
        assert verdict.claim.text in row[1]
        assert verdict.rule in whole
        source = "ours, not the paper’s" if verdict.claim.source == "ours" else verdict.claim.source
        assert source in row[1]
    rows = [row for row in text.rows if len(row) == 5 and row[4] in ("yes", "no")]
    comparisons = [comparison for verdict in verdicts for comparison in verdict.comparisons]
    assert [row[0] for row in rows] == [comparison.what for comparison in comparisons]
    assert [row[3].split()[1] for row in rows] == [comparison.answer for comparison in comparisons]
    assert [row[4] == "yes" for row in rows] == [comparison.counted for comparison in comparisons]
    assert rows[0][1:3] == ["12.50", "[11.00, 14.00]"]
    assert rows[-1][1:3] == ["–", "–"]


def test_page_says_what_decided(text):
    whole = " ".join(text.words)
    assert "1 of 3 comparisons refutes, 1 confirms, 1 is undecided" in whole
    assert "not measured:" in whole
    assert "No claim rests on this experiment." in whole


def test_page_counts_verdicts(own):
    found = re.findall(r'data-filter="(\w*)".*?<b>(?:\S )?(\d+)</b>', own)
    assert found == [("", "3"), ("confirmed", "1"), ("refuted", "1"), ("undecided", "1")]


def test_page_has_a_table_for_each_part(outcomes, text):
    rows = [row for row in text.rows if len(row) == 9]
    wanted = []
    for outcome in outcomes:
        for results in outcome.parts.values():
            wanted += ["policy", *(entry.policy for entry in measures(results, outcome.reference))]
            wanted += ["bound v* log n"] if "value" in results.manifest["lower_bound"] else []
    assert [row[0] for row in rows] == wanted
    solid = next(row for row in rows if row[0] == "SOLID")
    (entry,) = (one for one in measures(outcomes[0].parts["ρ(x₁) = 0.5"], "SOLID") if one.policy == "SOLID")
    assert (
        solid[1]
        == f"{wording.measured(entry.regret.value, entry.regret.half_width)} {wording.ends(*entry.regret[1:])}"
    )
    assert solid[2] == "–"
    assert solid[5] == wording.number(entry.worst)


def test_page_says_why_there_is_no_bound_and_no_band(text):
    whole = " ".join(text.words)
    assert "No lower bound here: each run has its <own> problem." in whole
    assert "One run: no bands." in whole
    assert "v* = 9.50 (between 9.40 and 9.60)" in whole


def test_page_escapes_all_text(own, text):
    for wild in ("<b>&", "<fast>", "<below>", "<own>", "<three>", "numpy & co", "others. &"):
        assert wild not in own
    whole = " ".join(text.words)
    for tame in (AWKWARD, "a <fast> one", "numpy & co", "Two contexts, <three> arms.", "ρ(x₁) <= 0.9"):
        assert tame in whole
    # The data, the library and the script of the page: no label has opened or closed another one.
    assert own.count("<script") == own.count("</script") == 3


def test_page_asks_the_network_for_nothing(own, path):
    assert get_plotlyjs() in path.read_text(encoding="utf-8")
    assert not LOADS.search(own)
    assert "default-src 'none'" in own


def test_page_is_the_same_for_the_same_outcomes(outcomes, path, tmp_path):
    write_experiments_page(outcomes, str(tmp_path / "again.html"), FACTS)
    assert (tmp_path / "again.html").read_bytes() == path.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["again.html"]


def test_data_are_embedded(outcomes, own):
    assert embedded(own) == experiments_data(outcomes)


# In a browser


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


BARS = """() => [...document.querySelectorAll("article.current .chart.bars")].map(chart =>
    chart.querySelectorAll(".barlayer .point path").length)"""
TICKS = """([chart, axis]) => [...document.querySelectorAll(`article.current .chart.${chart} .${axis}tick text`)]
    .map(tick => tick.textContent)"""
CURVES = ".chart.curves"


def drawn(visit) -> list[int]:
    """How many lines each chart of curves has, without the edges of bands."""
    return visit.page.evaluate(
        """selector => [...document.querySelectorAll(`article.current ${selector}`)].map(chart =>
        [...chart.querySelectorAll(".js-line")].filter(line => line.getAttribute("d").length > 40
            && parseFloat(getComputedStyle(line).strokeWidth) > 0).length)""",
        CURVES,
    )


def press(visit, name: str, value: str) -> None:
    button = visit.page.locator(f'article.current [data-set="{name}"][data-value="{value}"]')
    button.click()
    assert button.get_attribute("aria-pressed") == "true"


def titles(visit) -> list[str]:
    """The experiments that can be seen."""
    return [
        heading.inner_text().strip(" →\xa0") for heading in visit.page.locator("article h2:visible").all()
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, WIDE])
def test_page_fits_and_is_quiet(browser, path, outcomes, width, scheme):
    with Visit(browser, path, width=width, scheme=scheme) as visit:
        visit.page.locator("details.judged summary").first.click()
        visit.check_fits()
        assert titles(visit) == [outcome.title for outcome in outcomes]
        assert visit.page.locator(".whole:visible").count() == 0  # the claims alone
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background)[:3])) > 384) == (scheme == "light")
        if width == PHONE:
            visit.page.locator("#choose").select_option(label="Toy problem")
        else:
            visit.page.locator("nav a", has_text="Toy problem").click()
        visit.page.wait_for_selector(".js-plotly-plot")
        assert titles(visit) == ["Toy problem"]
        assert drawn(visit) == [4, 5]  # the policies of each part, and the bound
        visit.check_fits()
        # The parts stand beside each other where there is room.
        tops = [chart.bounding_box()["y"] for chart in visit.page.locator(f"article.current {CURVES}").all()]
        assert (tops[0] == tops[1]) == (width == WIDE)
        visit.check_quiet()


def test_axes_change(browser, path):
    with Visit(browser, path, "#toy") as visit:
        assert "10" not in visit.page.evaluate(TICKS, ["curves", "x"])
        lines = "() => [...document.querySelectorAll('.chart.curves .js-line')].map(line => line.getAttribute('d'))"
        before = visit.page.evaluate(lines)
        press(visit, "time", "log")
        assert visit.page.evaluate(TICKS, ["curves", "x"]).count("10") == 2
        after = visit.page.evaluate(lines)
        assert before != after
        press(visit, "regret", "log")
        assert visit.page.evaluate(lines) != after
        press(visit, "regret", "full")
        # What was chosen stays chosen in the next experiment.
        visit.page.evaluate("location.hash = '#quiet'")
        visit.until("document.title.includes('Without claims')")
        assert "10" in visit.page.evaluate(TICKS, ["curves", "x"])
        visit.check_quiet()


def test_policies_are_hidden_and_shown_by_the_keyboard(browser, path):
    with Visit(browser, path, "#toy") as visit:
        legend = visit.page.locator("article.current div.legend")
        button = legend.get_by_role("button", name=AWKWARD)
        assert button.get_attribute("aria-pressed") == "true"
        button.focus()
        visit.page.keyboard.press("Enter")
        assert button.get_attribute("aria-pressed") == "false"
        assert drawn(visit) == [3, 4]
        assert visit.page.evaluate(BARS) == [2, 3]
        legend.get_by_role("button", name="lower bound").click()
        assert drawn(visit) == [2, 3]
        legend.get_by_role("button", name="none").click()
        assert drawn(visit) == [0, 0]
        legend.get_by_role("button", name="all", exact=True).click()
        assert drawn(visit) == [4, 5]
        visit.check_quiet()


def test_bars_show_each_measure(browser, path):
    with Visit(browser, path, "#toy") as visit:
        assert visit.page.evaluate(BARS) == [3, 4]
        assert AWKWARD in visit.page.evaluate(TICKS, ["bars", "y"])
        for measure, bars in {
            "difference": [2, 3],
            "slope": [3, 4],
            "exploring": [3, 4],
            "time": [3, 4],
        }.items():
            press(visit, "measure", measure)
            assert visit.page.evaluate(BARS) == bars
            (note,) = visit.page.locator("article.current [data-measure]:visible").all()
            assert note.get_attribute("data-measure") == measure
        press(visit, "measure", "regret")
        press(visit, "regret", "log")
        assert visit.page.evaluate(BARS) == [0, 0]
        assert visit.page.locator("article.current .chart.bars .points path").count() == 7
        visit.check_quiet()


def test_addresses_lead_to_experiments(browser, path):
    with Visit(browser, path, "#one%20run%2F1") as visit:
        assert titles(visit) == ["A single run"]
        assert drawn(visit) == [3]
        assert visit.page.locator('nav a[aria-current="page"]').inner_text().startswith("A single run")
        visit.page.locator(".turn .next:visible").click()
        visit.until("document.title.includes('Without claims')")
        visit.page.go_back()
        visit.until("document.title.includes('A single run')")
        assert drawn(visit) == [3]
        visit.page.locator("nav a", has_text="All claims").click()
        visit.page.wait_for_selector(".overview", state="visible")
        assert len(titles(visit)) == 3
        for lost in ("#nobody", "#%"):
            visit.page.evaluate(f"location.hash = '{lost}'")
            assert len(titles(visit)) == 3
        visit.check_quiet()


def test_claims_are_filtered(browser, path):
    with Visit(browser, path) as visit:
        claims = visit.page.locator("tr.claim:visible")
        assert claims.count() == 3
        for answer in Answer:
            button = visit.page.locator(f'button[data-filter="{answer}"]')
            button.click()
            assert button.get_attribute("aria-pressed") == "true"
            count = int(answer is not Answer.NOT_TESTABLE)
            assert claims.count() == len(titles(visit)) == count
            assert all(answer in claim.inner_text() for claim in claims.all())
            assert visit.page.locator("#filtered").inner_text() == f"{count} of 3 claims: those {answer}."
        visit.page.locator('button[data-filter=""]').click()
        assert claims.count() == 3
        visit.check_quiet()


def test_charts_follow_the_colour_scheme(browser, path):
    with Visit(browser, path, "#toy") as visit:
        fill = "getComputedStyle(document.querySelector('article.current .chart.curves .xtick text')).fill"
        light = visit.page.evaluate(fill)
        visit.page.emulate_media(color_scheme="dark")
        visit.until(f"{fill} !== '{light}'")
        visit.check_quiet()
