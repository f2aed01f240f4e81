"""Compiled code on disk, with real processes and folders: found again, never stale, and no harm to anybody."""

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import time
from textwrap import dedent

import pytest

from solid_bandits._internal import kernel_cache

MINE = """
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import solid_bandits as sb

class State(NamedTuple):
    step: np.ndarray

class MineAgent(NamedTuple):
    setting: tuple
    state: State

@sb.extend.jit
def act(agent, arms, available, out):
    return 0, False

@sb.extend.jit
def update(agent, features, reward):
    agent.state.step[0] += 1

@dataclass(frozen=True)
class Mine(sb.extend.DecisionPolicy):
    kernels = sb.extend.Kernels(act, update)

    def start(self, setting, rng):
        return MineAgent(setting, State(np.zeros(1, dtype=np.int64)))
"""

PLAY = """
import sys
import solid_bandits as sb
from solid_bandits.core.loop import _loop, checkpoints, play

def arm(policy):
    '''The arm that a policy pulls all the time: number a costs a at each step.'''
    problem = sb.Problem([[[1, 0, 0], [0, 1, 0], [0, 0, 1]]], [2, 1, 0])
    return round(play(problem, policy, 10, 0, 0, checkpoints(10)).regret[-1] / 10)

def hits_and_misses(function=_loop):
    return sum(function.stats.cache_hits.values()), sum(function.stats.cache_misses.values())
"""


def program(text):
    return PLAY + dedent(text)


PLAY_MINE = program("""
    import mine
    print(arm(mine.Mine()), *hits_and_misses())
""")

# The cheapest thing that is kept.
SMALL = """
from solid_bandits._internal.compiling import jit_apart

@jit_apart
def double(number):
    return 2 * number

@jit_apart
def triple(number):
    return 3 * number
"""
CALL_SMALL = """
import small
print(small.double(21), small.triple(2.0), *(sum(small.double.stats.cache_hits.values()) for _ in "1"))
"""


def environment(cache, **more):
    return {
        **os.environ,
        "SOLID_BANDITS_CACHE": str(cache),
        # Python itself would not notice a change within one second that leaves the file's size as it is.
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
    }


def start(folder, cache, text, **more):
    return subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(cache, **more),
    )


def end(process):
    """What a process printed, word by word, and its warnings."""
    printed, errors = process.communicate()  # compiling: however long it takes
    assert process.returncode == 0, errors
    return printed.split(), [line for line in errors.splitlines() if "Warning" in line]


def run(folder, cache, text, **more):
    return end(start(folder, cache, text, **more))


def quiet(folder, cache, text, **more):
    """What a process printed that warned of nothing."""
    words, warned = run(folder, cache, text, **more)
    assert warned == []
    return words


def write(folder, **modules):
    folder.mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(dedent(text), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def warm_mine(tmp_path_factory):
    """A folder with a policy of a user's own, and a cache that holds what was compiled for it."""
    folder = write(tmp_path_factory.mktemp("mine"), mine=MINE)
    assert quiet(folder, folder / "cache", PLAY_MINE) == ["0", "0", "1"]
    return folder


@pytest.fixture(scope="session")
def warm_small(tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("small"), small=SMALL)
    assert quiet(folder, folder / "cache", CALL_SMALL) == ["42", "6.0", "0"]
    return folder


@pytest.fixture
def mine(warm_mine, tmp_path):
    return shutil.copytree(warm_mine, tmp_path / "mine")


@pytest.fixture
def small(warm_small, tmp_path):
    return shutil.copytree(warm_small, tmp_path / "small")


# Found again


def test_what_is_found_does_not_depend_on_what_else_was_loaded(mine):
    first = "import solid_bandits.policies.catalogue, solid_bandits.core.agent, solid_bandits.report.page\n"
    assert quiet(mine, mine / "cache", first + PLAY_MINE) == ["0", "1", "0"]


def test_an_agent_of_ones_own_policy_is_found_too(mine):
    text = program("""
        import numpy as np
        import mine
        from solid_bandits.core.agent_kernels import decide, learn
        from solid_bandits.core.held import hold
        agent = sb.Agent(mine.Mine(), dim=3, noise_std=1.0)
        decision = agent.decide(np.eye(3))
        agent.learn(decision, 1.0)
        print(decision.arm, *hits_and_misses(hold), *hits_and_misses(decide), *hits_and_misses(learn))
    """)
    assert quiet(mine, mine / "cache", text) == ["0", *["0", "1"] * 3]
    assert quiet(mine, mine / "cache", text) == ["0", *["1", "0"] * 3]


def test_four_cold_processes_at_once_share_one_cache(tmp_path):
    write(tmp_path, mine=MINE)
    processes = [start(tmp_path, tmp_path / "cache", PLAY_MINE) for _ in range(4)]
    for words, warned in map(end, processes):
        assert (words[0], warned) == ("0", [])
    assert quiet(tmp_path, tmp_path / "cache", PLAY_MINE) == ["0", "1", "0"]
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".code"]


