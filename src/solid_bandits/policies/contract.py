"""What a policy is: parameters that are chosen, a state that is carried, `act` and `update`.

A policy's file defines

- a frozen dataclass, its parameters: what a user chooses (`DecisionPolicy` or `TablePolicy`);
- a named tuple, its compiled form, an *agent*: `params`, `setting`, `state`, `work` and, for a table policy, `table`;
  numbers and arrays only. The state is all that is carried from one step to the next; `work` is scratch;
- `act` and `update`, compiled, which change the arrays of `agent.state` in place and nothing else, and `probabilities`,
  which may bring them up to date but leaves every decision as it would have been;
- a call of `register`, which ties them together.

A *decision policy* is asked about the arms that are offered now, and told the features of the one it pulled:
`act(agent, arms, available) -> (arm, explored)`, `update(agent, features, reward)`,
`probabilities(agent, arms, available, out) -> known`. It carries nothing per context.

A *table policy* plans over all contexts of a finite problem, so it is asked about one of them: `act(agent, context)`,
`update(agent, context, arm, reward)`, `probabilities(agent, context, out)`.

The generic `act`, `update` and `probabilities` of this module take what either kind needs and choose by the type of the
agent, in Python and in compiled code alike: the simulation's loop and one decision at a time run the same functions.
`act` takes no reward and `update` takes no decision for granted, so rewards may come late or not at all.
"""

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

from numba.extending import overload

from solid_bandits._cache import note_modules
from solid_bandits._check import short
from solid_bandits._compile import INLINED
from solid_bandits._types import Bools, Floats, Plain, Words
from solid_bandits.policies.own import check_agent, check_kernels, check_like, what_it_means
from solid_bandits.setting import Setting, Table


class CompiledAgent(Protocol):
    """The compiled form of a policy at work."""

    @property
    def setting(self) -> Setting:
        """What it may know."""

    @property
    def state(self) -> Any:
        """What it carries: a named tuple of arrays, or of such tuples."""


class Kernels(NamedTuple):
    """The compiled functions of one type of agent.

    A policy of your own names them in its class: `kernels = sb.Kernels(act, update)`.

    Example:
        >>> import solid_bandits as sb
        >>> @sb.jit
        ... def act(agent, arms, available):
        ...     return available.argmax(), False
        >>> @sb.jit
        ... def update(agent, features, reward):
        ...     pass
        >>> sb.Kernels(act, update, certain=True).certain
        True
    """

    act: Callable[..., tuple[int, bool]]
    update: Callable[..., None]
    probabilities: Callable[..., bool] | None = None
    """None where they are not known, or where the arm is certain."""
    certain: bool = False
    """Whether the arm has probability 1: nothing is drawn."""
    takes_context: bool = False
    """Whether this is a table policy."""


_KERNELS: dict[type, Kernels] = {}
_OWN: dict[type, dict[tuple[Any, ...], type]] = {}
"""Agents' types of users' policies -> what their kernels mean -> the type that has them."""


def register(
    agent_type: type,
    act: Callable[..., tuple[int, bool]],
    update: Callable[..., None],
    probabilities: Callable[..., bool] | None,
) -> None:
    """Make these the kernels of agents of this type; `probabilities` is None where the arm is certain."""
    _register(agent_type, Kernels(act, update, probabilities, certain=probabilities is None))


def _register(agent_type: type, kernels: Kernels) -> None:
    """An agent with a `table` is asked about contexts, any other about arms."""
    act, update, probabilities, _, _ = kernels
    takes_context = "table" in agent_type._fields  # type: ignore[attr-defined]
    _KERNELS[agent_type] = kernels._replace(takes_context=takes_context)
    note_modules(agent_type, *(kernel for kernel in (act, update, probabilities) if kernel is not None))


def kernels(agent_type: type) -> Kernels:
    """What was registered for agents of this type."""
    return _KERNELS[agent_type]


def act(agent: Any, context: int, arms: Floats, available: Bools) -> tuple[int, bool]:
    """Choose one of the arms on offer: (arm, whether this was an exploring round)."""
    kernel = _KERNELS[type(agent)]
    return kernel.act(agent, context) if kernel.takes_context else kernel.act(agent, arms, available)


