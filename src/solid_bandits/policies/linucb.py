"""LinUCB (OFUL): the arm with the largest upper confidence bound."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats, Ints, Words
from solid_bandits.estimation.arms import ArmsWork, estimate_arms, make_arms_work
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.estimation.evidence import Evidence
from solid_bandits.estimation.noise import noise_deviation
from solid_bandits.estimation.ridges import EVIDENCE, check_ridge, make_ridge, meet, take_in
from solid_bandits.policies.contract import DecisionPolicy, register, require_bound, require_noise
from solid_bandits.setting import Setting

TIE = 1e-12
"""Bounds that differ by less than this part of their size are equal."""


class LinUCBParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    scale: float
    ridge: Any
    """Of `ridges`."""
    full_radius: bool
    delta: float
    root_ridge: float
    """√ν of the theorem's radius; 0 where it is not used."""


class LinUCBState(NamedTuple):
    """All that LinUCB carries."""

    estimator: Estimator
    evidence: Evidence | None
    step: Ints
    """t: decisions made, shape ()."""


class LinUCBAgent(NamedTuple):
    """LinUCB at work."""

    params: LinUCBParams
    setting: Setting
    state: LinUCBState
    work: ArmsWork


@jit
def radius(params: LinUCBParams, setting: Setting, estimator: Estimator, step: int) -> float:
    """The radius of the confidence ellipsoid at step t.

    `paper`: σ √(log(det V / det νI) + log t), Theorem 2 of Abbasi-Yadkori et al. (2011) without numerical constants.
    Where σ is not told, it is the estimate.
    `theorem`: σ √(log(det V / det νI) + 2 log(1/δ)) + √ν B, the theorem itself; δ = 1/n, or 1/t for unknown n.
    """
    log_det_ratio = max(estimator.log_det_ratio.item(), 0.0)
    if not params.full_radius:
        deviation = noise_deviation(setting.noise_std, estimator)
        return params.scale * deviation * math.sqrt(log_det_ratio + math.log(step))
    horizon = setting.horizon if setting.horizon > 0 else step
    log_inverse_delta = math.log(horizon) if params.delta == 0.0 else -math.log(params.delta)
    noise_part = setting.noise_std * math.sqrt(log_det_ratio + 2.0 * log_inverse_delta)
    return params.scale * (noise_part + params.root_ridge * setting.theta_bound)


@jit
def upper_arm(
    estimator: Estimator, arms: Floats, available: Bools, width: float, work: ArmsWork
) -> tuple[int, bool]:
    """argmax_a φᵀθ-hat + width ‖φ‖_{V^-1}, and whether this is another arm than the greedy one.

    Arms that differ by rounding alone are a tie, and the first one wins: copies of an arm may be rounded differently
    in different places of a block.
    """
    best = greedy = -1
    largest = largest_mean = -np.inf
    first = 0
    while first < arms.shape[0]:
        count = estimate_arms(estimator, arms, first, work)
        for k in range(count):
            if available[first + k]:
                mean, spread = work.means[k], width * math.sqrt(work.sq_norms[k])
                tie = TIE * (abs(mean) + spread)
                if best < 0 or mean + spread > largest + tie:
                    best, largest = first + k, mean + spread
                if greedy < 0 or mean > largest_mean + tie:
                    greedy, largest_mean = first + k, mean
        first += count
    return best, best != greedy


@jit
def act(agent: LinUCBAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """argmax_a φᵀθ-hat + radius ‖φ‖_{V^-1}; an exploring round is one in which this is not the greedy arm."""
    state = agent.state
    meet(agent.params.ridge, state.estimator, state.evidence, arms, available, agent.work.vector)
    state.step[()] += 1
    width = radius(agent.params, agent.setting, state.estimator, state.step.item())
    return upper_arm(state.estimator, arms, available, width, agent.work)


@jit
def update(agent: LinUCBAgent, features: Floats, reward: float) -> None:
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


register(LinUCBAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class LinUCB(DecisionPolicy):
    """Pull argmax_a φ(a)ᵀθ-hat + radius ‖φ(a)‖_{V^-1}. A decision takes O(K d²) for K arms, a reward O(d²).

    Args:
        radius: `paper`, σ √(log(det V / det νI) + log t), as in the paper's experiments; or `theorem`, Theorem 2
            of Abbasi-Yadkori et al. (2011) with all its constants, which needs a bound on ‖θ*‖.
        scale: multiplies the radius; 1 is the rule itself.
        delta: δ of the theorem's radius; None is 1/n, or 1/t where the horizon is unknown.
        ridge: ν > 0, the regulariser of the estimate; or `evidence`, ν from the rewards (`estimation.evidence`), not
            with the theorem's radius, which is about a ν that does not depend on them.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.LinUCB(), dim=2, noise_std=0.5, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).probability  # it draws nothing
        1.0
    """

    radius: str = "paper"
    scale: float = 1.0
    delta: float | None = None
    ridge: float | str = 1.0

    def __post_init__(self) -> None:
        _check.choice("radius", self.radius, ("paper", "theorem"))
        _check.not_negative("scale", self.scale)
        check_ridge(self.ridge)
        if self.radius == "theorem" and self.ridge == EVIDENCE:
            raise _check.ArgumentError(
                "ridge", f"must be a number > 0 with radius='theorem', got {self.ridge!r}"
            )
        if self.delta is not None:
            _check.number("delta", self.delta, above=0, most=1)

    def start(self, setting: Setting, stream: Words) -> LinUCBAgent:
        """A new agent; LinUCB draws nothing, so the stream is not kept."""
        if self.radius == "theorem":
            require_noise("LinUCB(radius='theorem')", setting)
            require_bound("LinUCB(radius='theorem')", setting)
        ridge, estimator, evidence = make_ridge(self.ridge, setting.dim)
        params = LinUCBParams(
            scale=float(self.scale),
            ridge=ridge,
            full_radius=self.radius == "theorem",
            delta=0.0 if self.delta is None else float(self.delta),
            root_ridge=0.0 if isinstance(self.ridge, str) else math.sqrt(self.ridge),
        )
        state = LinUCBState(estimator, evidence, step=np.array(0))
        return LinUCBAgent(params, setting, state, make_arms_work(setting.dim))