KINDS = """
from typing import Any, NamedTuple

class Constant(NamedTuple):
    step: Any
"""
CONSTANTS = """
from kinds import Constant
from solid_bandits import extend

@extend.jit
def nothing(regression, theta):
    pass

@extend.jit
def number(regression, vector):
    return 1.0

@extend.jit
def deviation(regression):
    return 1.0

kernels = {"write_theta": nothing, "predict_reward": number, "squared_norm": number, "noise_deviation": deviation}
extend.register_regression(Constant, **kernels)
"""


def test_kernels_of_a_regression_need_not_be_in_the_module_of_its_type(tmp_path):
    text = program("""
        import constants
        import numpy as np
        from solid_bandits.core.agent_kernels import measure
        means = np.zeros(1)
        measure(constants.Constant(np.array(0)), np.zeros((1, 1)), np.zeros(1), means, np.zeros(1))
        print(int(means[0]), *hits_and_misses(measure))
    """)
    folder = write(tmp_path / "own", kinds=KINDS, constants=CONSTANTS)
    assert quiet(folder, folder / "cache", text) == ["1", "0", "1"]
    assert quiet(folder, folder / "cache", text) == ["1", "1", "0"]
    write(folder, constants=CONSTANTS.replace("return 1.0", "return 2.0"))
    assert quiet(folder, folder / "cache", text) == ["2", "0", "1"]


# Nobody's harm


def test_a_policy_of_another_program_does_no_harm(mine, tmp_path):
    """On the same cache: one program does not have the module at all, one has another of the same name."""
    without = write(tmp_path / "without")
    text = program("""
        assert arm(sb.Greedy()) in (0, 1, 2)
        print(*hits_and_misses())
    """)
    assert quiet(without, mine / "cache", text) == ["0", "1"]
    assert quiet(mine, mine / "cache", text) == ["1", "0"]
    with_another = write(tmp_path / "another", mine=MINE.replace("return 0,", "return 2,"))
    assert quiet(with_another, mine / "cache", PLAY_MINE) == ["2", "0", "1"]
    assert quiet(mine, mine / "cache", PLAY_MINE) == ["0", "1", "0"]


def test_a_cache_that_holds_unknown_things_is_left_alone(small):
    (small / "cache" / "unknown-0.code").write_bytes(b"unknown")
    (small / "cache" / "jester.npz").write_bytes(b"mine")
    assert quiet(small, small / "cache", CALL_SMALL) == ["42", "6.0", "1"]
    assert (small / "cache" / "jester.npz").read_bytes() == b"mine"


# Never stale


