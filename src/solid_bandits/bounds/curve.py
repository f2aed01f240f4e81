"""The curve u*(z) over a range of z, as in Lemma 1."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.types import Floats
from solid_bandits.bounds.programs import lower_bound, lower_bound_at, pure_exploration
from solid_bandits.bounds.results import LowerBound, LowerBoundAt, PureExploration
from solid_bandits.core.problem import Problem


@dataclass(frozen=True, eq=False)
class Curve:
    """u*(z) at increasing z, with the numbers that Lemma 1 compares it with.

    Example:
        >>> import solid_bandits as sb
        >>> found = sb.bounds.curve(sb.problems.toy(noise_std=1.0), [1e3, 1e4])
        >>> found.upper.shape
        (2,)
        >>> bool((found.lower <= found.upper).all())
        True
    """

    z: Floats
    """(points,)."""
    lower: Floats
    """(points,): certified lower ends of u*(z)."""
    upper: Floats
    """(points,): certified upper ends of u*(z)."""
    multiplier: Floats
    """(points,): λ*(z)."""
    answers: tuple[LowerBoundAt, ...]
    bound: LowerBound
    """The answer to (P): the curve falls to its v*."""
    exploration: PureExploration
    """The answer to pure exploration: the curve begins at its z_min."""

    @property
    def value(self) -> Floats:
        """The middle of each bracket, shape (points,)."""
        return 0.5 * (self.lower + self.upper)


def curve(problem: Problem, z: ArrayLike | None = None, points: int = 24, tol: float = 1e-4) -> Curve:
    """Compute u*(z) for many z, each solve starting from its neighbour.

    Args:
        problem: the problem.
        z: values above z_min; if None, `points` of them in geometric progression from just above z_min to
            100 times the larger of z_min and z-bar.
        points: number of values of z, where z is None.
        tol: the relative width of every bracket.

    Returns:
        The curve, with v* and z_min.

    Example:
        >>> import solid_bandits as sb
        >>> drawn = sb.bounds.curve(sb.problems.toy(), points=5)
        >>> bool(drawn.value[0] > drawn.value[-1] >= drawn.bound.lower)
        True

    Reference: Lemma 1.

    """
    bound = lower_bound(problem, tol)
    pure = pure_exploration(problem, min(tol, 1e-4))
    if z is None:
        points = checks.integer("points", points, least=2)
        first = max(pure.upper, 1e-9) * 1.01
        last = 100 * max(pure.upper, bound.z_bar, 1e-9)
        values = np.geomspace(first, last, points)
    else:
        values = np.sort(checks.array("z", z, "points"))
    answers: list[LowerBoundAt] = []
    for value in values:
        previous = answers[-1] if answers else None
        answers.append(lower_bound_at(problem, float(value), tol, warm_start=previous, exploration=pure))
    return Curve(
        z=values,
        lower=np.array([answer.lower for answer in answers]),
        upper=np.array([answer.upper for answer in answers]),
        multiplier=np.array([answer.multiplier for answer in answers]),
        answers=tuple(answers),
        bound=bound,
        exploration=pure,
    )
