"""The attack on the service, small: killed under load, and a disk that fills up."""

import subprocess
import sys
from pathlib import Path

import pytest

ATTACK = Path(__file__).parents[2] / "attacks" / "service.py"


@pytest.mark.slow
def test_a_service_withstands_a_small_attack(tmp_path):
    counts = ["--kills", "3", "--full", "1", "--seconds", "1.5", "--seed", "2", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, str(ATTACK), *counts], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert "| decision service killed under load | 3 | 0 | 2 |" in done.stdout
    assert "identical" in done.stdout
