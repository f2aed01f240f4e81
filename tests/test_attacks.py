"""The attacks on agents, their files and arguments, small: kernels run by Python, every index checked. And a stranger.

`make attack` runs them compiled and at length. Those on brackets, results and processes have their small forms beside
the tests of what they attack.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ATTACK = Path(__file__).parents[1] / "attacks" / "agents.py"
ROOT = hasattr(os, "getuid") and os.getuid() == 0


@pytest.mark.long
def test_agents_withstand_a_small_attack():
    counts = ["--constructors", "300", "--agents", "100", "--files", "100", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, str(ATTACK), *counts],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "| hostile agent files | 100 | 0 | 1 |" in done.stdout


@pytest.mark.long
def test_public_arguments_withstand_a_small_attack():
    done = subprocess.run(
        [sys.executable, str(ATTACK.with_name("arguments.py")), "--every", "7"],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are others on this system")
@pytest.mark.skipif(ROOT and shutil.which("setpriv") is None, reason="root cannot become anybody else")
def test_a_stranger_without_a_home_runs_a_read_only_installation():
    """A simulation by two workers, and a command that compiles nothing."""
    done = subprocess.run(
        [sys.executable, str(ATTACK.with_name("homeless.py")), "--every", "10"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "| read-only installation without a home | 2 | 0 |" in done.stdout
