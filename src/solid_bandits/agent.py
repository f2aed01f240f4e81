"""A policy at work, one decision at a time: for rewards that come from the world and not from a simulation."""

from types import SimpleNamespace
from typing import Any

from numba import typeof, types
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]
from numba.experimental import structref

from solid_bandits import _check
from solid_bandits._compile import jit_apart
from solid_bandits._types import Plain
from solid_bandits.policies import contract
from solid_bandits.policies.contract import CompiledAgent, Policy, fill_state, state_to_plain
from solid_bandits.problem import View
from solid_bandits.stream import POLICY, make_stream


@structref.register
class _HeldType(types.StructRef):
    """To compiled code, an agent held in one place."""


class _Held(structref.StructRefProxy):
    """An agent handed to compiled code once and for all.

    To hand over a tuple of some twenty arrays takes microseconds, several times what a decision takes; to hand over the
    place where it is held takes one pointer. The arrays are the agent's own, not copies.
    """


structref.define_proxy(_Held, _HeldType, ["agent"])  # type: ignore[no-untyped-call]


@jit_apart
def _hold(agent: CompiledAgent) -> Any:
    return _Held(agent)  # type: ignore[no-untyped-call]


@jit_apart
def _act(held: Any, context: int) -> tuple[int, bool]:
    return contract.act(held.agent, context)


@jit_apart
def _update(held: Any, context: int, arm: int, reward: float) -> None:
    contract.update(held.agent, context, arm, reward)


class Agent:
    """A policy that acts and learns.

    The compiled functions are those of the simulation's loop. Rewards may come late, in any order, or never. An agent
    is for one thread at a time; it can be copied and pickled, and the copy goes its own way.

    Args:
        policy: parameters, such as `Solid()`.
        view: what the policy may see: `problem.view(horizon)` or `make_view(features, ...)`.
        seed: of the policy's own random numbers.

    Example:
        >>> import solid_bandits as sb
        >>> view = sb.make_view(features=[[[1, 0], [0, 1]]], noise_std=0.5, theta_bound=2)
        >>> agent = sb.Agent(sb.LinUCB(), view)
        >>> arm = agent.act(context=0)
        >>> agent.update(context=0, arm=arm, reward=1.0)
    """

    def __init__(self, policy: Policy, view: View, seed: int = 0) -> None:
        stream = make_stream(_check.integer("seed", seed, least=0), run=0, role=POLICY)
        self.policy = policy
        self._view = view
        self._compiled = policy.start(view, stream)
        if DISABLE_JIT:  # nothing to hand over, nothing to compile
            self._held: Any = SimpleNamespace(agent=self._compiled)
            self._act, self._update = _act, _update
        else:
            self._held = _hold(self._compiled)
            # Compiled for these types once, so that no call has to find out what it was given.
            held = typeof(self._held)  # type: ignore[no-untyped-call]
            self._act = _act.compile((held, types.int64))  # type: ignore[attr-defined]
            self._update = _update.compile((held, types.int64, types.int64, types.float64))  # type: ignore[attr-defined]
        self._n_contexts, self._n_arms, _ = view.features.shape

    def act(self, context: int) -> int:
        """Choose an arm in this context."""
        arm, _ = self._act(self._held, _check.index("context", context, self._n_contexts))
        return arm

    def update(self, context: int, arm: int, reward: float) -> None:
        """Learn from the reward of an arm pulled in this context."""
        self._update(
            self._held,
            _check.index("context", context, self._n_contexts),
            _check.index("arm", arm, self._n_arms),
            _check.number("reward", reward),
        )

    def state(self) -> Plain:
        """All that the policy carries, as nested dicts and lists of numbers: JSON keeps it exactly."""
        return state_to_plain(self._compiled.state)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.policy, self._view, self.state())

    def restore(self, state: Plain) -> None:
        """Go on from what `state` returned, with the same policy and view: the same decisions follow."""
        fill_state(self._compiled.state, state)


def _restored(policy: Policy, view: View, state: Plain) -> Agent:
    agent = Agent(policy, view)
    agent.restore(state)
    return agent
