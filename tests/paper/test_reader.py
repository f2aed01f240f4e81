"""Experiments as data: the paper's own, and errors in a user's file that name the line."""

import re
from dataclasses import replace

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.paper.experiment import NewEachRun
from solid_bandits.paper.names import ALL
from solid_bandits.paper.reader import load
from solid_bandits.paper.readings import READINGS

GOOD = """
title = "Mine"
horizon = 300
runs = 4
seed = 2

[quick]
runs = 2

[[problem]]
label = "easy"
kind = "toy"
parameters = { xi = 0.3 }

[[problem]]
label = "own"
file = "mine.npz"
horizon = 200

[[problem]]
label = "new"
kind = "random"
new_each_run = true
parameters = { n_contexts = 2, n_arms = 3, dim = 3, seed = 7 }
quick = { play = false }

[[policy]]
name = "solid"
parameters = { z0 = 5.0 }

[[policy]]
label = "TS"
name = "lints"
problems = ["easy", "new"]

[[policy]]
name = "greedy"
quick = false

[[claim]]
text = "SOLID beats TS."
source = "ours"
rule = "less"
policies = ["SOLID"]
against = ["TS"]
parts = ["easy"]
"""


@pytest.fixture
def folder(tmp_path):
    sb.problems.random(2, 3, 3, seed=1).save(tmp_path / "mine.npz")
    return tmp_path


def written(folder, text):
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return folder / "mine.toml"


def test_a_file_gives_problems_policies_and_sizes(folder):
    experiment = load(written(folder, GOOD), "paper")
    assert (experiment.name, experiment.title, experiment.scale) == ("mine", "Mine", "own")
    easy, own, new = (part.plan for part in experiment.parts)
    assert [part.slug for part in experiment.parts] == ["easy", "own", "new"]
    assert easy.problem.fingerprint == sb.problems.toy(xi=0.3).fingerprint
    assert own.problem.fingerprint == sb.Problem.load(folder / "mine.npz").fingerprint
    assert new.problem_of(3).fingerprint == sb.problems.random(2, 3, 3, seed=10).fingerprint
    assert [(plan.horizon, plan.runs, plan.seed) for plan in (easy, own, new)] == [
        (300, 4, 2),
        (200, 4, 2),
        (300, 4, 2),
    ]
    assert list(easy.policies) == ["SOLID", "TS", "Greedy"]
    assert list(own.policies) == ["SOLID", "Greedy"]
    # The catalogue's parameters for the kind of problem, with the file's on top.
    assert easy.policies["SOLID"] == sb.Solid(z0=5.0)
    assert new.policies["SOLID"] == replace(sb.Solid.paper_random(3), z0=5.0)
    assert experiment.steps == 300 * 4 * 3 + 200 * 4 * 2 + 300 * 4 * 3
    assert [claim.text for claim in experiment.claims] == ["SOLID beats TS."]


