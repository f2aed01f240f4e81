"""SquareCB: inverse gap weighting with the predictions of a regression that learns from every reward."""

from dataclasses import dataclass
from typing import NamedTuple

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.regression import EVIDENCE, best_estimated, observe_offer
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.regression_policy import DrawingState, RegressionPolicy
from solid_bandits.policies.rivals.inverse_gap import draw_by_gaps, learning_rate


class SquareCBParams(NamedTuple):
    """The chosen parameters in compiled form."""

    scale: float


class SquareCBAgent(NamedTuple):
    """Compiled form of SquareCB."""

    params: SquareCBParams
    setting: Setting
    state: DrawingState


@jit
def act(agent: SquareCBAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Draw an arm by its gap; the round explores if it is not the greedy one."""
    regression = agent.state.regression
    observe_offer(regression, arms, available)
    best = best_estimated(regression, arms, available)
    rate = agent.params.scale * learning_rate(regression, regression.step.item())
    arm = draw_by_gaps(regression, arms, available, regression.work.theta, best, rate, agent.state.rng, out)
    return arm, arm != best


register(SquareCBAgent, act)


@dataclass(frozen=True)
class SquareCB(RegressionPolicy):
    """Draw arm a with probability 1 / (K + γ_t Δ(a)), Δ(a) = (φ* - φ(a))ᵀθ-hat, and the greedy arm φ* otherwise.

    K arms are on offer. γ_t = scale · √(K t / R_t), R_t = σ² (log(det V / det νI) + log(1 + t)): that of the theorem,
    regret O(√(K n R_n)), without its numerical constants, and with the number of decisions so far in place of the
    horizon. Its R_n bounds the squared errors of predictions; ridge regression, which predicts here, has one of this
    order. Every available arm has a positive probability, known exactly. A decision takes O(d² + K d), a reward O(d²).

    Args:
        scale: factor on γ_t; the larger, the greedier. The default is the best of a study (studies/positive).
        ridge: `evidence`, ν from the rewards (`estimation.evidence`); or ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.rivals.SquareCB(), dim=2, seed=0)
        >>> agent.probabilities([[1.0, 0.0], [0.0, 1.0]])
        array([0.5, 0.5])

    Reference: Foster and Rakhlin (2020), "Beyond UCB: optimal and efficient contextual bandits with regression
    oracles"; the weighting is from Abe and Long (1999).
    """

    facts = Facts(
        name="squarecb",
        label="SquareCB",
        line="arms drawn by their inverse gaps in prediction; positive probabilities in closed form",
        optimality="none; worst-case bound",
        exploration="inverse gaps",
        reference="Foster and Rakhlin 2020",
        cost=(0.15, 0.002, 0.0001),
    )

    scale: float = parameter(64.0, least=0)
    ridge: float | str = parameter(EVIDENCE, above=0, word=EVIDENCE)

    def start(self, setting: Setting, rng: Words) -> SquareCBAgent:
        """Return a new agent that draws from `rng`."""
        params = SquareCBParams(float(self.scale))
        return SquareCBAgent(params, setting, DrawingState(self.make_regression(setting), rng))
