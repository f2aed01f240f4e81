"""Epsilon-greedy: the arm that looks best, but now and then any arm. A yardstick, not a contender."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats, Ints, Words
from solid_bandits.estimation.arms import ThetaWork, best_available, count_available, make_theta_work
from solid_bandits.estimation.estimator import Estimator, write_theta
from solid_bandits.estimation.evidence import Evidence
from solid_bandits.estimation.ridges import check_ridge, make_ridge, meet, take_in
from solid_bandits.policies.contract import DecisionPolicy, register
from solid_bandits.setting import Setting
from solid_bandits.stream import uniform


class EpsilonGreedyParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    epsilon: float
    decay: float
    ridge: Any
    """Of `ridges`."""


class EpsilonGreedyState(NamedTuple):
    """All that epsilon-greedy carries."""

    estimator: Estimator
    evidence: Evidence | None
    step: Ints
    """t: decisions made, shape ()."""
    stream: Words


class EpsilonGreedyAgent(NamedTuple):
    """Epsilon-greedy at work."""

    params: EpsilonGreedyParams
    setting: Setting
    state: EpsilonGreedyState
    work: ThetaWork


@jit
def share(params: EpsilonGreedyParams, step: int) -> float:
    """ε_t = ε t^-decay."""
    return params.epsilon * step**-params.decay


@jit
def any_available(available: Bools, stream: Words) -> int:
    """An available arm, drawn uniformly."""
    left = int(uniform(stream) * count_available(available))
    for arm in range(available.shape[0]):
        if available[arm]:
            if left == 0:
                return arm
            left -= 1
    return 0


@jit
def act(agent: EpsilonGreedyAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """With probability ε_t an arm drawn uniformly, an exploring round; else the greedy arm."""
    state = agent.state
    meet(agent.params.ridge, state.estimator, state.evidence, arms, available, agent.work.vector)
    state.step[()] += 1
    if uniform(state.stream) < share(agent.params, state.step.item()):
        return any_available(available, state.stream), True
    write_theta(state.estimator, agent.work.theta)
    return best_available(arms, available, agent.work.theta), False


@jit
def update(agent: EpsilonGreedyAgent, features: Floats, reward: float) -> None:
    """Take in a reward."""
    state, work = agent.state, agent.work
    take_in(
        agent.params.ridge,
        state.estimator,
        state.evidence,
        agent.setting.noise_std,
        features,
        reward,
        work.vector,
        work.gains,
    )


@jit
def probabilities(agent: EpsilonGreedyAgent, arms: Floats, available: Bools, out: Floats) -> bool:
    """ε_t shared by the available arms, and 1 - ε_t on the greedy one."""
    chance = min(share(agent.params, agent.state.step.item() + 1), 1.0)
    each = chance / count_available(available)
    for arm in range(out.shape[0]):
        out[arm] = each if available[arm] else 0.0
    state = agent.state
    meet(agent.params.ridge, state.estimator, state.evidence, arms, available, agent.work.vector)
    write_theta(state.estimator, agent.work.theta)
    out[best_available(arms, available, agent.work.theta)] += 1.0 - chance
    return True


register(EpsilonGreedyAgent, act, update, probabilities)


@dataclass(frozen=True)
class EpsilonGreedy(DecisionPolicy):
    """With probability ε_t = ε t^-decay pull any arm, else argmax_a φ(a)ᵀθ-hat.

    With `decay` 0 the regret is linear, with slope ε times the mean gap; with `decay` 1 the number of exploring rounds
    grows as ε log t, enough only if ε exceeds a constant of the problem. A decision takes O(d² + K d) for K arms, a
    reward O(d²).

    Args:
        epsilon: ε in [0, 1].
        decay: the power of t by which it falls, >= 0.
        ridge: ν > 0, the regulariser of the estimate; or `evidence`, ν from the rewards (`estimation.evidence`).

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.EpsilonGreedy(epsilon=0.1), dim=2, seed=0)
        >>> agent.probabilities([[1.0, 0.0], [0.0, 1.0]])
        array([0.95, 0.05])

    Reference: Auer, Cesa-Bianchi and Fischer (2002), "Finite-time analysis of the multiarmed bandit problem".
    """

    epsilon: float = 0.05
    decay: float = 0.0
    ridge: float | str = 1.0

    def __post_init__(self) -> None:
        _check.number("epsilon", self.epsilon, least=0, most=1)
        _check.not_negative("decay", self.decay)
        check_ridge(self.ridge)

    def start(self, setting: Setting, stream: Words) -> EpsilonGreedyAgent:
        """A new agent that draws from `stream`."""
        ridge, estimator, evidence = make_ridge(self.ridge, setting.dim)
        params = EpsilonGreedyParams(float(self.epsilon), float(self.decay), ridge)
        state = EpsilonGreedyState(estimator, evidence, np.array(0), stream)
        return EpsilonGreedyAgent(params, setting, state, make_theta_work(setting.dim))
