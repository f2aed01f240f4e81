"""A step of every policy: time, floor, ratio, growth; speed beside plain NumPy; a guard against regressions.

Usage: python benchmarks/bench.py [--rounds N] [--seconds S] [--only POLICY ...] [--write] [--strict]

Exploring and exploiting steps are timed apart, in the simulation's own compiled loop, from a state in which
the policy does nothing else: SOLID with a threshold that always or never passes, epsilon-greedy with ε = 1 or
0, the others with noise so large or so small that their own test decides. Every round of the measurement
plays the same steps again from that state, then measures every kernel of the floor (`floors.py`); rounds of
all policies of one size are interleaved, and medians over rounds are reported. Times are of the processor,
one thread, and less the loop without a policy.

The ratios are compared with the committed ones (`bench.json`): a warning where one is more than 25% worse,
after a second measurement of what looks worse. `--write` makes this run the committed one: `bench.json` and
`bench.md`.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded: one thread is what is compared
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import floors
import naive
import rates
import solid_bandits as sb
from floors import FLOORS, Facts
from solid_bandits.loop import Trace, _begin, _loop
from solid_bandits.policies.contract import Policy

HERE = Path(__file__).parent
SIZES = [(2, 3, 3), (4, 8, 8), (4, 32, 8), (50, 20, 16), (191, 40, 65)]
BASE = (50, 20, 16)
AXES = ("|X|", "|A|", "d")
GROWTH = ((25, 50, 100), (10, 20, 40), (8, 16, 32))
"""Along each axis through BASE."""
OAM_BASE = (4, 8, 16)
OAM_GROWTH = ((2, 4, 8), (4, 8, 16), (8, 16, 32))
"""For OAM's exploring steps: around BASE one of its solves takes minutes."""
ONE_CONTEXT = ("OSSB", "SPL", "UCB1", "EndOfOptimism")
MOST_PAIRS_TO_SOLVE = 256
"""OAM's solve takes O(P³): with more pairs than this its exploring steps are not run."""
HORIZON = 50_000
LIMIT = 0.25
"""How much worse than the committed ratio is worth a warning."""
LOST = 1e-26
"""Weights below this share of their sum are lost to rounding: V_ω has a ridge of 1e-9 of its trace / d."""
NAIVE_SIZES = SIZES[:3]
NAIVE_STEPS = 1000
GOALS = {
    ("SOLID exploring", (4, 8, 8)): 60.0,
    ("SOLID exploring", (4, 32, 8)): 25.0,
    ("SOLID searching", (4, 8, 8)): 60.0,
    ("SOLID searching", (4, 32, 8)): 25.0,
}
"""Least speed-up over the plain NumPy reference."""


# What is played.


def problem_of(size: tuple[int, int, int], noise: float = 1.0) -> sb.Problem:
    """The toy, the paper's random problems, or Gaussian features where those cannot be drawn."""
    contexts, arms, dim = size
    if size == (2, 3, 3):
        toy = sb.problems.toy()
        return sb.Problem(toy.features, toy.theta, toy.context_probs, noise_std=noise * toy.noise_std)
    if size in ((4, 8, 8), (4, 32, 8)):
        return sb.problems.random(contexts, arms, dim, noise_std=noise, seed=0)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(contexts, arms, dim)) / np.sqrt(dim)
    return sb.Problem(features, rng.normal(size=dim), noise_std=noise)


def policy_of(label: str, kind: str, n_arms: int) -> Policy:
    """The policy, with its switch between the two kinds of steps thrown if it has one."""
    if label == "SOLID":
        # The bonus in the constraint keeps λ at 0 for long; without it the closest alternative is needed.
        return replace(
            sb.Solid.paper_random(n_arms),
            threshold_scale=0.0 if kind == "exploiting" else 1e9,
            constraint_bonus=0.0 if kind == "searching" else 1.0,
        )
    if label == "EpsilonGreedy":
        return sb.EpsilonGreedy(epsilon=1.0 if kind == "exploring" else 0.0)
    return getattr(sb, label)()


class Cell(NamedTuple):
    """One line of the table."""

    label: str
    kind: str
    size: tuple[int, int, int]

    @property
    def key(self) -> str:
        """Its name in `bench.json`."""
        return f"{self.label} {self.kind} {','.join(map(str, self.size))}"


