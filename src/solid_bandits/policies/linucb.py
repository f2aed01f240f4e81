"""LinUCB (OFUL): the arm with the largest upper confidence bound."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.regression import (
    EVIDENCE,
    estimate_arms,
    log_det_ratio,
    noise_deviation,
    observe_offer,
)
from solid_bandits.policies.contract import register, require_bound, require_noise
from solid_bandits.policies.facts import Facts, Variant
from solid_bandits.policies.regression_policy import RegressionPolicy, RegressionState

TIE = 1e-12
"""Relative difference below which two bounds count as equal."""


P = TypeVar("P")
USUAL: Mapping[str, tuple[float, float | str]] = {
    "tuned": (0.35, EVIDENCE),
    "paper": (1.0, 1.0),
    "theorem": (1.0, 1.0),
}
"""Radius -> default scale and ridge; those of `tuned` were chosen in a study (studies/positive)."""


def settled(policy: P, usual: Mapping[str, tuple[float, float | str]]) -> P:
    """Return the same policy with the defaults of its radius in place of None."""
    chosen: Any = policy
    scale, ridge = usual[chosen.radius]
    return replace(
        chosen,
        scale=scale if chosen.scale is None else chosen.scale,
        ridge=ridge if chosen.ridge is None else chosen.ridge,
    )


class LinUCBParams(NamedTuple):
    """The chosen parameters in compiled form."""

    scale: float
    full_radius: bool
    delta: float
    root_ridge: float
    """√ν of the theorem's radius; 0 where it is not used."""


class LinUCBAgent(NamedTuple):
    """Compiled form of LinUCB."""

    params: LinUCBParams
    setting: Setting
    state: RegressionState


@jit
def radius(params: LinUCBParams, setting: Setting, regression: Any, step: int) -> float:
    """Return the radius of the confidence ellipsoid at step t.

    `tuned`, `paper`: σ √(log(det V / det νI) + log t), Theorem 2 of Abbasi-Yadkori et al. (2011) without numerical
    constants. If σ is not told, its estimate is used.
    `theorem`: σ √(log(det V / det νI) + 2 log(1/δ)) + √ν B, the theorem itself; δ = 1/n, or 1/t for unknown n.
    """
    ratio = log_det_ratio(regression)
    if not params.full_radius:
        return params.scale * noise_deviation(regression) * math.sqrt(ratio + math.log(step))
    horizon = setting.horizon if setting.horizon > 0 else step
    log_inverse_delta = math.log(horizon) if params.delta == 0.0 else -math.log(params.delta)
    noise_part = noise_deviation(regression) * math.sqrt(ratio + 2.0 * log_inverse_delta)
    return params.scale * (noise_part + params.root_ridge * setting.theta_bound)


@jit
def upper_arm(
    regression: Any, arms: Floats, available: Bools, width: float, kept: Floats | None
) -> tuple[int, bool]:
    """Return argmax_a φᵀθ-hat + width ‖φ‖_{V^-1}, and whether this is not the greedy arm.

    Arms that differ only by rounding are a tie, and the first one wins: copies of an arm may be rounded differently at
    different positions in a block. Means and norms go to `kept`, shape (2, arms), unless it is None.
    """
    work = regression.work.arms
    best = greedy = -1
    largest = largest_mean = -np.inf
    first = 0
    while first < arms.shape[0]:
        count = estimate_arms(regression, arms, first)
        for k in range(count):
            if kept is not None:
                kept[0, first + k], kept[1, first + k] = work.means[k], math.sqrt(work.sq_norms[k])
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
def act(agent: LinUCBAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Return argmax_a φᵀθ-hat + radius ‖φ‖_{V^-1}; the round explores if this is not the greedy arm."""
    regression = agent.state.regression
    observe_offer(regression, arms, available)
    width = radius(agent.params, agent.setting, regression, regression.step.item())
    return upper_arm(regression, arms, available, width, None)


register(LinUCBAgent, act, certain=True)


@dataclass(frozen=True)
class LinUCB(RegressionPolicy):
    """Pull argmax_a φ(a)ᵀθ-hat + radius ‖φ(a)‖_{V^-1}. A decision takes O(K d²) for K arms, a reward O(d²).

    Args:
        radius: `tuned` and `paper` are σ √(log(det V / det νI) + log t), each with its own default scale and ridge;
            `theorem` is Theorem 2 of Abbasi-Yadkori et al. (2011) with all its constants, which needs a bound on ‖θ*‖.
            `paper` is the LinUCB of the paper's experiments.
        scale: factor on the radius; 1 is the rule itself. None is 0.35 with `tuned` and 1 with the others.
        delta: δ of the theorem's radius; None is 1/n, or 1/t where the horizon is unknown.
        ridge: ν > 0, the regulariser of the estimate; or `evidence`, ν from the rewards (`estimation.evidence`), which
            the theorem's radius excludes because its ν must not depend on them. None is `evidence` with `tuned` and 1
            with the others.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.LinUCB(), dim=2, noise_std=0.5, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).probability  # it draws nothing
        1.0
    """

    facts = Facts(
        name="linucb",
        label="LinUCB",
        line="the arm with the largest upper confidence bound, its width tuned; scale-free",
        optimality="none; worst-case bound",
        exploration="optimism",
        reference="Abbasi-Yadkori, Pál and Szepesvári 2011",
        cost=(0.12, 0.001, 0.0001),
        variants={
            "linucb-paper": Variant(
                {"radius": "paper"},
                {
                    "label": "LinUCB (paper)",
                    "line": "the arm with the largest upper confidence bound, without numerical constants",
                },
            ),
            "linucb-theorem": Variant(
                {"radius": "theorem"},
                {
                    "label": "LinUCB (theorem)",
                    "line": "LinUCB with the full radius of Theorem 2 of Abbasi-Yadkori et al.",
                },
            ),
        },
    )

    radius: str = parameter("tuned", choices=("tuned", "paper", "theorem"))
    scale: float | None = parameter(None, least=0, none=True)
    delta: float | None = parameter(None, above=0, most=1, none=True)
    ridge: float | str | None = parameter(None, above=0, word=EVIDENCE, none=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius == "theorem" and self.ridge == EVIDENCE:
            raise checks.ArgumentError(
                "ridge", f"must be a number > 0 with radius='theorem', got {self.ridge!r}"
            )

    def start(self, setting: Setting, rng: Words) -> LinUCBAgent:
        """Return a new agent; LinUCB draws nothing, so `rng` is not kept."""
        if self.radius == "theorem":
            require_noise("LinUCB(radius='theorem')", setting)
            require_bound("LinUCB(radius='theorem')", setting)
        chosen = settled(self, USUAL)
        params = LinUCBParams(
            scale=float(chosen.scale or 0.0),
            full_radius=self.radius == "theorem",
            delta=0.0 if self.delta is None else float(self.delta),
            root_ridge=math.sqrt(chosen.ridge) if isinstance(chosen.ridge, float | int) else 0.0,
        )
        return LinUCBAgent(params, setting, RegressionState(chosen.make_regression(setting, norms=True)))
