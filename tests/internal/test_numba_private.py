"""What this package takes for granted of numba's inside: a failure here says which numba broke what."""

import ast
import functools
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types
from numba.core import config
from numba.core.codegen import JITCodeLibrary

from solid_bandits._internal import kernel_cache, numba_private, sources
from solid_bandits._internal.compiling import INLINED, Kernel, jit, jit_allocating, jit_part, own_jit
from solid_bandits.core.held import Held, HeldType
from solid_bandits.policies.catalogue import CLASSES


def relies_on(what):
    """A test whose failure is to say which numba broke what."""

    def decorate(function):
        @functools.wraps(function)
        def test(*arguments, **options):
            try:
                function(*arguments, **options)
            except Exception as error:
                pytest.fail(f"numba {numba.__version__} broke: {what} ({type(error).__name__}: {error})")

        return test

    return decorate


class Point(NamedTuple):
    x: float
    y: float


class Pair(NamedTuple):
    x: float
    n: int


def plus_one(number):
    return number + 1


def plus_two(number):
    return number + 2


FLOAT = (types.float64,)


class Files(kernel_cache.DiskCache):
    """A cache in memory, which notes what it is asked."""

    kept = None
    calls = ()

    def load(self, sig, processor, unpack):
        self.calls += (("load", sig),)
        return Files.kept and unpack(Files.kept)

    def save(self, sig, processor, pack):
        assert "0x" not in repr(processor)
        assert len(processor) >= 2
        self.calls += (("save", sig),)
        Files.kept = pack()


@relies_on(
    "a dispatcher asks `_cache` before it compiles and tells it afterwards; CompileResult._reduce gives what _rebuild "
    "takes; codegen().magic_tuple() says what processor code is for"
)
def test_a_dispatcher_asks_its_cache():
    first, second, other = (numba.njit(one) for one in (plus_one, plus_one, plus_two))
    for one, expected in ((first, ("load", "save")), (second, ("load",))):
        files = Files(plus_one)
        numba_private.keep(one, files)
        assert one(1.5) == 2.5
        assert files.calls == tuple((name, FLOAT) for name in expected)
    assert [sum(one.stats.cache_hits.values()) for one in (first, second)] == [0, 1]
    assert second.stats.cache_path == str(kernel_cache.folder() or "")
    numba_private.keep(other, Files(plus_two))
    with pytest.raises(ValueError, match="belongs to another function"):
        other(1.5)


@relies_on("the settings that change what is made are in numba.core.config")
def test_the_settings_are_known():
    for option in kernel_cache._OPTIONS:
        assert hasattr(config, option), option


@relies_on("types of tuples and of what is held in one place show what they are made of")
def test_types_show_what_they_are_made_of():
    for value in (Point(1.0, 2.0), Pair(1.0, 2)):
        kind = numba.typeof(value)
        assert isinstance(kind, types.BaseTuple)
        assert kind.instance_class is type(value)
        assert len([*kind]) == 2
    made_of = []
    assert (
        kernel_cache._words(numba.typeof((Point(1.0, 2.0), 3)), made_of)
        == f"({__name__}.Point(float64, float64), int64)"
    )
    assert made_of == [Point]
    held = HeldType([("parts", numba.typeof(Pair(1.0, 2)))])
    made_of = []
    assert (
        kernel_cache._words(held, made_of)
        == f"solid_bandits.core.held.HeldType({__name__}.Pair(float64, int64))"
    )
    assert made_of == [HeldType, Pair]
    assert [kernel_cache._home(one) for one in made_of] == ["solid_bandits.core.held", __name__]


@relies_on("what is held in one place keeps the arrays it was given")
def test_what_is_held_is_the_same():
    @numba.njit
    def hold(agent):
        return Held(agent)

    @numba.njit
    def change(held):
        held.parts[0][0] = 7.0

    array = np.zeros(1)
    change(hold((array, 1)))
    assert array[0] == 7.0


