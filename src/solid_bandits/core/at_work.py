"""A compiled policy at work: each call crosses into compiled code once, one thread at a time."""

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numba import typeof, types
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import compiled_for
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits._internal.waiting import said_if_long
from solid_bandits.core import agent_kernels
from solid_bandits.core.agent_kernels import NO_ARM, NOT_FILLED
from solid_bandits.core.decision import Decision, made
from solid_bandits.core.held import Parts, address_of, hold
from solid_bandits.core.offer import as_arms
from solid_bandits.core.randomness import FLOOR, POLICY, make_rng
from solid_bandits.core.setting import Setting, Table, check_blocks
from solid_bandits.estimation.regression import predicts_linearly
from solid_bandits.policies import contract
from solid_bandits.policies.contract import Policy, kernels
from solid_bandits.policies.own import OwnPolicyError, compiling
from solid_bandits.policies.plain import PlainAgent
from solid_bandits.policies.regression_policy import RegressionPolicy
from solid_bandits.policies.state import arrays_of

MANY = 256
"""Number of arms that an offer may have before the mask's memory is enlarged."""


def python_of(kernel: Any) -> Any:
    """Return the Python function that a kernel was compiled from."""
    return getattr(kernel, "py_func", kernel)


def _calm(agent: Any) -> Any:
    regression = agent.state.regression
    if "kept" not in getattr(getattr(regression, "params", None), "_fields", ()):
        return agent  # a user's regression, which fades in its own way
    params = regression.params._replace(kept=1.0)
    return agent._replace(state=agent.state._replace(regression=regression._replace(params=params)))


