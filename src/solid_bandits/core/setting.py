"""Knowledge of a policy: the setting of its decisions and, for some, the table of a finite problem."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.types import Floats

LARGEST_FEATURE = 1e30
LARGEST_REWARD = 1e30
"""Largest feature. With σ, B and ridges from 1e-20 to 1e20 (`checks.positive`), no computation of a policy
overflows."""


class Setting(NamedTuple):
    """Knowledge of a policy before its first decision: numbers only, so that compiled policies take it directly.

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
    """σ, or 0 if unknown."""
    theta_bound: float
    """B >= ‖θ*‖, or 0 if unknown."""
    horizon: int
    """n, or 0 if unknown."""
    blocks: int = 0
    """K, if each arm has its own coefficients: a row of features is then [block number, x_1, ..., x_d], and `dim` is d
    + 1.
    0 means one θ for all.
    """
    grows: bool = False
    """Whether columns and blocks may be added and coordinates changed later: evidence is then kept apart from its
    ridge,
    even if the ridge is a number.
    """

    @property
    def width(self) -> int:
        """The number of features with coefficients: `dim`, without the block number if there are blocks."""
        return self.dim - 1 if self.blocks else self.dim

    @property
    def coefficients(self) -> int:
        """The length of θ: `width`, times the number of blocks if there are blocks."""
        return self.width * max(self.blocks, 1)


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
"""Largest dimension of a dense matrix: d² numbers take 0.8 GB there."""


def make_setting(
    dim: int,
    noise_std: float | None,
    theta_bound: float | None = None,
    horizon: int | None = None,
    blocks: int = 0,
    grows: bool = False,
) -> Setting:
    """Return a checked setting; None means unknown."""
    blocks = checks.integer("blocks", blocks, least=0)
    dim = checks.integer("dim", dim, least=2 if blocks else 1, most=LARGEST_DIM)
    return Setting(
        dim=dim,
        noise_std=0.0 if noise_std is None else checks.positive("noise_std", noise_std),
        theta_bound=0.0 if theta_bound is None else checks.positive("theta_bound", theta_bound),
        horizon=0 if horizon is None else checks.integer("horizon", horizon, least=1),
        blocks=checks.integer("blocks", blocks, least=0, most=LARGEST_DIM**2 // max(dim - 1, 1) ** 2),
        grows=checks.switch("grows", grows),
    )


def check_blocks(name: str, rows: Floats, blocks: int) -> None:
    """Raise an error if any row, shape (..., dim), does not begin with a block number."""
    for number in (
        rows[..., 0].ravel().tolist()
    ):  # usually fewer than a hundred, where this is faster than NumPy
        if not (0.0 <= number < blocks and number.is_integer()):
            raise ValueError(f"{name} must begin with a block number from 0 to {blocks - 1}, got {number:g}")


def check_features(name: str, features: ArrayLike, *axes: str) -> Floats:
    """Return features as a read-only array with the named axes, whose squares are far from overflowing."""
    checked = checks.array(name, features, *axes)
    largest = float(np.abs(checked).max())
    if largest > LARGEST_FEATURE:
        raise ValueError(
            f"{name} must be at most {LARGEST_FEATURE:g} in size, got {largest:g}; use larger units"
        )
    return checked


def make_table(features: ArrayLike, name: str = "features") -> Table:
    """Return a checked table, from features of shape (contexts, arms, dim)."""
    checked = check_features(name, features, "contexts", "arms", "dim")
    columns = np.ascontiguousarray(checked.reshape(-1, checked.shape[2]).T)
    columns.flags.writeable = False
    return Table(checked, columns, float(np.linalg.norm(checked, axis=2).max()))
