"""Common parts of policies that decide by a regression: how they make one, and what they carry."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats, Words
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.blocks import start_regression
from solid_bandits.estimation.regression import is_regression
from solid_bandits.estimation.ridge import LONGEST, SHORTEST
from solid_bandits.policies.contract import DecisionPolicy
from solid_bandits.policies.state import arrays_of


class Change(NamedTuple):
    """Change of features when columns, blocks or coordinates change (`policies.growth`)."""

    regression: Callable[[Any], Any]
    """Change of the regression."""
    rows: Callable[[Floats], Floats]
    """Change of features that a policy keeps, shape (rows, dim)."""


class RegressionState(NamedTuple):
    """State of a policy that draws nothing: what it has learnt."""

    regression: Any


class DrawingState(NamedTuple):
    """State of a policy that draws: what it has learnt, and its random numbers."""

    regression: Any
    rng: Words


@dataclass(frozen=True, kw_only=True)
class RegressionPolicy(DecisionPolicy):
    """A policy that decides by a regression, whose evidence may fade.

    A policy of your own that inherits from it takes a `half_life`, and may have a field `ridge`.

    Args:
        half_life: number of decisions in which evidence loses half its weight, for rewards that drift; None for never.
            With it, a decision takes O(d³) more.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.LinTS(half_life=1000), dim=2, noise_std=0.5, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).probability
        0.5
    """

    half_life: float | None = parameter(None, least=SHORTEST, most=LONGEST, none=True)

    def with_half_life(self, half_life: float) -> "RegressionPolicy":
        """Return the same policy on evidence that loses half its weight in `half_life` decisions."""
        return replace(self, half_life=half_life)

    def carry(self, state: Any, change: Change) -> Any:
        """Return a state after a change of columns, blocks or coordinates, including any features that the policy
        keeps.

        The default handles a state of a regression, random numbers and single numbers.
        """
        for part in state:
            arrays = [part] if isinstance(part, np.ndarray) else arrays_of(part)
            if not is_regression(part) and any(one.ndim > 0 and one.dtype != np.uint64 for one in arrays):
                raise ValueError(
                    f"policy must say how its state changes with its features, got {self.name} without a method `carry`"
                )
        return type(state)(
            *(change.regression(part) if is_regression(part) else copy.deepcopy(part) for part in state)
        )

    def make_regression(self, setting: Setting, norms: bool = False, relative: bool = False) -> Any:
        """Return the regression before any reward; a subclass may return another one here.

        Args:
            setting: the setting of the policy.
            norms: whether the rule needs norms of arms, and not only θ-hat or single vectors.
            relative: whether a numeric ridge is in units of the first arms' size.
        """
        ridge = getattr(self, "ridge", 1.0)
        return start_regression(setting, ridge, self.half_life, norms, relative)