def cells_of(size: tuple[int, int, int], labels: set[str]) -> list[Cell]:
    """Every policy and kind at this size; policies for one context take the first number as 1."""
    found = []
    for label, kind in FLOORS:
        if label in labels:
            contexts, arms, dim = size
            found.append(Cell(label, kind, (1 if label in ONE_CONTEXT else contexts, arms, dim)))
    return found


def is_run(cell: Cell) -> bool:
    """All but OAM's exploring steps with so many pairs that one takes seconds or minutes."""
    contexts, arms, _ = cell.size
    return (cell.label, cell.kind) != ("OAM", "exploring") or contexts * arms <= MOST_PAIRS_TO_SOLVE


def settling_steps(cell: Cell) -> int:
    """Steps into the regime that lasts, fewer where they are dear.

    By the size and not by the clock, so that every run times the same steps.
    """
    contexts, arms, dim = cell.size
    pairs = contexts * arms
    dear = {"SOLID": pairs * dim * dim, "IDS": pairs * dim * arms, "OAM": 5 * pairs**3}
    work = pairs * dim if cell.kind == "exploiting" else dear.get(cell.label, pairs * dim)
    return int(np.clip(6e9 / work, 60, 1500))


class Player:
    """A cell at play: an agent in the regime wanted, with its state kept to start every round from."""

    def __init__(self, cell: Cell, seconds: float) -> None:
        self.cell = cell
        self.rng = np.random.default_rng(0)
        contexts, arms, _ = cell.size
        # Noise decides for the policies whose test has no switch; the environment's own noise stays moderate.
        tested = cell.label in ("IDS", "OAM", "OSSB", "SPL")
        problem = problem_of(cell.size, 30.0 if tested and cell.kind == "exploring" else 1.0)
        policy = policy_of(cell.label, cell.kind, arms)
        agent, self.truth, _, self.environment = _begin(problem, policy, HORIZON, 0, 0, np.array([1]))
        if tested and cell.kind == "exploiting":
            agent = agent._replace(known=agent.known._replace(noise_std=1e-7 * problem.noise_std))
        self.agent = agent
        self.play(1)  # compiles, or loads what was compiled
        if cell.label == "SOLID" and cell.kind != "exploiting":
            # No work is due for contexts never seen: have all of them seen, by quick exploiting steps.
            self.agent = agent._replace(params=agent.params._replace(threshold_scale=0.0))
            self.play(int(contexts * (np.log(contexts) + 4)))
            self.agent = agent
        self.play(settling_steps(cell))
        self.saved = [array.copy() for array in self._arrays()]
        _, each, _ = self._timed(self._guess(seconds))
        self.steps = max(1, round(seconds / each))

    def _guess(self, seconds: float) -> int:
        steps = 1
        while True:
            _, each, _ = self._timed(steps)
            if each * steps > 0.1 * seconds:
                return max(1, round(0.3 * seconds / each))
            steps *= 4

    def _arrays(self) -> list[Any]:
        return [*_leaves(self.agent.state), self.environment]

    def restore(self) -> None:
        """Back to the state kept."""
        for array, value in zip(self._arrays(), self.saved, strict=True):
            array[...] = value

    def play(self, steps: int) -> int:
        """Play on; return how many steps explored."""
        trace = Trace(np.array([steps]), np.zeros(1), np.zeros(1, dtype=np.int64))
        _loop(self.agent, self.truth, trace, self.environment, 0, 1)
        return int(trace.explored[0])

    def _timed(self, steps: int) -> tuple[int, float, float]:
        self.restore()
        start = time.thread_time()
        explored = self.play(steps)
        each = (time.thread_time() - start) / steps
        return steps, max(each, 1e-9), explored / steps

    def round(self) -> tuple[float, float]:
        """Seconds of a step, and the share of steps of the kind wanted; arrays lie elsewhere each time."""
        self.agent = _moved(self.agent, self.rng, {})
        _, each, explored = self._timed(self.steps)
        shares = {"exploiting": 1.0 - explored, "any": 1.0}
        return each, shares.get(self.cell.kind, explored)

    def facts(self) -> Facts:
        """What the work of a step depends on beside the size, in the state kept."""
        self.restore()
        pairs = self.cell.size[0] * self.cell.size[1]
        if self.cell.label in ("OAM", "OSSB"):
            return self._facts_of_solves()
        self.play(1)
        weights = np.ones(pairs)
        searches = 1.0
        if self.cell.label == "SOLID" and self.cell.kind != "exploiting":
            weights = (self.agent.state.omega * self.agent.state.context_counts[:, None]).ravel()
            searches = self._searches()
        elif self.cell.kind == "exploring" and self.cell.label in ("IDS", "SPL"):
            weights = self.agent.work.weights
        return Facts(support=max(int((weights > LOST * weights.sum()).sum()), 1), searches=searches)

    def _searches(self) -> float:
        """The share of steps with λ > 0 before or after."""
        positive = []
        before = float(self.agent.state.multiplier)
        for _ in range(min(self.steps, 64)):
            self.play(1)
            after = float(self.agent.state.multiplier)
            positive.append(before > 0 or after > 0)
            before = after
        return float(np.mean(positive))

    def _facts_of_solves(self) -> Facts:
        contexts, arms, dim = self.cell.size
        features = self.agent.known.features
        newton = []
        active = rank = 0
        for _ in range(min(self.steps, 64)):
            means = self.agent.state.regression.means.copy()
            self.play(1)
            newton.append(int(self.agent.state.allocation.steps))
            best = means.argmax(axis=1)
            optimal = features[np.arange(contexts), best]
            _, singular, right = np.linalg.svd(optimal, full_matrices=True)
            span = int((singular > 1e-9 * singular.max()).sum())
            outside = np.linalg.norm(features @ right[span:].T, axis=2) > 1e-7
            outside[np.arange(contexts), best] = False
            active = int(outside.sum())
            rank = int(np.linalg.matrix_rank((features @ right[span:].T)[outside])) if active else 0
        solves = 1.0 if self.cell.kind == "exploring" or self.cell.label == "OSSB" else 0.0
        return Facts(
            support=contexts * arms,
            solves=solves,
            newton=float(np.mean(newton)),
            active=active,
            rank=min(rank, dim),
        )


