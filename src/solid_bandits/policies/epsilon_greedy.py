"""Epsilon-greedy: the arm that looks best, but now and then any arm. A yardstick, not a contender."""

from dataclasses import dataclass
from typing import NamedTuple

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.randomness import uniform
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.arms import count_available
from solid_bandits.estimation.regression import EVIDENCE, best_estimated, observe_offer
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.regression_policy import DrawingState, RegressionPolicy


class EpsilonGreedyParams(NamedTuple):
    """The chosen parameters in compiled form."""

    epsilon: float
    decay: float


class EpsilonGreedyAgent(NamedTuple):
    """Compiled form of EpsilonGreedy."""

    params: EpsilonGreedyParams
    setting: Setting
    state: DrawingState


@jit
def any_available(available: Bools, rng: Words) -> int:
    """Return an available arm, drawn uniformly."""
    left = int(uniform(rng) * count_available(available))
    for arm in range(available.shape[0]):
        if available[arm]:
            if left == 0:
                return arm
            left -= 1
    return 0


@jit
def act(agent: EpsilonGreedyAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Pull, with probability ε_t = ε t^-decay, an arm drawn uniformly (an exploring round), else the greedy arm."""
    params, regression, rng = agent.params, agent.state.regression, agent.state.rng
    observe_offer(regression, arms, available)
    share = params.epsilon * regression.step.item() ** -params.decay
    explores = uniform(rng) < share
    if out is None and explores:
        return any_available(available, rng), True
    arm = best_estimated(regression, arms, available)
    if out is not None:
        each = share / count_available(available)
        for other in range(out.shape[0]):
            out[other] = each if available[other] else 0.0
        out[arm] += 1.0 - share
        if explores:
            arm = any_available(available, rng)
    return arm, explores


register(EpsilonGreedyAgent, act)


@dataclass(frozen=True)
class EpsilonGreedy(RegressionPolicy):
    """With probability ε_t = ε t^-decay pull any arm, else argmax_a φ(a)ᵀθ-hat.

    With `decay` 0 the regret is linear, with slope ε times the mean gap; with `decay` 1 the number of exploring rounds
    grows as ε log t, enough only if ε exceeds a constant of the problem. A decision takes O(d² + K d) for K arms, a
    reward O(d²).

    Args:
        epsilon: ε in [0, 1].
        decay: the power of t by which ε_t falls, >= 0.
        ridge: ν > 0, the regulariser of the estimate; or `evidence`, ν from the rewards (`estimation.evidence`).

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.EpsilonGreedy(epsilon=0.1), dim=2, seed=0)
        >>> agent.probabilities([[1.0, 0.0], [0.0, 1.0]])
        array([0.95, 0.05])

    Reference: Auer, Cesa-Bianchi and Fischer (2002), "Finite-time analysis of the multiarmed bandit problem".
    """

    facts = Facts(
        name="epsilon-greedy",
        label="Epsilon-greedy",
        line="the arm that looks best, but any arm with probability epsilon",
        setting="any",
        optimality="none; linear regret unless epsilon falls",
        exploration="uniform",
        reference="Auer, Cesa-Bianchi and Fischer 2002",
        cost=(0.1, 0.001, 0.0001),
    )

    epsilon: float = parameter(0.05, least=0, most=1)
    decay: float = parameter(0.0, least=0)
    ridge: float | str = parameter(1.0, above=0, word=EVIDENCE)

    def start(self, setting: Setting, rng: Words) -> EpsilonGreedyAgent:
        """Return a new agent that draws from `rng`."""
        params = EpsilonGreedyParams(float(self.epsilon), float(self.decay))
        return EpsilonGreedyAgent(params, setting, DrawingState(self.make_regression(setting), rng))
