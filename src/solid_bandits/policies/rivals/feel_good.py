"""Feel-good Thompson sampling: models drawn from a posterior that favours models with a good best arm."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_allocating
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.randomness import choose, uniform
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.arms import best_available, count_available
from solid_bandits.estimation.estimator import Estimator, solve_triangle, squared_norm
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.regression import (
    EVIDENCE,
    best_estimated,
    degrees_of_freedom,
    draw_model,
    noise_deviation,
    observe_offer,
)
from solid_bandits.estimation.student import student, student_below
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts, Variant
from solid_bandits.policies.lints import VOTES
from solid_bandits.policies.regression_policy import DrawingState, RegressionPolicy


class FeelGoodTSParams(NamedTuple):
    """The chosen parameters in compiled form."""

    feel_good: float
    smoothed: bool
    votes: int


class FeelGoodTSWork(NamedTuple):
    """Scratch; nothing is carried over in it."""

    model: Floats
    """θ', shape (dim,)."""


class FeelGoodTSAgent(NamedTuple):
    """Compiled form of FeelGoodTS."""

    params: FeelGoodTSParams
    setting: Setting
    state: DrawingState
    work: FeelGoodTSWork


@jit
def tilt_of(agent: FeelGoodTSAgent) -> float:
    """Return Λ = λ (t - 1) with λ = `feel_good` / (σ √n): the factor on the best arm's mean in the log-posterior."""
    step = agent.state.regression.step.item()
    horizon = agent.setting.horizon if agent.setting.horizon > 0 else step
    return (
        agent.params.feel_good * (step - 1) / (noise_deviation(agent.state.regression) * math.sqrt(horizon))
    )


@jit
def write_shift(estimator: Estimator, features: Floats, by: float, shift: Floats) -> float:
    """Write `by` V^-1 φ into `shift`, and return ‖φ‖²_{V^-1}."""
    for i in range(shift.shape[0]):
        shift[i] = features[i]
    square = squared_norm(estimator, shift)
    for i in range(shift.shape[0]):
        shift[i] *= by / estimator.weights[i]
    solve_triangle(estimator, shift)
    return square


@jit_allocating
def write_components(
    agent: FeelGoodTSAgent, arms: Floats, available: Bools, tilt: float, shifts: Floats, weights: Floats
) -> None:
    """Write, for each arm, Λσ² V^-1 φ and the weight exp(Λ φᵀθ-hat + Λ²σ² ‖φ‖²_{V^-1} / 2), normalised to sum 1."""
    regression = agent.state.regression
    deviation, theta = noise_deviation(regression), regression.work.theta
    variance = deviation * deviation
    largest = -np.inf
    for arm in range(arms.shape[0]):
        if available[arm]:
            square = write_shift(regression.estimator, arms[arm], tilt * variance, shifts[arm])
            weights[arm] = tilt * (dot(arms[arm], theta) + 0.5 * tilt * variance * square)
            largest = max(largest, weights[arm])
    total = 0.0
    for arm in range(arms.shape[0]):
        weights[arm] = math.exp(weights[arm] - largest) if available[arm] else 0.0
        total += weights[arm]
    for arm in range(arms.shape[0]):
        weights[arm] /= total


@jit
def is_kept(agent: FeelGoodTSAgent, arms: Floats, available: Bools, tilt: float, best: int) -> bool:
    """Decide by rejection, with chance exp(Λ max) / Σ_a exp(Λ φ_aᵀθ'), whether a smoothed model is an exact one."""
    model = agent.work.model
    top, total = dot(arms[best], model), 0.0
    for arm in range(arms.shape[0]):
        if available[arm]:
            total += math.exp(tilt * (dot(arms[arm], model) - top))
    return uniform(agent.state.rng) * total < 1.0


@jit_allocating
def choose_of_two(
    agent: FeelGoodTSAgent, arms: Floats, available: Bools, tilt: float, best: int, out: Floats | None
) -> int:
    """Draw only the difference of two arms, which decides between them, so that the probability is known exactly."""
    regression, rng = agent.state.regression, agent.state.rng
    shifts, weights = np.zeros(arms.shape), np.empty(arms.shape[0])
    write_components(agent, arms, available, tilt, shifts, weights)
    other = best
    for arm in range(arms.shape[0]):
        if available[arm] and arm != best:
            other = arm
    apart = np.empty(arms.shape[1])
    for i in range(arms.shape[1]):
        apart[i] = arms[best, i] - arms[other, i]
    gap, favoured = dot(apart, regression.work.theta), choose(weights, rng)
    by_best, by_other = gap + dot(apart, shifts[best]), gap + dot(apart, shifts[other])
    degrees = degrees_of_freedom(regression)
    deviation = noise_deviation(regression) * math.sqrt(squared_norm(regression.estimator, apart))
    drawn = (by_best if favoured == best else by_other) + deviation * student(degrees, rng)
    if out is not None:
        for arm in range(arms.shape[0]):
            out[arm] = 0.0
        if deviation > 0.0:
            of_best = weights[best] * student_below(degrees, by_best / deviation)
            out[best] = of_best + weights[other] * student_below(degrees, by_other / deviation)
            of_other = weights[best] * student_below(degrees, -by_best / deviation)
            out[other] = of_other + weights[other] * student_below(degrees, -by_other / deviation)
        else:
            out[best] = 1.0
    return best if drawn >= 0.0 else other


