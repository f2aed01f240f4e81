"""Contract of a policy: parameters that are chosen, a state that is carried, `act` and `update`.

A policy's file defines

- a frozen dataclass, its parameters, which a user chooses (`DecisionPolicy` or `TablePolicy`);
- a named tuple, its compiled form, an *agent*: `setting`, `state` and whatever its rule needs of `params`, `work` and,
  for a table policy, `table`; numbers and arrays only. The state is everything carried from one step to the next;
- `act`, compiled, which changes the arrays of `agent.state` in place and nothing else, and `update` where the default
  is not enough: a state with a `regression` learns from rewards by itself;
- a call of `register`, which ties them together.

A *decision policy* is asked about the arms on offer: `act(agent, arms, available, out) -> (arm, explored)`, and then
told the features of the one it pulled: `update(agent, features, reward)`. It carries nothing per context.

A *table policy* plans over all contexts of a finite problem, so it is asked about one of them:
`act(agent, context, out)`, `update(agent, context, arm, reward)`.

`out` is None where nobody asks for probabilities, and numba then compiles none of the code for them. Otherwise it has
one NaN for each arm, and `act` writes the distribution that it draws its arm from, in the same pass; a kernel that does
not know it leaves `out` unchanged. Where the arm is certain, `register` says so, and `act` need not write anything.

The generic `act` and `update` of this module take the arguments of either kind and choose by the type of the agent, in
Python and in compiled code: the simulation's loop and one decision at a time run the same functions. `act` does not
assume that a reward has come, nor `update` that its decision was the last, so rewards may come late or not at all.
"""

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from numba.extending import overload

from solid_bandits._internal.checks import short
from solid_bandits._internal.compiling import INLINED, jit
from solid_bandits._internal.kernel_cache import note_modules
from solid_bandits._internal.parameters import check_parameters
from solid_bandits._internal.types import Bools, Floats, Plain, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.regression import observe_reward
from solid_bandits.policies.facts import DEAREST, Facts
from solid_bandits.policies.own import check_agent, check_kernels, check_like, check_regression, fingerprint


class CompiledAgent(Protocol):
    """The compiled form of a policy, for one run."""

    @property
    def setting(self) -> Setting:
        """What the policy may know: dimension, noise, bounds, horizon."""

    @property
    def state(self) -> Any:
        """The state that it carries: a named tuple of arrays, or of such tuples."""


class Kernels(NamedTuple):
    """The compiled functions of one type of agent.

    A policy of your own names them in its class: `kernels = sb.extend.Kernels(act, update)`.

    Example:
        >>> import solid_bandits as sb
        >>> @sb.extend.jit
        ... def act(agent, arms, available, out):
        ...     return available.argmax(), False
        >>> @sb.extend.jit
        ... def update(agent, features, reward):
        ...     pass
        >>> sb.extend.Kernels(act, update, certain=True).certain
        True
    """

    act: Callable[..., tuple[int, bool]]
    update: Callable[..., None] | None = None
    """Update kernel; None lets the `regression` in the agent's state learn from the reward."""
    certain: bool = False
    """Whether the arm has probability 1, because nothing is drawn."""
    takes_context: bool = False
    """Whether this is a table policy."""


_KERNELS: dict[type, Kernels] = {}
_OWN: dict[type, dict[tuple[Any, ...], type]] = {}
"""Agent types of users' policies -> meaning of their kernels -> the type registered for it."""


def register(
    agent_type: type,
    act: Callable[..., tuple[int, bool]],
    update: Callable[..., None] | None = None,
    certain: bool = False,
) -> None:
    """Register the kernels of this type of agent."""
    _register(agent_type, Kernels(act, update, certain))


def _register(agent_type: type, kernels: Kernels) -> None:
    """Register kernels: an agent with a `table` is asked about contexts, any other about arms."""
    takes_context = "table" in agent_type._fields  # type: ignore[attr-defined]
    _KERNELS[agent_type] = kernels._replace(takes_context=takes_context)
    note_modules(agent_type, *(kernel for kernel in kernels[:2] if kernel is not None))


def kernels(agent_type: type) -> Kernels:
    """Return the kernels registered for agents of this type."""
    return _KERNELS[agent_type]


@jit
def write_certain(out: Floats | None, arm: int) -> None:
    """Give an arm probability 1, if probabilities are asked for."""
    if out is not None:
        for other in range(out.shape[0]):
            out[other] = 1.0 if other == arm else 0.0