def test_a_helper_and_its_helper_that_change_are_seen(tmp_path):
    """In a package, by relative imports; the class of the agents stands in a file that imports none of them."""
    top, classes, rest = (
        MINE.partition("class State")[0],
        *MINE.partition("class State")[2].split("@sb.extend.jit", 1),
    )
    imports = "from .agents import MineAgent, State\nfrom . import (  # one, two\n    helper)\n"
    package = write(
        tmp_path / "pack",
        __init__="",
        agents=f"{top}class State{classes}",
        mine=f"{top}{imports}@sb.extend.jit{rest}".replace("return 0,", "return helper.first(),"),
        helper="""
            import numba
            from .below import deeper
            @numba.njit
            def first():
                return deeper.second() + 0
        """,
    )
    write(
        package / "below",
        __init__="",
        deeper="""
            import numba
            @numba.njit
            def second():
                return 0
        """,
    )
    text = program("""
        import pack.mine
        print(arm(pack.mine.Mine()), *hits_and_misses())
    """)
    assert quiet(tmp_path, tmp_path / "cache", text) == ["0", "0", "1"]
    assert quiet(tmp_path, tmp_path / "cache", text) == ["0", "1", "0"]
    for changed, before, after, arm in (
        (package / "below" / "deeper.py", "return 0", "return 1", "1"),
        (package / "helper.py", "+ 0", "+ 1", "2"),
    ):
        changed.write_text(changed.read_text().replace(before, after))
        assert quiet(tmp_path, tmp_path / "cache", text) == [arm, "0", "1"]


def test_a_number_that_a_module_takes_from_elsewhere_is_seen(tmp_path):
    write(
        tmp_path,
        mine="import os\nARM = int(os.environ['ARM'])\n" + MINE.replace("return 0,", "return ARM,"),
    )
    assert quiet(tmp_path, tmp_path / "cache", PLAY_MINE, ARM="1") == ["1", "0", "1"]
    assert quiet(tmp_path, tmp_path / "cache", PLAY_MINE, ARM="2") == ["2", "0", "1"]
    assert quiet(tmp_path, tmp_path / "cache", PLAY_MINE, ARM="1") == ["1", "1", "0"]


def test_policies_made_by_a_function_are_not_taken_for_each_other(tmp_path):
    """Their classes have one name and stand in one file, and differ in a number that was given to the function."""
    body = MINE.replace("return 0,", "return number,").partition("class State")
    made = "def make(number):\n" + "".join(f"    {line}\n" for line in (body[1] + body[2]).splitlines())
    write(tmp_path, mine=body[0] + made + "    return Mine()\n")
    text = program("""
        import mine
        print(arm(mine.make(NUMBER)), *hits_and_misses())
    """)
    for number in ("1", "2"):
        assert quiet(tmp_path, tmp_path / "cache", text.replace("NUMBER", number)) == [number, "0", "1"]
    assert list((tmp_path / "cache").iterdir()) == []


def test_classes_of_one_name_in_one_file_are_not_taken_for_each_other(tmp_path):
    """Only the last one is what the module has by that name."""
    one, two = (f"{MINE.replace('return 0,', f'return {arm},')}\nlast = Mine()\n" for arm in (1, 2))
    write(tmp_path, mine=f"{one}\nfirst = last\n{two}")
    text = program("""
        import mine
        print(arm(mine.WHICH), *hits_and_misses())
    """)
    for which, expected in (("first", "1"), ("last", "2")):
        assert quiet(tmp_path, tmp_path / "cache", text.replace("WHICH", which)) == [expected, "0", "1"]


def test_a_module_that_is_edited_and_loaded_again_is_seen(small):
    """As in a notebook; what is compiled after the change is not kept, nor is it taken from before."""
    text = """
        import importlib, pathlib
        import small
        first = small.double(21)
        path = pathlib.Path("small.py")
        path.write_text(path.read_text().replace("2 * number", "4 * number"))
        importlib.reload(small)
        print(first, small.double(21), *small.double.stats.cache_hits.values())
    """
    before = sorted((small / "cache").iterdir())
    assert quiet(small, small / "cache", dedent(text)) == ["42", "84"]
    assert sorted((small / "cache").iterdir()) == before
    assert quiet(small, small / "cache", CALL_SMALL) == ["84", "6.0", "0"]


def test_a_module_that_is_edited_before_this_package_is_loaded_is_not_kept(tmp_path):
    """What runs is what the file was; in the next process it would be taken for what it is now."""
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("when a process began is known on Linux")
    write(
        tmp_path,
        helper="FACTOR = 2\n",
        small=SMALL.replace("2 *", "FACTOR *") + "from helper import FACTOR\n",
    )
    text = """
        import pathlib, time
        import helper
        time.sleep(0.05)
        pathlib.Path("helper.py").write_text("FACTOR = 5\\n")
        time.sleep(0.05)
        import small
        print(small.double(21))
    """
    assert quiet(tmp_path, tmp_path / "cache", dedent(text)) == ["42"]
    assert list((tmp_path / "cache").iterdir()) == []
    assert quiet(tmp_path, tmp_path / "cache", CALL_SMALL) == ["105", "6.0", "0"]


