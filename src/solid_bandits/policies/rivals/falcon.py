"""FALCON: inverse gap weighting with predictions that change only at the beginning of each epoch."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Ints, Words
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.regression import EVIDENCE, best_of_model, observe_offer, write_theta
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.regression_policy import Change, RegressionPolicy
from solid_bandits.policies.rivals.inverse_gap import draw_by_gaps, learning_rate


class FALCONParams(NamedTuple):
    """The chosen parameters in compiled form."""

    scale: float


class FALCONState(NamedTuple):
    """State of FALCON."""

    regression: Any
    theta: Floats
    """θ-hat at the beginning of the epoch, shape (coefficients,)."""
    rate: Floats
    """γ / √K of the epoch, shape ()."""
    until: Ints
    """The last decision of the epoch, shape ()."""
    rng: Words


class FALCONAgent(NamedTuple):
    """Compiled form of FALCON."""

    params: FALCONParams
    setting: Setting
    state: FALCONState


@jit
def begin_epoch(agent: FALCONAgent) -> None:
    """Start to predict with all rewards so far; epoch m ends with decision 2^m."""
    state, before = agent.state, agent.state.until.item()
    if before == 0:
        state.until[()] = 2
        return
    write_theta(state.regression, state.theta)
    state.rate[()] = agent.params.scale * learning_rate(state.regression, before)
    state.until[()] = 2 * before


@jit
def act(agent: FALCONAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Draw an arm by its gap; the round explores if it is not the best arm of this epoch."""
    state = agent.state
    observe_offer(state.regression, arms, available)
    if state.regression.step.item() > state.until.item():
        begin_epoch(agent)
    best = best_of_model(state.regression, arms, available, state.theta)
    rate = state.rate.item()
    arm = draw_by_gaps(state.regression, arms, available, state.theta, best, rate, state.rng, out)
    return arm, arm != best


register(FALCONAgent, act)


@dataclass(frozen=True)
class FALCON(RegressionPolicy):
    """SquareCB's rule with θ-hat and γ from the beginning of the epoch; epoch m ends with decision 2^m.

    In epoch m, γ = scale · √(K τ / R), τ = 2^(m-1) the decisions before it and R = σ² (log(det V / det νI) +
    log(1 + τ)) at its beginning; in the first, all arms are equally likely. This is the algorithm with the linear
    class, fitted by ridge regression to all rewards so far, regret O(√(K n R)); the theorem's constants, the logarithm
    of the size of the class among them, are in `scale`. Between epochs the distribution of an offer does not
    change, so decisions may be made elsewhere, and rewards may wait. Every available arm has a positive
    probability, known exactly. A decision takes O(K d), a reward O(d²).

    Args:
        scale: factor on γ; the larger, the greedier. The default is the best of a study (studies/positive).
        ridge: `evidence`, ν from the rewards (`estimation.evidence`); or ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.rivals.FALCON(), dim=2, seed=0)
        >>> agent.learn(agent.decide([[1.0, 0.0], [0.0, 1.0]]), reward=1.0)
        >>> agent.probabilities([[1.0, 0.0], [0.0, 1.0]])  # the first epoch has two decisions
        array([0.5, 0.5])

    Reference: Simchi-Levi and Xu (2021), "Bypassing the monster: a faster and simpler optimal algorithm for contextual
    bandits under realizability".
    """

    facts = Facts(
        name="falcon",
        label="FALCON",
        line="arms drawn by their inverse gaps in predictions that change with the epoch, at decisions 2, 4, 8, ...",
        optimality="none; worst-case bound",
        exploration="inverse gaps, in epochs",
        reference="Simchi-Levi and Xu 2021",
        cost=(0.15, 0.002, 0.0001),
    )

    scale: float = parameter(64.0, least=0)
    ridge: float | str = parameter(EVIDENCE, above=0, word=EVIDENCE)

    def carry(self, state: Any, change: Change) -> FALCONState:
        """Return the state after a change of features; predictions of the epoch then use all rewards so far."""
        regression = change.regression(state.regression)
        theta = np.zeros_like(regression.work.theta)
        if state.rate.item() > 0.0:
            write_theta(regression, theta)
        return FALCONState(regression, theta, state.rate.copy(), state.until.copy(), state.rng.copy())

    def check_state(self, agent: Any) -> None:
        """Raise a ValueError if the rate of the epoch is negative."""
        if agent.state.rate.item() < 0.0:
            raise ValueError("state.rate must be >= 0")

    def start(self, setting: Setting, rng: Words) -> FALCONAgent:
        """Return a new agent that draws from `rng`."""
        state = FALCONState(
            self.make_regression(setting), np.zeros(setting.coefficients), np.array(0.0), np.array(0), rng
        )
        return FALCONAgent(FALCONParams(float(self.scale)), setting, state)