KEPT = """
import sys
from solid_bandits._internal.compiling import jit_allocating, jit_apart

import numba

@numba.njit
def refused(number):
    if number > 2:
        raise ValueError("too large", number, (number, 1.5))
    return number

@jit_allocating
def hashed(text):
    return hash(text + text)

@jit_apart
def factorial(number):
    return 1 if number < 2 else number * factorial(number - 1)

@jit_apart
def is_even(number):
    return True if number == 0 else is_odd(number - 1)

@jit_apart
def is_odd(number):
    return False if number == 0 else is_even(number - 1)

@jit_allocating
def checked(numbers):
    return refused(numbers[0])
"""
CALL_KEPT = """
import sys
import kept
import numpy as np

assert kept.{name}.__module__ == "kept"
rules = "numba.np.arraymath"
{call}
print(rules in sys.modules, *kept.{name}.stats.cache_hits.values())
print(kept.numba.njit(lambda: np.linalg.norm(np.arange(4.0)) ** 2)())  # compiled when all else was loaded
"""


@relies_on(
    "machine code on disk needs no rules for compiling, but for hashes of text; an environment is used where the code "
    "names it twice; functions that call each other cannot be kept"
)
@pytest.mark.parametrize(
    ("name", "call", "printed", "then"),
    [
        ("hashed", "print(kept.hashed('text') == hash('texttext'))", ["True"], ["True", "1"]),
        ("factorial", "print(kept.factorial(10))", ["3628800"], ["False", "1"]),
        ("is_even", "print(kept.is_even(10))", ["True"], ["True"]),
        (
            "checked",
            "print(kept.checked(np.array([2])))\n"
            "try: kept.checked(np.array([3]))\n"
            "except ValueError as error: print(*error.args)",
            ["2", "too", "large", "3", "(3,", "1.5)"],
            ["False", "1"],
        ),
    ],
    ids=["hashed", "factorial", "is_even", "checked"],
)
def test_code_from_disk_does_what_it_did(tmp_path, name, call, printed, then):
    (tmp_path / "kept.py").write_text(KEPT)
    script = CALL_KEPT.format(name=name, call=call)
    settings = {
        "SOLID_BANDITS_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    for expected in (["True"], then):
        found, warned = printed_by(script, **settings)
        assert warned == []
        assert [word for line in found for word in line] == [*printed, *expected, "14.0"]


def test_numba_lets_machine_code_link_where_it_did():
    """A new place would need a look at `numba_private._let_link`: LLVM ends a process that lacks a name."""
    folder = Path(numba.__file__).parent
    places = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if "tests" not in path.parts and re.search(r"\badd_symbol\(", path.read_text(encoding="utf-8"))
    }
    assert places == {
        "core/base.py",  # all three when numba is imported
        "core/externals.py",
        "core/runtime/nrt.py",  # as `_let_link` does
        "cpython/hashing.py",  # among the rules
        "np/ufunc/parallel.py",  # parallel code loads it itself
    }


def test_a_type_that_may_hold_anything_is_not_kept():
    for value in (numba.typed.List([1.0]), plus_one_compiled):
        made_of = []
        kernel_cache._words(numba.typeof(value), made_of)
        assert made_of == [None]


plus_one_compiled = numba.njit(plus_one)


@jit
def twice(number):
    return 2 * number


@own_jit
def sum_of_new(number):
    array = np.full(3, number)
    return array.sum()


@jit_part
def thrice(number):
    return 3 * number


@relies_on("an object whose type is registered is called by compiled code as the function it stands for")
@pytest.mark.parametrize(("kernel", "expected"), [(twice, 3.0), (thrice, 4.5), (sum_of_new, 4.5)])
def test_compiled_code_calls_kernels(kernel, expected):
    @numba.njit
    def call(number):
        return kernel(number)

    assert call(1.5) == kernel(1.5) == kernel.py_func(1.5) == expected
    assert isinstance(pickle.loads(pickle.dumps(kernel)), Kernel)


@relies_on(
    "a function stops at intermediate code: hooks of JITCodeLibrary, no_compile, a pass after NativeLowering"
)
def test_no_machine_code_is_made_of_what_is_inlined(monkeypatch):
    finished = []
    for hook in ("_optimize_final_module", "_finalize_final_module"):
        before = getattr(JITCodeLibrary, hook)

        def noted(library, before=before, hook=hook):
            finished.append((hook, type(library)))
            return before(library)

        monkeypatch.setattr(JITCodeLibrary, hook, noted)

    kernel = Kernel(plus_one)
    kernel.dispatcher.compile(FLOAT)
    library = kernel.dispatcher.overloads[FLOAT].library
    assert isinstance(library, JITCodeLibrary)
    assert type(library) is not JITCodeLibrary
    assert "alwaysinline" in library.get_llvm_str()
    assert finished == []

    @numba.njit
    def call(number):
        return kernel(number)

    assert call(1.5) == 2.5
    assert sorted({hook for hook, _ in finished}) == ["_finalize_final_module", "_optimize_final_module"]
    asm = call.inspect_asm(FLOAT).splitlines()
    assert not [line for line in asm if "call" in line and "plus_one" in line]


