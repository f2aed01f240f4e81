"""What CONTRIBUTING.md says about adding a policy works: its steps are taken on a copy of the package."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import solid_bandits as sb

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

# After one reward of 1 for the first arm, ridge 1: θ-hat is (1/2, 0).
SCRIPT = """
import solid_bandits as sb
import solid_bandits.policies.softmax as module
import doctest

assert doctest.testmod(module).attempted > 0
agent = sb.Agent(sb.Softmax(temperature=0.5), dim=2, seed=0)
decision = agent.decide([[1.0, 0.0], [0.0, 1.0]], available=[True, False])
agent.learn(decision, 1.0)
print(*agent.probabilities([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]], available=[True, True, False]))
print(sb.policies)
"""


def insert(path, before, text):
    content = path.read_text(encoding="utf-8")
    assert content.count(before) == 1
    path.write_text(content.replace(before, text + before), encoding="utf-8")


@pytest.mark.long
def test_a_policy_added_as_the_page_says_is_played(tmp_path):
    package = tmp_path / "solid_bandits"
    shutil.copytree(
        Path(sb.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    )
    blocks = dict(re.findall(r"```python\n# src/solid_bandits/(\S+)\n(.*?)```", TEXT, flags=re.DOTALL))
    assert set(blocks) == {"policies/softmax.py", "__init__.py"}
    (package / "policies" / "softmax.py").write_text(blocks["policies/softmax.py"], encoding="utf-8")
    insert(package / "__init__.py", '    "simulate": "simulation.simulate",\n', blocks["__init__.py"])

    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "SOLID_BANDITS_CACHE": str(tmp_path / "cache")}
    (tmp_path / "cache").mkdir(mode=0o700)

    def run(*command):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    first, *rest = run("-c", SCRIPT).splitlines()
    expected = np.exp([1.0, 0.0])  # means 1/2 and 0 over the temperature
    assert np.array(first.split(), dtype=float) == pytest.approx([*(expected / expected.sum()), 0.0])
    assert any(line.startswith("softmax ") for line in rest)
    (line,) = [line for line in TEXT.splitlines() if line.startswith("$ solid-bandits compare")]
    out = run("-m", "solid_bandits", *shlex.split(line)[2:])
    assert "Softmax" in out
    assert (tmp_path / "softmax" / "results.parquet").exists()


def test_the_page_names_what_there_is():
    for path in re.findall(r"`((?:src|tests|docs|attacks|benchmarks)/[\w./-]*\w)/?`", TEXT):
        if "softmax" not in path:
            assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|\$ )make ([a-z-]+)", TEXT):
        assert f"\n{target}:" in makefile, target
