"""LinTS: the best arm of a model drawn from a Gaussian around the estimate."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.randomness import uniform
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.arms import count_available
from solid_bandits.estimation.regression import (
    EVIDENCE,
    best_estimated,
    best_of_model,
    compare_arms,
    degrees_of_freedom,
    draw_model,
    noise_deviation,
    observe_offer,
)
from solid_bandits.estimation.student import student, student_below
from solid_bandits.policies.contract import register, write_certain
from solid_bandits.policies.facts import Facts, Variant
from solid_bandits.policies.regression_policy import DrawingState, RegressionPolicy

VOTES = 64
"""Number of models that vote on the arm if its probability is asked for."""


class LinTSParams(NamedTuple):
    """The chosen parameters in compiled form."""

    multiple: float
    grows_with_time: bool
    votes: int


class LinTSWork(NamedTuple):
    """Scratch; nothing is carried over in it."""

    model: Floats
    """θ', shape (coefficients,)."""


class LinTSAgent(NamedTuple):
    """Compiled form of LinTS."""

    params: LinTSParams
    setting: Setting
    state: DrawingState
    work: LinTSWork


@jit
def compare_two(regression: Any, arms: Floats, available: Bools) -> tuple[int, int, float, float]:
    """Return the two available arms, dᵀθ-hat and ‖d‖_{V^-1} with d = φ₁ - φ₂.

    For the drawn θ', dᵀθ' is N(dᵀθ-hat, v² ‖d‖²_{V^-1}), or Student of that scale.
    """
    first = second = -1
    for arm in range(arms.shape[0]):
        if available[arm] and first < 0:
            first = arm
        elif available[arm]:
            second = arm
    gap, sq_norm = compare_arms(regression, arms[first], arms[second])
    return first, second, gap, math.sqrt(sq_norm)


@jit
def chance_of(gap: float, deviation: float, degrees: float) -> float:
    """Return P(gap + deviation T >= 0) for a normal or Student T; 0 or 1 if nothing is random."""
    if deviation == 0.0:
        return 1.0 if gap >= 0.0 else 0.0
    return student_below(degrees, gap / deviation)


@jit
def choose_of_two(
    regression: Any, arms: Floats, available: Bools, spread: float, rng: Words, out: Floats | None
) -> tuple[int, bool]:
    """Draw only the difference of two arms, which decides between them, so that the probability is known exactly."""
    first, second, gap, norm = compare_two(regression, arms, available)
    deviation, degrees = spread * norm, degrees_of_freedom(regression)
    if out is not None:
        write_certain(out, first)
        out[first] = chance_of(gap, deviation, degrees)
        out[second] = chance_of(-gap, deviation, degrees) if deviation > 0.0 else 1.0 - out[first]
    drawn = gap + deviation * student(degrees, rng)
    return first if drawn >= 0.0 else second, (drawn >= 0.0) != (gap >= 0.0)


@jit
def act(agent: LinTSAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Return argmax_a φᵀθ' for the drawn θ'; the round explores if this is not the greedy arm.

    If models vote, the arm is that of one of them, drawn uniformly: a draw from the votes, which are its
    probabilities. With a single model and at least three arms, the probabilities are unknown.
    """
    params, regression, rng, model = agent.params, agent.state.regression, agent.state.rng, agent.work.model
    observe_offer(regression, arms, available)
    spread = params.multiple * noise_deviation(regression)
    if params.grows_with_time:
        spread *= math.sqrt(math.log(regression.step.item()))
    offered = count_available(available)
    if offered == 2:
        return choose_of_two(regression, arms, available, spread, rng, out)
    votes = params.votes if offered > 2 else 1
    counted = int(uniform(rng) * votes) if votes > 1 else 0
    if out is not None and votes > 0:
        out[:] = 0.0
    best = 0
    for one in range(max(votes, 1)):
        draw_model(regression, spread, model, rng)
        if out is not None or one == counted:
            arm = best_of_model(regression, arms, available, model)
            best = arm if one == counted else best
            if out is not None and votes > 0:
                out[arm] += 1.0 / votes
    return best, best != best_estimated(regression, arms, available)


register(LinTSAgent, act)


@dataclass(frozen=True)
class LinTS(RegressionPolicy):
    """Linear Thompson sampling: draw θ' ~ N(θ-hat, v² V^-1), pull argmax_a φ(a)ᵀθ'.

    If σ is unknown, it is estimated, and the draw is Student with one degree of freedom more than there are
    rewards: the posterior under a normal-inverse-gamma prior (`estimation.noise`). A decision takes
    O(d² + K d) for K arms, times `votes` if there are any; a reward O(d²).

    Args:
        scale: `posterior`, v = σ, the Bayesian posterior under the prior N(0, σ²/ν I); or `paper`, v = σ √(log t),
            the frequentist radius of Agrawal and Goyal (2013) without its √d, as in the paper's experiments.
            They behave very differently: compare with both.
        multiple: multiplies v; 1 is the rule itself.
        ridge: ν > 0, the regulariser of the estimate; or `evidence`, ν from the rewards (`estimation.evidence`).
        votes: 0 draws one model. M > 0 draws M models and pulls an arm drawn from their votes: its distribution is the
            same, but its probability is known, namely its share of the votes. `Agent(..., probabilities=True)` sets it.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.LinTS(), dim=2, noise_std=0.5, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).probability  # exact with two arms
        0.5
    """

    facts = Facts(
        name="lints",
        label="LinTS (posterior)",
        line="the best arm of a model drawn from the Bayesian posterior",
        optimality="none; Bayesian bound",
        exploration="sampling",
        reference="Russo and Van Roy 2014",
        cost=(0.3, 0.001, 0.00015),
        variants={
            "lints-paper": Variant(
                {"scale": "paper"},
                {
                    "label": "LinTS (paper)",
                    "line": "the best arm of a model drawn around the estimate, the draw widened by √log t",
                    "optimality": "none; worst-case bound (with a further √d)",
                    "reference": "Agrawal and Goyal 2013",
                },
            )
        },
    )

    scale: str = parameter("posterior", choices=("posterior", "paper"))
    multiple: float = parameter(1.0, least=0)
    ridge: float | str = parameter(1.0, above=0, word=EVIDENCE)
    votes: int = parameter(0, least=0, most=10**6)

    def with_probabilities(self) -> "LinTS":
        """Return the same policy with arms drawn so that their probabilities are known."""
        return self if self.votes else replace(self, votes=VOTES)

    def start(self, setting: Setting, rng: Words) -> LinTSAgent:
        """Return a new agent that draws its models from `rng`."""
        params = LinTSParams(float(self.multiple), self.scale == "paper", int(self.votes))
        state = DrawingState(self.make_regression(setting), rng)
        return LinTSAgent(params, setting, state, LinTSWork(np.zeros(setting.coefficients)))