class AtWork:
    """Parts of a working agent.

    Args:
        policy: its parameters.
        setting: the setting of the policy.
        table: table of a finite problem, if there is one.
        seed: seed of the policy's own random numbers.
        floor: ε, the share of decisions whose arm is drawn uniformly.
    """

    def __init__(
        self, policy: Policy, setting: Setting, table: Table | None, seed: int, floor: float
    ) -> None:
        rng = make_rng(checks.integer("seed", seed, least=0), run=0, role=POLICY)
        self._floor = floor
        self._floor_rng = make_rng(seed, run=0, role=FLOOR)
        self.policy = policy
        self._setting = setting
        self._dim = setting.dim
        self._table = table
        self._compiled: Any = contract.start(policy, setting, table, rng)
        self._takes_context = kernels(type(self._compiled)).takes_context
        self._is_own = type(policy).__module__.split(".")[0] != __name__.split(".")[0]
        self.fades = isinstance(policy, RegressionPolicy) and policy.half_life is not None
        """Whether evidence fades, in which case decisions are numbered."""
        self._is_plain = DISABLE_JIT or isinstance(self._compiled, PlainAgent)
        self._many: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._hand_over()

    def _hand_over(self) -> None:
        self._calm = _calm(self._compiled) if self.fades else self._compiled
        """The same agent with the same arrays, but without fading evidence, for the further decisions of a batch."""
        self._kind: Any = None
        if self._is_plain:  # nothing to hand over or to compile
            self._address: Any = None
            self._decide: Any = self._decide_plainly
            self._learn: Any = self._learn_plainly
            return
        with (
            said_if_long(f"compiling {self.policy.name}"),
            compiling(self.policy, self._compiled, lambda: kernels(type(self._compiled))),
        ):
            self._hold(MANY)
            # Compiled once for these types, so that no call has to determine the types of its arguments.
            held = types.TypeRef(typeof(self._held))  # type: ignore[no-untyped-call]
            floats, index = types.float64[::1], types.int64
            offer = (held, index, index, types.float64[:, ::1], types.boolean[::1], floats)
            self._decide = agent_kernels.decide.compile(offer)  # type: ignore[attr-defined]
            outcome = (held, index, index, index, floats, index, types.float64, index)
            self._learn = agent_kernels.learn.compile(outcome)  # type: ignore[attr-defined]

    def change(self, how: Callable[..., tuple[Setting, Any]], **arguments: Any) -> None:
        """Grow, or change coordinates, by a function of `policies.growth`."""
        with self._lock:
            self._setting, self._compiled = how(self.policy, self._setting, self._compiled, **arguments)
            self._dim = self._setting.dim
            self._hand_over()

    def _parts(self, agent: Any, arms: int) -> Parts:
        mask = np.ones(arms, dtype=np.bool_)
        return Parts(agent, self._dim, self._setting.blocks, self._floor, self._floor_rng, self._is_own, mask)

    def _hold(self, arms: int) -> None:
        """Hand the agent over to compiled code, with room for offers of `arms` arms; replaces what was handed over
        before.
        """
        parts = self._parts(self._compiled, arms)
        self._held: Any = compiled_for(hold, parts)(parts)
        address = compiled_for(address_of, self._held)
        self._address = self._calm_address = address(self._held)
        if self.fades:
            calm = self._parts(self._calm, arms)
            self._calm_held = compiled_for(hold, calm)(calm)
            self._calm_address = address(self._calm_held)
        self._most = arms

    def _decide_plainly(
        self, kind: None, address: None, context: int, arms: Floats, available: Bools, kept: Floats
    ) -> tuple[int, int]:
        """Decide a checked offer as `agent_kernels.decide` does, if nothing is compiled."""
        out, floor = kept[: len(arms)], self._floor
        act, verdict = python_of(agent_kernels.act), python_of(agent_kernels.verdict)
        arm, explored = act(self._compiled, context, arms, available, out, floor, self._floor_rng)
        said = verdict(arm, explored, out, available, floor, self._is_own)
        if said >= 0:
            kept[len(arms) :] = arms[arm]
        return arm, said

    def _learn_plainly(
        self,
        kind: None,
        address: None,
        context: int,
        arm: int,
        kept: Floats,
        count: int,
        reward: float,
        age: int,
    ) -> bool:
        """Learn a checked outcome as `agent_kernels.learn` does."""
        contract.update(self._compiled, context, arm, kept[count:], reward, age)
        return True

    def _drawn_many(
        self, rows: Floats, starts: Ints, available: Bools
    ) -> tuple[Floats, Floats, Ints, Ints, int | None]:
        """Let the policy decide checked offers under one regression; the caller must hold the lock.

        Returns:
            Returns probabilities, features and indices of the arms, the decisions' bits, and the number of the first
            decision.
        """
        self._check_width(rows.shape[1])
        offers, counts = len(starts) - 1, np.diff(starts)
        shares, chosen = np.empty(len(rows)), np.empty((offers, self._dim))
        places, said = np.zeros(offers, dtype=np.int64), np.zeros(offers, dtype=np.int64)
        regression = getattr(getattr(self._compiled, "state", None), "regression", None)
        step = getattr(regression, "step", None)
        if not (isinstance(step, np.ndarray) and step.shape == () and step.dtype == np.int64):
            step = np.zeros((), dtype=np.int64)  # unused
        before = int(step)
        if self._is_plain:
            done = self._draw_plainly(step, rows, starts, available, shares, chosen, places, said)
        else:
            if counts.max() > self._most:
                self._hold(2 * int(counts.max()))
            done = self._compiled_many("decide_many")(
                self._kind, self._address, self._calm_address, step, rows, starts, available, shares, chosen, places,
                said,
            )  # fmt: skip
        if done < offers:
            wrong = shares[starts[done] : starts[done + 1]]
            raise self._wrong(int(places[done]), int(said[done]), wrong)
        if self.fades and offers > 1:
            first = rows[: starts[1]]
            agent_kernels.let_pass(regression, first, np.ones(len(first), dtype=np.bool_), offers - 1)
        step[()] = before + offers
        return shares, chosen, places, said, before + 1 if self.fades else None

    def _draw_plainly(
        self, step: Any, rows: Floats, starts: Ints, available: Bools, shares: Floats, chosen: Floats, places: Ints,
        said: Ints,
    ) -> int:  # fmt: skip
        """Decide checked offers as `agent_kernels.decide_many` does, if nothing is compiled."""
        agent = self._compiled
        for offer, (first, end) in enumerate(pairwise(starts.tolist())):
            if offer:
                self._compiled, step[()] = self._calm, step - 1
            mask = available[first:end] if len(available) else np.ones(end - first, dtype=np.bool_)
            kept = np.empty(end - first + self._dim)
            try:
                places[offer], said[offer] = self._decide_plainly(None, None, 0, rows[first:end], mask, kept)
            finally:
                self._compiled = agent
            shares[first:end], chosen[offer] = kept[: end - first], kept[end - first :]
            if said[offer] < 0:
                return offer
        return len(places)

    def _compiled_many(self, name: str) -> Any:
        """Return the function for many decisions, or many rewards, compiled for this agent at first use."""
        if name not in self._many:
            held = types.TypeRef(typeof(self._held))  # type: ignore[no-untyped-call]
            index, floats, table = types.int64, types.float64[::1], types.float64[:, ::1]
            places = types.int64[::1]
            signature: tuple[Any, ...]
            if name == "learn_many":
                signature = (held, index, table, floats, index, index)
            else:
                step = types.Array(index, 0, "C")
                signature = (
                    held,
                    index,
                    index,
                    step,
                    table,
                    places,
                    types.boolean[::1],
                    floats,
                    table,
                    places,
                    places,
                )
            with said_if_long(f"compiling {self.policy.name} for batches"):
                self._many[name] = getattr(agent_kernels, name).compile(signature)
        return self._many[name]

    def _learn_all(self, features: Floats, rewards: Floats, number: int | None) -> None:
        """Learn many checked rewards of decisions counted from a number; the caller must hold the lock."""
        self._check_width(features.shape[1])
        age = self._made() - number if self.fades and number is not None else 0
        younger = int(self.fades and number is not None)
        if self._is_plain:
            for row, reward in enumerate(rewards.tolist()):
                contract.update(self._compiled, 0, 0, features[row], reward, age - row * younger)
        else:
            self._compiled_many("learn_many")(self._kind, self._address, features, rewards, age, younger)

    def _drawn(self, place: int, arms: Floats, mask: Bools) -> Decision:
        """Let the policy act; the caller must hold the lock."""
        self._check_width(arms.shape[1])
        count = arms.shape[0]
        if not self._is_plain and count > self._most:
            self._hold(2 * count)
        kept = np.empty(count + self._dim)
        arm, said = self._decide(self._kind, self._address, place, arms, mask, kept)
        if said < 0:
            raise self._wrong(arm, said, kept[:count])
        return made(int(arm), said, kept, count)

    def _wrong(self, arm: int, said: int, probabilities: Floats) -> OwnPolicyError:
        """Return the error for a wrong decision of a user's policy."""
        name = f"{self.policy.name}'s kernel act must"
        if said == NO_ARM:
            return OwnPolicyError(
                f"{name} return an available arm from 0 to {len(probabilities) - 1}, got {arm}"
            )
        if said == NOT_FILLED:
            return OwnPolicyError(f"{name} fill `out` to be mixed with a floor")
        return OwnPolicyError(
            f"{name} fill `out` with probabilities of the available arms that sum to 1, > 0 for the arm that it "
            f"returns, got {checks.short(probabilities.tolist())} for arm {arm}"
        )

    def _made(self) -> int:
        """Return the number of decisions made, if the policy keeps a regression."""
        return int(self._compiled.state.regression.step.item())

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Restore the policy's state after the block; inside, the holder of the lock may let the policy act."""
        if isinstance(self._compiled, PlainAgent):
            player = self._compiled.player
            self._compiled.player = copy.deepcopy(player)
            try:
                yield
            finally:
                self._compiled.player = player
            return
        arrays = [*arrays_of(self._compiled.state), self._floor_rng]
        before = [array.copy() for array in arrays]
        try:
            yield
        finally:
            for array, values in zip(arrays, before, strict=True):
                array[...] = values

    def _take(self, decision: Decision, outcome: tuple[int, int, Floats, float]) -> None:
        age = self._made() - decision.number if self.fades and decision.number is not None else 0
        context, arm, features, reward = outcome
        self._check_width(features.shape[0])
        self._learn(self._kind, self._address, context, arm, features, 0, reward, age)

    def _check_width(self, width: int) -> None:
        """Raise an error if the agent grew between the check of an argument and now; the caller must hold the lock."""
        if width != self._dim:
            raise ValueError(f"features must be of an agent with dim {self._dim}, got {width} of them")

    def _check_number(self, number: int | None) -> None:
        if self.fades and number is not None:
            checks.integer("decision.number", number, least=1, most=max(self._made(), 1))

    def _arms(self, features: ArrayLike | None) -> Floats:
        """Return the features of the arms on offer, checked."""
        arms = as_arms(features, self._dim)
        if self._setting.blocks:
            check_blocks("features", arms, self._setting.blocks)
        return arms

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        """Return the mean reward of each row of `features`, shape (arms, dim), and its standard deviation σ ‖φ‖_{V^-1}.

        If σ is unknown, its estimate is used. If the first arms set the ridge, as in RandUCB, the deviation is infinite
        before they are seen.
        """
        rows = np.array(self._arms(features))
        theta, means, norms = (
            np.zeros(self._setting.coefficients),
            np.zeros(rows.shape[0]),
            np.zeros(rows.shape[0]),
        )
        deviation = self._measure(rows.copy(), theta, means, norms)
        if predicts_linearly(self._compiled.state.regression):  # vectorised
            means = rows @ theta
        unset = np.isnan(norms)  # 0/0 before there is a ridge
        norms[unset] = np.where(rows[unset].any(axis=1), np.inf, 0.0)
        return means, deviation * np.sqrt(norms)

    @property
    def dim(self) -> int:
        """D."""
        return self._dim

    @property
    def floor(self) -> float:
        """ε, the share of decisions whose arm is drawn uniformly."""
        return self._floor

    @property
    def theta(self) -> Floats:
        """θ-hat, the estimate, shape (dim,), or (blocks, dim - 1)."""
        theta = np.zeros(self._setting.coefficients)
        self._measure(np.zeros((0, self._dim)), theta, np.zeros(0), np.zeros(0))
        return theta.reshape(-1, self._setting.width) if self._setting.blocks else theta

    def _measure(self, rows: Floats, theta: Floats, means: Floats, norms: Floats) -> float:
        """Write θ-hat, and mean reward and squared norm of each row, which is overwritten; return σ or its estimate."""
        regression = getattr(self._compiled.state, "regression", None)
        if regression is None:
            raise ValueError(f"{self.policy.name} keeps no linear estimate, so it has none to show")
        with self._lock:
            return float(agent_kernels.measure(regression, rows, theta, means, norms))
