"""The code of docs/own-policy.md, as a reader would run it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import solid_bandits as sb
from page_code import DOCS, read_page
from solid_bandits.paper.reader import load

PAGE = read_page("own-policy.md")
TEXT = (DOCS / "own-policy.md").read_text(encoding="utf-8")

# What the page says of agents, in the process that has compiled them.
CLAIMS = """
import pickle

other = pickle.loads(pickle.dumps(agent))
assert (other.theta == agent.theta).all() and agent.theta.any()
features = [[1.0, 0.5, 0.0], [0.2, 0.9, 0.1], [0.3, 0.3, 0.3]]
assert [agent.decide(features).arm for _ in range(20)] == [other.decide(features).arm for _ in range(20)]
try:
    agent.save("agent.json")
    sb.Agent.load("agent.json")
except ValueError:
    print("refused")
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in PAGE.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder, *command, **variables):
    paths = [str(Path(sb.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_line(folder, start):
    """Run the one command of the page that starts so."""
    (line,) = [line for line in PAGE.commands if line.startswith(start)]
    words = shlex.split(line)
    place = words.index("solid-bandits")
    variables = dict(word.split("=", 1) for word in words[:place])
    return run(folder, "-m", "solid_bandits", *words[place + 1 :], **variables)


def namespace(name):
    values = {"__name__": name.removesuffix(".py")}
    exec(compile(PAGE.files[name], name, "exec"), values)
    return values


def test_the_pages_script_runs_and_plain_compiled_and_ours_have_one_regret(folder):
    (folder / "script.py").write_text(PAGE.script + CLAIMS, encoding="utf-8")
    lines = run(folder, "script.py").splitlines()
    same, drawn, counted, plain, refused = lines[-5:]
    assert counted == "[4.48168907 1.         1.        ]"  # e^1.5: one step to 3, halved by the ridge
    assert same == "0.0"
    arm, probability = drawn.split()
    assert arm in "01"
    assert float(probability) == 0.5  # two arms on offer, nothing learnt
    assert np.array(plain.strip("[]").split(), dtype=float) == pytest.approx([14 / 15, 1 / 30, 1 / 30])
    assert refused == "refused"
    assert (folder / "regret.png").stat().st_size > 10_000


def test_a_plain_policy_on_the_command_line(folder):
    out = run_line(folder, "solid-bandits compare toy --import mine")
    assert "MyGreedy" in out
    results = sb.Results.load(folder / "beside-solid")
    assert results.policies == ["MyGreedy (epsilon=0.05)", "SOLID", "RandUCB (ridge=0.05)"]
    described = results.manifest["configuration"]["policies"]["MyGreedy (epsilon=0.05)"]
    assert described == {"kind": "MyGreedy", "plain": True, "attributes": {"epsilon": 0.05, "ridge": 1.0}}
    assert (folder / "beside-solid" / "report.html").exists()


def test_compiled_policies_on_the_command_line(folder):
    run_line(folder, "solid-bandits compare toy --import soft")
    final = sb.Results.load(folder / "both").final()
    explored = dict(zip(final["policy"], final["explored"], strict=True))
    assert explored["Commit (rounds=50)"] == 2 * 3 * 50
    assert 0 < explored["Soft"] < 50_000


def test_a_policy_of_ones_own_in_an_experiment(folder):
    run_line(folder, "solid-bandits reproduce study.toml")
    results = sb.Results.load(folder / "study" / "study" / "toy")
    assert results.policies == ["SOLID", "epsilon 0.05", "epsilon 0.2"]
    means = dict(results.final()["policy", "mean"].iter_rows())
    assert means["epsilon 0.2"] > means["SOLID"]


def test_an_experiment_alone_imports_nothing(folder):
    with pytest.raises(ValueError, match=r"name must be one of .*, got 'MyGreedy'"):
        load(folder / "study.toml", "quick")


def test_the_command_for_debugging_plays_the_same_game(folder):
    run_line(folder, "NUMBA_DISABLE_JIT=1")
    ours = sb.simulate(sb.problems.toy(), {"Greedy": sb.Greedy()}, horizon=200, runs=1, jobs=1)
    results = sb.Results.load(folder / "slow")
    assert results.table["regret"].to_list() == pytest.approx(ours.table["regret"].to_list())


def test_the_compiled_greedy_has_thirty_lines():
    lines = [line for line in PAGE.files["fast.py"].splitlines() if line.strip()]
    assert len(lines) <= 30


def test_a_fresh_copy_plays_each_run():
    mine = namespace("mine.py")["MyGreedy"](epsilon=0.1)
    before = dict(vars(mine))
    problem = sb.problems.toy()
    twice = [sb.simulate(problem, {"mine": mine}, horizon=50, runs=3, jobs=1).table for _ in range(2)]
    assert twice[0].equals(twice[1])
    assert vars(mine) == before


def test_what_a_plain_policy_is_told_is_what_the_page_says():
    heard = []

    class Listener:
        def start(self, setting, rng):
            heard.append(setting)

        def act(self, arms, available):
            assert not arms.flags.writeable
            assert available.all()
            return 0

        def update(self, features, reward):
            assert not features.flags.writeable

    sb.simulate(sb.problems.toy(), {"listener": Listener()}, horizon=5, runs=1, jobs=1)
    sb.Agent(Listener(), dim=3, noise_std=0.5)
    fields = re.findall(r"^\| `(\w+)` \| (?:\$|the|whether)", TEXT, flags=re.MULTILINE)[: len(heard[0])]
    assert tuple(fields) == heard[0]._fields
    assert (heard[0].dim, heard[0].noise_std, heard[0].horizon) == (3, 0.5, 5)
    assert heard[-1].theta_bound is None
    assert heard[-1].horizon is None


def test_the_uniform_numbers_of_both_kinds_are_the_same():
    from solid_bandits.core.randomness import POLICY, make_rng
    from solid_bandits.policies.plain import PlainPolicy

    class Keeps(namespace("mine.py")["MyGreedy"]):
        pass

    agent = PlainPolicy(Keeps()).start(sb.problems.toy().setting(5), make_rng(0, 0, POLICY))
    words = make_rng(0, 0, POLICY)
    drawn = [sb.extend.uniform(words) for _ in range(5)]
    assert drawn == [agent.player.rng.random() for _ in range(5)]


def test_the_kernels_on_the_page_are_all_there_are():
    named = set(re.findall(r"`(\w+)\([\w, ]*\)`", TEXT.split("| function | does |")[1].split("\n\n")[0]))
    there = {name for name in sb.extend.__all__ if name[0].islower()}
    assert named == there - {"jit", "register_regression"}  # a decorator; what a regression's file calls


def test_messages_quoted_on_the_page_are_what_the_code_says():
    base = namespace("mine.py")["MyGreedy"]
    problem = sb.problems.toy()

    def message(policy, call=lambda one: sb.simulate(problem, {"mine": one}, 5, runs=1, jobs=1)):
        with pytest.raises(ValueError, match=r"must") as caught:
            call(policy)
        return str(caught.value)

    def returning(value):
        return type("MyGreedy", (base,), {"act": lambda self, arms, available: value})()

    def masked(policy):
        sb.Agent(policy, dim=1, noise_std=1.0).decide([[1.0], [2.0], [3.0]], available=[True, False, True])

    bare = type("FastGreedy", (namespace("fast.py")["FastGreedy"],), {"kernels": None})
    said = [message(base), message(returning(7)), message(returning(1), masked), message(bare())]
    for one in said:
        assert f"\n{one}\n" in TEXT


def test_the_pages_table_has_the_rows_and_form_of_the_benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks"))
    import own_policy

    taken = {"plain Python": np.full(3, 2e-5), "compiled": np.full(3, 1e-7), "ours": np.full(3, 1e-7)}
    assert (
        own_policy.row((2, 3, 3), taken) == "| 2, 3, 3 | 50,000 (0.0050) | 10,000,000 (1.00) | 10,000,000 |"
    )
    for size in own_policy.SIZES:
        form = rf"\n\| {', '.join(map(str, size))} \| [\d,]+ \([\d.]+\) \| [\d,]+ \([\d.]+\) \| [\d,]+ \|\n"
        assert re.search(form, TEXT)