def act(agent: Any, context: int, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Choose one of the arms on offer; return (arm, whether the round explored), and fill `out` if asked for."""
    kernel = _KERNELS[type(agent)]
    asked = (context,) if kernel.takes_context else (arms, available)
    arm, explored = kernel.act(agent, *asked, out)
    if kernel.certain and out is not None:
        write_certain(out, arm)
    return arm, explored


def update(agent: Any, context: int, arm: int, features: Floats, reward: float, age: int) -> None:
    """Learn from the reward of `arm`, whose features were `features`, for the decision of `age` decisions ago."""
    kernel = _KERNELS[type(agent)]
    if kernel.update is None:
        observe_reward(agent.state.regression, features, reward, age)
    elif kernel.takes_context:
        kernel.update(agent, context, arm, reward)
    else:
        kernel.update(agent, features, reward)


# Numba compares the signatures of a typing function and of the function it returns, annotations included.
@overload(act, jit_options=INLINED, target="generic")
def _compiled_act(agent: Any, context: Any, arms: Any, available: Any, out: Any) -> Any:
    kernel, _, certain, takes_context = _KERNELS[agent.instance_class]

    def in_context(agent: Any, context: Any, arms: Any, available: Any, out: Any) -> Any:
        arm, explored = kernel(agent, context, out)
        if certain:
            write_certain(out, arm)
        return arm, explored

    def among_arms(agent: Any, context: Any, arms: Any, available: Any, out: Any) -> Any:
        arm, explored = kernel(agent, arms, available, out)
        if certain:
            write_certain(out, arm)
        return arm, explored

    return in_context if takes_context else among_arms


@overload(update, jit_options=INLINED, target="generic")
def _compiled_update(agent: Any, context: Any, arm: Any, features: Any, reward: Any, age: Any) -> Any:
    kernel: Any = _KERNELS[agent.instance_class].update
    takes_context = _KERNELS[agent.instance_class].takes_context

    def by_regression(agent: Any, context: Any, arm: Any, features: Any, reward: Any, age: Any) -> Any:
        observe_reward(agent.state.regression, features, reward, age)

    def of_pair(agent: Any, context: Any, arm: Any, features: Any, reward: Any, age: Any) -> Any:
        kernel(agent, context, arm, reward)

    def of_features(agent: Any, context: Any, arm: Any, features: Any, reward: Any, age: Any) -> Any:
        kernel(agent, features, reward)

    if kernel is None:
        return by_regression
    return of_pair if takes_context else of_features


@dataclass(frozen=True)
class Policy(ABC):  # noqa: B024  # start is abstract in either kind
    """Parameters of an algorithm; configuration only, nothing learnt is stored here."""

    facts: ClassVar[Facts | None] = None
    """Facts about the policy; a class of this package that declares them is in the catalogue."""

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def name(self) -> str:
        """The policy's name in messages."""
        return type(self).__name__

    def diagnostics(self, agent: Any) -> Plain | None:
        """Return the policy's internal quantities at a checkpoint, as plain data; None if it has none."""
        return None

    def check_state(self, agent: Any) -> None:  # noqa: B027  # most have nothing to add
        """Raise a ValueError if a state read from a file is impossible; shapes and ranges have been checked."""

    def with_probabilities(self) -> "Policy":
        """Return the same policy with arms drawn so that their probabilities are known; most need no change."""
        return self

    def with_half_life(self, half_life: float) -> "Policy":
        """Return the same policy on evidence that loses half its weight in `half_life` decisions."""
        raise ValueError(
            f"half_life needs a policy that decides from features by a regression, such as LinTS, got {self.name}"
        )

    @classmethod
    def usual(cls, kind: str, n_arms: int) -> "Policy":
        """Return the parameters for a kind of problem (`toy`, `random`, ...) with `n_arms` arms; most have one set for
        all.
        """
        return cls()

    def microseconds(self, pairs: int, dim: int) -> float:
        """Estimate the CPU microseconds of a step with this many pairs of context and arm."""
        once, per_pair, per_entry = self.facts.cost if self.facts is not None else DEAREST
        return once + per_pair * pairs + per_entry * pairs * dim

    def describe(self) -> Plain:
        """Return the policy as plain data: its kind and all its parameters."""
        return {"kind": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class DecisionPolicy(Policy):
    """A policy that chooses among the arms on offer, and keeps nothing per context.

    Example:
        >>> import solid_bandits as sb
        >>> isinstance(sb.RandUCB(), sb.extend.DecisionPolicy), isinstance(sb.Solid(), sb.extend.DecisionPolicy)
        (True, False)
    """

    @abstractmethod
    def start(self, setting: Setting, rng: Words) -> CompiledAgent:
        """Return a new agent that draws from `rng`."""


@dataclass(frozen=True)
class TablePolicy(Policy):
    """A policy that plans over all contexts of a finite problem.

    Example:
        >>> import solid_bandits as sb
        >>> isinstance(sb.Solid(), sb.extend.TablePolicy), isinstance(sb.RandUCB(), sb.extend.TablePolicy)
        (True, False)
    """

    @abstractmethod
    def start(self, setting: Setting, table: Table, rng: Words) -> CompiledAgent:
        """Return a new agent for the contexts of `table` that draws from `rng`."""


def start(policy: Policy, setting: Setting, table: Table | None, rng: Words) -> CompiledAgent:
    """Return a new agent of a policy of either kind; a table policy needs a table."""
    given: tuple[Any, ...]
    if isinstance(policy, DecisionPolicy):
        given = setting, rng
    elif not isinstance(policy, TablePolicy):
        raise ValueError(f"policy must be a policy such as LinUCB() or Solid(), got {short(policy)}")
    elif table is None:
        raise ValueError(
            f"contexts must be given: {type(policy).__name__} plans over a table of contexts known in advance; "
            "for features that come with each decision use a policy such as RandUCB"
        )
    else:
        if getattr(policy, "kernels", None) is None:  # a user's policy may have none
            require_noise(type(policy).__name__, setting)
        if policy.facts is not None and policy.facts.one_context:
            _require_one_context(type(policy).__name__, table)
        given = setting, table, rng
    return _known(policy, given)


def _known(policy: Policy, given: tuple[Any, ...]) -> CompiledAgent:
    """Return an agent whose kernels are registered: those of a user's policy come with it, in every process."""
    own = getattr(policy, "kernels", None)
    name = policy.name
    starts = [kind for kind in type(policy).__mro__ if "start" in vars(kind)]
    agent: CompiledAgent = starts[0].start(policy, *given)  # type: ignore[attr-defined]
    if own is None and type(agent) in _KERNELS:
        ours = [kind for kind in starts if kind.__module__.split(".")[0] == __name__.split(".")[0]]
        if ours and ours[0] is starts[0]:
            return agent
        if ours and ours[0] not in (DecisionPolicy, TablePolicy):
            # Our kernels on an agent that a user's `start` returned rely on the sizes that ours makes.
            check_like(name, agent, ours[0].start(policy, *given))  # type: ignore[attr-defined]
            return agent
    if not isinstance(own, Kernels):
        raise ValueError(f"{name}.kernels must be sb.extend.Kernels(act, update), got {short(own)}")
    if "__init__" in vars(type(policy)) and "__dataclass_fields__" not in vars(type(policy)):
        # Otherwise no description would contain its parameters, and two different policies would be equal.
        raise ValueError(f"{name} must be a dataclass: put @dataclass(frozen=True) before the class")
    twins = _OWN.setdefault(type(agent), {})
    meaning = tuple(fingerprint(kernel) for kernel in own)
    if meaning not in twins:
        check_agent(name, agent, isinstance(policy, TablePolicy))
        check_kernels(name, own, agent, isinstance(policy, TablePolicy))
        # Compiled code is found by the type, so kernels that are registered for it later, as when a notebook's cell is
        # run again, get a type of their own.
        taken = type(agent) in _KERNELS
        fields = agent._fields  # type: ignore[attr-defined]
        twins[meaning] = namedtuple(type(agent).__name__, fields) if taken else type(agent)
        _register(twins[meaning], own)
    check_regression(name, agent, given[0].dim, own, getattr(policy, "half_life", None))
    twin: Any = twins[meaning]
    same: CompiledAgent = agent if twin is type(agent) else twin._make(agent)
    return same


def require_noise(policy: str, setting: Setting) -> None:
    """Raise an error if σ is unknown, on behalf of a policy that needs it."""
    if setting.noise_std == 0.0:
        raise ValueError(
            f"noise_std must be a number > 0 for {policy}, got None; give an upper bound, or use a policy that does "
            "without, such as RandUCB"
        )


def require_bound(policy: str, setting: Setting) -> None:
    """Raise an error if the bound on ‖θ*‖ is unknown, on behalf of a policy that needs it."""
    if setting.theta_bound == 0.0:
        raise ValueError(
            f"theta_bound must be a number > 0 for {policy}, got None; give a bound on the norm of theta"
        )


def _require_one_context(policy: str, table: Table) -> None:
    """Raise an error for several contexts, on behalf of a policy whose rule has no place for them."""
    n_contexts = table.features.shape[0]
    if n_contexts > 1:
        from solid_bandits.policies.catalogue import SEVERAL_CONTEXTS

        raise ValueError(
            f"{policy} takes one context, got {n_contexts}; {', '.join(SEVERAL_CONTEXTS)} and all policies that decide "
            "from features take several"
        )