def update(agent: Any, context: int, arm: int, features: Floats, reward: float) -> None:
    """Take in the reward of `arm`, whose features were `features`."""
    kernel = _KERNELS[type(agent)]
    if kernel.takes_context:
        kernel.update(agent, context, arm, reward)
    else:
        kernel.update(agent, features, reward)


def probabilities(agent: Any, context: int, arms: Floats, available: Bools, out: Floats) -> bool:
    """Write the distribution that `act` would draw its arm from now; whether it is known.

    Not for policies whose arm is certain: ask `act`.
    """
    kernel = _KERNELS[type(agent)]
    if kernel.probabilities is None:
        return False
    if kernel.takes_context:
        return kernel.probabilities(agent, context, out)
    return kernel.probabilities(agent, arms, available, out)


# Numba compares the signatures of a typing function and of what it returns, annotations included.
@overload(act, jit_options=INLINED, target="generic")
def _compiled_act(agent: Any, context: Any, arms: Any, available: Any) -> Any:
    kernel = _KERNELS[agent.instance_class].act
    takes_context = _KERNELS[agent.instance_class].takes_context

    def in_context(agent: Any, context: Any, arms: Any, available: Any) -> Any:
        return kernel(agent, context)

    def among_arms(agent: Any, context: Any, arms: Any, available: Any) -> Any:
        return kernel(agent, arms, available)

    return in_context if takes_context else among_arms


@overload(update, jit_options=INLINED, target="generic")
def _compiled_update(agent: Any, context: Any, arm: Any, features: Any, reward: Any) -> Any:
    kernel = _KERNELS[agent.instance_class].update
    takes_context = _KERNELS[agent.instance_class].takes_context

    def of_pair(agent: Any, context: Any, arm: Any, features: Any, reward: Any) -> Any:
        kernel(agent, context, arm, reward)

    def of_features(agent: Any, context: Any, arm: Any, features: Any, reward: Any) -> Any:
        kernel(agent, features, reward)

    return of_pair if takes_context else of_features


@overload(probabilities, jit_options=INLINED, target="generic")
def _compiled_probabilities(agent: Any, context: Any, arms: Any, available: Any, out: Any) -> Any:
    kernel: Any = _KERNELS[agent.instance_class].probabilities
    takes_context = _KERNELS[agent.instance_class].takes_context

    def certain(agent: Any, context: Any, arms: Any, available: Any, out: Any) -> Any:
        return False

    def in_context(agent: Any, context: Any, arms: Any, available: Any, out: Any) -> Any:
        return kernel(agent, context, out)

    def among_arms(agent: Any, context: Any, arms: Any, available: Any, out: Any) -> Any:
        return kernel(agent, arms, available, out)

    if kernel is None:
        return certain
    return in_context if takes_context else among_arms