def _moved(value: Any, rng: np.random.Generator, moved: dict[int, Any]) -> Any:
    """The same agent with its arrays elsewhere: where they happen to lie is not to decide a comparison."""
    if isinstance(value, tuple):
        return type(value)(*(_moved(part, rng, moved) for part in value))
    if not isinstance(value, np.ndarray):
        return value
    if id(value) not in moved:
        moved[id(value)] = rates.placed(value, 16 * int(rng.integers(4)))
    return moved[id(value)]  # one array with two names stays one array


def _leaves(state: Any) -> list[Any]:
    found = []
    for value in state:
        if isinstance(value, tuple):
            found += _leaves(value)
        elif value is not None:
            found.append(value)
    return found


# Measurement.


class Measured(NamedTuple):
    """Medians over the rounds of one cell."""

    cell: Cell
    time: float
    loop: float
    floor: float
    ratio: float
    kept: float
    """The ratio to the floor of the way that keeps the tables of all pairs up to date."""
    kept_floor: float
    spread: float
    """Half the distance between the quartiles of the ratio, relative to it."""
    counts: floors.Counts
    share: float
    facts: Facts


def measure(players: list[Player], meter: rates.Meter, rounds: int) -> list[Measured]:
    """Rounds in which every player and every kernel has its turn."""
    facts = [player.facts() for player in players]
    items = [
        FLOORS[player.cell.label, player.cell.kind](player.cell.size, fact)
        for player, fact in zip(players, facts, strict=True)
    ]
    keys = sorted({term.key for item in items for term in floors.all_terms(item)})
    loops = sorted({player.cell.size[0] for player in players})
    times: list[list[float]] = [[] for _ in players]
    shares: list[list[float]] = [[] for _ in players]
    costs: dict[Any, list[float]] = {key: [] for key in keys}
    empty: dict[int, list[float]] = {contexts: [] for contexts in loops}
    for _ in range(rounds):
        for place, player in enumerate(players):
            seconds, share = player.round()
            times[place].append(seconds)
            shares[place].append(share)
        for key in keys:
            costs[key].append(meter.cost(key))
        for contexts in loops:
            empty[contexts].append(loop_seconds(contexts, meter.seconds))
    middle = {key: float(np.median(values)) for key, values in costs.items()}
    results = []
    for place, player in enumerate(players):
        loop = float(np.median(empty[player.cell.size[0]]))
        chosen = floors.cheapest(items[place], lambda term: term.times * middle[term.key])
        kept = floors.cheapest(items[place], lambda term: term.times * middle[term.key], kept=True)
        net = np.maximum(np.array(times[place]) - loop, 1e-10)
        # Round by round: what slows the machine for a while slows both.
        ratios = net / priced(chosen, costs)
        low, high = np.percentile(ratios, [25, 75])
        results.append(
            Measured(
                player.cell,
                float(np.median(net)),
                loop,
                float(np.median(priced(chosen, costs))),
                float(np.median(ratios)),
                float(np.median(net / priced(kept, costs))),
                float(np.median(priced(kept, costs))),
                float((high - low) / 2 / np.median(ratios)),
                floors.count(chosen),
                float(np.mean(shares[place])),
                facts[place],
            )
        )
    return results


