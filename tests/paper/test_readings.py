"""An experiment under several readings of SOLID: played once under each, judged once under each, and ranked."""

import re
from pathlib import Path

import numpy as np
import pytest

import solid_bandits as sb
from made import make_outcome, make_part
from small import Silent
from solid_bandits.paper import engine
from solid_bandits.paper.loading import load_outcomes
from solid_bandits.paper.names import ALL
from solid_bandits.paper.outcome import OURS, Answer, Claim, UnderReading, Verdict
from solid_bandits.paper.ranking import ranking
from solid_bandits.paper.reader import load
from solid_bandits.paper.readings import READINGS, arranged, default_reading, judged, under
from solid_bandits.policies.solid.constraint import BONUSES
from solid_bandits.simulation.workers import Processes

CONFIRMED, REFUTED, UNDECIDED, NOT_TESTABLE = Answer

SLOPES = {"A [theorem]": 2.0, "A [none]": 9.0, "B": 5.0, "C [theorem]": 5.5, "C [none]": 1.0}
PLAYED = {label: UnderReading(label[0], label[3:-1]) for label in SLOPES if "[" in label}
READ = ("theorem", "none")

BELOW = Claim("A beats B.", "Section 6", "less", policies=("A",), against=("B",), beside=("C",))
ABOVE = Claim("B beats C.", "ours", "less", policies=("B",), against=("C",))
ALONE = Claim("B has regret.", "Section 6", "below", margin=1.0, policies=("B",), beside=("A",))


def test_results_under_a_reading_have_the_plain_labels():
    results = make_part(SLOPES, seconds={"A [theorem]": 1.0, "A [none]": 2.0, "B": 3.0})
    view = under(results, PLAYED, "none")
    assert view.policies == ["A", "B", "C"]
    assert view.seconds == {"A": 2.0, "B": 3.0}
    for plain, label in {"A": "A [none]", "B": "B", "C": "C [none]"}.items():
        np.testing.assert_array_equal(
            view.table.filter(policy=plain)["regret"], results.table.filter(policy=label)["regret"]
        )
    assert set(view.table["policy"]) == {"A", "B", "C"}
    assert results.policies == list(SLOPES)  # not touched


def test_results_under_all_readings_have_one_first():
    results = arranged(make_part(SLOPES), PLAYED, "theorem")
    assert results.policies == ["A", "B", "C", "A [none]", "C [none]"]
    assert set(results.table["policy"]) == set(results.policies)


def test_a_claim_is_judged_once_per_reading_if_it_is_on_them():
    parts = {"x": make_part(SLOPES)}
    verdicts = list(judged([BELOW, ABOVE, ALONE], parts, READ, PLAYED))
    found = [(one.claim, one.reading, one.answer) for one in verdicts]
    assert found == [
        (BELOW, "theorem", CONFIRMED),
        (BELOW, "none", REFUTED),
        (ABOVE, "theorem", CONFIRMED),
        (ABOVE, "none", REFUTED),
        (ALONE, "", REFUTED),
    ]
    assert verdicts[1].comparisons[0].what == "regret of B - regret of A, x"
    # What stands beside a claim that is not on readings is that of the figures.
    assert verdicts[-1].comparisons[1].estimate.value < 30


def test_verdicts_belong_to_sentences():
    parts = {"x": make_part(SLOPES)}
    outcome = make_outcome(parts, judged([BELOW, ALONE], parts, READ, PLAYED), readings=READ, reading="none")
    below, alone = outcome.sentences
    assert [below.under(reading).answer for reading in READ] == [CONFIRMED, REFUTED]
    assert below.under("local") is None
    assert alone.under("theorem") is alone.under("none") is alone.verdicts[""]
    assert [verdict.answer for verdict in outcome.usual] == [REFUTED, REFUTED]


def test_the_default_is_that_of_solid():
    assert READINGS == BONUSES
    assert default_reading(READINGS) == sb.Solid().bonus
    others = [reading for reading in READINGS if reading != sb.Solid().bonus]
    assert default_reading(others) == others[0]
    assert default_reading(()) == ""


