"""Policies by name, with parameters; a user's module on request, and never because a file names it."""

import json
import os
import re
import subprocess
import sys

import pytest

import solid_bandits as sb
from solid_bandits.core.agent_file import OWNER, _fingerprint
from solid_bandits.policies import naming
from solid_bandits.policies.naming import by_name, find, import_policies

MINE = """
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import solid_bandits as sb

Path("imported").touch()

class mine:
    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def act(self, arms, available):
        return int(self.alpha < 0.5)

    def update(self, features, reward):
        pass

class State(NamedTuple):
    step: np.ndarray

class OwnAgent(NamedTuple):
    arm: int
    setting: tuple
    state: State

@sb.extend.jit
def act(agent, arms, available, out):
    return agent.arm, False

@sb.extend.jit
def update(agent, features, reward):
    agent.state.step[0] += 1

@dataclass(frozen=True)
class Own(sb.extend.DecisionPolicy):
    arm: int = 0
    kernels = sb.extend.Kernels(act, update)

    def start(self, setting, rng):
        return OwnAgent(self.arm, setting, State(np.zeros(1)))
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A user's module in the current folder, not imported yet."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(naming, "_OWN", {})
    before = {*sys.modules}
    yield "mine"
    for name in {*sys.modules} - before:
        if name in ("mine", "other", "nothing", "broken"):
            del sys.modules[name]


def test_ours_are_named_with_parameters():
    policies = by_name(["greedy", "greedy(ridge=0.05)", "lints(scale='paper', ridge=2)"], "toy", 3)
    greedy, other, lints = policies.values()
    assert (greedy, other) == (sb.Greedy(), sb.Greedy(ridge=0.05))
    assert (lints.scale, lints.ridge) == ("paper", 2)
    assert [*policies][:2] == ["Greedy", "Greedy (ridge=0.05)"]


def test_a_users_policies_are_named_once_their_module_is_imported(module):
    with pytest.raises(ValueError, match="got 'mine'"):
        find("policy", "mine")
    assert sorted(import_policies(module)) == ["Own", "mine"]
    policies = by_name(["mine(alpha=0.2)", "mine", "Own(arm=2)", "linucb"], "toy", 3)
    assert [*policies] == ["mine (alpha=0.2)", "mine", "Own (arm=2)", "LinUCB"]
    assert policies["mine (alpha=0.2)"].describe() == {
        "kind": "mine",
        "plain": True,
        "attributes": {"alpha": 0.2},
    }
    assert policies["Own (arm=2)"].arm == 2


BAD = [
    ("solidd", "did you mean 'solid'?"),
    ("greedy(rigde=1)", "parameter must be one of half_life, ridge, got 'rigde'; did you mean 'ridge'?"),
    ("greedy(ridge=-1)", "ridge must be > 0, got -1"),
    ("greedy(0.05)", "must look like name or name(parameter=value), got 'greedy(0.05)'"),
    (
        "linucb(ridge=evidence)",
        "policy needs quotes around text values: ridge=\"evidence\", got 'linucb(ridge=evidence)'",
    ),
    ("solid(reset=true)", "policy must have reset=True, with a capital letter, got 'solid(reset=true)'"),
    ("greedy(**{'ridge': 1})", "must look like"),
    ("greedy(ridge=1", "must look like"),
    ("greedy(ridge=1) and more", "must look like"),
    ("greedy(ridge=__import__('os').getpid())", "must look like"),
    ("greedy(ridge=" + "(" * 500 + ")", "must look like"),
    ("(ridge=1)", "got ''"),
    ("", "got ''"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[text[:40] for text, _ in BAD])
def test_a_name_that_will_not_do(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        by_name([text], "toy", 3)


@pytest.mark.parametrize("text", ["greedy(ridge=1)(ridge=2)", "greedy(ridge=1, ridge=2)"])
def test_nothing_that_was_said_is_dropped(text):
    with pytest.raises(ValueError, match="must look like"):
        by_name([text], "toy", 3)


def test_a_policy_is_named_once():
    with pytest.raises(ValueError, match="must be named once, got 'greedy' twice"):
        by_name(["greedy", "greedy"], "toy", 3)


def test_wrong_parameters_of_a_users_policy(module):
    import_policies(module)
    with pytest.raises(ValueError, match="parameter must be one of alpha, got 'beta'"):
        by_name(["mine(beta=1)"], "toy", 3)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("absent", None, "must be a module that can be imported, got 'absent'"),
        ("nothing", "import solid_bandits as sb\nfrom mine import mine\n", "which has none"),
        ("broken", "import absent_module\n", "absent_module"),
        (
            "other",
            MINE.replace("class mine:", "class greedy:"),
            "has a policy 'greedy', which is the name of one of",
        ),
    ],
)
def test_a_module_that_will_not_do(module, tmp_path, name, text, message):
    if text is not None:
        (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(ValueError, match=f"^import .*{message}"):
        import_policies(name)
    assert sb.Greedy() == by_name(["greedy"], "toy", 3)["Greedy"]


# The command line

QUICK = ["--horizon", "20", "--runs", "4", "--jobs", "2"]
ENDED = 'title = "One"\nhorizon = 20\nruns = 2\n[[problem]]\nkind = "toy"\n'


def command(folder, *arguments):
    """Status, output and errors of the command, run in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "solid_bandits", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "SOLID_BANDITS_CACHE": str(folder / "cache"), "COLUMNS": "200"},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """What `compare` wrote of a user's policies, played by two processes; the module is gone by now."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "mine.py").write_text(MINE)
    chosen = ["mine(alpha=0.2)", "mine", "Own(arm=1)", "greedy(ridge=0.05)"]
    status, printed, errors = command(
        folder,
        "compare",
        "toy",
        "--import",
        "mine",
        *(f"--policy={one}" for one in chosen),
        *QUICK,
        "--out",
        "out",
    )
    assert status == 0, errors
    assert "Traceback" not in errors
    (folder / "mine.py").unlink()
    (folder / "imported").unlink()
    return folder, printed


def test_compare_plays_a_users_policies_on_two_cores(compared):
    folder, printed = compared
    results = sb.Results.load(folder / "out")
    labels = ["mine (alpha=0.2)", "mine", "Own (arm=1)", "Greedy (ridge=0.05)"]
    assert results.policies == labels
    for label in labels:
        assert label in printed
    manifest = results.manifest["configuration"]["policies"]
    assert manifest["mine (alpha=0.2)"] == {"kind": "mine", "plain": True, "attributes": {"alpha": 0.2}}
    assert manifest["Own (arm=1)"] == {"kind": "Own", "arm": 1}
    assert manifest["Greedy (ridge=0.05)"] == sb.Greedy(ridge=0.05).describe()
    plain, own = (results.table.filter(policy=label)["regret"] for label in (labels[0], labels[2]))
    assert plain.to_list() == own.to_list()  # both pull arm 1 all the time
    assert plain.to_list() != results.table.filter(policy="mine")["regret"].to_list()


def test_results_are_read_where_the_module_is_not(compared):
    folder, _ = compared
    script = (
        "import solid_bandits as sb, sys; print(sb.Results.load('out').final().height, 'mine' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder
    )
    assert done.stdout.split() == ["4", "False"]


def test_an_experiment_names_a_users_policy_and_does_not_import_it(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    policy = '[[policy]]\nname = "mine"\nparameters = { alpha = 0.2 }\n'
    (tmp_path / "one.toml").write_text(ENDED + policy)
    status, _, errors = command(tmp_path, "reproduce", "one.toml", "--jobs", "1", "--out", "out")
    assert status == 2
    assert "got 'mine'" in errors
    assert not (tmp_path / "imported").exists()
    (tmp_path / "two.toml").write_text('import = ["mine"]\n' + ENDED + policy)
    status, _, errors = command(tmp_path, "reproduce", "two.toml", "--jobs", "1", "--out", "out")
    assert (status, "import" in errors) == (2, True)
    assert not (tmp_path / "imported").exists()
    status, _, errors = command(
        tmp_path, "reproduce", "one.toml", "--import", "mine", "--jobs", "2", "--out", "out"
    )
    assert status == 0, errors
    (tmp_path / "imported").unlink()
    (tmp_path / "mine.py").write_text("raise SystemExit('imported')")
    status, _, errors = command(tmp_path, "report", "out")
    assert status == 0, errors
    assert not (tmp_path / "imported").exists()


def test_an_agents_file_does_not_import_a_module(module, tmp_path):
    path = tmp_path / "agent.json"
    sb.Agent(sb.Greedy(), dim=2, noise_std=1.0).save(path)
    content = json.loads(path.read_text())

    def is_refused(kind):
        content["policy"] = {"kind": kind}
        content["state_of"] = _fingerprint({name: content[name] for name in OWNER})
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=r"policy.kind must be one of "):
            sb.Agent.load(path)

    for kind in ("Own", "mine.Own", "mine"):
        is_refused(kind)
    assert module not in sys.modules
    assert not (tmp_path / "imported").exists()
    import_policies(module)
    for kind in ("Own", "mine"):  # nor is a user's policy taken from a file when its module is there
        is_refused(kind)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--import", "absent"], "import must be a module that can be imported, got 'absent'"),
        (["--policy", "mine"], "policy must be one of "),
        (["--policy", "greedy(ridge=0)"], "ridge must be > 0, got 0"),
    ],
)
def test_what_will_not_do_is_one_line(tmp_path, arguments, message):
    (tmp_path / "mine.py").write_text(MINE)
    status, printed, errors = command(tmp_path, "compare", "toy", *arguments, *QUICK, "--out", "out")
    assert (status, printed) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py"]
