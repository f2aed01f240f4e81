"""β_t, the squared radius of the confidence ellipsoid, for policies of minimum empirical divergence."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.regression import EVIDENCE, log_det_ratio, noise_deviation
from solid_bandits.policies.contract import require_bound, require_noise
from solid_bandits.policies.linucb import settled
from solid_bandits.policies.regression_policy import RegressionPolicy

USUAL: dict[str, tuple[float, float | str]] = {"plain": (0.25, EVIDENCE), "theorem": (1.0, 1.0)}
"""Radius -> default scale and ridge; those of `plain` were chosen in a study (studies/positive)."""


class RadiusParams(NamedTuple):
    """The chosen parameters of the radius in compiled form."""

    scale: float
    delta: float
    """δ, or 0 for 1/(t + 1)."""
    bias: float
    """√ν B of the theorem; 0 where it is left out."""


@jit
def squared_radius(params: RadiusParams, regression: Any) -> float:
    """Return β_t = scale² (σ √(log(det V / det νI) + 2 log(1/δ)) + √ν B)²; σ is estimated if it is not told."""
    log_inverse_delta = (
        math.log(1.0 + regression.step.item()) if params.delta == 0.0 else -math.log(params.delta)
    )
    noise_part = noise_deviation(regression) * math.sqrt(log_det_ratio(regression) + 2.0 * log_inverse_delta)
    root = params.scale * (noise_part + params.bias)
    return root * root


@dataclass(frozen=True, kw_only=True)
class RadiusPolicy(RegressionPolicy):
    """A policy whose rule uses a β_t.

    Args:
        radius: `plain`, √β_t = σ √(log(det V / det νI) + 2 log(1/δ)); or `theorem`, the same + √ν B, Theorem 2 of
            Abbasi-Yadkori et al. (2011), which needs σ and a bound on ‖θ*‖.
        scale: factor on √β_t; None is 0.25 with the radius `plain`, 1 with `theorem`.
        delta: δ; None is 1/(t + 1).
        ridge: ν > 0, the regulariser of the estimate; or `evidence`, ν from the rewards (`estimation.evidence`), which
            the theorem's radius excludes because its ν must not depend on them. None is `evidence` with the radius
            `plain`, 1 with `theorem`.
    """

    radius: str = parameter("plain", choices=("plain", "theorem"))
    scale: float | None = parameter(None, least=0, none=True)
    delta: float | None = parameter(None, above=0, most=1, none=True)
    ridge: float | str | None = parameter(None, above=0, word=EVIDENCE, none=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius == "theorem" and self.ridge == EVIDENCE:
            raise checks.ArgumentError(
                "ridge", f"must be a number > 0 with radius='theorem', got {self.ridge!r}"
            )

    def settled(self) -> Self:
        """Return the same policy with the defaults of its radius in place of None."""
        return settled(self, USUAL)

    def radius_params(self, setting: Setting) -> RadiusParams:
        """Return the parameters of β_t; raise an error if the theorem's radius needs a σ or B that is unknown."""
        settled, bias = self.settled(), 0.0
        assert settled.scale is not None
        if settled.radius == "theorem":
            name = f"{self.name}(radius='theorem')"
            require_noise(name, setting)
            require_bound(name, setting)
            assert isinstance(settled.ridge, float | int)
            bias = math.sqrt(settled.ridge) * setting.theta_bound
        return RadiusParams(float(settled.scale), 0.0 if self.delta is None else float(self.delta), bias)
