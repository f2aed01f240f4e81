"""A policy at work, one decision at a time: for rewards that come from the world and not from a simulation."""

import copy
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import typeof, types
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]
from numpy.typing import ArrayLike

from solid_bandits import _check, agent_kernels
from solid_bandits._compile import compiled_for, no_collection
from solid_bandits._files import first_line
from solid_bandits._types import Bools, Floats
from solid_bandits._waiting import said_if_long
from solid_bandits.agent_file import AgentFile, PathLike, read_agent, write_agent
from solid_bandits.decision import Decision
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.estimation.noise import noise_deviation
from solid_bandits.offer import as_arms, as_mask, as_offers, is_ready, listed
from solid_bandits.policies import contract
from solid_bandits.policies.contract import DecisionPolicy, Policy, kernels
from solid_bandits.policies.default import default_policy
from solid_bandits.policies.fading import Fading
from solid_bandits.policies.own import OwnPolicyError, compiling
from solid_bandits.policies.plain import PlainAgent, Player, as_policy
from solid_bandits.policies.randucb import RandUCB
from solid_bandits.policies.state import (
    arrays_of,
    check_counts,
    check_evidence,
    check_tables,
    fill_state,
    state_to_plain,
)
from solid_bandits.setting import LARGEST_REWARD, check_features, make_setting, make_table
from solid_bandits.stream import FLOOR, POLICY, make_stream