def priced(terms: list[floors.Term], costs: dict[Any, list[float]]) -> Any:
    """Seconds of these terms in every round."""
    return sum(term.times * np.array(costs[term.key]) for term in terms)


def loop_seconds(contexts: int, seconds: float) -> float:
    """A step of the loop without a policy."""
    edges = np.cumsum(np.full(contexts, 1.0 / contexts))
    arguments = (np.arange(1, 5).astype(np.uint64), edges, np.zeros(contexts))
    rates.empty_loop(1000, *arguments)
    return rates.seconds_of(rates.empty_loop, arguments, max(1000, round(seconds / 3e-8)))


def measure_size(
    cells: list[Cell], rounds: int, seconds: float, doubtful: Callable[[list[Measured]], list[Cell]]
) -> list[Measured]:
    """All cells of one size; those that `doubtful` names are measured again, and the better one counts."""
    players = [Player(cell, seconds) for cell in cells if is_run(cell)]
    meter = rates.Meter(min(0.003, seconds / 4))
    results = measure(players, meter, rounds)
    again = doubtful(results)
    if again:
        second = measure([player for player in players if player.cell in again], meter, rounds)
        best = {result.cell: result for result in second}
        results = [
            min(result, best.get(result.cell, result), key=lambda found: found.ratio) for result in results
        ]
    return results


# Growth.


