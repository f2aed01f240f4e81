"""A policy at work, one decision at a time: for rewards that come from the world and not from a simulation."""

import copy
import os
import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]
from numba.experimental import structref
from numpy.typing import ArrayLike

from solid_bandits import _check
from solid_bandits._compile import compiled_for, jit_allocating, jit_apart
from solid_bandits._files import first_line
from solid_bandits._types import Bools, Floats
from solid_bandits._waiting import said_if_long
from solid_bandits.agent_file import AgentFile, PathLike, read_agent, write_agent
from solid_bandits.estimation.estimator import Estimator, squared_norm, write_theta
from solid_bandits.policies import contract
from solid_bandits.policies.contract import CompiledAgent, Policy, kernels
from solid_bandits.policies.own import OwnPolicyError, compiling
from solid_bandits.policies.plain import PlainAgent, Player, as_policy
from solid_bandits.policies.state import check_counts, check_tables, fill_state, state_to_plain
from solid_bandits.setting import LARGEST_FEATURE, LARGEST_REWARD, check_features, make_setting, make_table
from solid_bandits.stream import POLICY, make_stream


@structref.register
class _HeldType(types.StructRef):
    """To compiled code, an agent held in one place."""

    @property
    def key(self) -> Any:
        """What tells it from others: by its words, as numba would, two classes of the same name would be one."""
        return tuple(self.field_dict.items())


class _Held(structref.StructRefProxy):
    """An agent handed to compiled code once and for all.

    To hand over a tuple of some twenty arrays takes microseconds, several times what a decision takes; to hand over the
    place where it is held takes one pointer. The arrays are the agent's own, not copies.
    """


structref.define_proxy(_Held, _HeldType, ["agent"])  # type: ignore[no-untyped-call]


@jit_allocating
def _hold(agent: CompiledAgent) -> Any:
    return _Held(agent)  # type: ignore[no-untyped-call]


@jit_allocating
def _decide(
    held: Any, context: int, arms: Floats, available: Bools, probabilities: Floats
) -> tuple[int, bool, bool]:
    known = contract.probabilities(held.agent, context, arms, available, probabilities)
    arm, explored = contract.act(held.agent, context, arms, available)
    return arm, explored, known


@jit_apart
def _measure(estimator: Estimator, rows: Floats, theta: Floats, sq_norms: Floats) -> None:
    """Write θ-hat, and ‖φ‖²_{V^-1} of each row, which is used up."""
    write_theta(estimator, theta)
    for row in range(rows.shape[0]):
        sq_norms[row] = squared_norm(estimator, rows[row])


@jit_allocating
def _learn(held: Any, context: int, arm: int, features: Floats, reward: float) -> None:
    contract.update(held.agent, context, arm, features, reward)


class Decision(NamedTuple):
    """What an agent decided, and what it needs to learn from the reward."""

    arm: int
    probability: float | None
    """Of this arm, under the policy as it was; None where `Agent(..., probabilities=True)` was needed and not given."""
    probabilities: Floats | None
    """Of all arms, shape (arms,): the distribution that the arm was drawn from; None as above."""
    explored: bool
    """Whether the policy gave up some of what it expects now to learn something."""
    features: Floats
    """Of this arm, shape (dim,)."""
    context: int | None
    """The context of the table, where the agent has one."""

    def __eq__(self, other: object) -> bool:
        """Whether this is the same decision: two of the same arm are two, also in a list of open ones."""
        return self is other

    def __ne__(self, other: object) -> bool:
        """Whether this is another decision."""
        return self is not other

    def __hash__(self) -> int:
        """By identity, as equality is."""
        return id(self)