def outcome_of(name, *sentences, readings=READINGS):
    """Sentences are (source, answers by reading), or (source, one answer)."""
    verdicts = []
    for place, (source, answers) in enumerate(sentences):
        claim = Claim(f"Sentence {place} of {name}.", source, "less")
        each = {"": answers} if isinstance(answers, Answer) else dict(zip(readings, answers, strict=True))
        verdicts += [Verdict(claim, answer, "", (), reading) for reading, answer in each.items()]
    return make_outcome(
        {"x": make_part({"A": 1.0})}, verdicts, name=name, readings=readings, reading="theorem"
    )


def test_the_ranking_is_that_of_the_plan():
    toy = outcome_of(
        "toy",
        ("Section 6", (NOT_TESTABLE, CONFIRMED, CONFIRMED, REFUTED)),
        ("Section 6", (REFUTED, UNDECIDED, CONFIRMED, CONFIRMED)),
        (OURS, (REFUTED, REFUTED, REFUTED, CONFIRMED)),
        ("Section 6", CONFIRMED),  # not on readings: the same for all
    )
    random = outcome_of("random", ("Section 6", (CONFIRMED, CONFIRMED, REFUTED, CONFIRMED)))
    jester = outcome_of("jester", ("Appendix", (REFUTED, REFUTED, REFUTED, CONFIRMED)))
    own = outcome_of("mine", ("me", (REFUTED, REFUTED, REFUTED, CONFIRMED)))
    later = outcome_of("toy-pulls", ("Section 6", (REFUTED, REFUTED, REFUTED, CONFIRMED)))
    found = ranking([toy, random, jester, own, later])
    assert [(one.reading, one.sum) for one in found] == [
        ("plain", 3),
        ("local", 2),
        ("none", 2),  # equal sums: the more literal first
        ("theorem", 1),
    ]
    assert found[0].counts == {CONFIRMED: 3, REFUTED: 0, UNDECIDED: 1, NOT_TESTABLE: 0}
    assert found[-1].counts == {CONFIRMED: 2, REFUTED: 1, UNDECIDED: 0, NOT_TESTABLE: 1}


def test_there_may_be_nothing_to_rank():
    assert ranking([]) == []
    assert ranking([make_outcome({"x": make_part({"A": 1.0})})]) == []
    assert ranking([outcome_of("mine", ("me", CONFIRMED))]) == []


def test_all_but_jester_are_played_under_all_readings():
    for name in ALL:
        assert load(name, "quick").readings == READINGS


def test_the_default_is_what_the_rule_chose():
    """Over the runs of docs/reproduction.md; the page says by how much."""
    page = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    (chosen,) = set(re.findall(r"the paper.s reading is .(\w+).,", page))
    assert sb.Solid().bonus == sb.Solid.paper_random(8).bonus == chosen
    assert sb.Solid.theory(1.0).bonus == "theorem"


TOML = """
horizon = 60
runs = 3
readings = ["local", "theorem"]

[[problem]]
label = "one"
kind = "toy"

[[policy]]
name = "solid"

[[policy]]
name = "greedy"

[[claim]]
text = "SOLID beats Greedy."
source = "ours"
rule = "less"
policies = ["SOLID"]
against = ["Greedy"]

[[claim]]
text = "Greedy has regret."
source = "ours"
rule = "below"
margin = 1e-9
policies = ["Greedy"]
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("played")
    (folder / "mine.toml").write_text(TOML, encoding="utf-8")
    engine.play([load(folder / "mine.toml")], folder / "out", Processes(1), Silent())
    return folder / "out"


def test_a_directory_is_read_with_its_readings(played):
    (outcome,) = load_outcomes(played)
    usual = default_reading(("local", "theorem"))
    (other,) = {"local", "theorem"} - {usual}
    assert outcome.readings == ("local", "theorem")
    assert outcome.reading == usual
    assert outcome.reference == "SOLID"
    assert outcome.policies == ["SOLID", "Greedy", f"SOLID [{other}]"]
    assert outcome.played == {"SOLID": ("SOLID", usual), f"SOLID [{other}]": ("SOLID", other)}
    stored = sb.Results.load(played / "mine" / "one")
    assert stored.policies == ["SOLID [local]", "SOLID [theorem]", "Greedy"]
    direct = sb.simulate(
        sb.problems.toy(), {"SOLID [local]": sb.Solid(bonus="local")}, 60, runs=3, seed=0, jobs=1
    )
    assert stored.table.filter(policy="SOLID [local]").equals(direct.table)
    first, second = outcome.sentences
    assert list(first.verdicts) == ["local", "theorem"]
    assert list(second.verdicts) == [""]
