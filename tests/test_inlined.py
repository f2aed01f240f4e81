"""What this package takes for granted of numba's inside: a failure here says which numba broke what."""

import functools
import os
import pickle
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types
from numba.core import config
from numba.core.codegen import JITCodeLibrary

from solid_bandits import _cache
from solid_bandits._compile import INLINED, Kernel, jit, jit_allocating, jit_part, own_jit
from solid_bandits._inlined import PIPELINE, InlinedOnly, _InlinedLibrary
from solid_bandits.agent_kernels import Held, HeldType

needs_pipeline = pytest.mark.skipif(PIPELINE is None, reason="numba's own pipeline is in use")


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


FLOAT = (types.float64,)


def compiled(**options):
    made = numba.njit(**options)(plus_one)
    made.compile(FLOAT)
    return made.overloads[FLOAT]


@relies_on("a dispatcher asks `_cache` before it compiles and tells it afterwards")
def test_a_dispatcher_asks_its_cache():
    class Cache(_cache.DiskCache):
        kept = None
        calls = ()

        def load_overload(self, sig, target_context):
            self.calls += (("load", sig),)
            target_context.refresh()
            return self.kept

        def save_overload(self, sig, result):
            self.calls += (("save", sig),)
            Cache.kept = result._replace(metadata=None)  # as it is when it comes from a file

    first, second = numba.njit(plus_one), numba.njit(plus_one)
    for one, expected in ((first, ("load", "save")), (second, ("load",))):
        one._cache = Cache(plus_one)
        assert one(1.5) == 2.5
        assert one._cache.calls == tuple((name, FLOAT) for name in expected)
    assert [sum(one.stats.cache_hits.values()) for one in (first, second)] == [0, 1]
    assert second.stats.cache_path == str(_cache.folder() or "")


@relies_on("CompileResult._reduce gives what _rebuild takes, by way of numba.core.serialize.dumps")
def test_a_compiled_function_is_taken_apart_and_put_together():
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps

    result = compiled()
    assert not result.lifted
    assert not result.library.has_dynamic_globals
    parts = pickle.loads(dumps(result._reduce()))
    assert (parts[1].modname, parts[1].qualname) == (plus_one.__module__, "plus_one")
    assert tuple(parts[3].args) == FLOAT
    again = CompileResult._rebuild(result.target_context, *parts)
    assert again.entry_point(1.5) == 2.5


@relies_on("codegen().magic_tuple() says what processor code is for")
def test_code_is_for_a_kind_of_processor():
    magic = compiled().target_context.codegen().magic_tuple()
    assert len(magic) >= 2
    assert "0x" not in repr(magic)


@relies_on("the settings that change what is made are in numba.core.config")
def test_the_settings_are_known():
    for option in _cache._OPTIONS:
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
        _cache._words(numba.typeof((Point(1.0, 2.0), 3)), made_of)
        == f"({__name__}.Point(float64, float64), int64)"
    )
    assert made_of == [Point]
    held = HeldType([("agent", numba.typeof(Pair(1.0, 2)))])
    made_of = []
    assert (
        _cache._words(held, made_of)
        == f"solid_bandits.agent_kernels.HeldType({__name__}.Pair(float64, int64))"
    )
    assert made_of == [HeldType, Pair]
    assert [_cache._home(one) for one in made_of] == ["solid_bandits.agent_kernels", __name__]


@relies_on("an agent that is held in one place keeps the arrays it was given")
def test_what_is_held_is_the_same():
    @numba.njit
    def hold(agent):
        return Held(agent)

    @numba.njit
    def change(held):
        held.agent[0][0] = 7.0

    array = np.zeros(1)
    change(hold((array, 1)))
    assert array[0] == 7.0


def test_a_type_that_may_hold_anything_is_not_kept():
    for value in (numba.typed.List([1.0]), plus_one_compiled):
        made_of = []
        _cache._words(numba.typeof(value), made_of)
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


@relies_on("an object with `_numba_type_` is called by compiled code as the function it stands for")
@pytest.mark.parametrize(("kernel", "expected"), [(twice, 3.0), (thrice, 4.5), (sum_of_new, 4.5)])
def test_compiled_code_calls_kernels(kernel, expected):
    @numba.njit
    def call(number):
        return kernel(number)

    assert call(1.5) == kernel(1.5) == kernel.py_func(1.5) == expected
    assert isinstance(pickle.loads(pickle.dumps(kernel)), Kernel)


@needs_pipeline
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
    assert type(library) is _InlinedLibrary
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


SCRIPT = """
import sys
import solid_bandits._inlined as inlined
if sys.argv[1] == "numba's":
    inlined.PIPELINE = None
import solid_bandits as sb
from solid_bandits import _compile
from solid_bandits.loop import _loop, checkpoints, play
trace = play(sb.problems.random(3, 4, 3, seed=1), sb.EpsilonGreedy(), 200, 0, 0, checkpoints(200))
print(_compile.INLINED["pipeline_class"], sum(_loop.stats.cache_hits.values()))
print(*trace.regret, *trace.explored)
"""


def test_numbas_own_pipeline_gives_the_same_results(tmp_path):
    """It takes longer: it is what to fall back on when a numba breaks the other."""
    printed = []
    for which in ("ours", "numba's"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, which],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "SOLID_BANDITS_CACHE": str(tmp_path / which)},
        )
        assert done.stderr == ""
        printed.append(done.stdout.splitlines())
    assert [first for first, _ in printed] == [f"{PIPELINE} 0", "None 0"]
    ours, numbas = (np.array(second.split(), dtype=float) for _, second in printed)
    assert ours == pytest.approx(numbas, rel=1e-12)
    assert ours.any()


def test_the_pipeline_in_use_is_ours():
    assert PIPELINE is InlinedOnly


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