def exponent(sizes: Any, values: Any) -> float:
    """The power of the size that the values grow with: slope of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


class Growth(NamedTuple):
    """Exponents of one policy and kind along one axis."""

    label: str
    kind: str
    axis: str
    time: float
    floor: float
    kept: float


def measure_growth(labels: set[str], rounds: int, seconds: float, say: Callable[[str], None]) -> list[Growth]:
    """Exponents along every axis, beside those of the floor and of the floor with all tables kept."""
    found: list[Growth] = []
    for base, axes, chosen in (
        (BASE, GROWTH, {pair for pair in FLOORS if pair != ("OAM", "exploring")}),
        (OAM_BASE, OAM_GROWTH, {("OAM", "exploring")}),
    ):
        chosen = {(label, kind) for label, kind in chosen if label in labels}
        sizes = sorted(
            {
                tuple(n if i == axis else b for i, b in enumerate(base))
                for axis in range(3)
                for n in axes[axis]
            }
        )
        table: dict[tuple[str, str, Any], Measured] = {}
        for size in sizes:
            cells = [cell for cell in cells_of(size, labels) if (cell.label, cell.kind) in chosen]
            # Where there is one context only, other numbers of contexts are the same cell.
            if size[0] != base[0]:
                cells = [cell for cell in cells if cell.label not in ONE_CONTEXT]
            if cells:
                say(f"growth: {size}")
                for result in measure_size(cells, rounds, seconds, lambda results: []):
                    table[result.cell.label, result.cell.kind, result.cell.size] = result
        for label, kind in [pair for pair in FLOORS if pair in chosen]:
            for axis in range(3):
                if axis == 0 and label in ONE_CONTEXT:
                    continue
                line = []
                for n in axes[axis]:
                    size = tuple(n if i == axis else b for i, b in enumerate(base))
                    line.append(
                        table[label, kind, (1 if label in ONE_CONTEXT else size[0], size[1], size[2])]
                    )
                found.append(
                    Growth(
                        label,
                        kind,
                        AXES[axis],
                        exponent(axes[axis], [result.time for result in line]),
                        exponent(axes[axis], [result.floor for result in line]),
                        exponent(axes[axis], [result.kept_floor for result in line]),
                    )
                )
    return found


# Plain NumPy.


class Speedup(NamedTuple):
    """The compiled loop beside plain NumPy, seconds per step."""

    name: str
    size: tuple[int, int, int]
    compiled: float
    plain: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.plain / self.compiled

    @property
    def key(self) -> str:
        """Its name in `bench.json`."""
        return f"{self.name} {','.join(map(str, self.size))}"


def numpy_linucb(problem: sb.Problem, steps: int, rng: np.random.Generator) -> None:
    """LinUCB as one would write it in NumPy for speed: the arms of the context only, rank-one updates."""
    dim = problem.dim
    inverse, moment, theta = np.eye(dim), np.zeros(dim), np.zeros(dim)
    contexts = rng.choice(problem.n_contexts, size=steps, p=problem.context_probs)
    noise = problem.noise_std * rng.normal(size=steps)
    log_det = 0.0
    for step in range(steps):
        context = contexts[step]
        features = problem.features[context]
        norms = np.einsum("ij,ij->i", features @ inverse, features)
        width = problem.noise_std * np.sqrt(log_det + np.log(step + 1))
        arm = np.argmax(features @ theta + width * np.sqrt(norms))
        feature = features[arm]
        direction = inverse @ feature
        growth = 1.0 + feature @ direction
        inverse -= np.outer(direction, direction / growth)
        moment += feature * (problem.means[context, arm] + noise[step])
        theta = inverse @ moment
        log_det += np.log(growth)


def measure_plain(rounds: int) -> list[Speedup]:
    """Four policies beside the reference of the tests, LinUCB beside a faster NumPy form too."""
    found = []
    for size in NAIVE_SIZES:
        problem = problem_of(size)
        policies = {
            "SOLID exploring": policy_of("SOLID", "exploring", size[1]),
            "SOLID searching": policy_of("SOLID", "searching", size[1]),
            "LinUCB": sb.LinUCB(),
            "LinTS": sb.LinTS(),
            "Greedy": sb.Greedy(),
        }
        times: dict[str, tuple[list[float], list[float]]] = {
            name: ([], []) for name in (*policies, "LinUCB (rank-one NumPy)")
        }
        for _ in range(rounds):
            for name, policy in policies.items():
                fast = whole_run_seconds(problem, policy)
                times[name][0].append(fast)
                start = time.thread_time()
                for _ in naive.steps(problem, policy, NAIVE_STEPS, seed=0, run=0):
                    pass
                times[name][1].append((time.thread_time() - start) / NAIVE_STEPS)
                if name == "LinUCB":
                    start = time.thread_time()
                    numpy_linucb(problem, NAIVE_STEPS, np.random.default_rng(0))
                    times["LinUCB (rank-one NumPy)"][0].append(fast)
                    times["LinUCB (rank-one NumPy)"][1].append((time.thread_time() - start) / NAIVE_STEPS)
        for name, (fast_times, slow_times) in times.items():
            ratio = float(np.median(np.array(slow_times) / np.array(fast_times)))
            fast = float(np.median(fast_times))
            found.append(Speedup(name, size, fast, ratio * fast))
    return found


def whole_run_seconds(problem: sb.Problem, policy: Policy, repetitions: int = 5) -> float:
    """Seconds per step of the compiled loop from the first step on, everything included."""
    seconds = 0.0
    for _ in range(repetitions):
        agent, truth, trace, environment = _begin(
            problem, policy, NAIVE_STEPS, 0, 0, np.array([1, NAIVE_STEPS])
        )
        _loop(agent, truth, trace, environment, 0, 1)  # loads what was compiled
        start = time.thread_time()
        _loop(agent, truth, trace, environment, 1, 2)
        seconds += time.thread_time() - start
    return seconds / repetitions / (NAIVE_STEPS - 1)


# Guard.


def regressions(
    committed: dict[str, float], measured: dict[str, float], higher_is_better: bool, limit: float = LIMIT
) -> dict[str, float]:
    """Name -> how many times worse than committed, where that is more than `limit`; other names are new."""
    worse = {}
    for name, value in measured.items():
        if name in committed and committed[name] > 0 and value > 0:
            factor = committed[name] / value if higher_is_better else value / committed[name]
            if factor > 1.0 + limit:
                worse[name] = factor
    return worse


def load(path: Path) -> dict[str, dict[str, float]]:
    """The committed ratios; none where there is no file."""
    if not path.exists():
        return {"floor": {}, "numpy": {}}
    content = json.loads(path.read_text(encoding="utf-8"))
    return {part: {name: row["ratio"] for name, row in content[part].items()} for part in ("floor", "numpy")}


def verdict(
    committed: dict[str, dict[str, float]], results: list[Measured], speedups: list[Speedup]
) -> list[str]:
    """Warnings, and what is left to be reached."""
    lines = []
    ratios = {result.cell.key: result.ratio for result in results}
    for name, factor in regressions(committed["floor"], ratios, higher_is_better=False).items():
        lines.append(
            f"WARNING: {name}: {ratios[name]:.2f} times its floor, {committed['floor'][name]:.2f} when "
            f"committed ({factor - 1:+.0%})"
        )
    speeds = {speedup.key: speedup.ratio for speedup in speedups}
    for name, factor in regressions(committed["numpy"], speeds, higher_is_better=True).items():
        lines.append(
            f"WARNING: {name}: {speeds[name]:.0f} times as fast as NumPy, {committed['numpy'][name]:.0f} "
            f"when committed ({factor - 1:+.0%} time)"
        )
    return lines


def goals(results: list[Measured], speedups: list[Speedup]) -> list[str]:
    """What the project wants of these numbers, and whether it has it."""
    lines = [
        f"{'reached' if result.ratio <= 3 else 'MISSED'}: {result.cell.key} within 3 times its floor: "
        f"{result.ratio:.2f} ({result.kept:.2f} with all tables kept)"
        for result in results
        if result.cell.label == "SOLID"
    ]
    for speedup in speedups:
        least = GOALS.get((speedup.name, speedup.size))
        if least:
            lines.append(
                f"{'reached' if speedup.ratio >= least else 'MISSED'}: {speedup.key} at least {least:.0f} "
                f"times as fast as NumPy: {speedup.ratio:.0f}"
            )
        if speedup.name == "LinUCB (rank-one NumPy)":
            lines.append(
                f"{'reached' if speedup.compiled <= 5e-7 else 'MISSED'}: LinUCB {speedup.size} at least "
                f"2,000,000 steps/s: {1 / speedup.compiled:,.0f}, where NumPy does {1 / speedup.plain:,.0f}"
            )
    return lines


# Tables.


def row(*values: object) -> str:
    """One line of a Markdown table."""
    cells = (str(value).replace("|", "\\|") for value in values)
    return f"| {' | '.join(cells)} |"


def table(*titles: str) -> list[str]:
    """The head of a Markdown table."""
    return [row(*titles), "|" + "---|" * len(titles)]


FLOOR_TITLES = ("size", "policy", "steps", "time us", "floor us", "ratio", "±", "tables kept", "madds", "kB")


def floor_row(result: Measured) -> str:
    """One cell in the table of floors."""
    cell = result.cell
    kind = "" if cell.kind == "any" else cell.kind
    if result.share < 0.95:
        kind += f" ({result.share:.0%} of them)"
    return row(
        ", ".join(map(str, cell.size)),
        cell.label,
        kind,
        f"{result.time * 1e6:,.3g}" if result.time < 1e-3 else f"{result.time * 1e6:,.0f}",
        f"{result.floor * 1e6:,.3g}" if result.floor < 1e-3 else f"{result.floor * 1e6:,.0f}",
        f"{result.ratio:.2f}",
        f"{result.spread:.0%}",
        f"{result.kept:.2f}",
        f"{result.counts.madds:,.0f}",
        f"{result.counts.bytes / 1e3:,.3g}",
    )


def growth_rows(found: list[Growth]) -> list[str]:
    """One line per policy and kind, all axes in it."""
    lines = table(
        "policy", "steps", *(f"{axis} {what}" for axis in AXES for what in ("time", "floor", "kept"))
    )
    for label, kind in FLOORS:
        axes = {growth.axis: growth for growth in found if (growth.label, growth.kind) == (label, kind)}
        if axes:
            values: list[str] = []
            for axis in AXES:
                growth = axes.get(axis)
                values += ["-"] * 3 if growth is None else [f"{value:.2f}" for value in growth[3:]]
            lines.append(row(label, "" if kind == "any" else kind, *values))
    return lines


def plain_rows(speedups: list[Speedup]) -> list[str]:
    """Compiled and plain side by side."""
    lines = table("size", "policy", "compiled us/step", "steps/s", "NumPy us/step", "NumPy steps/s", "ratio")
    for found in speedups:
        lines.append(
            row(
                ", ".join(map(str, found.size)),
                found.name,
                f"{found.compiled * 1e6:.2f}",
                f"{1 / found.compiled:,.0f}",
                f"{found.plain * 1e6:.1f}",
                f"{1 / found.plain:,.0f}",
                f"{found.ratio:.0f}",
            )
        )
    return lines


def term_rows() -> list[str]:
    """What every floor counts, and why."""
    contexts, arms, dim = size = BASE
    names = {
        contexts * arms: "P",
        contexts: "X",
        arms: "A",
        dim: "d",
        7: "s",
        11: "n",
        13: "k",
        1: "1",
    }
    facts = Facts(support=7, solves=1.0, newton=1.0, active=11, rank=13)
    lines = table("policy", "steps", "kernels, and what for")

    def said(term: floors.Term) -> str:
        shape = ", ".join(names[n] for n in term.shape)
        return f"`{term.kernel}({shape})`"

    for (label, kind), floor in FLOORS.items():
        parts = []
        for item in floor((1, arms, dim) if label in ONE_CONTEXT else size, facts):
            if isinstance(item, floors.Term):
                parts.append(f"{said(item)} {item.why}")
            else:
                ways = " or ".join(" + ".join(map(said, way)) or "nothing" for way in item.ways)
                parts.append(f"{ways}: {item.why}")
        lines.append(row(label, "" if kind == "any" else kind, "; ".join(parts)))
    return lines


def kernel_rows() -> list[str]:
    """The kernels and their forms."""
    lines = table("kernel", "work", "forms tried")
    for name, kernel in rates.KERNELS.items():
        forms = ", ".join(form.__name__.split("_")[-1] for form in kernel.forms)
        lines.append(row(f"`{name}`", kernel.what, forms))
    return lines


def page(results: list[Measured], found: list[Growth], speedups: list[Speedup], load_average: str) -> str:
    """All tables as one Markdown page, which the documentation includes."""
    loops = sorted({result.cell.size[0]: result.loop for result in results}.items())
    solves = [
        f"{result.cell.key}: {result.facts.newton:.1f} Newton steps on {result.facts.active} pairs"
        for result in results
        if result.facts.solves
    ]
    supports = [
        f"{result.facts.support} of {result.cell.size[0] * result.cell.size[1]} at "
        f"({', '.join(map(str, result.cell.size))})"
        for result in results
        if (result.cell.label, result.cell.kind) == ("SOLID", "searching")
    ]
    searches = [
        f"{result.facts.searches:.0%} at ({', '.join(map(str, result.cell.size))})"
        for result in results
        if (result.cell.label, result.cell.kind) == ("SOLID", "exploring")
    ]
    lines = [
        "### A step and its floor",
        "",
        "`time`: a step in the compiled loop, less the loop without a policy "
        f"({', '.join(f'{loop * 1e9:.0f} ns at |X| = {contexts}' for contexts, loop in loops)}). `floor`: "
        "the kernels that the step needs, each at the rate of its fastest form in the same run. `ratio`: "
        "time / floor, median over rounds, ± half the distance of the quartiles. `tables kept`: the ratio to "
        "the floor of an implementation that keeps mean and norm of every pair up to date, which is higher "
        "where asking for them in one context is cheaper. `madds`, `kB`: multiply-adds and memory "
        "traffic of the floor.",
        "",
        *table(*FLOOR_TITLES),
        *(floor_row(result) for result in results),
        "",
        f"OAM's exploring steps are not run with more than {MOST_PAIRS_TO_SOLVE} pairs: a solve takes O(P³), "
        "which from (4, 32, 8) on makes about 1.5 s at (50, 20, 16) and 11 minutes at (191, 40, 65).",
        "SOLID's `exploring` steps are as in the paper; the closest alternative is needed where λ > 0, "
        f"{'; '.join(searches)} of them. `searching` steps are without the bonus in the constraint, and need "
        f"it; pairs whose weight counts there: {'; '.join(supports)}.",
        f"Solves: {'; '.join(solves)}.",
        "",
        f"Processor time, one thread, of a machine shared with other programs (load average {load_average}).",
        "",
        "### Growth",
        "",
        "The power of each size that a step grows with: measured time, floor, and floor with all tables "
        f"kept, along {', '.join(map(str, GROWTH))} through {BASE} (one context: {(1, *BASE[1:])}); OAM's "
        f"exploring steps along {', '.join(map(str, OAM_GROWTH))} through {OAM_BASE}.",
        "",
        *growth_rows(found),
        "",
        "### Beside plain NumPy",
        "",
        "Whole steps of the compiled loop, the loop itself included, beside the reference of the tests on "
        f"the same problem; {NAIVE_STEPS} steps from the first on. `rank-one NumPy` is LinUCB written for "
        "speed in NumPy.",
        "",
        *plain_rows(speedups),
        "",
        "### What the floors count",
        "",
        "X contexts, A arms, P = X A pairs, dimension d, s pairs whose weight counts, n pairs at work in the "
        "allocation problem, k dimensions outside the span of the optimal arms. Where there are several "
        "ways, the cheapest one counts. Terms of a solve are taken as often as the run had Newton steps.",
        "",
        *term_rows(),
        "",
        *kernel_rows(),
    ]
    return "\n".join(lines) + "\n"


def as_json(results: list[Measured], speedups: list[Speedup]) -> str:
    """What the guard compares with, one line per entry so that changes read well."""
    content = {
        "floor": {
            result.cell.key: {
                "ratio": round(result.ratio, 3),
                "us": float(f"{result.time * 1e6:.4g}"),
                "floor_us": float(f"{result.floor * 1e6:.4g}"),
            }
            for result in results
        },
        "numpy": {
            speedup.key: {"ratio": round(speedup.ratio, 2), "us": float(f"{speedup.compiled * 1e6:.4g}")}
            for speedup in speedups
        },
    }
    parts = []
    for part, rows in content.items():
        inner = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in rows.items())
        parts.append(f"  {json.dumps(part)}: {{\n{inner}\n  }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    labels = sorted({label for label, _ in FLOORS})
    parser.add_argument("--rounds", type=int, default=15, help="of each measurement")
    parser.add_argument("--seconds", type=float, default=0.02, help="of each policy in each round")
    parser.add_argument("--only", nargs="+", choices=labels, help="these policies only")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="so many of the sizes, smallest first")
    parser.add_argument("--no-growth", action="store_true", help="leave the exponents out")
    parser.add_argument("--write", action="store_true", help="make this run the committed one")
    parser.add_argument("--strict", action="store_true", help="end with status 1 after a warning")
    arguments = parser.parse_args()
    chosen = set(arguments.only or labels)
    if arguments.write and (arguments.only or arguments.sizes < len(SIZES) or arguments.no_growth):
        parser.error("--write needs the whole run")
    committed = load(HERE / "bench.json")
    start = time.perf_counter()

    def say(line: str) -> None:
        if sys.stderr.isatty():
            print(f"[{time.perf_counter() - start:.0f} s] {line}", file=sys.stderr, flush=True)

    def doubtful(results: list[Measured]) -> list[Cell]:
        ratios = {result.cell.key: result.ratio for result in results}
        worse = regressions(committed["floor"], ratios, higher_is_better=False)
        return [result.cell for result in results if result.cell.key in worse]

    load_average = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print("\n".join(table(*FLOOR_TITLES)), flush=True)
    results: list[Measured] = []
    for size in SIZES[: arguments.sizes]:
        say(f"floors: {size}")
        for result in measure_size(cells_of(size, chosen), arguments.rounds, arguments.seconds, doubtful):
            results.append(result)
            print(floor_row(result), flush=True)
    growth = []
    if not arguments.no_growth:
        growth = measure_growth(chosen, max(3, arguments.rounds // 2), arguments.seconds, say)
        print("\n" + "\n".join(growth_rows(growth)), flush=True)
    speedups = []
    if not arguments.only:
        say("plain NumPy")
        speedups = measure_plain(max(3, arguments.rounds // 2))
        print("\n" + "\n".join(plain_rows(speedups)), flush=True)
    print()
    for line in goals(results, speedups):
        print(line)
    warnings = verdict(committed, results, speedups)
    for line in warnings:
        print(line)
    if not warnings and committed["floor"]:
        print(f"no ratio is more than {LIMIT:.0%} worse than committed")
    load_average += " to " + " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{time.perf_counter() - start:.0f} s, load average {load_average}")
    if arguments.write:
        (HERE / "bench.json").write_text(as_json(results, speedups), encoding="utf-8")
        (HERE / "bench.md").write_text(page(results, growth, speedups, load_average), encoding="utf-8")
    return int(bool(warnings) and arguments.strict)


if __name__ == "__main__":
    sys.exit(main())
