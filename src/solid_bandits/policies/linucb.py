"""LinUCB (OFUL): the arm with the largest upper confidence bound."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Ints, Words
from solid_bandits.linalg.vectors import best_arm
from solid_bandits.policies.contract import Policy, register
from solid_bandits.problem import View
from solid_bandits.regression import Regression, RegressionWork, make_regression, observe


class LinUCBParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    scale: float
    ridge: float
    full_radius: bool
    delta: float


class LinUCBState(NamedTuple):
    """All that LinUCB carries."""

    regression: Regression
    step: Ints
    """t: decisions made, shape ()."""


class LinUCBAgent(NamedTuple):
    """LinUCB at work."""

    params: LinUCBParams
    known: View
    state: LinUCBState
    work: RegressionWork


@jit
def radius(agent: LinUCBAgent, step: int) -> float:
    """The radius of the confidence ellipsoid at step t.

    `paper`: σ √(log(det V / det νI) + log t), Theorem 2 of Abbasi-Yadkori et al. (2011) without numerical constants.
    `theorem`: σ √(log(det V / det νI) + 2 log(1/δ)) + √ν B, the theorem itself; δ = 1/n, or 1/t for unknown n.
    """
    params, view = agent.params, agent.known
    dim = view.features.shape[2]
    log_det_ratio = max(agent.state.regression.log_det.item() - dim * math.log(params.ridge), 0.0)
    if not params.full_radius:
        return params.scale * view.noise_std * math.sqrt(log_det_ratio + math.log(step))
    horizon = view.horizon if view.horizon > 0 else step
    log_inverse_delta = math.log(horizon) if params.delta == 0.0 else -math.log(params.delta)
    noise_part = view.noise_std * math.sqrt(log_det_ratio + 2.0 * log_inverse_delta)
    return params.scale * (noise_part + math.sqrt(params.ridge) * view.theta_bound)


@jit
def act(agent: LinUCBAgent, context: int) -> tuple[int, bool]:
    """argmax_a φᵀθ-hat + radius ‖φ‖_{V^-1}; an exploring round is one in which this is not the greedy arm."""
    state = agent.state
    means, sq_norms = state.regression.means[context], state.regression.sq_norms[context]
    state.step[()] += 1
    width = radius(agent, state.step.item())
    best = 0
    largest = -np.inf
    for arm in range(means.shape[0]):
        bound = means[arm] + width * math.sqrt(max(sq_norms[arm], 0.0))
        if bound > largest:
            best, largest = arm, bound
    return best, best != best_arm(means)


@jit
def update(agent: LinUCBAgent, context: int, arm: int, reward: float) -> None:
    """Take in a reward."""
    observe(agent.state.regression, agent.work, agent.known, context, arm, reward)


register(LinUCBAgent, act, update)


@dataclass(frozen=True)
class LinUCB(Policy):
    """Pull argmax_a φ(x,a)ᵀθ-hat + radius ‖φ(x,a)‖_{V^-1}. A step takes O(P d) for P pairs.

    Args:
        radius: `paper`, σ √(log(det V / det νI) + log t), as in the paper's experiments; or `theorem`, Theorem 2
            of Abbasi-Yadkori et al. (2011) with all its constants.
        scale: multiplies the radius; 1 is the rule itself.
        delta: δ of the theorem's radius; None is 1/n, or 1/t where the horizon is unknown.
        ridge: ν > 0, the regulariser of the estimate.
    """

    radius: str = "paper"
    scale: float = 1.0
    delta: float | None = None
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check.choice("radius", self.radius, ("paper", "theorem"))
        _check.number("scale", self.scale, least=0)
        _check.number("ridge", self.ridge, above=0)
        if self.delta is not None:
            _check.number("delta", self.delta, above=0, most=1)

    def start(self, view: View, stream: Words) -> LinUCBAgent:
        """A new agent; LinUCB draws nothing, so the stream is not kept."""
        regression, work = make_regression(view, self.ridge)
        params = LinUCBParams(
            scale=float(self.scale),
            ridge=float(self.ridge),
            full_radius=self.radius == "theorem",
            delta=0.0 if self.delta is None else float(self.delta),
        )
        return LinUCBAgent(params, view, LinUCBState(regression, step=np.array(0)), work)
