"""Greedy: always the arm that looks best. Enough when the optimal arms span R^d, otherwise it may stay wrong."""

from dataclasses import dataclass
from typing import NamedTuple

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats, Words
from solid_bandits.estimation.arms import ThetaWork, best_available, make_theta_work
from solid_bandits.estimation.estimator import Estimator, make_estimator, observe, write_theta
from solid_bandits.policies.contract import DecisionPolicy, register
from solid_bandits.setting import Setting


class GreedyParams(NamedTuple):
    """Greedy has nothing to choose but the ridge, which lives in V."""

    ridge: float


class GreedyState(NamedTuple):
    """All that greedy carries."""

    estimator: Estimator


class GreedyAgent(NamedTuple):
    """Greedy at work."""

    params: GreedyParams
    setting: Setting
    state: GreedyState
    work: ThetaWork


@jit
def act(agent: GreedyAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """argmax_a φ(a)ᵀθ-hat; never an exploring round."""
    write_theta(agent.state.estimator, agent.work.theta)
    return best_available(arms, available, agent.work.theta), False


@jit
def update(agent: GreedyAgent, features: Floats, reward: float) -> None:
    """Take in a reward."""
    observe(agent.state.estimator, features, reward, agent.work.vector, agent.work.gains)


register(GreedyAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class Greedy(DecisionPolicy):
    """Pull argmax_a φ(a)ᵀθ-hat. A decision takes O(d² + K d) for K arms, a reward O(d²).

    Args:
        ridge: ν > 0, the regulariser of the estimate.
    """

    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.positive("ridge", self.ridge)

    def start(self, setting: Setting, stream: Words) -> GreedyAgent:
        """A new agent; greedy draws nothing, so the stream is not kept."""
        state = GreedyState(make_estimator(setting.dim, self.ridge))
        return GreedyAgent(GreedyParams(float(self.ridge)), setting, state, make_theta_work(setting.dim))