def test_code_with_other_checks_in_it_is_other_code(small):
    assert quiet(small, small / "cache", CALL_SMALL, NUMBA_BOUNDSCHECK="1") == ["42", "6.0", "0"]
    assert quiet(small, small / "cache", CALL_SMALL) == ["42", "6.0", "1"]


# A cache that is of no use


def one(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def seal(path, data):
    path.write_bytes(hashlib.sha256(path.name.encode() + b"\0" + data).digest() + data)


def empty(file, other):
    file.write_bytes(b"")


def cut_short(file, other):
    file.write_bytes(file.read_bytes()[:-100])


def bits_flipped(file, other):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def garbage_in_a_sound_file(file, other):
    seal(file, b"garbage")


def something_else_in_a_sound_file(file, other):
    seal(file, pickle.dumps({"a": 1}))


def anothers_file(file, other):
    shutil.copy(other, file)


def another_function_in_a_sound_file(file, other):
    seal(file, other.read_bytes()[32:])


def a_folder_in_its_place(file, other):
    file.unlink()
    file.mkdir()


def open_to_others(file, other):
    file.chmod(0o666)


DAMAGES = {
    empty: "is damaged",
    cut_short: "is damaged",
    bits_flipped: "is damaged",
    anothers_file: "is damaged",
    garbage_in_a_sound_file: "cannot be used (UnpicklingError",
    something_else_in_a_sound_file: "cannot be used (KeyError",
    another_function_in_a_sound_file: "cannot be used (ValueError: it belongs to another function)",
    a_folder_in_its_place: "cannot be read (Is a directory)",
    open_to_others: "others may write to it",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_means_compiling_again_with_one_warning(small, damage):
    cache = small / "cache"
    damage(one(cache, "double-*.code"), one(cache, "triple-*.code"))
    words, warned = run(small, cache, CALL_SMALL)
    assert words == ["42", "6.0", "0"]
    assert len(warned) == 1
    assert "the compile cache cannot be used: " in warned[0]
    assert DAMAGES[damage] in warned[0]
    if damage in (bits_flipped, open_to_others):  # the file is sound again
        assert quiet(small, cache, CALL_SMALL) == ["42", "6.0", "1"]


def test_a_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError("interrupted")

    kernel_cache._write(tmp_path / "one", b"whole")
    monkeypatch.setattr(os, "replace", fail)
    for name in ("one", "two"):
        with pytest.raises(OSError, match="interrupted"):
            kernel_cache._write(tmp_path / name, b"half")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("one", b"whole")]


def below_a_file(folder):
    (folder / "file").write_text("mine")
    return folder / "file" / "cache"


def where_nobody_may(folder):
    return "/proc/solid-bandits"


def open_to_the_group(folder):
    place = folder / "open"
    place.mkdir()
    place.chmod(0o770)
    return place


def of_someone_else(folder):
    place = folder / "theirs"
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)
    return place


def only_to_be_read(folder):
    place = folder / "read"
    place.mkdir(mode=0o500)
    return place


ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
PLACES = [
    below_a_file,
    pytest.param(
        where_nobody_may, marks=pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
    ),
    open_to_the_group,
    pytest.param(of_someone_else, marks=pytest.mark.skipif(not ROOT, reason="only root gives folders away")),
    pytest.param(only_to_be_read, marks=pytest.mark.skipif(ROOT, reason="root may write everywhere")),
]


@pytest.mark.parametrize("place", PLACES)
def test_without_a_folder_of_ones_own_there_is_one_warning_and_no_file(small, place):
    cache = place(small)
    words, warned = run(small, cache, CALL_SMALL)
    assert words == ["42", "6.0", "0"]
    assert len(warned) == 1
    assert str(cache) in warned[0]
    if os.path.isdir(cache):
        assert os.listdir(cache) == []


