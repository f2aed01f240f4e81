"""The attacks on the service, small: killed under load, a disk that fills up, and hostile connections."""

import subprocess
import sys
from pathlib import Path

import pytest

ATTACK = Path(__file__).parents[2] / "attacks" / "service.py"


@pytest.mark.long
def test_a_service_withstands_a_small_attack(tmp_path):
    counts = ["--kills", "3", "--full", "1", "--seconds", "1.5", "--seed", "2", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, str(ATTACK), *counts], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| decision service killed under load | 3 | 0 | 2 |" in done.stdout
    assert "identical" in done.stdout


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory and files are read from /proc")
def test_a_service_withstands_hostile_connections():
    counts = ["--mib", "8", "--half", "20"]
    attack = ATTACK.with_name("service_connections.py")
    done = subprocess.run([sys.executable, str(attack), *counts], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| hostile connections to the service, without a key | 30 | 0 | 0 |" in done.stdout


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_a_service_is_fair_under_a_small_attack():
    """Times are not judged here: the machine may be busy with other tests."""
    attack = ATTACK.with_name("service_fairness.py")
    counts = ["--seconds", "2", "--open", "20", "--untimed"]
    done = subprocess.run([sys.executable, str(attack), *counts], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| keys that take more than their share of a service | 7 | 0 | 0 |" in done.stdout
