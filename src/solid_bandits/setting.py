"""What a policy may know: the setting of its decisions and, for some, the table of a finite problem."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits import _check
from solid_bandits._types import Floats

LARGEST_FEATURE = 1e30
LARGEST_REWARD = 1e30
"""With σ, B and ridges from 1e-20 to 1e20 (`_check.positive`), nothing that a policy computes overflows."""


class Setting(NamedTuple):
    """What a policy may know before its first decision: numbers only, so that compiled policies take it as it is.

    Example:
        >>> import solid_bandits as sb
        >>> class Probe:
        ...     def start(self, setting, rng):
        ...         self.dim = setting.dim
        ...     def act(self, arms, available):
        ...         return self.dim % len(arms)
        ...     def update(self, features, reward):
        ...         pass
        >>> agent = sb.Agent(Probe(), dim=3)
        >>> agent.decide([[1, 0, 0], [0, 1, 0]]).arm
        1
    """

    dim: int
    """d."""
    noise_std: float
    """σ, or 0 where it is unknown."""
    theta_bound: float
    """B >= ‖θ*‖, or 0 where it is unknown."""
    horizon: int
    """n, or 0 where it is unknown."""


class Table(NamedTuple):
    """The features of a problem with finitely many contexts, for policies that plan over all of them.

    Example:
        >>> import solid_bandits as sb
        >>> table = sb.problems.toy().table
        >>> table.features.shape  # contexts, arms, dim
        (2, 3, 3)
    """

    features: Floats
    """φ(x, a), shape (contexts, arms, dim)."""
    columns: Floats
    """The same numbers as (dim, contexts * arms): inner loops over pairs run through contiguous memory."""
    feature_bound: float
    """L, the largest ‖φ(x, a)‖."""


LARGEST_DIM = 10_000
"""d² numbers take 0.8 GB there."""


def make_setting(
    dim: int, noise_std: float | None, theta_bound: float | None = None, horizon: int | None = None
) -> Setting:
    """A checked setting; None is unknown."""
    return Setting(
        dim=_check.integer("dim", dim, least=1, most=LARGEST_DIM),
        noise_std=0.0 if noise_std is None else _check.positive("noise_std", noise_std),
        theta_bound=0.0 if theta_bound is None else _check.positive("theta_bound", theta_bound),
        horizon=0 if horizon is None else _check.integer("horizon", horizon, least=1),
    )


def check_features(name: str, features: ArrayLike, *axes: str) -> Floats:
    """Features as a read-only array with the named axes, with entries whose squares are far from overflowing."""
    checked = _check.array(name, features, *axes)
    largest = float(np.abs(checked).max())
    if largest > LARGEST_FEATURE:
        raise ValueError(
            f"{name} must be at most {LARGEST_FEATURE:g} in size, got {largest:g}; use larger units"
        )
    return checked


def make_table(features: ArrayLike, name: str = "features") -> Table:
    """A checked table, from features of shape (contexts, arms, dim)."""
    checked = check_features(name, features, "contexts", "arms", "dim")
    columns = np.ascontiguousarray(checked.reshape(-1, checked.shape[2]).T)
    columns.flags.writeable = False
    return Table(checked, columns, float(np.linalg.norm(checked, axis=2).max()))