def test_the_quick_scale_takes_what_the_file_says(folder):
    experiment = load(written(folder, GOOD), "quick")
    assert [part.label for part in experiment.parts] == ["easy", "own"]
    assert [part.plan.runs for part in experiment.parts] == [2, 2]
    assert list(experiment.parts[0].plan.policies) == ["SOLID", "TS"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("horizon = 300", "horizon = ", 3, "not TOML: Invalid value"),
        ("horizon = 300", "horizons = 300", 3, "got 'horizons'; did you mean 'horizon'?"),
        ("horizon = 300", "", 1, "horizon is missing"),
        ("runs = 4", "runs = true", 4, "runs must be an integer, got True"),
        ("seed = 2", "seed = -2", 5, "seed must be an integer >= 0, got -2"),
        ("runs = 4", "runs = 0", 4, "runs must be an integer >= 1, got 0"),
        ("[quick]\nruns = 2", '[quick]\nruns = "2"', 8, "runs must be an integer, got '2'"),
        ('kind = "toy"', 'kind = "toyy"', 12, "got 'toyy'; did you mean 'toy'?"),
        ('kind = "toy"', "", 10, "kind is missing; give one of toy, random"),
        ("{ xi = 0.3 }", "{ xi = 3 }", 13, "xi must be > 0 and < 1, got 3"),
        (
            "{ xi = 0.3 }",
            "{ arms = 3 }",
            13,
            "parameter must be one of xi, first_context_prob, noise_std, got 'arms'",
        ),
        ("parameters = { xi = 0.3 }", "new_each_run = true", 13, "a toy problem is always the same"),
        ('"mine.npz"', '"other.npz"', 17, "other.npz' cannot be read (No such file or directory)"),
        (
            'file = "mine.npz"',
            'file = "mine.npz"\nkind = "toy"',
            17,
            "file must be given without kind",
        ),
        ('name = "solid"', 'name = "sold"', 28, "got 'sold'; did you mean 'solid'?"),
        ('name = "solid"', "", 27, "name is missing"),
        ('name = "solid"', 'name = ""', 28, "name must be non-empty text, got ''"),
        ('kind = "toy"', 'kind = "toy"\nfile = ""', 13, "file must be non-empty text, got ''"),
        ('label = "own"', 'label = ""', 16, "label must be non-empty text, got ''"),
        ('label = "own"', "label = 1979-05-27", 16, "label must be text, got {'date': '1979-05-27'}"),
        ('label = "TS"', "label = 1979-05-27", 32, "label must be text, got {'date': '1979-05-27'}"),
        ("seed = 2", "seed = 2\nabout = 1979-05-27", 6, "about must be text, got {'date': '1979-05-27'}"),
        ('["easy", "new"]', "[]", 34, "problems must be a non-empty list, got []"),
        ("{ z0 = 5.0 }", "{ z = 5.0 }", 29, "got 'z'; did you mean 'z0'?"),
        ("{ z0 = 5.0 }", "{ z0 = -5.0 }", 29, "z0 must be > 0, got -5.0"),
        (
            '["easy", "new"]',
            '["easy", "knew"]',
            34,
            "got 'knew'; did you mean 'new'?",
        ),
        (
            'label = "TS"',
            'label = "SOLID"',
            32,
            "other policies' labels, got 'SOLID' twice",
        ),
        (
            'label = "own"',
            'label = "easy"',
            16,
            "label must differ from other problems' labels, got 'easy' twice",
        ),
        ('name = "greedy"', 'name = "ucb1"', 37, "UCB1 takes one context, got 2; "),
        ('against = ["TS"]', 'against = ["T"]', 45, "got 'T'; did you mean 'TS'?"),
        ('rule = "less"', 'rule = "lesser"', 43, "got 'lesser'; did you mean 'less'?"),
        ('parts = ["easy"]', 'least_horizon = "300"', 46, "least_horizon must be an integer, got '300'"),
        ('parts = ["easy"]', "least_horizon = 3.5", 46, "least_horizon must be an integer, got 3.5"),
        ('parts = ["easy"]', "least_horizon = -1", 46, "least_horizon must be an integer >= 0, got -1"),
        ('parts = ["easy"]', "arm = [0]", 46, "arm must be a longer list, got [0]"),
        ('parts = ["easy"]', "arm = [0, 1, 2]", 46, "arm must be a shorter list, got [0, 1, 2]"),
        ('policies = ["SOLID"]', 'policies = "SOLID"', 44, "policies must be a list, got 'SOLID'"),
        ('parts = ["easy"]', 'claims = ["easy"]', 46, "got 'claims'"),
        ('parts = ["easy"]', 'parts = ["hard"]', 46, "parts must be one of easy, own, new, got 'hard'"),
    ],
)
def test_errors_name_file_line_and_remedy(folder, old, new, line, message):
    assert GOOD.count(old) == 1
    with pytest.raises(ValueError, match=re.escape("mine.toml")) as caught:
        load(written(folder, GOOD.replace(old, new)))
    assert f"line {line}" in str(caught.value)
    assert message in str(caught.value)


