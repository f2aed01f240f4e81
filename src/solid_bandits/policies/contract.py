"""What a policy is: parameters that are chosen, a state that is carried, `act` and `update`.

A policy's file defines

- a frozen dataclass, its parameters: what a user chooses (`Policy`);
- a named tuple, its compiled form, an *agent*: `params`, `known` (the view), `state`, `work`; numbers and arrays
  only. The state is all that is carried from one step to the next; `work` is scratch;
- `act(agent, context) -> (arm, explored)` and `update(agent, context, arm, reward)`, compiled, which change the
  arrays of `agent.state` in place and nothing else;
- a call of `register`, which ties the three together.

The generic `act` and `update` of this module choose by the type of the agent, in Python and in compiled code alike:
the simulation's loop and one decision at a time run the same functions. Because the choice is made from a type that
has a name, and not from a function passed in, numba finds the loop in its cache in the next process.

`act` takes no reward and `update` takes no decision for granted, so rewards may come late or not at all.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numba.extending import overload

from solid_bandits._compile import note_sources
from solid_bandits._types import Plain, Words
from solid_bandits.problem import View


class CompiledAgent(Protocol):
    """The compiled form of a policy at work."""

    @property
    def known(self) -> View:
        """What it may see."""

    @property
    def state(self) -> Any:
        """What it carries: a named tuple of arrays, or of such tuples."""


Act = Callable[[Any, int], tuple[int, bool]]
Update = Callable[[Any, int, int, float], None]

_KERNELS: dict[type, tuple[Act, Update]] = {}


def register(agent_type: type, act: Act, update: Update) -> None:
    """Make `act` and `update` the kernels of agents of this type."""
    _KERNELS[agent_type] = (act, update)
    note_sources(agent_type, act, update)


def act(agent: Any, context: int) -> tuple[int, bool]:
    """Choose an arm in `context`: (arm, whether this was an exploring round)."""
    return _KERNELS[type(agent)][0](agent, context)


def update(agent: Any, context: int, arm: int, reward: float) -> None:
    """Take in the reward of `arm` in `context`."""
    _KERNELS[type(agent)][1](agent, context, arm, reward)


# Numba compares the signatures of a typing function and of what it returns, annotations included.
@overload(act)
def _compiled_act(agent: Any, context: Any) -> Any:
    kernel = _KERNELS[agent.instance_class][0]

    def choose(agent: Any, context: Any) -> Any:
        return kernel(agent, context)

    return choose


@overload(update)
def _compiled_update(agent: Any, context: Any, arm: Any, reward: Any) -> Any:
    kernel = _KERNELS[agent.instance_class][1]

    def learn(agent: Any, context: Any, arm: Any, reward: Any) -> Any:
        kernel(agent, context, arm, reward)

    return learn


@dataclass(frozen=True)
class Policy(ABC):
    """Parameters of an algorithm; configuration only, nothing learnt is kept here."""

    @abstractmethod
    def start(self, view: View, stream: Words) -> CompiledAgent:
        """A new agent that sees `view` and draws from `stream`."""

    def diagnostics(self, agent: Any) -> Plain | None:
        """What the policy shows of itself at a checkpoint, as plain data; None if it has nothing to show."""
        return None

    def describe(self) -> Plain:
        """The policy as plain data: its kind and all its parameters."""
        return {"kind": type(self).__name__, **asdict(self)}


def state_to_plain(state: Any) -> Plain:
    """A state as nested dicts and lists of numbers, which JSON keeps exactly."""
    return {
        name: state_to_plain(value) if isinstance(value, tuple) else value.tolist()
        for name, value in state._asdict().items()
        if value is not None  # a part that this form of the policy does not have
    }


def fill_state(state: Any, plain: Plain, path: str = "state") -> None:
    """Write what `state_to_plain` gave into the arrays of a state of the same shape.

    Everything is checked before anything is written.
    """
    for array, values in _matched(state, plain, path):
        array[...] = values


def _matched(state: Any, plain: Any, path: str) -> list[tuple[Any, Any]]:
    fields = {name: value for name, value in state._asdict().items() if value is not None}
    if not isinstance(plain, dict) or set(plain) != set(fields):
        got = sorted(plain) if isinstance(plain, dict) else plain
        raise ValueError(f"{path} has fields {got}; expected {sorted(fields)}")
    pairs: list[tuple[Any, Any]] = []
    for name, value in fields.items():
        where = f"{path}.{name}"
        if isinstance(value, tuple):
            pairs += _matched(value, plain[name], where)
            continue
        try:
            values = np.array(plain[name], dtype=value.dtype)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{where} is not an array of {value.dtype}") from None
        if values.shape != value.shape:
            raise ValueError(f"{where} has shape {values.shape}; this agent needs {value.shape}")
        if not np.isfinite(values).all():
            raise ValueError(f"{where} holds a value that is not finite")
        pairs.append((value, values))
    return pairs
