"""The benchmarks' own arithmetic: counts of the floors, the guard, the exponents. No timing is asserted."""

import json
import math
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
sys.path.append(str(Path(__file__).parent.parent / "benchmarks" / "peers"))
from bench import cases, compare, floors, growth, player, table, terms, timing
from bench.calls import Called
from bench.plain import Speedup
from bench.rates import draws, entries, estimate, gram, products, solves
from bench.rates.kernels import KERNELS

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
FORMS = (draws, entries, estimate, gram, products, solves)

SIZE = (2, 3, 4)


class Tally:
    """Multiplications and special functions done so far."""

    def __init__(self):
        self.madds = self.specials = 0


class Counted:
    """A number that counts what is done with it; additions come with multiplications and are not counted."""

    def __init__(self, value, tally):
        self.value, self.tally = value, tally

    def _with(self, other, value, madds=0, specials=0):
        self.tally.madds += madds
        self.tally.specials += specials
        return Counted(value, self.tally)

    def __add__(self, other):
        return self._with(other, self.value + plain(other))

    def __sub__(self, other):
        return self._with(other, self.value - plain(other))

    def __rsub__(self, other):
        return self._with(other, plain(other) - self.value)

    def __mul__(self, other):
        return self._with(other, self.value * plain(other), madds=1)

    def __truediv__(self, other):
        return self._with(other, self.value / plain(other), specials=1)

    def __rtruediv__(self, other):
        return self._with(other, plain(other) / self.value, specials=1)

    def __abs__(self):
        return self._with(None, abs(self.value))

    def __lt__(self, other):
        return self.value < plain(other)

    def __gt__(self, other):
        return self.value > plain(other)

    __radd__, __rmul__ = __add__, __mul__


class CountedMath:
    """`math` for counted numbers."""

    pi = math.pi

    def __getattr__(self, name):
        def function(number):
            return number._with(None, getattr(math, name)(number.value), specials=1)

        return function


def plain(number):
    return number.value if isinstance(number, Counted) else float(number)


def counted(array, tally):
    result = np.empty(array.shape, dtype=object)
    for place in np.ndindex(array.shape):
        result[place] = Counted(float(array[place]), tally)
    return result


def run_counted(name, shape, monkeypatch):
    """One repetition of a kernel's first form in plain Python, on numbers that count."""
    tally = Tally()
    kernel = KERNELS[name]
    arguments = [
        counted(value, tally) if isinstance(value, np.ndarray) else Counted(value, tally)
        for value in kernel.setup(*shape)
    ]
    interpret(monkeypatch)
    for module in FORMS:
        monkeypatch.setattr(module, "math", CountedMath(), raising=False)
    kernel.forms[0].py_func(1, *arguments)
    return tally


def interpret(monkeypatch):
    """Have the kernels call each other as plain Python: nothing to compile."""
    for module in FORMS:
        for name, function in list(vars(module).items()):
            if function not in (draws.uniform, draws.normal) and hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)