def test_a_claim_may_ask_for_a_horizon(folder):
    claims = [
        load(written(folder, GOOD.replace('parts = ["easy"]', f'parts = ["easy"]{more}'))).claims[0]
        for more in ("", "\nleast_horizon = 2_000")
    ]
    assert [claim.least_horizon for claim in claims] == [0, 2000]


def test_a_claim_about_what_is_not_played_is_left_out(folder):
    text = GOOD.replace('problems = ["easy", "new"]', "quick = false")
    assert [len(load(written(folder, text), scale).claims) for scale in ("quick", "paper")] == [0, 1]


def test_tables_that_are_none(folder):
    text = 'horizon = 3\nruns = 2\nproblem = ["toy"]\npolicy = [{ name = "greedy" }]\n'
    with pytest.raises(
        ValueError, match=r"line 3: problem must be a list of tables, \[\[problem\]\], got 'toy'"
    ):
        load(written(folder, text))
    with pytest.raises(ValueError, match=r"line 3: quick must be a table, got 7"):
        load(written(folder, "horizon = 3\nruns = 2\nquick = 7\n"))


def test_nothing_to_play_is_an_error(folder):
    text = (
        GOOD.split("[[problem]]")[0]
        + '[[problem]]\nkind = "toy"\nquick = { play = false }\n[[policy]]\nname = "solid"\n'
    )
    with pytest.raises(ValueError, match="nothing to play at scale 'quick'"):
        load(written(folder, text), "quick")


def test_labels_that_come_to_the_same_get_directories_of_their_own(folder):
    text = GOOD.replace('"easy"', '"α"').replace('"own"', '"β"').replace('"new"', '"A / B: ../x"')
    assert [part.slug for part in load(written(folder, text)).parts] == ["part-1", "part-2", "a-b-x"]


@pytest.mark.parametrize("name", ["toy", "all", "figures", ".."])
def test_names_that_are_taken(folder, name):
    path = folder / f"{name}.toml"
    path.write_text(GOOD, encoding="utf-8")
    with pytest.raises(ValueError, match="which is taken; rename it"):
        load(path)


def test_files_that_are_not_there_or_not_text(tmp_path):
    with pytest.raises(ValueError, match=r"nothing.toml' cannot be read \(No such file"):
        load(tmp_path / "nothing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8"):
        load(tmp_path / "bytes.toml")
    with pytest.raises(ValueError, match=r"experiment must be one of .*, got 'toi'; did you mean 'toy'"):
        load("toi")
    with pytest.raises(ValueError, match="scale must be one of quick, paper, got 'slow'"):
        load("toy", "slow")


@pytest.mark.parametrize("name", ALL)
def test_the_papers_experiments(name):
    """Every one loads at both scales, has claims, compares with posterior Thompson sampling, and SOLID comes first."""
    for scale in ("quick", "paper"):
        experiment = load(name, scale)
        assert experiment.claims
        assert experiment.about
        assert len({part.slug for part in experiment.parts}) == len(experiment.parts)
        for part in experiment.parts:
            assert "LinTS (posterior)" in part.plan.policies
            assert isinstance(next(iter(part.plan.policies.values())), sb.Solid)
            assert np.isclose(part.plan.problem_of(0).context_probs.sum(), 1)
        if scale == "paper":
            most = max(part.plan.horizon for part in experiment.parts)
            assert all(part.plan.runs == 100 for part in experiment.parts if part.plan.horizon <= 100_000)
            assert most >= 50_000
    assert 0 < load(name, "quick").seconds < load(name, "paper").seconds


def test_the_toy_and_the_random_problems_are_the_papers():
    toy = load("toy", "paper")
    assert [part.plan.problem.context_probs[0] for part in toy.parts] == pytest.approx([0.5, 0.9, 0.99])
    assert {part.plan.problem.noise_std for part in toy.parts} == {0.5}
    assert toy.readings == READINGS
    for reading in READINGS:
        assert toy.parts[0].plan.policies[f"SOLID [{reading}]"] == sb.Solid(bonus=reading)
    random = load("random", "paper")
    for part, arms in zip(random.parts, (4, 8, 16, 32), strict=True):
        problem = part.plan.problem_of(5)
        assert (problem.n_contexts, problem.n_arms, problem.dim, problem.noise_std) == (4, arms, 8, 1.0)
        for reading in READINGS:
            expected = replace(sb.Solid.paper_random(arms), bonus=reading)
            assert part.plan.policies[f"SOLID [{reading}]"] == expected
        assert ("OAM, every round" in part.plan.policies) == (arms <= 8)
        assert part.plan.policies["OAM"].resolve_every == 100