@dataclass(frozen=True)
class Policy(ABC):  # noqa: B024  # start is abstract in either kind
    """Parameters of an algorithm; configuration only, nothing learnt is kept here."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    def diagnostics(self, agent: Any) -> Plain | None:
        """What the policy shows of itself at a checkpoint, as plain data; None if it has nothing to show."""
        return None

    def check_state(self, agent: Any) -> None:  # noqa: B027  # most have nothing to add
        """Raise a ValueError if a state read from a file cannot be; shapes and ranges have been checked."""

    def with_probabilities(self) -> "Policy":
        """The same policy, its arms drawn so that their probabilities are known; most need nothing for it."""
        return self

    def describe(self) -> Plain:
        """The policy as plain data: its kind and all its parameters."""
        return {"kind": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class DecisionPolicy(Policy):
    """A policy that chooses among the arms on offer, and keeps nothing per context.

    Example:
        >>> import solid_bandits as sb
        >>> isinstance(sb.RandUCB(), sb.DecisionPolicy), isinstance(sb.Solid(), sb.DecisionPolicy)
        (True, False)
    """

    @abstractmethod
    def start(self, setting: Setting, stream: Words) -> CompiledAgent:
        """A new agent that draws from `stream`."""


@dataclass(frozen=True)
class TablePolicy(Policy):
    """A policy that plans over all contexts of a finite problem.

    Example:
        >>> import solid_bandits as sb
        >>> isinstance(sb.Solid(), sb.TablePolicy), isinstance(sb.RandUCB(), sb.TablePolicy)
        (True, False)
    """

    @abstractmethod
    def start(self, setting: Setting, table: Table, stream: Words) -> CompiledAgent:
        """A new agent for the contexts of `table` that draws from `stream`."""


def start(policy: Policy, setting: Setting, table: Table | None, stream: Words) -> CompiledAgent:
    """A new agent of a policy of either kind; a table policy refuses to start without a table."""
    given: tuple[Any, ...]
    if isinstance(policy, DecisionPolicy):
        given = setting, stream
    elif not isinstance(policy, TablePolicy):
        raise ValueError(f"policy must be a policy such as LinUCB() or Solid(), got {short(policy)}")
    elif table is None:
        raise ValueError(
            f"contexts must be given: {type(policy).__name__} plans over a table of contexts known in advance; "
            "for features that come with each decision use RandUCB, LinTS, VIDS, StreamingSolid, LinUCB, EpsilonGreedy "
            "or Greedy"
        )
    else:
        if getattr(policy, "kernels", None) is None:  # one of your own may do without
            require_noise(type(policy).__name__, setting)
        given = setting, table, stream
    return _known(policy, given)


def _known(policy: Policy, given: tuple[Any, ...]) -> CompiledAgent:
    """An agent whose kernels are registered: those of a policy from elsewhere come with it, into any process."""
    own = getattr(policy, "kernels", None)
    name = policy.name
    starts = [kind for kind in type(policy).__mro__ if "start" in vars(kind)]
    agent: CompiledAgent = starts[0].start(policy, *given)  # type: ignore[attr-defined]
    if own is None and type(agent) in _KERNELS:
        ours = [kind for kind in starts if kind.__module__.split(".")[0] == __name__.split(".")[0]]
        if ours and ours[0] is starts[0]:
            return agent
        if ours and ours[0] not in (DecisionPolicy, TablePolicy):
            # Our kernels on an agent that somebody else's start returned: they rely on the sizes that ours makes.
            check_like(name, agent, ours[0].start(policy, *given))  # type: ignore[attr-defined]
            return agent
    if not isinstance(own, Kernels):
        raise ValueError(f"{name}.kernels must be sb.Kernels(act, update), got {short(own)}")
    if "__init__" in vars(type(policy)) and "__dataclass_fields__" not in vars(type(policy)):
        # Otherwise its parameters would be in no description, and two policies that differ would be equal.
        raise ValueError(f"{name} must be a dataclass: put @dataclass(frozen=True) before the class")
    twins = _OWN.setdefault(type(agent), {})
    meaning = tuple(what_it_means(kernel) for kernel in own)
    if meaning not in twins:
        check_agent(name, agent, isinstance(policy, TablePolicy))
        check_kernels(name, own, isinstance(policy, TablePolicy))
        # Compiled code is found by the type: kernels that came later to it, as a cell of a notebook that is run again
        # brings them, have one of their own.
        taken = type(agent) in _KERNELS
        fields = agent._fields  # type: ignore[attr-defined]
        twins[meaning] = namedtuple(type(agent).__name__, fields) if taken else type(agent)
        _register(twins[meaning], own)
    twin: Any = twins[meaning]
    same: CompiledAgent = agent if twin is type(agent) else twin._make(agent)
    return same


def require_noise(policy: str, setting: Setting) -> None:
    """Refuse an unknown σ on behalf of a policy that needs one."""
    if setting.noise_std == 0.0:
        raise ValueError(
            f"noise_std must be a number > 0 for {policy}, got None; give an upper bound, or use RandUCB, LinTS, "
            "VIDS, LinUCB, EpsilonGreedy or Greedy, which do without"
        )


def require_bound(policy: str, setting: Setting) -> None:
    """Refuse an unknown bound on ‖θ*‖ on behalf of a policy that needs one."""
    if setting.theta_bound == 0.0:
        raise ValueError(
            f"theta_bound must be a number > 0 for {policy}, got None; give a bound on the norm of theta"
        )


def require_one_context(policy: str, table: Table) -> None:
    """Refuse several contexts on behalf of a policy whose rule has no place for them."""
    n_contexts = table.features.shape[0]
    if n_contexts > 1:
        raise ValueError(
            f"{policy} takes one context, got {n_contexts}; Solid, OAM, AOIDS and all policies that decide "
            "from features take several"
        )
