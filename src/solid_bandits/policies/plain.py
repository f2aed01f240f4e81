"""Policies in plain Python: any object with `act` and `update` plays in the same loop as the compiled ones.

    class FirstArm:
        def act(self, arms, available):
            return int(available.argmax())

        def update(self, features, reward):
            pass

`start(setting, rng)` is called at the beginning of a run if the object has it, `probabilities(arms, available)` if an
agent is asked for them.
"""

import copy
import inspect
import json
import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.checks import short
from solid_bandits._internal.types import Bools, Floats, Plain, Words
from solid_bandits.core.setting import Setting
from solid_bandits.policies.contract import DecisionPolicy, Policy, register
from solid_bandits.policies.own import OwnPolicyError, is_distribution

METHODS = {
    "act": ("arms", "available"),
    "update": ("features", "reward"),
    "start": ("setting", "rng"),
    "probabilities": ("arms", "available"),
}
"""Method of a plain policy -> the arguments it receives."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Player(Protocol):
    """A policy in plain Python; `start` and `probabilities` are optional."""

    def act(self, arms: Floats, available: Bools) -> int:
        """Choose one of the available arms; `arms` has shape (arms, dim), `available` shape (arms,)."""

    def update(self, features: Floats, reward: float) -> None:
        """Learn from the reward of the arm that was pulled, whose features, shape (dim,), are given."""


class PlainAgent:
    """Agent of a plain object (nothing is compiled): a copy of the user's object, for one run."""

    _fields = ()  # no table, so it is asked about arms

    def __init__(self, player: Any, setting: Setting) -> None:
        self.player = player
        self.setting = setting
        self.state = None


def act(agent: PlainAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Return the object's choice, checked, and write its probabilities; whether it explored is unknown."""
    if out is not None and hasattr(agent.player, "probabilities"):
        out[:] = _probabilities(agent.player, arms, available)
    chosen = agent.player.act(_shown(arms), _shown(available))
    arm = checks.whole(chosen)
    if arm is None or not 0 <= arm < len(arms):
        raise OwnPolicyError(
            f"{type(agent.player).__name__}.act must return an arm from 0 to {len(arms) - 1}, got {chosen!r}"
        )
    if not available[arm]:
        raise OwnPolicyError(f"{type(agent.player).__name__}.act must return an available arm, got {arm}")
    return arm, False


def update(agent: PlainAgent, features: Floats, reward: float) -> None:
    """Pass the reward on to the object."""
    agent.player.update(_shown(features), reward)


def _probabilities(player: Any, arms: Floats, available: Bools) -> Floats:
    """Return the probabilities that the object says it will draw from, checked."""
    found = np.asarray(player.probabilities(_shown(arms), _shown(available)), dtype=np.float64)
    if found.shape != available.shape or not is_distribution(found, available):
        raise OwnPolicyError(
            f"{type(player).__name__}.probabilities must return {len(arms)} numbers >= 0 that sum to 1, 0 for arms "
            f"that are not available, got {found!r}"
        )
    return found


register(PlainAgent, act, update)


@dataclass(frozen=True)
class PlainPolicy(DecisionPolicy):
    """A plain object as a policy; each run plays a fresh copy of it."""

    player: Any

    @property
    def name(self) -> str:
        """The name of the object's class."""
        return type(self.player).__name__

    def start(self, setting: Setting, rng: Words) -> PlainAgent:
        """Return a copy of the object, started with what it may know and with this run's random numbers."""
        player = copy.deepcopy(self.player)
        if hasattr(player, "start"):
            known = setting._replace(
                noise_std=setting.noise_std or None,  # type: ignore[arg-type]
                theta_bound=setting.theta_bound or None,  # type: ignore[arg-type]
                horizon=setting.horizon or None,  # type: ignore[arg-type]
            )
            player.start(known, _generator(rng))
        return PlainAgent(player, setting)

    def microseconds(self, pairs: int, dim: int) -> float:
        """Return an estimate for calls in Python."""
        return 15.0

    def with_probabilities(self) -> "PlainPolicy":
        """Return the same policy, if it can state probabilities; raise an error if not."""
        if not callable(getattr(self.player, "probabilities", None)):
            raise OwnPolicyError(
                f"{self.name} must have a method probabilities(arms, available) to give them"
            )
        return self

    def describe(self) -> Plain:
        """Return its class and its attributes, as far as those are plain data."""
        slots = [name for kind in type(self.player).__mro__ for name in getattr(kind, "__slots__", ())]
        given = {name: getattr(self.player, name) for name in slots if hasattr(self.player, name)}
        values = {
            name: _plain(value) for name, value in (given | getattr(self.player, "__dict__", {})).items()
        }
        return {"kind": type(self.player).__qualname__, "plain": True, "attributes": values}


def as_policy(name: str, value: Any) -> Policy:
    """Return a policy of this package unchanged, or a plain object with `act` and `update` as a policy."""
    if isinstance(value, Policy):
        return value
    if isinstance(value, type):
        raise ValueError(f"{name} must be an object, got the class {value.__name__}; give {value.__name__}()")
    missing = [method for method in ("act", "update") if not callable(getattr(value, method, None))]
    if missing:
        without = f", which has no {missing[0]}" if len(missing) == 1 else ""
        raise ValueError(
            f"{name} must be a policy such as Solid(), or an object with act and update, got {short(value)}{without}"
        )
    for method, arguments in METHODS.items():
        if callable(getattr(value, method, None)):
            _check_arguments(getattr(value, method), f"{type(value).__name__}.{method}", arguments)
    return PlainPolicy(value)


def _check_arguments(method: Any, name: str, arguments: tuple[str, ...]) -> None:
    try:
        signature = inspect.signature(method)
    except (ValueError, TypeError):
        return  # functions written in another language have no signature
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise OwnPolicyError(
            f"{name} must take ({', '.join(arguments)}), got {signature} ({error})"
        ) from None


def _shown(array: Any) -> Any:
    """Return a read-only view of the array, which may belong to the caller."""
    view = array.view()
    view.flags.writeable = False
    return view


def _generator(rng: Words) -> np.random.Generator:
    """Return a NumPy generator that draws what compiled policies draw from these words."""
    source = np.random.SFC64(0)
    source.state = {
        "bit_generator": "SFC64",
        "state": {"state": rng.copy()},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return np.random.Generator(source)


def _plain(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return _ADDRESS.sub("", repr(value))  # differs between processes
    return value
