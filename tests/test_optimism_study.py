"""When exploration has to be bought: runs are whole, tables are theirs, verdicts are those of the rules."""

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from solid_bandits.core.loop import play
from solid_bandits.paper.reader import load
from solid_bandits.paper.readings import READINGS
from solid_bandits.problems.end_of_optimism import end_of_optimism

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "studies" / "optimism"
PROBLEMS = ("ξ = 0.01", "ξ = 0.1")


@pytest.fixture(scope="module")
def study():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        names = ("cells", "played", "table")
        yield {name: importlib.import_module(name) for name in names}
        for name in names:  # other studies may have files of these names
            del sys.modules[name]


@pytest.fixture(scope="module")
def played(study):
    return study["played"].cells_of(study["played"].lines_of())


def test_runs_are_whole(study, played):
    planned = {(cell.problem, cell.policy, cell.horizon): cell for cell in study["cells"].cells()}
    assert len(planned) == len(study["cells"].cells())
    assert set(played) <= set(planned)
    lines = study["played"].lines_of()
    keys = [(line["problem"], line["policy"], line["horizon"], line["first"]) for line in lines]
    assert len(set(keys)) == len(keys)
    for key, one in played.items():
        assert one.steps == planned[key].steps.tolist()
        assert one.regret.shape == one.informative.shape == (one.runs, len(one.steps))
        for column in (one.regret, one.informative):
            assert (np.diff(column, axis=1) >= 0).all()
        assert (one.informative <= np.array(one.steps)).all()


def test_what_the_pages_rest_on_was_played(study, played):
    table = study["table"]
    needed = [(problem, policy, table.LONG) for problem in PROBLEMS for policy in table.CLAIMED]
    assert {played[key].runs for key in needed} == {table.RUNS}


def test_runs_are_as_long_as_the_claims_ask_for(study):
    asked = [claim.least_horizon for claim in load("end-of-optimism", "paper").claims]
    assert asked == [study["cells"].LONG] * 4 + [0]
    assert asked[0] == round(200 / 0.01**2)


def test_a_run_is_what_its_cell_says(study, played):
    """Played again with today's code, a short run of a policy that is told σ and of one that is not."""
    for label in ("LinUCB", "RandUCB, told nothing"):
        (cell,) = [
            one
            for one in study["cells"].cells()
            if (one.problem, one.policy) == ("ξ = 0.1", label) and one.horizon == 2_000_000
        ]
        trace = play(end_of_optimism(0.1), cell.player, cell.horizon, 0, 3, cell.steps[:3], cell.tell_noise)
        found = played["ξ = 0.1", label, cell.horizon].regret[3, :3]
        np.testing.assert_allclose(found, trace.regret, rtol=1e-5)


@pytest.mark.parametrize(("name", "write"), [("end-of-optimism", "claims_fragment"), ("bought", "fragment")])
def test_tables_on_the_pages_are_those_of_the_runs(study, played, name, write):
    text = (ROOT / "docs" / "_tables" / f"{name}.md").read_text(encoding="utf-8")
    assert text == f"{getattr(study['table'], write)(played)}\n"
    pages = {"end-of-optimism": ("reproduction", "rivals"), "bought": ("bought",)}[name]
    for page in pages:
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert text.count(f"```{{include}} _tables/{name}.md\n```") == 1


def made(study, regret):
    """Runs around a mean regret at the last step, (problem, policy) -> mean."""
    table = study["table"]
    lines = []
    for (problem, policy), mean in regret.items():
        noise = [0.1 * (-1) ** run * (1 + (len(policy) + len(problem)) % 3) for run in range(table.RUNS)]
        lines.append(
            {
                "problem": problem, "policy": policy, "horizon": table.LONG, "first": 0, "steps": [table.LONG],
                "regret": [[mean + one] for one in noise], "informative": [[1]] * table.RUNS, "seconds": 1.0,
            }
        )  # fmt: skip
    return study["played"].cells_of(lines)


def test_verdicts_are_those_of_the_numbers(study):
    regret = {}
    for problem, optimism in zip(PROBLEMS, (1000.0, 100.0), strict=True):
        regret |= {(problem, f"SOLID, {reading}"): 50.0 for reading in READINGS if reading != "theorem"}
        regret |= {(problem, "SOLID, theorem"): 2 * optimism}  # as optimism, and worse
        regret |= {(problem, policy): optimism for policy in ("LinUCB", "LinTS (paper)", "LinTS (posterior)")}
    found = [(row[1], row[3]) for row in study["table"].judged(made(study, regret))]
    good = [(reading, "**confirmed**") for reading in ("plain", "local", "none")]
    assert found == [
        ("", "**confirmed**"),
        ("theorem", "**refuted**"),
        *good,
        ("theorem", "undecided"),  # both grow by the same factor
        *good,
        ("theorem", "**refuted**"),
        *good,
    ]


def test_unfinished_cells_are_left_out_and_named(study):
    played = made(study, {("ξ = 0.01", "LinUCB"): 1.0})
    one = played["ξ = 0.01", "LinUCB", study["table"].LONG]
    assert "ξ = 0.01, 2,000,000 steps: SOLID, theorem" in study["table"].missing({})
    assert study["table"].played_by(played, "ξ = 0.01", study["table"].LONG) == [one]
    one.regret = one.regret[:50]
    assert study["table"].played_by(played, "ξ = 0.01", study["table"].LONG) == []


def test_solids_test_passes_at_the_pulls_that_the_page_states(study):
    """At N pulls of e₂ and n of e₁, Δ²/‖φ*-φ‖² of the third arm is β_n, up to what 1/n adds."""
    horizon, xi = 2_000_000, 0.01
    pulls = study["table"].own_pulls(horizon)
    threshold = math.log(horizon) + 2 * math.log(math.log(horizon))
    distance = xi**2 / (horizon - pulls) + (2 * xi) ** 2 / pulls
    assert xi**2 / distance == pytest.approx(threshold, rel=1e-4)


def test_the_prediction_is_linucb_without_noise(study):
    """LinUCB of the package, told σ = 1, on rewards that are their means: the same arms."""
    from solid_bandits.core.agent import Agent
    from solid_bandits.policies.linucb import LinUCB

    problem = end_of_optimism(0.1)
    agent, regret = Agent(LinUCB(radius="paper"), dim=2, noise_std=1.0), 0.0
    steps = [10, 100, 1000]
    predicted = study["played"].linucb_without_noise(0.1, steps)
    found = []
    for t in range(1, steps[-1] + 1):
        decision = agent.decide(problem.features[0])
        agent.learn(decision, problem.means[0, decision.place])
        regret += problem.gaps[0, decision.place]
        if t in steps:
            found.append(regret)
    assert found == pytest.approx(predicted, abs=1e-9)
