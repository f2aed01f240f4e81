"""The base installation decides, simulates and solves the lower bound; what needs an extra says which, in one line."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from solid_bandits._internal import extras

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]

BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

BLOCKED = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Blocker())
"""
AGENT = """
import solid_bandits as sb
agent = sb.Agent(sb.RandUCB(), dim=2)
decision = agent.decide([[1.0, 0.0], [0.0, 1.0]])
agent.learn(decision, 1.0)
"""
BASE = (
    AGENT
    + """
problem = sb.problems.toy()
summary = sb.summarise(problem, [sb.RandUCB(), sb.LinUCB()], horizon=20, runs=2, jobs=1)
assert summary.policies["LinUCB"].quantile(0.5).value >= 0
assert sb.bounds.lower_bound(problem).value > 0
bandit = sb.Bandit(sb.LinTS(), dim=2)
assert bandit.decide([[1.0, 0.0], [0.0, 1.0]]).arm in (0, 1)
import tempfile
from solid_bandits.live import history
history.ROWS = 2
with tempfile.TemporaryDirectory() as folder:
    for store in (None, f"{folder}/shop.db"):
        bandit = sb.Bandit(arms=["tea", "milk"], context=["age"], store=store)
        for visit in ("a", "b", "c", "d"):
            decision = bandit.decide({"age": 34}, event_id=visit, subject=visit)
            bandit.learn(visit, 1.0)
        why = decision.why
        assert "age" in str(why)
        assert bandit.delete("a") == 1 and bandit.delete(subject="b") == 1
        assert bandit.decisions == 4
        bandit.export(f"{folder}/model.json")
        bandit.close()
    assert sb.Bandit.open(f"{folder}/shop.db").recall("c").reward == 1.0
asks = [summary.final, summary.table, sb.Bandit(dim=2).log, why.table]
for ask in [*asks, lambda: sb.simulate, lambda: sb.ope.evaluate]:
    try:
        ask()
    except ImportError as error:
        print(error)
"""
)


TABLES = """
import solid_bandits as sb
results = sb.simulate(sb.problems.toy(), [sb.RandUCB(), sb.LinUCB()], horizon=20, runs=2, jobs=1)
assert results.final().height == 2
assert "<table>" in results._repr_html_()
assert "RandUCB" in repr(results.compare("RandUCB", "LinUCB"))
"""


def python(script, blocked, *arguments):
    command = [sys.executable, "-c", BLOCKER + script, ",".join(blocked), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def requirements(extra):
    """Packages that an extra brings, those of the extras that it names included."""
    found = set()
    for line in PROJECT["optional-dependencies"][extra]:
        inner = re.fullmatch(r"solid-bandits\[(.*)\]", line)
        if inner:
            found |= {one for name in inner[1].split(",") for one in requirements(name)}
        else:
            found.add(re.match(r"[\w-]+", line)[0])
    return found


def test_the_base_does_without_every_extra():
    ended = python(BASE, extras.EXTRAS)
    assert ended.returncode == 0, ended.stderr
    for line in ended.stdout.splitlines():
        assert line.endswith(
            " needs polars, which is not installed; run: pip install 'solid-bandits[tables]'"
        ), line
    assert len(ended.stdout.splitlines()) == 6


def test_an_extra_with_tables_simulates():
    ended = python(TABLES, set(extras.EXTRAS) - {"polars"})
    assert ended.returncode == 0, ended.stderr


def test_an_agent_does_without_the_tables_of_a_simulation():
    ended = python(AGENT, [*extras.EXTRAS, "polars", "joblib"])
    assert ended.returncode == 0, ended.stderr


def test_every_extra_brings_what_it_is_said_to_bring():
    base = {re.match(r"[\w-]+", line)[0] for line in PROJECT["dependencies"]}
    for module, extra in extras.EXTRAS.items():
        package = extras.PACKAGES.get(module, module)
        assert package in requirements(extra)
        assert package not in base


def test_what_runs_on_a_gpu_keeps_numpy_at_what_numba_cuda_imports_with():
    """Until a release of numba-cuda does without np.row_stack, which NumPy 2.5 no longer has (numba-cuda #907)."""
    assert requirements("gpu") == {"numba-cuda", "numpy"}
    assert "numpy<2.5" in PROJECT["optional-dependencies"]["gpu"]


def test_all_is_all_but_what_needs_a_gpu_and_what_developers_need():
    extras = set(PROJECT["optional-dependencies"]) - {"all", "gpu", "test", "docs"}
    assert requirements("all") == {package for extra in extras for package in requirements(extra)}


def test_the_command_without_its_extra_is_one_line():
    ended = python("from solid_bandits.__main__ import main\nmain()", ["typer"], "--help")
    assert ended.returncode == 2
    assert ended.stderr == (
        "solid-bandits: error: the command line needs typer, which is not installed; "
        "run: pip install 'solid-bandits[cli]'\n"
    )


def test_a_command_that_lacks_an_extra_is_one_line():
    script = "from solid_bandits.__main__ import main\nmain()"
    ended = python(
        script, ["distributed"], "reproduce", "toy", "--backend", "dask", "--address", "localhost:1"
    )
    assert ended.returncode == 2
    assert ended.stderr == (
        "solid-bandits: error: backend 'dask' needs distributed, which is not installed; "
        "run: pip install 'solid-bandits[dask]'\n"
    )


def test_whatever_a_command_lacks_is_one_line():
    script = "from solid_bandits.__main__ import main\nmain()"
    ended = python(script, ["matplotlib"], "report", "nowhere")
    assert ended.returncode == 2
    assert ended.stderr == (
        "solid-bandits: error: this command needs matplotlib, which is not installed; "
        "run: pip install 'solid-bandits[plot]'\n"
    )


def test_what_is_missing_without_an_extra_is_no_riddle():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        extras.load("no_such_module", "this")