class Agent:
    """A policy that decides and learns.

    It runs the same compiled functions as a simulation. Rewards may arrive at once, late, in any order, or never. An
    agent can be shared between threads: calls take turns. It can be copied and pickled; copies are independent.

    Args:
        policy: parameters, such as `LinTS()`; or an object with `act` and `update` (docs/own-policy.md). None is
            `RandUCB()`, which needs no further information.
        dim: d, the number of features, if each decision brings its features.
        contexts: the features of all contexts, shape (contexts, arms, dim), if they are known in advance: for
            policies such as `Solid()` that plan over all of them. Give `dim` or `contexts`.
        noise_std: σ, the standard deviation of the rewards' noise. If None, policies that can do so estimate it from
            the rewards.
        theta_bound: B, an upper bound on ‖θ*‖; some policies need it.
        horizon: n, the number of decisions, if it is known.
        seed: of the policy's own random numbers.
        probabilities: whether every decision must have its probabilities, even if that takes time: LinTS with more
            than two arms then draws its arm from the votes of 64 models.
        floor: ε, the share of decisions whose arm is drawn uniformly from those available, so that each of K has a
            probability of at least ε / K; `probabilities` account for it, and are always known with it.
        half_life: decisions after which evidence has lost half its weight, for rewards that drift (`Fading`); None
            disables forgetting.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(dim=2)
        >>> decision = agent.decide([[1, 0], [0, 1], [1, 1]], available=[True, True, False])
        >>> agent.learn(decision, reward=1.0)
        >>> means, stds = agent.predict([[1, 0], [0, 1]])
    """

    def __init__(
        self,
        policy: Policy | Player | None = None,
        *,
        dim: int | None = None,
        contexts: ArrayLike | None = None,
        noise_std: float | None = None,
        theta_bound: float | None = None,
        horizon: int | None = None,
        seed: int = 0,
        probabilities: bool = False,
        floor: float = 0.0,
        half_life: float | None = None,
    ) -> None:
        known = default_policy() if policy is None else as_policy("policy", policy)
        known = known if half_life is None else Fading(known, half_life)
        _check.switch("probabilities", probabilities)
        self._floor = _check.number("floor", floor, least=0, most=1)
        if floor > 0 and not isinstance(known, DecisionPolicy):
            raise ValueError(
                f"floor needs a policy that decides from features, such as LinTS, got {known.name}"
            )
        if (dim is None) == (contexts is None):
            got = "neither" if dim is None else "both"
            raise ValueError(f"dim or contexts must be given, and not both, got {got}")
        table = None if contexts is None else make_table(contexts, "contexts")
        size = table.features.shape[2] if table is not None else dim
        assert size is not None  # one of the two was given
        stream = make_stream(_check.integer("seed", seed, least=0), run=0, role=POLICY)
        self._floor_stream = make_stream(seed, run=0, role=FLOOR)
        self.policy = known.with_probabilities() if probabilities or floor > 0 else known
        self._setting = make_setting(size, noise_std, theta_bound, horizon)
        self._table = table
        self._compiled: Any = contract.start(self.policy, self._setting, table, stream)
        kernel = kernels(type(self._compiled))
        self._certain = kernel.certain
        self._takes_context = kernel.takes_context
        inner = getattr(self.policy, "policy", self.policy)  # of one whose evidence fades
        self._mixing = (self._certain, isinstance(inner, RandUCB), self._floor, self._floor_stream)
        self._lock = threading.Lock()
        self._hand_over()

    def _hand_over(self) -> None:
        if DISABLE_JIT or isinstance(self._compiled, PlainAgent):  # nothing to hand over, nothing to compile
            self._held: Any = SimpleNamespace(agent=self._compiled)
            self._decide: Any = getattr(agent_kernels.decide, "py_func", agent_kernels.decide)
            self._learn: Any = getattr(agent_kernels.learn, "py_func", agent_kernels.learn)
            return
        with (
            said_if_long(f"compiling {self.policy.name}"),
            compiling(self.policy, self._compiled, lambda: kernels(type(self._compiled))),
            no_collection(),
        ):
            self._compile()

    def _compile(self) -> None:
        self._held = compiled_for(agent_kernels.hold, self._compiled)(self._compiled)
        # Compiled for these types once, so that no call has to find out what it was given.
        held = typeof(self._held)  # type: ignore[no-untyped-call]
        floats, index = types.float64[::1], types.int64
        offer = (held, index, types.float64[:, ::1], types.boolean[::1], floats)
        mixing = (types.boolean, types.boolean, types.float64, types.uint64[::1])
        self._decide = agent_kernels.decide.compile((*offer, *mixing))  # type: ignore[attr-defined]
        outcome = (held, index, index, floats, types.float64)
        self._learn = agent_kernels.learn.compile(outcome)  # type: ignore[attr-defined]

    def decide(
        self,
        features: ArrayLike | None = None,
        available: ArrayLike | None = None,
        context: int | None = None,
    ) -> Decision:
        """Choose one of the arms on offer.

        Args:
            features: of the arms on offer, shape (arms, dim); or
            context: a context of the table that the agent was given.
            available: which of the arms may be pulled, shape (arms,); None is all. Not for policies that plan over a
                table.
        """
        if self._takes_context and (features is not None or available is not None):
            raise ValueError(
                f"{self.policy.name} plans over the contexts of its table with all their arms; give "
                "decide(context=...) alone, or use a policy such as RandUCB"
            )
        if self._takes_context and context is None:
            raise ValueError(f"context must be given to decide: {self.policy.name} has a table of contexts")
        place = 0
        if context is not None:
            if self._table is None:
                raise ValueError(
                    "features must be given to decide instead of context, got context="
                    f"{_check.short(context)}: this agent has no contexts"
                )
            if features is not None:
                raise ValueError("context or features must be given to decide, and not both, got both")
            place = _check.index("context", context, self._table.features.shape[0])
            arms = self._table.features[place]
        else:
            arms = as_arms(features, self._setting.dim)
        mask = as_mask(available, arms.shape[0])
        with self._lock:
            arm, explored, known, probabilities = self._drawn(place, arms, mask)
            number = self._compiled.state.step.item() if isinstance(self.policy, Fading) else None
        # These may fail for a policy of a user's own alone.
        whole = type(arm) is int or isinstance(arm, np.integer)  # the second where nothing is compiled
        if not whole or not (0 <= arm < arms.shape[0] and mask[arm]):
            raise OwnPolicyError(
                f"{self.policy.name}'s kernel act must return an available arm from 0 to {len(mask) - 1}, "
                f"got {arm}"
            )
        if self._floor > 0 and not known:
            raise OwnPolicyError(
                f"{self.policy.name} must have a kernel `probabilities` to be mixed with a floor"
            )
        if known is None or (known and not probabilities[arm] > 0.0):
            raise OwnPolicyError(
                f"{self.policy.name}'s probabilities must return whether they are known, and give the arm that act "
                f"returns more than 0, got {known} and {probabilities[arm]} for arm {arm}"
            )
        probabilities.flags.writeable = False
        chosen = arms[arm].copy()
        chosen.flags.writeable = False
        return Decision(
            arm=int(arm),
            probability=probabilities[arm].item() if known else None,
            probabilities=probabilities if known else None,
            explored=bool(explored),
            features=chosen,
            context=None if context is None else place,
            number=number,
        )

    def _drawn(self, place: int, arms: Floats, mask: Bools) -> tuple[int, bool, bool, Floats]:
        """Let the policy act; arm, whether it explored, whether probabilities are known, and these."""
        out = np.zeros(arms.shape[0])
        return *self._decide(self._held, place, arms, mask, out, *self._mixing), out

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Within, whoever holds the lock may let the policy act; afterwards it is what it was."""
        if isinstance(self._compiled, PlainAgent):
            player = self._compiled.player
            self._compiled.player = copy.deepcopy(player)
            try:
                yield
            finally:
                self._compiled.player = player
            return
        arrays = [*arrays_of(self._compiled.state), self._floor_stream]
        before = [array.copy() for array in arrays]
        try:
            yield
        finally:
            for array, values in zip(arrays, before, strict=True):
                array[...] = values

    def probabilities(self, features: ArrayLike, available: ArrayLike | None = None) -> Floats | None:
        """The distribution from which `decide` would draw its arm now; changes nothing. None if it is not known."""
        if self._takes_context:
            raise ValueError(f"{self.policy.name} plans over a table; its decisions have their probabilities")
        arms = as_arms(features, self._setting.dim)
        mask = as_mask(available, arms.shape[0])
        with self._lock, self._unchanged():
            _, _, known, found = self._drawn(0, arms, mask)
        return found if known else None

    def probabilities_many(
        self, features: ArrayLike, counts: ArrayLike, available: ArrayLike
    ) -> Floats | None:
        """The same for many offers at once, each as if it were the next: features (offers, arms, dim), of which the
        first `counts` arms of an offer are on offer, and available (offers, arms).
        """
        if self._takes_context:
            raise ValueError(f"{self.policy.name} plans over a table; its decisions have their probabilities")
        offers, counted, masks = as_offers(features, counts, available, self._setting.dim)
        found = np.zeros(masks.shape)
        with self._lock:
            if self._certain or isinstance(self._compiled, PlainAgent) or DISABLE_JIT:
                for row, count in enumerate(counted):
                    with self._unchanged():
                        _, _, known, out = self._drawn(0, offers[row, :count], masks[row, :count])
                    if not known:
                        return None
                    found[row, :count] = out
                return found
            with self._unchanged():
                known = agent_kernels.survey(self._held, offers, counted, masks, found, self._floor)
        return found if known else None

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn from the reward of one of this agent's decisions."""
        outcome = self._outcome(decision, reward)
        with self._lock:
            self._take(decision, outcome)

    def learn_many(self, decisions: Iterable[Decision], rewards: Iterable[float]) -> None:
        """Learn from many rewards, in this order; all are checked before the first is used."""
        if isinstance(decisions, Decision):
            raise ValueError("decisions must be a list of decisions, got one; use learn")
        decisions = listed("decisions", decisions)
        rewards = listed("rewards", rewards)
        if len(decisions) != len(rewards):
            raise ValueError(
                f"rewards must have {len(decisions)} entries, one per decision, got {len(rewards)}"
            )
        outcomes = []
        for place, pair in enumerate(zip(decisions, rewards, strict=True)):
            try:
                outcomes.append(self._outcome(*pair))
            except ValueError as error:
                raise ValueError(f"decision {place} of {len(decisions)}: {error}") from None
        with self._lock:
            for decision, outcome in zip(decisions, outcomes, strict=True):
                self._take(decision, outcome)

    def _take(self, decision: Decision, outcome: tuple[int, int, Floats, float]) -> None:
        if isinstance(self.policy, Fading) and decision.number is not None:
            self._compiled.state.age[()] = self._compiled.state.step.item() - decision.number
        self._learn(self._held, *outcome)

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        """Mean reward of each row of `features`, shape (arms, dim), and its standard deviation σ ‖φ‖_{V^-1}.

        If σ is unknown, its estimate takes its place. If the first arms set the ridge, as in RandUCB, the deviation
        is infinite before they are seen.
        """
        estimator = self._estimator()
        rows = np.array(as_arms(features, self._setting.dim))
        with self._lock:
            theta, norms = np.zeros(rows.shape[1]), np.zeros(rows.shape[0])
            agent_kernels.measure(estimator, rows.copy(), theta, norms)
            if not estimator.weights.any():
                norms = np.where(rows.any(axis=1), np.inf, 0.0)
            deviation = noise_deviation(self._setting.noise_std, estimator)
        return rows @ theta, deviation * np.sqrt(norms)

    @property
    def dim(self) -> int:
        """D."""
        return self._setting.dim

    @property
    def floor(self) -> float:
        """ε, the share of decisions whose arm is drawn uniformly."""
        return self._floor

    @property
    def theta(self) -> Floats:
        """θ-hat, the estimate, shape (dim,)."""
        with self._lock:
            theta = np.zeros(self._setting.dim)
            agent_kernels.measure(self._estimator(), np.zeros((0, self._setting.dim)), theta, np.zeros(0))
            return theta

    def save(self, path: PathLike) -> None:
        """Write one JSON file of plain numbers: policy, setting, table, state and version."""
        if isinstance(self._compiled, PlainAgent):
            raise ValueError(
                "policy must keep its state in arrays to be saved, got the plain Python of "
                f"{type(self._compiled.player).__name__}; pickle the agent instead"
            )
        write_agent(path, self._content())

    @classmethod
    def load(cls, path: PathLike, policy: Policy | None = None) -> "Agent":
        """Read what `save` wrote; the agent carries on where it was. Loading never imports or runs code from the file.

        Args:
            path: of the file.
            policy: if it is one of your own, the policy that was saved, with the same parameters.
        """
        content = read_agent(path, policy)
        try:
            return cls._restored(content)
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            raise ValueError(f"agent file {os.fspath(path)!r} cannot be used: {first_line(error)}") from None

    def _content(self) -> AgentFile:
        with self._lock:
            if isinstance(self._compiled, PlainAgent):
                state = copy.deepcopy(self._compiled.player)
            else:
                state = state_to_plain(self._compiled.state)
        table = None if self._table is None else self._table.features
        floor = None if self._floor == 0 else (self._floor, self._floor_stream.tolist())
        return AgentFile(self.policy, self._setting, table, state, floor)

    @classmethod
    def _restored(cls, content: AgentFile) -> "Agent":
        policy, setting, contexts, state, floor = content
        agent = cls(
            policy,
            dim=None if contexts is not None else setting.dim,
            contexts=contexts,
            noise_std=setting.noise_std or None,
            theta_bound=setting.theta_bound or None,
            horizon=setting.horizon or None,
            floor=0.0 if floor is None else floor[0],
        )
        if floor is not None:
            agent._floor_stream[:] = floor[1]
        if isinstance(agent._compiled, PlainAgent):
            agent._compiled.player = state
            return agent
        fill_state(agent._compiled.state, state)
        check_counts(agent._compiled.state)
        check_tables(agent._compiled)
        check_evidence(agent._compiled)
        policy.check_state(agent._compiled)
        return agent

    def __reduce__(self) -> tuple[Any, ...]:
        return self._restored, (self._content(),)

    def __repr__(self) -> str:
        return f"Agent({self.policy!r}, dim={self._setting.dim})"

    def _outcome(self, decision: Decision, reward: float) -> tuple[int, int, Floats, float]:
        """Context, arm, features and reward as compiled code takes them."""
        if not isinstance(decision, Decision):
            raise ValueError(f"decision must be what decide returned, got {_check.short(decision)}")
        if isinstance(reward, bool | np.bool_):  # a click
            reward = float(reward)
        value = _check.number("reward", reward, least=-LARGEST_REWARD, most=LARGEST_REWARD)
        if not self._takes_context:
            features = decision.features
            if type(features) is not np.ndarray or features.ndim != 1 or not is_ready(features):
                features = check_features("decision.features", features, "dim")
            if features.shape[0] != self._setting.dim:
                raise ValueError(
                    f"decision must be of an agent with dim {self._setting.dim}, got features of {features.shape[0]}"
                )
            self._check_number(decision.number)
            return 0, 0, features, value  # which arm it was, and where, is nothing to these policies
        assert self._table is not None  # its policy takes contexts
        if decision.context is None:
            raise ValueError("decision must be of an agent with contexts, got one without a context")
        context = _check.index("decision.context", decision.context, self._table.features.shape[0])
        arm = _check.index("decision.arm", decision.arm, self._table.features.shape[1])
        return context, arm, self._table.features[context, arm], value

    def _check_number(self, number: int | None) -> None:
        if isinstance(self.policy, Fading) and number is not None:
            made = self._compiled.state.step.item()
            _check.integer("decision.number", number, least=1, most=max(made, 1))

    def _estimator(self) -> Estimator:
        estimator: Estimator | None = getattr(self._compiled.state, "estimator", None)
        if estimator is None:
            raise ValueError(f"{self.policy.name} keeps no linear estimate, so it has none to show")
        return estimator