SHAPES = {
    "columns": (4, 7),
    "learn": (4, 7),
    "rotate": (5,),
    "unit": (5,),
    "norms": (4, 7),
    "solves": (4, 7),
    "matvec": (5,),
    "top": (6,),
    "bounds": (6,),
    "upper": (6,),
    "gram": (4, 7),
    "cholesky": (5,),
    "alternatives": (4, 7),
    "triangular": (5,),
    "gradient": (6,),
    "exp": (6,),
    "normalise": (3, 4),
    "cross": (3, 4, 5),
    "information": (3, 6),
    "mixtures": (5,),
    "log": (),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_counts_of_a_kernel_are_those_of_its_first_form(name, monkeypatch):
    tally = run_counted(name, SHAPES[name], monkeypatch)
    kernel = KERNELS[name]
    assert tally.madds == kernel.madds(*SHAPES[name])
    assert tally.specials == kernel.specials(*SHAPES[name])


def test_every_kernel_but_the_random_ones_is_counted():
    assert set(KERNELS) - set(SHAPES) == {"uniform", "normals"}


RESULTS = {
    "columns": ((5, 70), lambda a: a[2]),
    "learn": ((5, 70), lambda a: np.concatenate([a[3], a[4]])),
    "rotate": ((9,), lambda a: np.concatenate([a[0].ravel(), a[1], a[2]])),
    "unit": ((9,), lambda a: a[2]),
    "norms": ((5, 70), lambda a: np.concatenate([a[5], a[6]])),
    "solves": ((5, 70), lambda a: a[3]),
    "top": ((9,), lambda a: a[0]),
    "gram": ((5, 70), lambda a: np.tril(a[3])),
    "cholesky": ((5,), lambda a: a[0]),
    "alternatives": ((5, 70), lambda a: a[6]),
    "exp": ((9,), lambda a: a[1]),
    "cross": ((6, 5, 70), lambda a: a[2]),
}
"""Kernel -> a shape, and where its forms leave their results (the factor by LAPACK is a new array)."""


def test_every_kernel_of_several_forms_is_compared():
    assert set(RESULTS) == {name for name, kernel in KERNELS.items() if len(kernel.forms) > 1}


@pytest.mark.parametrize("name", RESULTS)
def test_all_forms_of_a_kernel_compute_the_same(name, monkeypatch):
    interpret(monkeypatch)
    shape, result_of = RESULTS[name]
    results = []
    for form in KERNELS[name].forms:
        arguments = KERNELS[name].setup(*shape)
        getattr(form, "py_func", form)(1, *arguments)
        results.append(result_of(arguments))
    for result in results[1:]:
        assert result == pytest.approx(results[0], rel=1e-9)


@pytest.mark.parametrize("dim", [1, 4, 7])
def test_a_reward_rotated_in_is_one_row_more_of_least_squares(dim, monkeypatch):
    interpret(monkeypatch)
    upper, weights, targets, feature, row, reward = KERNELS["rotate"].setup(dim)
    gram = upper.T @ np.diag(weights) @ upper + np.outer(feature, feature)
    moment = upper.T @ (weights * targets) + reward * feature
    KERNELS["rotate"].forms[0].py_func(1, upper, weights, targets, feature, row, reward)
    assert upper.T @ np.diag(weights) @ upper == pytest.approx(gram)
    assert np.linalg.solve(upper, targets) == pytest.approx(np.linalg.solve(gram, moment))


def counting_linucb(size):
    """Multiplications of one step of LinUCB, written with loops."""
    _, arms, dim = size
    tally = Tally()
    rng = np.random.default_rng(0)

    def numbers(*shape):
        return counted(rng.normal(size=shape), tally)

    features, upper, targets = numbers(arms, dim), numbers(dim, dim), numbers(dim)
    weights = counted(rng.uniform(1, 2, size=dim), tally)
    radius = numbers(1)[0]
    bounds = []
    for feature in features:
        white = list(feature)
        for i in range(dim):
            for j in range(i):
                white[i] = white[i] - upper[j, i] * white[j]
        mean = sum(targets[i] * white[i] for i in range(dim))
        # 1 / D is shared by all arms: a division, and not counted here.
        norm = sum(weights[i] * white[i] * white[i] for i in range(dim))
        bounds.append(mean + radius * Counted(math.sqrt(norm.value), tally))
    row = list(features[max(range(arms), key=lambda a: bounds[a].value)])
    rest, weight = Counted(1.0, tally), Counted(1.0, tally)
    for i in range(dim):
        scaled = weight * row[i]
        new = weights[i] + scaled * row[i]
        inverse = 1.0 / new
        gain, weight = scaled * inverse, weight * (weights[i] * inverse)
        weights[i] = new
        rest = rest - row[i] * targets[i]
        targets[i] = targets[i] + gain * rest
        for j in range(i + 1, dim):
            row[j] = row[j] - row[i] * upper[i, j]
            upper[i, j] = upper[i, j] + gain * row[j]
    return tally.madds


def test_the_floor_of_linucb_counts_what_a_reference_with_loops_multiplies():
    items = floors.linucb(SIZE, floors.Facts(6))
    assert terms.count(terms.cheapest(items, lambda term: 0.0)).madds == counting_linucb(SIZE)


def test_the_floor_of_solid_grows_as_the_paper_says():
    def madds(contexts, arms, dim):
        items = floors.solid_exploring((contexts, arms, dim), floors.Facts(contexts * arms))
        return terms.count(terms.cheapest(items, lambda term: 0.0)).madds

    # P d² for the Gram product and the solves together, half each.
    assert madds(400, 100, 40) == pytest.approx(400 * 100 * 40**2, rel=0.15)
    assert growth.exponent([20, 40, 80], [madds(100, n, 30) for n in (20, 40, 80)]) == pytest.approx(
        1, abs=0.02
    )
    assert growth.exponent([64, 128, 256], [madds(50, 20, n) for n in (64, 128, 256)]) == pytest.approx(
        2, abs=0.2
    )


def test_the_cheaper_way_counts():
    items = floors.oam_exploiting((100, 20, 10), floors.Facts(2000))

    def second_kernel(prices):
        chosen = terms.cheapest(items, lambda term: prices.get(term.kernel, 0.0))
        return [term.kernel for term in chosen[1:-3]]

    assert second_kernel({"learn": 5.0, "norms": 6.0}) == ["unit", "learn"]
    assert second_kernel({"learn": 5.0, "norms": 4.0}) == ["unit", "columns", "norms"]


@pytest.mark.parametrize("cell", floors.FLOORS)
def test_every_floor_is_made_of_known_kernels_at_every_size(cell):
    facts = floors.Facts(support=5, solves=1.0, newton=4.0, active=6, rank=2)
    for size in cases.SIZES:
        items = floors.FLOORS[cell](size, facts)
        counts = terms.count(terms.all_terms(items))
        assert counts.bytes > 0
        for term in terms.all_terms(items):
            assert len(term.shape) == KERNELS[term.kernel].madds.__code__.co_argcount
            assert term.why


def test_the_exponent_of_a_power_is_the_power():
    sizes = np.array([10, 20, 40])
    assert growth.exponent(sizes, 3.0 * sizes**2.5) == pytest.approx(2.5)
    assert growth.exponent(sizes, [7.0, 7.0, 7.0]) == pytest.approx(0.0)


def test_the_guard_warns_past_a_quarter_and_not_before():
    committed = {"a": 2.0, "b": 2.0, "c": 2.0, "gone": 1.0}
    measured = {"a": 2.49, "b": 2.51, "c": 0.5, "new": 9.0}
    assert compare.regressions(committed, measured, higher_is_better=False) == {"b": pytest.approx(1.255)}
    speeds = compare.regressions({"a": 100.0, "b": 100.0}, {"a": 81.0, "b": 79.0}, higher_is_better=True)
    assert list(speeds) == ["b"]


def measured(ratio):
    return timing.Measured(
        cases.Cell("SOLID", "exploring", (2, 3, 3)),
        time=1e-6 * ratio,
        loop=2e-8,
        floor=1e-6,
        ratio=ratio,
        spread=0.01,
        counts=terms.Counts(10.0, 1.0, 80.0),
        share=1.0,
        facts=floors.Facts(6),
    )


def test_what_is_written_is_what_the_guard_reads(tmp_path):
    speedup = Speedup("SOLID exploring", (4, 8, 8), 1e-6, 7e-5)
    path = tmp_path / "bench.json"
    assert compare.load(path) == {"floor": {}, "numpy": {}, "calls": {}}
    call = Called("Agent(LinUCB)", (4, 8, 8), 3e-6, 1e-6, 9e-6, ratio=3.0, speed=3.0)
    path.write_text(compare.as_json([measured(2.0)], [speedup], [call]))
    committed = compare.load(path)
    assert committed == {
        "floor": {"SOLID exploring 2,3,3": 2.0},
        "numpy": {"SOLID exploring 4,8,8": pytest.approx(70)},
        "calls": {"Agent(LinUCB) 4,8,8": 3.0},
    }
    assert compare.verdict_of_calls(committed["calls"], [call._replace(ratio=3.7)]) == []
    (said,) = compare.verdict_of_calls(committed["calls"], [call._replace(ratio=3.9)])
    assert said == "WARNING: Agent(LinUCB) 4,8,8: 3.90 times its kernels, 3.00 when committed (+30%)"
    assert compare.verdict(committed, [measured(2.4)], [speedup]) == []
    slower = Speedup("SOLID exploring", (4, 8, 8), 2e-6, 7e-5)
    first, second = compare.verdict(committed, [measured(2.6)], [slower])
    assert first.startswith(
        "WARNING: SOLID exploring 2,3,3: 2.60 times its floor, 2.00 when committed (+30%)"
    )
    assert second.startswith("WARNING: SOLID exploring 4,8,8: 35 times as fast as NumPy, 70 when committed")


def test_the_tables_are_whole():
    exponents = [growth.Growth("SOLID", "exploring", axis, 1.0, 1.1) for axis in growth.AXES]
    text = table.page([measured(2.0)], exponents, [Speedup("LinUCB", (2, 3, 3), 1e-6, 3e-5)], "1.0")
    widths = {line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|")}
    assert widths == {4, 8, 9, 10}
    assert "| 2, 3, 3 | SOLID | exploring | 2 | 1 | 2.00 |" in text


def test_the_committed_ratios_cover_every_policy_and_size():
    content = json.loads((BENCHMARKS / "bench.json").read_text())
    wanted = {
        cell.key
        for size in cases.SIZES
        for cell in cases.cells_of(size, {label for label, _ in floors.FLOORS})
        if cases.is_run(cell)
    }
    assert set(content["floor"]) == wanted
    assert all(row["ratio"] > 0 for row in content["floor"].values())


def test_the_loop_without_a_policy_draws_what_the_loop_draws():
    stream = np.arange(1, 5).astype(np.uint64)
    out = np.zeros(3)
    draws.empty_loop(100, stream, np.array([0.2, 0.5, 1.0]), out)
    assert np.all(out != 0)


def test_a_player_explores_or_exploits_as_told():
    for kind in ("exploring", "exploiting"):
        playing = player.Player(cases.Cell("EpsilonGreedy", kind, (2, 3, 3)), seconds=1e-4)
        assert playing.round()[1] == 1.0
        thetas = []
        for _ in range(2):
            playing.restore()
            assert playing.play(20) == (20 if kind == "exploring" else 0)
            thetas.append(playing.agent.state.regression.estimator.targets.copy())
        assert np.array_equal(*thetas)


def test_the_command_explains_itself():
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "bench"), "--help"], capture_output=True, text=True, check=True
    )
    assert "--write" in done.stdout


def test_the_comparison_on_a_gpu_skips_what_does_not_fit_its_problem(capsys):
    script = runpy.run_path(str(BENCHMARKS / "gpu.py"))
    played = dict(script["fitting"](script["make_problem"]((4, 8, 8)), 5_000))
    assert set(script["policies"](8)) - set(played) == {"SPL", "UCB1"}
    assert capsys.readouterr().out.startswith("SPL skipped: SPL takes one context, got 4; ")
    assert dict(script["fitting"](script["make_problem"]((1, 8, 8)), 5_000, ["SPL"])).keys() == {"SPL"}
    assert capsys.readouterr().out == ""


def test_every_policy_of_the_table_can_be_made():
    for label, kind in floors.FLOORS:
        assert cases.policy_of(label, kind, 3).describe()
