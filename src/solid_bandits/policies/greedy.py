"""Greedy: always the arm that looks best. Enough when the optimal arms span R^d, otherwise it may stay wrong."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats, Words
from solid_bandits.estimation.arms import ThetaWork, best_available, make_theta_work
from solid_bandits.estimation.estimator import Estimator, write_theta
from solid_bandits.estimation.evidence import Evidence
from solid_bandits.estimation.ridges import check_ridge, make_ridge, meet, take_in
from solid_bandits.policies.contract import DecisionPolicy, register
from solid_bandits.setting import Setting


class GreedyParams(NamedTuple):
    """Greedy has nothing to choose but the ridge."""

    ridge: Any
    """Of `ridges`."""


class GreedyState(NamedTuple):
    """All that greedy carries."""

    estimator: Estimator
    evidence: Evidence | None


class GreedyAgent(NamedTuple):
    """Greedy at work."""

    params: GreedyParams
    setting: Setting
    state: GreedyState
    work: ThetaWork


@jit
def act(agent: GreedyAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """argmax_a φ(a)ᵀθ-hat; never an exploring round."""
    state = agent.state
    meet(agent.params.ridge, state.estimator, state.evidence, arms, available, agent.work.vector)
    write_theta(state.estimator, agent.work.theta)
    return best_available(arms, available, agent.work.theta), False


@jit
def update(agent: GreedyAgent, features: Floats, reward: float) -> None:
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


register(GreedyAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class Greedy(DecisionPolicy):
    """Pull argmax_a φ(a)ᵀθ-hat. A decision takes O(d² + K d) for K arms, a reward O(d²).

    Args:
        ridge: ν > 0, the regulariser of the estimate; or `evidence`, ν from the rewards (`estimation.evidence`).

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.Greedy(), dim=2, seed=0)
        >>> agent.learn(agent.decide([[1.0, 0.0], [0.0, 1.0]]), reward=1.0)
        >>> agent.theta
        array([0.5, 0. ])
    """

    ridge: float | str = 1.0

    def __post_init__(self) -> None:
        check_ridge(self.ridge)

    def start(self, setting: Setting, stream: Words) -> GreedyAgent:
        """A new agent; greedy draws nothing, so the stream is not kept."""
        ridge, estimator, evidence = make_ridge(self.ridge, setting.dim)
        state = GreedyState(estimator, evidence)
        return GreedyAgent(GreedyParams(ridge), setting, state, make_theta_work(setting.dim))
