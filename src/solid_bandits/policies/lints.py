"""LinTS: the best arm of a model drawn from a Gaussian around the estimate."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Floats, Ints, Words
from solid_bandits.linalg.triangular import cholesky_update, solve_transposed
from solid_bandits.linalg.vectors import best_arm, dot
from solid_bandits.policies.contract import Policy, register
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork, make_regression, observe
from solid_bandits.stream import normal


class LinTSParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    multiple: float
    grows_with_time: bool


class LinTSState(NamedTuple):
    """All that LinTS carries."""

    regression: Regression
    factor: Floats
    """Lower triangular factor of V, shape (dim, dim): a draw needs V^{-1/2}, and this follows V at O(d²) a step."""
    step: Ints
    """t: decisions made, shape ()."""
    stream: Words


class LinTSWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    regression: RegressionWork
    sample: Floats


class LinTSAgent(NamedTuple):
    """LinTS at work."""

    params: LinTSParams
    known: View
    state: LinTSState
    work: LinTSWork


@jit
def sample_theta(agent: LinTSAgent, spread: float) -> None:
    """Write a draw from N(θ-hat, spread² V^-1) into `work.sample`: with V = LLᵀ, L^-T z has covariance V^-1."""
    state, sample = agent.state, agent.work.sample
    for i in range(sample.shape[0]):
        sample[i] = normal(state.stream)
    solve_transposed(state.factor, sample)
    for i in range(sample.shape[0]):
        sample[i] = state.regression.theta[i] + spread * sample[i]


@jit
def act(agent: LinTSAgent, context: int) -> tuple[int, bool]:
    """argmax_a φᵀθ' for the drawn θ'; an exploring round is one in which this is not the greedy arm."""
    params, view, state = agent.params, agent.known, agent.state
    state.step[()] += 1
    spread = params.multiple * view.noise_std
    if params.grows_with_time:
        spread *= math.sqrt(math.log(state.step.item()))
    sample_theta(agent, spread)
    best = 0
    largest = -np.inf
    for arm in range(view.features.shape[1]):
        value = dot(view.features[context, arm], agent.work.sample)
        if value > largest:
            best, largest = arm, value
    return best, best != best_arm(state.regression.means[context])


@jit
def update(agent: LinTSAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    observe(agent.state.regression, agent.work.regression, agent.known, context, arm, reward)
    sample = agent.work.sample
    for i in range(sample.shape[0]):
        sample[i] = agent.known.features[context, arm, i]
    cholesky_update(agent.state.factor, sample)


register(LinTSAgent, act, update)


@dataclass(frozen=True)
class LinTS(Policy):
    """Linear Thompson sampling: draw θ' ~ N(θ-hat, v² V^-1), pull argmax_a φ(x,a)ᵀθ'.

    A step takes O(P d + d²) for P pairs.

    Args:
        scale: `posterior`, v = σ, the Bayesian posterior under the prior N(0, σ²/ν I); or `paper`, v = σ √(log t),
            the frequentist radius of Agrawal and Goyal (2013) without its √d, as in the paper's experiments.
            They behave very differently: compare with both.
        multiple: multiplies v; 1 is the rule itself.
        ridge: ν > 0, the regulariser of the estimate.
    """

    scale: str = "posterior"
    multiple: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.choice("scale", self.scale, ("posterior", "paper"))
        _check.number("multiple", self.multiple, least=0)
        _check.number("ridge", self.ridge, above=0)

    def start(self, view: View, stream: Words) -> LinTSAgent:
        """A new agent that draws its models from `stream`."""
        dim = view.features.shape[2]
        regression, regression_work = make_regression(view, self.ridge)
        params = LinTSParams(float(self.multiple), self.scale == "paper")
        state = LinTSState(regression, math.sqrt(self.ridge) * np.eye(dim), np.array(0), stream)
        return LinTSAgent(params, view, state, LinTSWork(regression_work, np.zeros(dim)))
