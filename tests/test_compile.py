"""The cache of compiled code: found again by the next process, never found stale."""

import subprocess
import sys

import pytest

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
        env={"PATH": "", "NUMBA_CACHE_DIR": str(cache)},
    )
    return done.stdout.split()


def test_a_change_in_any_compiled_file_compiles_anew(tmp_path):
    assert hits_and_misses(tmp_path) == ["0", "1"]
    assert hits_and_misses(tmp_path) == ["1", "0"]
    assert hits_and_misses(tmp_path, "f" * 64) == ["0", "1"]
    assert hits_and_misses(tmp_path) == ["1", "0"]


def test_the_stamp_covers_every_file_with_compiled_code(tmp_path, monkeypatch):
    root = tmp_path / "package"
    (root / "below").mkdir(parents=True)
    (root / "below" / "kernel.py").write_text("from solid_bandits._compile import jit\n")
    (root / "plain.py").write_text("x = 1\n")
    monkeypatch.setattr(_compile, "__file__", str(root / "_compile.py"))

    def stamp():
        _compile.package_stamp.cache_clear()
        return _compile.package_stamp()

    try:
        before = stamp()
        (root / "plain.py").write_text("x = 2\n")
        assert stamp() == before
        (root / "below" / "kernel.py").write_text("from solid_bandits._compile import jit  # changed\n")
        assert stamp() != before
    finally:
        _compile.package_stamp.cache_clear()


@pytest.mark.parametrize(
    "policy",
    ["sb.Solid(constraint_bonus=0)", "sb.Solid.theory(least_gap=0.1, least_context_prob=0.1)", "sb.LinTS()"],
)
def test_the_same_numbers_without_the_compiler(policy):
    """The kernels are plain Python too: with the JIT off they give the same regret, to rounding."""
    script = (
        "import numpy as np, solid_bandits as sb\n"
        "from solid_bandits.loop import play, checkpoints\n"
        "np.seterr(over='ignore')  # the generator's words wrap around\n"
        f"print(*play(sb.problems.toy(), {policy}, 150, 0, 0, checkpoints(150)).regret)\n"
    )
    outputs = []
    for disable in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore::RuntimeWarning", "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "", "NUMBA_DISABLE_JIT": disable},
        )
        outputs.append([float(word) for word in done.stdout.split()])
    assert outputs[0] == pytest.approx(outputs[1])
