"""Exported models: their numbers are the agent's, and examples/edge decides by them as Python does."""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import solid_bandits as sb

EDGE = Path(__file__).parents[1] / "examples/edge"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")


@pytest.fixture(scope="module")
def edge():
    spec = importlib.util.spec_from_file_location("edge_compare", EDGE / "compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def learnt(policy, rounds=40, **settings):
    """An agent that has learnt, and its random numbers."""
    rng = np.random.default_rng(5)
    agent = sb.Agent(policy, dim=3, seed=1, **settings)
    for _ in range(rounds):
        decision = agent.decide(rng.normal(size=(4, 3)))
        agent.learn(decision, float(decision.features.sum() + rng.normal()))
    return agent, rng


def exported(agent, tmp_path):
    agent.export(tmp_path / "model.json")
    return json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("half_life", [None, 20.0])
def test_the_numbers_are_those_of_the_next_decision(half_life, tmp_path):
    """θ-hat, V = Uᵀ D U and σ-hat, read from the file, against what the agent predicts once it has decided."""
    agent, rng = learnt(sb.RandUCB(half_life=half_life))
    model = exported(agent, tmp_path)
    assert (model["step"], model["rule"]["degrees"] > 1) == (41, True)
    rows = rng.normal(size=(5, 3))
    agent.decide(rows)
    (block,) = model["blocks"]
    triangle = np.eye(3)
    for place, line in enumerate(block["triangle"]):
        triangle[place, place + 1 :] = line
    inverse = np.linalg.inv(triangle.T @ np.diag(block["weights"]) @ triangle)
    means, deviations = agent.predict(rows)
    np.testing.assert_allclose(rows @ block["theta"], means, rtol=1e-10)
    np.testing.assert_allclose(triangle @ block["theta"], block["targets"], rtol=1e-10, atol=1e-12)
    norms = np.sqrt(np.einsum("ai,ij,aj->a", rows, inverse, rows))
    np.testing.assert_allclose(model["rule"]["deviation"] * norms, deviations, rtol=1e-9)


def test_an_export_changes_nothing(tmp_path):
    agent, rng = learnt(sb.RandUCB())
    other, _ = learnt(sb.RandUCB())
    exported(agent, tmp_path)
    rows = rng.normal(size=(50, 4, 3))
    assert [agent.decide(one).arm for one in rows] == [other.decide(one).arm for one in rows]


def test_what_is_learnt_is_another_model(tmp_path):
    agent, rng = learnt(sb.Greedy())
    first = exported(agent, tmp_path)
    assert exported(agent, tmp_path) == first
    assert set(first["blocks"][0]) == {"theta"}  # all that its rule asks for
    agent.learn(agent.decide(rng.normal(size=(4, 3))), 3.0)
    assert exported(agent, tmp_path)["model"] != first["model"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: learnt(sb.LinTS())[0], "policy must be Greedy, LinUCB or RandUCB without thrift"),
        (
            lambda: learnt(sb.RandUCB(thrift=0.5))[0],
            "policy must be Greedy, LinUCB or RandUCB without thrift",
        ),
        (lambda: sb.Agent(dim=2), "needs a ridge, which the first arms that differ"),
        (lambda: sb.Bandit(arms=["a", "b"], context=["age"]), "needs a ridge, which the first arms"),
    ],
)
def test_what_cannot_be_exported_says_why(make, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        make().export(tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()


def test_a_file_that_cannot_be_written_says_why(tmp_path):
    agent, _ = learnt(sb.Greedy())
    with pytest.raises(ValueError, match=r"cannot be written \("):
        agent.export(tmp_path)


@needs_node
def test_the_rules_of_the_scorer():
    command = ["node", "--test", "--test-reporter=tap", str(EDGE / "scorer.test.mjs")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert "# pass 9\n" in ended.stdout


def test_the_scorer_is_short():
    assert len((EDGE / "scorer.mjs").read_text(encoding="utf-8").splitlines()) <= 150


@needs_node
@pytest.mark.parametrize(
    ("policy", "world"),
    [
        ("Greedy", "matrices"),
        ("LinUCB", "matrices"),
        ("RandUCB", "matrices"),
        ("RandUCB", "named"),
        pytest.param("RandUCB", "arm features", marks=pytest.mark.slow),
        pytest.param("LinUCB", "arm features", marks=pytest.mark.slow),
    ],
)
def test_the_scorer_chooses_as_python_does(policy, world, edge, tmp_path):
    found = edge.compare(world, policy, 300, tmp_path)
    assert found["decisions"] == 300
    assert found["arms_that_differ"] == 0
    assert found["largest_difference"] <= 1e-9
    if world != "named":
        assert found["ties"] > 0


@needs_node
def test_another_random_number_is_noticed(edge, tmp_path):
    """The comparison can fail: with the numbers of other decisions some arms differ."""
    edge.write("matrices", "RandUCB", 300, tmp_path)
    log = tmp_path / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["random"][0] = 1 - line["random"][0] if line["random"][0] else 0.5
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    command = ["node", str(EDGE / "check.mjs"), str(tmp_path / "model.json"), str(log)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["arms_that_differ"] > 0


@needs_node
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"offer": None}, "line 2 of the log must have offer, random, arm and probabilities, got no offer"),
        ({"model": "another"}, "line 2 of the log must be of model "),
    ],
)
def test_a_line_that_cannot_be_checked_is_refused_in_words(edge, tmp_path, change, words):
    edge.write("matrices", "Greedy", 2, tmp_path)
    log = tmp_path / "log.jsonl"
    first, second = log.read_text(encoding="utf-8").splitlines()
    line = {name: value for name, value in (json.loads(second) | change).items() if value is not None}
    log.write_text(f"{first}\n{json.dumps(line)}\n", encoding="utf-8")
    command = ["node", str(EDGE / "check.mjs"), str(tmp_path / "model.json"), str(log)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(words)
    assert ended.stderr.count("\n") == 1


@needs_node
def test_the_next_decision_of_a_bandit_is_that_of_its_model(edge, tmp_path):
    """Named values: the bandit takes the row into its scales, and decides in the coordinates that are in force."""
    rng = np.random.default_rng(8)
    bandit = edge.make("named", sb.RandUCB(), 0.05)
    stream = edge.offers("named", rng)
    for _ in range(100):  # coordinates change at powers of two
        decision = edge.ask(bandit, next(stream))
        bandit.learn(decision.event_id, edge.reward_of(decision, rng))
    bandit.export(tmp_path / "model.json")
    (drawn,) = edge.numbers(bandit.agent, 1)
    context = {"age": 41.5, "device": "ios", "member": True, "seen": "2026-05-01T06:05:00+02:00"}
    decision = bandit.decide(context)
    line = {
        "offer": {"context": context},
        "random": drawn,
        "arm": decision.arm,
        "probabilities": decision.probabilities.tolist(),
    }
    (tmp_path / "log.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    command = ["node", str(EDGE / "check.mjs"), str(tmp_path / "model.json"), str(tmp_path / "log.jsonl")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