@relies_on("`_nrt` decides whether a function may make arrays, whatever its caller does")
def test_only_functions_that_say_so_may_make_arrays():
    def make(number):
        return np.zeros(2).sum() + number

    assert INLINED["_nrt"] is False
    with pytest.raises(numba.core.errors.NumbaError):
        jit(make)(1.0)
    assert own_jit(make)(1.0) == 1.0
    inner = own_jit(make)
    assert jit_allocating(lambda number: inner(number))(1.0) == 1.0


def test_this_numba_has_every_name():
    assert numba_private.MISSING == []
    assert numba_private.PIPELINE is not None


PUBLIC = {
    *("numba", "numba.types", "numba.typeof", "numba.extending.overload", "numba.extending.typeof_impl"),
    *(
        "numba.experimental.structref",
        "numba.core.config",
        "numba.core.config.DISABLE_JIT",
        "numba.core.types",
    ),
    "numba.core.errors.NumbaError",
    *(
        "numba.extending.intrinsic",
        "numba.core.cgutils.create_struct_proxy",
        "numba.core.imputils.impl_ret_borrowed",
    ),
}


def test_no_other_module_uses_private_names():
    """But the GPU's, which use numba-cuda's, as `_numba_type_` is."""
    words = {*f"{INLINING} {KEEPING} {COUNTING}".split()} - {"_numba_type_"}
    for path in sources.ROOT.rglob("*.py"):
        if path.name == "numba_private.py" or path.parent.name == "gpu":
            continue
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names if alias.name.split(".")[0] == "numba"}
            elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "numba":
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Attribute) and names and node.attr in words:
                names.add(node.attr)
        assert names <= PUBLIC, path


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("compiler:CompileResult._reduce(self)", True),
        ("compiler:CompileResult._rebuild(target_context)", True),
        ("compiler:CompileResult._rebuild(target_context, file)", False),
        ("compiler:CompileResult._reduced(self)", False),
        ("compiler:Flags.no_compile", True),
        ("compiler:Flags.no_compile(self)", False),
        ("compilers:Flags.no_compile", False),
    ],
)
def test_a_name_is_there_if_it_takes_what_it_took(name, has):
    assert numba_private._has(name) == has


ANOTHER_NUMBA = """
import re
import sys
from importlib import machinery

WORDS = re.compile(rb"\\b(" + "|".join(sys.argv.pop(1).split()).encode() + rb")\\b")

class Renaming(machinery.SourceFileLoader):
    def path_stats(self, path):
        raise OSError("compile the changed text")

    def get_data(self, path):
        return WORDS.sub(rb"another_\\g<0>", super().get_data(path))

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = machinery.PathFinder.find_spec(name, path, target) if name.startswith("numba") else None
        if spec is not None and isinstance(spec.loader, machinery.SourceFileLoader):
            spec.loader = Renaming(spec.loader.name, spec.loader.path)
        return spec

sys.meta_path.insert(0, Finder)
"""
PLAY = """
import sys
import numpy as np
import solid_bandits as sb
from solid_bandits._internal import numba_private
from solid_bandits.policies.catalogue import CLASSES

def play(policies):
    problem = sb.problems.random(1, 4, 3, seed=1)
    results = sb.simulate(problem, policies, horizon=300, runs=1, jobs=1)
    for name, policy in policies.items():
        contextual = isinstance(policy, sb.extend.DecisionPolicy)
        place = {"dim": 3} if contextual else {"contexts": problem.features}
        agent = sb.Agent(policy, **place, noise_std=1.0, theta_bound=2.0, seed=3)
        arms = []
        for step in range(12):
            decision = agent.decide(problem.features[0]) if contextual else agent.decide(context=0)
            agent.learn(decision, step % 3 - 1.0)
            arms.append(decision.arm)
        print(name, *arms)
    print(*results.table["regret"])

play({name: CLASSES[name]() for name in sys.argv[1:]})
print(numba_private.PIPELINE is None, len(numba_private.MISSING) > 0)
"""
INLINING = "_optimize_final_module _finalize_final_module _finalize_dynamic_globals no_compile add_pass_after"
KEEPING = "_cache magic_tuple _reduce _rebuild load_overload save_overload has_dynamic_globals"
COUNTING = "_nrt calltypes _compile_core targetoptions no_cfunc_wrapper no_cpython_wrapper _numba_type_"


