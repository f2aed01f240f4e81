"""Greedy: always the arm that looks best. Enough when the optimal arms span R^d, otherwise it may stay wrong."""

from dataclasses import dataclass
from typing import NamedTuple

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.regression import EVIDENCE, best_estimated, observe_offer
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.regression_policy import RegressionPolicy, RegressionState


class GreedyAgent(NamedTuple):
    """Compiled form of Greedy."""

    setting: Setting
    state: RegressionState


@jit
def act(agent: GreedyAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Return argmax_a φ(a)ᵀθ-hat; never an exploring round."""
    regression = agent.state.regression
    observe_offer(regression, arms, available)
    return best_estimated(regression, arms, available), False


register(GreedyAgent, act, certain=True)


@dataclass(frozen=True)
class Greedy(RegressionPolicy):
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

    facts = Facts(
        name="greedy",
        label="Greedy",
        line="the arm that looks best, always",
        setting="any",
        optimality="none; enough where the optimal arms span R^d",
        cost=(0.1, 0.001, 0.0001),
    )

    ridge: float | str = parameter(1.0, above=0, word=EVIDENCE)

    def start(self, setting: Setting, rng: Words) -> GreedyAgent:
        """Return a new agent; greedy draws nothing, so `rng` is not kept."""
        return GreedyAgent(setting, RegressionState(self.make_regression(setting)))
