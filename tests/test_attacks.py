"""The attack on constructors, agents and their files, small: kernels run by Python, every index checked.

`make attack` runs it compiled and at length. Those on brackets, results and processes have their small forms beside the
tests of what they attack.
"""

import os
import subprocess
import sys
from pathlib import Path

ATTACK = Path(__file__).parents[1] / "attacks" / "agents.py"


def test_agents_withstand_a_small_attack():
    counts = ["--constructors", "300", "--agents", "100", "--files", "100", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, str(ATTACK), *counts],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "| hostile agent files | 100 | 0 |" in done.stdout
