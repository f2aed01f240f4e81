"""LinTS: the best arm of a model drawn from a Gaussian around the estimate."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats, Ints, Words
from solid_bandits.estimation.arms import ThetaWork, best_available, count_available, make_theta_work
from solid_bandits.estimation.estimator import Estimator, solve_triangle, squared_norm, write_theta
from solid_bandits.estimation.evidence import Evidence
from solid_bandits.estimation.noise import degrees_of_freedom, noise_deviation
from solid_bandits.estimation.ridges import check_ridge, make_ridge, meet, take_in
from solid_bandits.estimation.student import student, student_below, student_next
from solid_bandits.linalg.vectors import dot
from solid_bandits.policies.contract import DecisionPolicy, register
from solid_bandits.setting import Setting
from solid_bandits.stream import uniform

VOTES = 64
"""Models that vote on the arm where its probability is asked for."""


class LinTSParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    multiple: float
    grows_with_time: bool
    votes: int
    ridge: Any
    """Of `ridges`."""


class LinTSState(NamedTuple):
    """All that LinTS carries."""

    estimator: Estimator
    evidence: Evidence | None
    step: Ints
    """t: decisions made, shape ()."""
    stream: Words


class LinTSWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    estimates: ThetaWork
    sample: Floats
    """θ', shape (dim,)."""
    stream: Words


class LinTSAgent(NamedTuple):
    """LinTS at work."""

    params: LinTSParams
    setting: Setting
    state: LinTSState
    work: LinTSWork


@jit
def spread_at(params: LinTSParams, noise_std: float, estimator: Estimator, step: int) -> float:
    """The v of N(θ-hat, v² V^-1): σ, or σ √(log t)."""
    spread = params.multiple * noise_deviation(noise_std, estimator)
    return spread * math.sqrt(math.log(step)) if params.grows_with_time else spread


@jit
def sample_theta(estimator: Estimator, spread: float, degrees: float, sample: Floats, stream: Words) -> None:
    """Write a draw from N(θ-hat, spread² V^-1) into `sample`: U^-1 (t + spread D^-½ g) has this distribution.

    With degrees of freedom > 0 it is from the Student distribution of this scale.
    """
    squares = 0.0
    for i in range(sample.shape[0]):
        drawn = student_next(degrees, i, squares, stream)
        squares += drawn * drawn
        sample[i] = estimator.targets[i] + spread * drawn / math.sqrt(estimator.weights[i])
    solve_triangle(estimator, sample)


@jit
def compare_two(
    estimator: Estimator, arms: Floats, available: Bools, work: ThetaWork
) -> tuple[int, int, float, float]:
    """The two arms that are available, dᵀθ-hat and ‖d‖_{V^-1}, d = φ₁ - φ₂: for the drawn θ', dᵀθ' is
    N(dᵀθ-hat, v² ‖d‖²_{V^-1}), or Student of that scale.
    """
    first = second = -1
    for arm in range(arms.shape[0]):
        if available[arm] and first < 0:
            first = arm
        elif available[arm]:
            second = arm
    for i in range(work.vector.shape[0]):
        work.vector[i] = arms[first, i] - arms[second, i]
    write_theta(estimator, work.theta)
    gap = dot(work.vector, work.theta)
    return first, second, gap, math.sqrt(squared_norm(estimator, work.vector))


