"""Greedy: always the arm that looks best. Enough when the optimal arms span R^d, otherwise it may stay wrong."""

from dataclasses import dataclass
from typing import NamedTuple

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Words
from solid_bandits.linalg.vectors import best_arm
from solid_bandits.policies.contract import Policy, register
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork, make_regression, observe


class GreedyParams(NamedTuple):
    """Greedy has nothing to choose but the ridge, which lives in V."""

    ridge: float


class GreedyState(NamedTuple):
    """All that greedy carries."""

    regression: Regression


class GreedyAgent(NamedTuple):
    """Greedy at work."""

    params: GreedyParams
    known: View
    state: GreedyState
    work: RegressionWork


@jit
def act(agent: GreedyAgent, context: int) -> tuple[int, bool]:
    """argmax_a φ(x,a)ᵀθ-hat; never an exploring round."""
    return best_arm(agent.state.regression.means[context]), False


@jit
def update(agent: GreedyAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    observe(agent.state.regression, agent.work, agent.known, context, arm, reward)


register(GreedyAgent, act, update)


@dataclass(frozen=True)
class Greedy(Policy):
    """Pull argmax_a φ(x,a)ᵀθ-hat. A step takes O(P d) for P pairs.

    Args:
        ridge: ν > 0, the regulariser of the estimate.
    """

    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.number("ridge", self.ridge, above=0)

    def start(self, view: View, stream: Words) -> GreedyAgent:
        """A new agent; greedy draws nothing, so the stream is not kept."""
        regression, work = make_regression(view, self.ridge)
        return GreedyAgent(GreedyParams(float(self.ridge)), view, GreedyState(regression), work)
