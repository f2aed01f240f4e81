"""The cache of compiled code: found again by the next process, never found stale."""

import os
import shutil
import subprocess
import sys

import pytest

import solid_bandits.bounds
import solid_bandits.policies.catalogue  # noqa: F401  # every kernel is there to be looked at
from solid_bandits import _compile

SCRIPT = """
import sys
import solid_bandits._compile as c
if len(sys.argv) > 1:
    c.package_stamp = lambda: sys.argv[1]
import solid_bandits as sb
from solid_bandits.stream import make_stream, uniform
uniform(make_stream(0, 0, 0))
print(sum(uniform.stats.cache_hits.values()), sum(uniform.stats.cache_misses.values()))
"""


def hits_and_misses(cache, *stamp):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *stamp],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )
    return done.stdout.split()


def test_a_change_in_any_compiled_file_compiles_anew(tmp_path):
    assert hits_and_misses(tmp_path) == ["0", "1"]
    assert hits_and_misses(tmp_path) == ["1", "0"]
    assert hits_and_misses(tmp_path, "f" * 64) == ["0", "1"]
    assert hits_and_misses(tmp_path) == ["1", "0"]


def test_the_stamp_covers_every_file_that_compiled_code_is_made_with(tmp_path, monkeypatch):
    root = tmp_path / "package"
    shutil.copytree(_compile.ROOT, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(_compile, "ROOT", root)

    def stamp_after(name):
        with (root / name).open("a") as file:
            file.write("# changed\n")
        _compile.package_stamp.cache_clear()
        return _compile.package_stamp()

    try:
        last = stamp_after("report/page.py")
        assert stamp_after("cli/compare.py") == stamp_after("experiments/engine.py") == last
        for name in (
            "linalg/triangular.py",
            "alternatives/pruned.py",
            "problem.py",
            "policies/contract.py",
            "policies/solid/state.py",
            "estimation/estimator.py",
            "bounds/_interior.py",
        ):
            before, last = last, stamp_after(name)
            assert last != before
    finally:
        _compile.package_stamp.cache_clear()


OWN_POLICY = """
import sys
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
import solid_bandits as sb
from solid_bandits._compile import jit
from solid_bandits.loop import _loop, checkpoints, play
from solid_bandits.policies.contract import DecisionPolicy, register
from solid_bandits.setting import Setting

class State(NamedTuple):
    step: np.ndarray

class OwnAgent(NamedTuple):
    setting: Setting
    state: State

@jit
def act(agent, arms, available):
    return ARM, False

@jit
def update(agent, features, reward):
    agent.state.step[()] += 1

register(OwnAgent, act, update, probabilities=None)

@dataclass(frozen=True)
class Own(DecisionPolicy):
    def start(self, setting, stream):
        return OwnAgent(setting, State(np.array(0)))

def main():
    problem = sb.problems.toy()
    regret = play(problem, Own(), 50, 0, 0, checkpoints(50)).regret[-1]
    arm = sb.Agent(Own(), dim=3, noise_std=1.0).decide(np.eye(3)).arm
    print(arm, regret > 0, sum(_loop.stats.cache_hits.values()))
"""


def test_a_policy_outside_the_package_is_cached_and_never_stale(tmp_path):
    def played(arm):
        (tmp_path / "own_policy.py").write_text(OWN_POLICY.replace("ARM", str(arm)))
        done = subprocess.run(
            [sys.executable, "-c", "import own_policy; own_policy.main()"],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={
                **os.environ,
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
                # Python itself would not notice a change within one second that leaves the file's size as it is.
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )
        return done.stdout.split()

    # Arm 0 is the best one in context 0 of the toy, and not in context 1; arm 2 is the best nowhere.
    assert played(0)[::2] == ["0", "0"]
    assert played(0)[::2] == ["0", "1"]
    assert played(2)[::2] == ["2", "0"]


def test_no_kernel_without_reference_counts_returns_an_array():
    """An array that such a kernel returned would be freed while in use: numba itself does not refuse all of them."""
    seen = 0
    for module in list(sys.modules.values()):
        if not getattr(module, "__name__", "").startswith("solid_bandits"):
            continue
        for value in vars(module).values():
            if hasattr(value, "py_func") and value.targetoptions.get("_nrt") is False:
                returned = value.py_func.__annotations__.get("return")
                assert "Floats" not in str(returned), value
                assert "ndarray" not in str(returned), value
                assert "Ints" not in str(returned), value
                assert "NamedTuple" not in str(getattr(returned, "__orig_bases__", "")), value
                seen += 1
    assert seen > 50


@pytest.mark.slow
def test_the_next_process_finds_what_was_compiled_in_the_cache():
    """Also for policies of the same class whose parts differ by type."""
    script = (
        "import numpy as np, solid_bandits as sb\n"
        "from solid_bandits.loop import play, checkpoints, _loop\n"
        "problem = sb.problems.toy()\n"
        "for policy in (sb.Solid(), sb.Solid(drawing='direct'), sb.LinUCB(), sb.LinTS(), sb.Greedy()):\n"
        "    play(problem, policy, 10, 0, 0, checkpoints(10))\n"
        "    agent = sb.Agent(policy, contexts=problem.features, noise_std=1.0, theta_bound=1.0)\n"
        "    agent.learn(agent.decide(context=0), 1.0)\n"
        "from solid_bandits.agent import _decide, _hold, _learn\n"
        "for one in (_loop, _hold, _decide, _learn):\n"
        "    print(sum(one.stats.cache_hits.values()), sum(one.stats.cache_misses.values()))\n"
    )

    def hits_and_misses():
        return subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.split()

    hits_and_misses()
    assert hits_and_misses() == ["5", "0"] * 4