def printed_by(script, *arguments, **environment):
    """What a process prints, and what it warns of."""
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if "Warning" in line]
    return [line.split() for line in done.stdout.splitlines()], warned


@pytest.mark.parametrize(
    ("missing", "policy"),
    [
        pytest.param(INLINING, "Greedy", id="for inlining"),
        pytest.param(KEEPING, "Greedy", id="for keeping"),
        pytest.param(COUNTING, "Greedy", id="for counting"),
        *(
            pytest.param(
                f"{INLINING} {KEEPING} {COUNTING}",
                name,
                id=f"all, {name}",
                marks=pytest.mark.slow if name == "Solid" else pytest.mark.long,
            )
            for name in CLASSES
        ),
    ],
)
def test_a_numba_with_other_names_gives_the_same_results(tmp_path, missing, policy):
    """Its source is changed as it is loaded, so that it is whole in itself."""
    usual, warned = printed_by(PLAY, policy)
    assert warned == []
    assert usual.pop() == ["False", "False"]
    other, warned = printed_by(ANOTHER_NUMBA + PLAY, missing, policy, SOLID_BANDITS_CACHE=str(tmp_path))
    assert len(warned) == 1
    assert f"numba {numba.__version__} lacks " in warned[0]
    assert other.pop() == [str(INLINING in missing), "True"]
    assert (KEEPING in missing) != any(tmp_path.glob("*.code"))
    (arms, regret), (other_arms, other_regret) = usual, other
    assert other_arms == arms
    assert [float(one) for one in other_regret] == pytest.approx([float(one) for one in regret], rel=1e-9)


class Holder(NamedTuple):
    values: np.ndarray


@own_jit
def first_of(held, place):
    return held.values[place]


@own_jit
def the_values(held):
    return held.values


@own_jit
def sum_through(held):
    return the_values(held).sum()


@own_jit
def chosen_sum(held):
    return held.values[np.array([0, 1])].sum()


@own_jit
def chosen_in_a_row(held):
    return held.values.reshape(1, 3)[0, np.array([0, 1])].sum()


@own_jit
def rest_of(held, first):
    total = 0.0
    for value in held.values[first:]:
        total += value
    return total


@own_jit
def doubled_in_place(held):
    held.values[:] = 2.0 * held.values
    return 0


@relies_on(
    "what a function calls and gives is told by its types, and `_nrt` may differ from compilation to compilation"
)
@pytest.mark.parametrize(
    ("kernel", "arguments", "counted"),
    [
        (first_of, (1,), False),
        (the_values, (), True),
        (sum_through, (), True),
        (chosen_sum, (), True),
        (chosen_in_a_row, (), True),
        (rest_of, (1,), False),
        (doubled_in_place, (), True),
    ],
)
def test_only_kernels_that_make_nothing_go_without_counts(kernel, arguments, counted):
    held = Holder(np.array([1.0, 2.0, 3.0]))

    @numba.njit
    def call(held, *arguments):
        return kernel(held, *arguments)

    result = call(held, *arguments)
    assert np.array_equal(result, kernel.py_func(Holder(np.array([1.0, 2.0, 3.0])), *arguments))
    del result
    before = sys.getrefcount(held.values)
    for _ in range(100):
        call(held, *arguments)
    after = sys.getrefcount(held.values)
    assert after == before
    (compiled,) = kernel.dispatcher.overloads.values()
    assert (
        "NRT_incref" in compiled.library.get_llvm_str()
        or "NRT_allocate" in str(compiled.library.get_llvm_str())
    ) == counted


def test_an_index_out_of_bounds_is_an_error():
    @numba.njit
    def call(held, place):
        return first_of(held, place)

    held = Holder(np.array([1.0, 2.0]))
    assert call(held, 1) == call(held, -1) == 2.0
    for place in (2, -3, 10**9):
        with pytest.raises(IndexError):
            call(held, place)