@jit
def act(agent: LinTSAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """argmax_a φᵀθ' for the drawn θ'; an exploring round is one in which this is not the greedy arm.

    Of two arms only the difference is drawn, which is all that counts: its probability is then exactly the one that is
    told. Where models vote, the arm is that of one of them, drawn uniformly: a draw from the votes.
    """
    params, state, work = agent.params, agent.state, agent.work
    meet(params.ridge, state.estimator, state.evidence, arms, available, work.estimates.vector)
    state.step[()] += 1
    noise_std = agent.setting.noise_std
    spread = spread_at(params, noise_std, state.estimator, state.step.item())
    degrees = degrees_of_freedom(noise_std, state.estimator)
    offered = count_available(available)
    if offered == 2:
        first, second, gap, norm = compare_two(state.estimator, arms, available, work.estimates)
        drawn = gap + spread * norm * student(degrees, state.stream)
        return first if drawn >= 0.0 else second, (drawn >= 0.0) != (gap >= 0.0)
    count = params.votes if params.votes > 0 and offered > 2 else 1
    counted = int(uniform(state.stream) * count) if count > 1 else 0
    best = 0
    for model in range(count):
        sample_theta(state.estimator, spread, degrees, work.sample, state.stream)
        if model == counted:
            best = best_available(arms, available, work.sample)
    write_theta(state.estimator, work.estimates.theta)
    return best, best != best_available(arms, available, work.estimates.theta)


@jit
def update(agent: LinTSAgent, features: Floats, reward: float) -> None:
    """Take in a reward."""
    state, work = agent.state, agent.work.estimates
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


@jit
def chance_of(gap: float, deviation: float, degrees: float) -> float:
    """P(gap + deviation T >= 0), T normal or Student; 0 or 1 where nothing is random."""
    if deviation == 0.0:
        return 1.0 if gap >= 0.0 else 0.0
    return student_below(degrees, gap / deviation)


@jit
def probabilities(agent: LinTSAgent, arms: Floats, available: Bools, out: Floats) -> bool:
    """The shares of the votes that `act` would draw from; of two arms in closed form; else not known."""
    params, state, work = agent.params, agent.state, agent.work
    offered = count_available(available)
    if offered > 2 and params.votes == 0:
        return False
    meet(params.ridge, state.estimator, state.evidence, arms, available, work.estimates.vector)
    noise_std = agent.setting.noise_std
    spread = spread_at(params, noise_std, state.estimator, state.step.item() + 1)
    degrees = degrees_of_freedom(noise_std, state.estimator)
    for arm in range(out.shape[0]):
        out[arm] = 1.0 if offered == 1 and available[arm] else 0.0
    if offered == 1:
        return True
    if offered == 2:
        first, second, gap, norm = compare_two(state.estimator, arms, available, work.estimates)
        deviation = spread * norm
        out[first] = chance_of(gap, deviation, degrees)
        out[second] = chance_of(-gap, deviation, degrees) if deviation > 0.0 else 1.0 - out[first]
    else:
        # The same models that `act` is going to draw.
        for word in range(4):
            work.stream[word] = state.stream[word]
        if params.votes > 1:
            uniform(work.stream)
        for _ in range(params.votes):
            sample_theta(state.estimator, spread, degrees, work.sample, work.stream)
            out[best_available(arms, available, work.sample)] += 1.0 / params.votes
    return True


register(LinTSAgent, act, update, probabilities)


@dataclass(frozen=True)
class LinTS(DecisionPolicy):
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
        votes: 0 draws one model. M > 0 draws M and pulls an arm drawn from their votes: an arm with the same
            distribution, but whose probability is known: its share of the votes. `Agent(..., probabilities=True)`
            sets it.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.LinTS(), dim=2, noise_std=0.5, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).probability  # exact with two arms
        0.5
    """

    scale: str = "posterior"
    multiple: float = 1.0
    ridge: float | str = 1.0
    votes: int = 0

    def __post_init__(self) -> None:
        _check.choice("scale", self.scale, ("posterior", "paper"))
        _check.not_negative("multiple", self.multiple)
        check_ridge(self.ridge)
        _check.integer("votes", self.votes, least=0, most=10**6)

    def with_probabilities(self) -> "LinTS":
        """The same policy, its arms drawn so that their probabilities are known."""
        return self if self.votes else replace(self, votes=VOTES)

    def start(self, setting: Setting, stream: Words) -> LinTSAgent:
        """A new agent that draws its models from `stream`."""
        dim = setting.dim
        ridge, estimator, evidence = make_ridge(self.ridge, dim)
        params = LinTSParams(float(self.multiple), self.scale == "paper", int(self.votes), ridge)
        state = LinTSState(estimator, evidence, np.array(0), stream)
        work = LinTSWork(make_theta_work(dim), np.zeros(dim), np.zeros(4, dtype=np.uint64))
        return LinTSAgent(params, setting, state, work)
