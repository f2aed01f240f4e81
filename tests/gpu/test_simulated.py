"""The tests of `simulated.py`, in a process in which numba simulates a GPU."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_simulated():
    switches = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    options = ["-m", "pytest", "-o", "addopts=", "-p", "no:xdist", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, *options, str(HERE / "simulated.py")],
        env={**os.environ, **switches},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-2000:]
    assert re.search(r"\b\d{2,} passed", ended.stdout), ended.stdout
    assert "skipped" not in ended.stdout
