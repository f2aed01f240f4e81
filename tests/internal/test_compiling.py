"""Compiled functions of the package: kept until a file changes that they are made of; arrays only where allowed."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numba
import numpy as np
import pytest

import solid_bandits
import solid_bandits.bounds
import solid_bandits.policies.catalogue  # every kernel is there to be looked at
from solid_bandits._internal import kernel_cache
from solid_bandits._internal.compiling import Kernel, type_of
from solid_bandits.core.setting import Setting

SCRIPT = """
import numpy as np
import solid_bandits
from solid_bandits.estimation.linalg.gram import add_symmetric_product as function
found = np.zeros((2, 2))
function(2 * np.eye(2), 2, found)
assert found[0, 0] == 4.0
print(solid_bandits.__file__, sum(function.stats.cache_hits.values()), sum(function.stats.cache_misses.values()))
"""


def test_a_change_in_a_file_that_a_function_is_made_of_compiles_anew(tmp_path):
    """In a copy of the package; a file that it is not made of may change."""
    copy = tmp_path / "solid_bandits"
    root = Path(solid_bandits.__file__).parent
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("__pycache__"))
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]

    def hits_and_misses():
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "SOLID_BANDITS_CACHE": str(tmp_path / "cache"),
            },
        )
        assert [line for line in done.stderr.splitlines() if not line.startswith("compiling ")] == []
        where, hits, misses = done.stdout.split()
        assert where == str(copy / "__init__.py")
        return int(hits), int(misses)

    assert hits_and_misses() == (0, 1)
    for name, expected in (
        ("report/page.py", (1, 0)),
        ("estimation/linalg/vectors.py", (0, 1)),
        ("_internal/numba_private.py", (0, 1)),
    ):
        with (copy / name).open("a") as file:
            file.write("# changed\n")
        assert hits_and_misses() == expected, name


def test_no_kernel_without_reference_counts_returns_an_array():
    """An array that such a kernel returned would be freed while in use: numba itself does not refuse all of them."""
    seen = 0
    for module in list(sys.modules.values()):
        if not getattr(module, "__name__", "").startswith("solid_bandits"):
            continue
        for value in vars(module).values():
            dispatcher = value.dispatcher if isinstance(value, Kernel) else value
            if hasattr(dispatcher, "py_func") and dispatcher.targetoptions.get("_nrt") is False:
                returned = value.py_func.__annotations__.get("return")
                for part in (returned, *getattr(returned, "__annotations__", {}).values()):
                    assert not any(word in str(part) for word in ("Floats", "Ints", "Bools", "ndarray")), (
                        value
                    )
                    assert part is returned or not hasattr(part, "_fields"), value  # tuples of numbers alone
                seen += 1
    assert seen > 50


@pytest.mark.slow
def test_the_next_process_finds_what_was_compiled_in_the_cache(tmp_path):
    """Also for policies of the same class whose parts differ by type. In a cache that nobody else fills or tidies, and
    which begins with what is compiled already.
    """
    mine, shared = tmp_path / "cache", kernel_cache.folder()
    mine.mkdir(mode=0o700)
    for path in Path(shared).glob("*.code") if shared else ():
        with suppress(FileNotFoundError):  # tidied away meanwhile
            shutil.copy2(path, mine / path.name)
    script = (
        "import numpy as np, solid_bandits as sb\n"
        "from solid_bandits.core.loop import play, checkpoints, _loop\n"
        "problem = sb.problems.toy()\n"
        "for policy in (sb.Solid(), sb.Solid(drawing='direct'), sb.LinTS(), sb.Greedy()):\n"
        "    play(problem, policy, 10, 0, 0, checkpoints(10))\n"
        "for policy in (sb.LinTS(), sb.Greedy()):\n"
        "    agent = sb.Agent(policy, contexts=problem.features, noise_std=1.0, theta_bound=1.0)\n"
        "    agent.learn(agent.decide(context=0), 1.0)\n"
        "from solid_bandits.core.agent_kernels import decide, learn; from solid_bandits.core.held import hold\n"
        "for one in (_loop, hold, decide, learn):\n"
        "    print(sum(one.stats.cache_hits.values()), sum(one.stats.cache_misses.values()))\n"
    )

    def hits_and_misses():
        return subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "SOLID_BANDITS_CACHE": str(mine)},
        ).stdout.split()

    hits_and_misses()
    assert hits_and_misses() == ["4", "0", *["2", "0"] * 3]


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(3),
        np.zeros((2, 3), order="F"),
        np.zeros((4, 4))[::2, ::2],
        np.array(1, dtype=np.uint64),
        np.zeros(2, dtype=bool),
        np.zeros(2, dtype=[("a", "f4"), ("b", "i8")]),
        np.lib.stride_tricks.as_strided(np.zeros(3), writeable=False),
        np.zeros(3).view(np.recarray),
        (),
        (1, 2.0, True, None, "text"),
        (1, 1),
        Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0),
        (Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0), (np.zeros(1), np.ones((1, 1)))),
    ],
    ids=repr,
)
def test_a_value_has_the_type_that_numba_gives_it(value):
    assert type_of(value) == numba.typeof(value)


def test_masked_arrays_have_no_type():
    with pytest.raises(numba.core.errors.NumbaTypeError, match="MaskedArray"):
        type_of((np.ma.array([1.0]),))