def test_the_ablations_change_one_thing_each():
    """All but the switched parameter are the appendix's defaults."""
    defaults = sb.Solid(z0=30, policy_step=0.1)
    switched = {
        "ablation-z0": {"z0"},
        "ablation-lambda1": {"initial_multiplier"},
        "ablation-policy-step": {"policy_step"},
        "ablation-multiplier-step": {"multiplier_step"},
        "ablation-schedule": {"schedule", "z0"},
        "ablation-reset": {"reset_at_phase", "z0"},
        "ablation-tracking": {"drawing"},
        "ablation-exploit-test": {"test"},
    }
    for name, allowed in switched.items():
        changed = set()
        for part in load(name).parts:
            assert part.plan.problem.noise_std == 1.0
            for policy in part.plan.policies.values():
                if isinstance(policy, sb.Solid):
                    changed |= {
                        key for key, value in policy.describe().items() if value != defaults.describe()[key]
                    }
        assert changed == allowed | {"bonus"}


OPEN = 'readings = ["none", "plain"]'


def test_a_policy_whose_reading_is_open_is_played_under_each(folder):
    text = (
        GOOD.replace("seed = 2", f"seed = 2\n{OPEN}")
        + """
[[policy]]
label = "SOLID, fixed"
name = "solid"
parameters = { bonus = "local" }
"""
    )
    experiment = load(written(folder, text))
    assert experiment.readings == ("none", "plain")
    policies = experiment.parts[0].plan.policies
    assert list(policies) == ["SOLID [none]", "SOLID [plain]", "TS", "Greedy", "SOLID, fixed"]
    assert policies["SOLID [none]"] == sb.Solid(z0=5.0, bonus="none")
    assert policies["SOLID, fixed"] == sb.Solid(bonus="local")
    assert experiment.played == {
        "SOLID [none]": ("SOLID", "none"),
        "SOLID [plain]": ("SOLID", "plain"),
    }
    # Claims keep the labels of the file.
    assert experiment.claims == load(written(folder, GOOD)).claims
    assert load(written(folder, GOOD)).readings == ()


@pytest.mark.parametrize(
    ("readings", "message"),
    [
        (
            '["plan"]',
            "readings must be one of theorem, plain, local, none, got 'plan'; did you mean 'plain'?",
        ),
        ('["plain", "plain"]', "readings must name each reading once, got 'plain' twice"),
        ('"plain"', "readings must be a list, got 'plain'"),
    ],
)
def test_readings_that_are_none(folder, readings, message):
    text = GOOD.replace("seed = 2", f"seed = 2\nreadings = {readings}")
    with pytest.raises(ValueError, match="line 6: ") as caught:
        load(written(folder, text))
    assert message in str(caught.value)


@pytest.mark.parametrize("label", ["SOLID", "SOLID [plain]"])
def test_labels_of_readings_are_taken(folder, label):
    text = GOOD.replace("seed = 2", f"seed = 2\n{OPEN}").replace('label = "TS"', f'label = "{label}"')
    with pytest.raises(ValueError, match="label must differ from other policies' labels"):
        load(written(folder, text.split("[[claim]]")[0]))


def test_a_new_problem_in_each_run_is_the_same_in_every_process():
    family = NewEachRun("random", {"n_arms": 4, "seed": 3})
    assert family(2).fingerprint == NewEachRun("random", {"n_arms": 4, "seed": 3})(2).fingerprint
    assert family(2).fingerprint == sb.problems.random(n_arms=4, seed=5).fingerprint
    assert len({family(run).fingerprint for run in range(5)}) == 5