@jit_allocating
def choose_by_models(
    agent: FeelGoodTSAgent, arms: Floats, available: Bools, tilt: float, out: Floats | None
) -> int:
    """Return the best arm of a model or, if models vote, that of one of them, drawn uniformly."""
    params, regression, rng, model = agent.params, agent.state.regression, agent.state.rng, agent.work.model
    shifts, weights = np.zeros(arms.shape), np.empty(arms.shape[0])
    write_components(agent, arms, available, tilt, shifts, weights)
    votes = params.votes if count_available(available) > 1 else 1
    counted = int(uniform(rng) * votes) if votes > 1 else 0
    if out is not None and votes > 0:
        for arm in range(arms.shape[0]):
            out[arm] = 0.0
    best = 0
    for one in range(max(votes, 1)):
        arm, kept = 0, False
        while not kept:
            favoured = choose(weights, rng)
            draw_model(regression, noise_deviation(regression), model, rng)
            for i in range(model.shape[0]):
                model[i] += shifts[favoured, i]
            arm = best_available(arms, available, model)
            kept = params.smoothed or is_kept(agent, arms, available, tilt, arm)
        best = arm if one == counted else best
        if out is not None and votes > 0:
            out[arm] += 1.0 / votes
    return best


@jit
def act(agent: FeelGoodTSAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Return argmax_a φᵀθ' for the drawn θ'; the round explores if this is not the greedy arm."""
    regression = agent.state.regression
    observe_offer(regression, arms, available)
    best = best_estimated(regression, arms, available)
    tilt = tilt_of(agent)
    if agent.params.smoothed and count_available(available) == 2:
        arm = choose_of_two(agent, arms, available, tilt, best, out)
    else:
        arm = choose_by_models(agent, arms, available, tilt, out)
    return arm, arm != best


register(FeelGoodTSAgent, act)


@dataclass(frozen=True)
class FeelGoodTS(RegressionPolicy):
    """Thompson sampling with the posterior density times exp(λ Σ_s max_a φ_s(a)ᵀθ): draw θ', pull argmax_a φ(a)ᵀθ'.

    The sum over the t - 1 past decisions s is a function of all the arms they offered. Here every past offer is taken
    for the present one, which is exact with one fixed set of arms and needs O(d²) numbers: with Λ = λ (t - 1), θ' has
    the density N(θ-hat, σ² V^-1) exp(Λ max_a φ(a)ᵀθ'). Smoothed, the maximum is (1/Λ) log Σ_a exp(Λ φ(a)ᵀθ'), and this
    is a mixture in closed form: N(θ-hat + Λσ² V^-1 φ(a), σ² V^-1) with weights in proportion to
    exp(Λ φ(a)ᵀθ-hat + Λ²σ² ‖φ(a)‖²_{V^-1} / 2). The exact density is drawn from by rejection from the smoothed one,
    with a chance of at least 1/K to be kept. λ = `feel_good` / (σ √n) with the horizon n or, if unknown, t. The
    theorems' cap on the maximum, min(b, ·), is left out. If σ is unknown, Λ uses its estimate, and draws around the
    means are Student, as in LinTS.

    With two arms, smoothed, the probability is exact; with more it is known from votes. A decision takes O(K d²) for K
    arms, and O(d² + K d) more for each model; a reward O(d²).

    Args:
        feel_good: λ σ √n >= 0; 0 is LinTS. The default is the best of a study (studies/positive).
        smoothed: whether the maximum is replaced by a smooth one.
        ridge: ν > 0, the regulariser of the estimate; or `evidence`, ν from the rewards (`estimation.evidence`).
        votes: 0 draws one model. M > 0 draws M models and pulls an arm drawn from their votes, whose probability is
            known.
            `Agent(..., probabilities=True)` sets it.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.rivals.FeelGoodTS(), dim=2, noise_std=0.5, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).probability  # exact with two arms
        0.5

    References: Zhang (2022), "Feel-good Thompson sampling for contextual bandits and reinforcement learning"; smoothed
    as in Huix, Zhang and Durmus (2023), "Tight regret and complexity bounds for Thompson sampling via Langevin Monte
    Carlo", with another smooth maximum.
    """

    facts = Facts(
        name="feel-good-ts",
        label="Feel-good TS (smoothed)",
        line="the best arm of a model drawn from a posterior that favours models with a good best arm, smoothed",
        optimality="none; worst-case bound with fixed arms and a cap",
        exploration="sampling, optimistic",
        reference="Zhang 2022; Huix, Zhang and Durmus 2023",
        cost=(0.4, 0.01, 0.001),
        variants={
            "feel-good-ts-exact": Variant(
                {"smoothed": False},
                {
                    "label": "Feel-good TS",
                    "line": "the best arm of a model drawn from a posterior that favours models with a good best arm",
                    "reference": "Zhang 2022",
                },
            )
        },
    )

    feel_good: float = parameter(0.05, least=0)
    smoothed: bool = parameter(True)
    ridge: float | str = parameter(EVIDENCE, above=0, word=EVIDENCE)
    votes: int = parameter(0, least=0, most=10**6)

    def with_probabilities(self) -> "FeelGoodTS":
        """Return the same policy with arms drawn so that their probabilities are known."""
        return self if self.votes else replace(self, votes=VOTES)

    def start(self, setting: Setting, rng: Words) -> FeelGoodTSAgent:
        """Return a new agent that draws its models from `rng`."""
        if setting.blocks:
            raise ValueError(
                f"blocks must be 0 for FeelGoodTS, whose posterior is of one θ, got {setting.blocks}; use another "
                "policy, such as LinTS"
            )
        params = FeelGoodTSParams(float(self.feel_good), bool(self.smoothed), int(self.votes))
        state = DrawingState(self.make_regression(setting), rng)
        return FeelGoodTSAgent(params, setting, state, FeelGoodTSWork(np.zeros(setting.dim)))
