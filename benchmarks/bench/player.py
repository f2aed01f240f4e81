"""A cell at play, in the simulation's own compiled loop."""

import time
from typing import Any

import numpy as np

from bench.cases import Cell, policy_of, problem_of, settling_steps
from bench.floors import Facts
from bench.rates.meter import placed
from solid_bandits.core.loop import Trace, _begin, _loop

HORIZON = 50_000
LOST = 1e-26
"""Weights below this share of their sum are lost to rounding: V_ω has a ridge of 1e-9 of its trace / d."""


class Player:
    """A cell at play: an agent in the desired regime, with its state saved to start every round from."""

    def __init__(self, cell: Cell, seconds: float) -> None:
        self.cell = cell
        self.rng = np.random.default_rng(0)
        contexts, arms, _ = cell.size
        # For policies whose test has no switch, the noise they are told decides; the environment's own noise stays
        # moderate.
        tested = cell.label in ("AOIDS", "OAM", "OSSB", "SPL")
        problem = problem_of(cell.size, 30.0 if tested and cell.kind == "exploring" else 1.0)
        policy = policy_of(cell.label, cell.kind, arms)
        agent, self.truth, _, self.environment = _begin(problem, policy, HORIZON, 0, 0, np.array([1]))
        if tested and cell.kind == "exploiting":
            agent = with_noise(agent, 1e-7 * problem.noise_std)
        self.agent = agent
        self.play(1)  # compiles, or loads compiled code
        if cell.label == "SOLID" and cell.kind != "exploiting":
            # Contexts that were never seen cost no work, so all of them are visited first, by quick exploiting steps.
            self.agent = agent._replace(params=agent.params._replace(threshold_scale=0.0))
            self.play(int(contexts * (np.log(contexts) + 4)))
            self.agent = agent
        self.play(settling_steps(cell))
        self.settled = self.agent
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
        """Restore the saved state."""
        for array, value in zip(self._arrays(), self.saved, strict=True):
            array[...] = value

    def play(self, steps: int) -> int:
        """Continue playing; return how many steps explored."""
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
        """Return seconds per step, and the share of steps of the desired kind; arrays are moved in memory each time."""
        self.agent = _moved(self.settled, self.rng, {})
        _, each, explored = self._timed(self.steps)
        shares = {"exploiting": 1.0 - explored, "any": 1.0}
        return each, shares.get(self.cell.kind, explored)

    def facts(self) -> Facts:
        """Return the quantities besides the size that a step's work depends on, in the saved state."""
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
        elif self.cell.kind == "exploring" and self.cell.label in ("AOIDS", "SPL"):
            weights = self.agent.work.weights
        return Facts(support=max(int((weights > LOST * weights.sum()).sum()), 1), searches=searches)

    def _searches(self) -> float:
        """Return the share of steps with λ > 0 before or after."""
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
        features = self.agent.table.features
        newton = []
        active = rank = 0
        for _ in range(min(self.steps, 64)):
            self.play(1)
            means = self.agent.state.regression.tables.means
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


def with_noise(agent: Any, noise_std: float) -> Any:
    """Return the agent with another σ."""
    return agent._replace(setting=agent.setting._replace(noise_std=noise_std))


def _moved(value: Any, rng: np.random.Generator, moved: dict[int, Any]) -> Any:
    """Return the same agent with its arrays moved in memory, so that their location does not decide a comparison.

    An array deliberately aligned to a cache line, as part of a larger one, stays aligned.
    """
    if isinstance(value, tuple):
        return type(value)(*(_moved(part, rng, moved) for part in value))
    if not isinstance(value, np.ndarray):
        return value
    if id(value) not in moved:
        aligned = value.base is not None and value.ctypes.data % 64 == 0
        moved[id(value)] = placed(value, 0 if aligned else 16 * int(rng.integers(4)))
    return moved[id(value)]  # an array with two names stays a single array


def _leaves(state: Any) -> list[Any]:
    found = []
    for value in state:
        if isinstance(value, tuple):
            found += _leaves(value)
        elif isinstance(value, np.ndarray):
            found.append(value)
    return found