class Agent:
    """A policy that decides and learns.

    The compiled functions are those of the simulation's loop. Rewards may come at once, late, in any order, or never.
    An agent may be shared by threads: each call takes its turn. It can be copied and pickled; a copy goes its own way.

    Args:
        policy: parameters, such as `RandUCB()`; or an object with `act` and `update` (docs/own-policy.md).
        dim: d, where each decision brings its features.
        contexts: the features of all contexts, shape (contexts, arms, dim), where they are known in advance: for
            policies such as `Solid()` that plan over all of them. Give `dim` or `contexts`.
        noise_std: σ, the standard deviation of the rewards' noise.
        theta_bound: B, an upper bound on ‖θ*‖; some policies need it.
        horizon: n, the number of decisions, where it is known.
        seed: of the policy's own random numbers.
        probabilities: whether every decision is to have its probabilities also where that takes time: LinTS with more
            than two arms then draws its arm from the votes of 64 models.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.RandUCB(), dim=2, noise_std=0.5)
        >>> decision = agent.decide([[1, 0], [0, 1], [1, 1]], available=[True, True, False])
        >>> agent.learn(decision, reward=1.0)
        >>> means, stds = agent.predict([[1, 0], [0, 1]])
    """

    def __init__(
        self,
        policy: Policy | Player,
        *,
        dim: int | None = None,
        contexts: ArrayLike | None = None,
        noise_std: float,
        theta_bound: float | None = None,
        horizon: int | None = None,
        seed: int = 0,
        probabilities: bool = False,
    ) -> None:
        known = as_policy("policy", policy)
        _check.switch("probabilities", probabilities)
        if (dim is None) == (contexts is None):
            got = "neither" if dim is None else "both"
            raise ValueError(f"dim or contexts must be given, and not both, got {got}")
        table = None if contexts is None else make_table(contexts, "contexts")
        size = table.features.shape[2] if table is not None else dim
        assert size is not None  # one of the two was given
        stream = make_stream(_check.integer("seed", seed, least=0), run=0, role=POLICY)
        self.policy = known.with_probabilities() if probabilities else known
        self._setting = make_setting(size, noise_std, theta_bound, horizon)
        self._table = table
        self._compiled: Any = contract.start(self.policy, self._setting, table, stream)
        kernel = kernels(type(self._compiled))
        self._certain = kernel.certain
        self._takes_context = kernel.takes_context
        self._lock = threading.Lock()
        self._hand_over()

    def _hand_over(self) -> None:
        if DISABLE_JIT or isinstance(self._compiled, PlainAgent):  # nothing to hand over, nothing to compile
            self._held: Any = SimpleNamespace(agent=self._compiled)
            self._decide: Any = getattr(_decide, "py_func", _decide)
            self._learn: Any = getattr(_learn, "py_func", _learn)
            return
        with (
            said_if_long(f"compiling {self.policy.name}"),
            compiling(self.policy, self._compiled, lambda: kernels(type(self._compiled))),
        ):
            self._compile()

    def _compile(self) -> None:
        self._held = compiled_for(_hold, self._compiled)(self._compiled)
        # Compiled for these types once, so that no call has to find out what it was given.
        held = typeof(self._held)  # type: ignore[no-untyped-call]
        floats, index = types.float64[::1], types.int64
        offer = (held, index, types.float64[:, ::1], types.boolean[::1], floats)
        self._decide = _decide.compile(offer)  # type: ignore[attr-defined]
        self._learn = _learn.compile((held, index, index, floats, types.float64))  # type: ignore[attr-defined]

    def decide(
        self,
        features: ArrayLike | None = None,
        available: ArrayLike | None = None,
        context: int | None = None,
    ) -> Decision:
        """Choose one of the arms on offer.

        Args:
            features: of the arms on offer, shape (arms, dim); or
            context: a context of the table that the agent was made with.
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
                    f"features must be given to decide instead of context, got context={context!r}: this agent has "
                    "no contexts"
                )
            if features is not None:
                raise ValueError("context or features must be given to decide, and not both, got both")
            place = _check.index("context", context, self._table.features.shape[0])
            arms = self._table.features[place]
        else:
            arms = self._arms(features)
        mask = (
            np.ones(arms.shape[0], dtype=np.bool_) if available is None else _mask(available, arms.shape[0])
        )
        probabilities = np.zeros(arms.shape[0])
        with self._lock:
            arm, explored, known = self._decide(self._held, place, arms, mask, probabilities)
        # These may fail for a policy of a user's own alone.
        whole = type(arm) is int or isinstance(arm, np.integer)  # the second where nothing is compiled
        if not whole or not (0 <= arm < arms.shape[0] and mask[arm]):
            raise OwnPolicyError(
                f"{self.policy.name}'s kernel act must return an available arm from 0 to {len(mask) - 1}, "
                f"got {arm}"
            )
        if self._certain:
            probabilities[arm] = 1.0
            known = True
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
        )

    def learn(self, decision: Decision, reward: float) -> None:
        """Take in the reward of a decision of this agent."""
        outcome = self._outcome(decision, reward)
        with self._lock:
            self._learn(self._held, *outcome)

    def learn_many(self, decisions: Iterable[Decision], rewards: Iterable[float]) -> None:
        """Take in many rewards, in this order; all are checked before the first is taken in."""
        if isinstance(decisions, Decision):
            raise ValueError("decisions must be a list of decisions, got one; use learn")
        decisions = _listed("decisions", decisions)
        rewards = _listed("rewards", rewards)
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
            for outcome in outcomes:
                self._learn(self._held, *outcome)

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        """Mean reward of each row of `features`, shape (arms, dim), and its standard deviation σ ‖φ‖_{V^-1}.

        Where the first arms are to set the ridge, as RandUCB's do, it is infinite before they come.
        """
        estimator = self._estimator()
        rows = np.array(self._arms(features))
        with self._lock:
            theta, norms = np.zeros(rows.shape[1]), np.zeros(rows.shape[0])
            _measure(estimator, rows.copy(), theta, norms)
            if not estimator.weights.any():
                norms = np.where(rows.any(axis=1), np.inf, 0.0)
        return rows @ theta, self._setting.noise_std * np.sqrt(norms)

    @property
    def theta(self) -> Floats:
        """θ-hat, the estimate, shape (dim,)."""
        with self._lock:
            theta = np.zeros(self._setting.dim)
            _measure(self._estimator(), np.zeros((0, self._setting.dim)), theta, np.zeros(0))
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
        """Read what `save` wrote; the same decisions follow. Nothing is imported or run on behalf of the file.

        Args:
            path: of the file.
            policy: where it is one of your own, the policy that was saved, with the same parameters.
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
        return AgentFile(self.policy, self._setting, table, state)

    @classmethod
    def _restored(cls, content: AgentFile) -> "Agent":
        policy, setting, contexts, state = content
        agent = cls(
            policy,
            dim=None if contexts is not None else setting.dim,
            contexts=contexts,
            noise_std=setting.noise_std,
            theta_bound=setting.theta_bound or None,
            horizon=setting.horizon or None,
        )
        if isinstance(agent._compiled, PlainAgent):
            agent._compiled.player = state
            return agent
        fill_state(agent._compiled.state, state)
        check_counts(agent._compiled.state)
        check_tables(agent._compiled)
        policy.check_state(agent._compiled)
        return agent

    def __reduce__(self) -> tuple[Any, ...]:
        return self._restored, (self._content(),)

    def __repr__(self) -> str:
        return f"Agent({self.policy!r}, dim={self._setting.dim})"

    def _arms(self, features: ArrayLike | None) -> Floats:
        """Features on offer as compiled code takes them."""
        dim = self._setting.dim
        if type(features) is np.ndarray and features.shape[1:] == (dim,) and _is_ready(features):
            return features
        if features is None:
            raise ValueError(f"features must be given to decide, shape (arms, {dim}), got None")
        arms = check_features("features", features, "arms", "dim")
        if arms.shape[1] != dim:
            raise ValueError(f"features must have shape (arms, {dim}), got {arms.shape}")
        return arms

    def _outcome(self, decision: Decision, reward: float) -> tuple[int, int, Floats, float]:
        """Context, arm, features and reward as compiled code takes them."""
        if not isinstance(decision, Decision):
            raise ValueError(f"decision must be what decide returned, got {decision!r}")
        if isinstance(reward, bool | np.bool_):  # a click
            reward = float(reward)
        value = _check.number("reward", reward, least=-LARGEST_REWARD, most=LARGEST_REWARD)
        if not self._takes_context:
            features = decision.features
            if type(features) is not np.ndarray or features.ndim != 1 or not _is_ready(features):
                features = check_features("decision.features", features, "dim")
            if features.shape[0] != self._setting.dim:
                raise ValueError(
                    f"decision must be of an agent with dim {self._setting.dim}, got features of {features.shape[0]}"
                )
            return 0, 0, features, value  # which arm it was, and where, is nothing to these policies
        assert self._table is not None  # its policy takes contexts
        if decision.context is None:
            raise ValueError("decision must be of an agent with contexts, got one without a context")
        context = _check.index("decision.context", decision.context, self._table.features.shape[0])
        arm = _check.index("decision.arm", decision.arm, self._table.features.shape[1])
        return context, arm, self._table.features[context, arm], value

    def _estimator(self) -> Estimator:
        estimator: Estimator | None = getattr(self._compiled.state, "estimator", None)
        if estimator is None:
            raise ValueError(f"{self.policy.name} keeps no linear estimate, so it has none to show")
        return estimator


def _listed(name: str, values: Iterable[Any]) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{name} must be a list, got {values!r}") from None


def _is_ready(features: Floats) -> bool:
    """Whether these are sound numbers that compiled code takes as they are: asked at every decision, so it is quick."""
    if features.dtype != np.float64 or not features.flags.c_contiguous or features.size == 0:
        return False
    flat = features.reshape(-1)
    return bool(flat.dot(flat) <= LARGEST_FEATURE**2)  # not so if any of them is not a number


def _mask(available: ArrayLike, n_arms: int) -> Bools:
    if isinstance(available, np.ma.MaskedArray):
        raise ValueError(f"available must be {n_arms} truth values, one per arm, got masked values")
    try:
        mask = np.array(available)
    except ValueError:  # rows of different lengths
        mask = np.array(None)
    if mask.dtype != np.bool_ or mask.shape != (n_arms,):
        raise ValueError(
            f"available must be {n_arms} truth values, one per arm, not indices, got {mask.dtype} of shape "
            f"{mask.shape}"
        )
    if not mask.any():
        raise ValueError("available must have at least one arm, got none")
    result: Bools = mask
    return result
