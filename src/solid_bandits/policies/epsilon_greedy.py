"""Epsilon-greedy: the arm that looks best, but now and then any arm. A yardstick, not a contender."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Ints, Words
from solid_bandits.linalg.vectors import best_arm
from solid_bandits.policies.contract import Policy, register
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork, make_regression, observe
from solid_bandits.stream import uniform


class EpsilonGreedyParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    epsilon: float
    decay: float


class EpsilonGreedyState(NamedTuple):
    """All that epsilon-greedy carries."""

    regression: Regression
    step: Ints
    """t: decisions made, shape ()."""
    stream: Words


class EpsilonGreedyAgent(NamedTuple):
    """Epsilon-greedy at work."""

    params: EpsilonGreedyParams
    known: View
    state: EpsilonGreedyState
    work: RegressionWork


@jit
def act(agent: EpsilonGreedyAgent, context: int) -> tuple[int, bool]:
    """With probability ε_t an arm drawn uniformly, an exploring round; else the greedy arm."""
    params, state = agent.params, agent.state
    state.step[()] += 1
    means = state.regression.means[context]
    if uniform(state.stream) < params.epsilon * state.step.item() ** -params.decay:
        return int(uniform(state.stream) * means.shape[0]), True
    return best_arm(means), False


@jit
def update(agent: EpsilonGreedyAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    observe(agent.state.regression, agent.work, agent.known, context, arm, reward)


register(EpsilonGreedyAgent, act, update)


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """With probability ε_t = ε t^-decay pull any arm, else argmax_a φ(x,a)ᵀθ-hat. A step takes O(P d) for P pairs.

    With `decay` 0 the regret is linear, with slope ε times the mean gap; with `decay` 1 the number of exploring rounds
    grows as ε log t, enough only if ε exceeds a constant of the problem.

    Args:
        epsilon: ε in [0, 1].
        decay: the power of t by which it falls, >= 0.
        ridge: ν > 0, the regulariser of the estimate.

    Reference: Auer, Cesa-Bianchi and Fischer (2002), "Finite-time analysis of the multiarmed bandit problem".
    """

    epsilon: float = 0.05
    decay: float = 0.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.number("epsilon", self.epsilon, least=0, most=1)
        _check.number("decay", self.decay, least=0)
        _check.number("ridge", self.ridge, above=0)

    def start(self, view: View, stream: Words) -> EpsilonGreedyAgent:
        """A new agent that draws from `stream`."""
        regression, work = make_regression(view, self.ridge)
        params = EpsilonGreedyParams(float(self.epsilon), float(self.decay))
        return EpsilonGreedyAgent(params, view, EpsilonGreedyState(regression, np.array(0), stream), work)