def test_two_workers_that_meet_damaged_files_warn_once(small):
    """Each meets one: they take turns to begin, and neither could do both in time."""
    cache = small / "cache"
    for path in cache.glob("*.code"):
        empty(path, path)
    text = """
        import time
        from solid_bandits.simulation.workers import Processes, Task

        def call(name, number):
            time.sleep(2.0)
            import small
            return getattr(small, name)(number)

        if __name__ == "__main__":
            tasks = [Task(0, call, ("double", 21)), Task(1, call, ("triple", 2.0))]
            print(*sorted(result for _, result in Processes(2).do(tasks)))
    """
    words, warned = run(small, cache, dedent(text))
    assert words == ["6.0", "42"]
    assert len(warned) == 1
    assert "is damaged" in warned[0]


def test_a_folder_that_goes_away_is_one_warning(small):
    text = "from solid_bandits._internal import kernel_cache\nimport shutil\nshutil.rmtree(kernel_cache.folder())\n"
    words, warned = run(small, small / "cache", text + CALL_SMALL)
    assert words == ["42", "6.0", "0"]
    assert len(warned) == 1
    assert "cannot be written to" in warned[0]


def test_a_folder_of_someone_else_is_refused(tmp_path, monkeypatch):
    """Whoever runs the tests."""
    monkeypatch.setenv("SOLID_BANDITS_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1, raising=False)
    monkeypatch.setattr(kernel_cache, "_warned", [])
    with pytest.warns(RuntimeWarning, match="belongs to someone else"):
        assert kernel_cache.folder.__wrapped__() is None


def test_the_folder_is_ones_own_and_stays_where_it_is(tmp_path):
    text = "import os\nimport small\nos.mkdir('below')\nsmall.double(1)\nos.chdir('below')\nsmall.triple(1)\n"
    write(tmp_path, small=SMALL)
    assert quiet(tmp_path, "parent/cache", text) == []
    assert len(list((tmp_path / "parent" / "cache").iterdir())) == 2
    if os.name == "posix":
        assert (tmp_path / "parent" / "cache").stat().st_mode & 0o777 == 0o700


def test_where_no_folder_is_named_it_is_in_the_users_cache(tmp_path):
    if sys.platform != "linux":
        pytest.skip("XDG_CACHE_HOME is Linux's")
    text = "from solid_bandits._internal import kernel_cache; print(kernel_cache.folder())"
    expected = tmp_path / "solid-bandits" / "compiled"
    assert quiet(tmp_path, "", text, XDG_CACHE_HOME=str(tmp_path)) == [str(expected)]
    assert expected.is_dir()


# Not too much of it


def aged(folder, name, days):
    path = folder / name
    path.write_bytes(b"")
    os.utime(path, (time.time() - 86400 * days,) * 2)


def test_the_files_that_were_not_used_for_longest_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache, "MOST_FILES", 9)
    for days in range(9):
        aged(tmp_path, f"{days}.code", days)
    aged(tmp_path, "left.part", 1)
    aged(tmp_path, "now.part", 0)
    aged(tmp_path, "mine.txt", 99)
    kernel_cache._tidy(tmp_path)
    assert len(list(tmp_path.glob("*.code"))) == 9
    aged(tmp_path, "9.code", 9)
    kernel_cache._tidy(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"{days}.code" for days in range(6)),
        "mine.txt",
        "now.part",
    ]


def test_a_file_that_is_used_counts_as_new(small):
    file = one(small / "cache", "double-*.code")
    os.utime(file, (1e9, 1e9))
    assert quiet(small, small / "cache", CALL_SMALL) == ["42", "6.0", "1"]
    assert file.stat().st_mtime > time.time() - 600


def test_files_that_another_process_removes_meanwhile_are_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache, "MOST_FILES", 1)
    for name in ("a.code", "b.code", "c.code"):
        (tmp_path / name).symlink_to(tmp_path / "gone")  # there to be listed, not to be looked at
    kernel_cache._tidy(tmp_path)
