"""The one-context problem of "The end of optimism?" (Lattimore and Szepesvári 2017)."""

from solid_bandits._internal import checks
from solid_bandits.core.problem import Problem


def end_of_optimism(xi: float = 0.1, noise_std: float = 1.0) -> Problem:
    """Build the problem that optimism fails on: θ* = e₁, arms e₂, (1 - ξ, 2ξ) and e₁.

    Arm e₂ is bad but distinguishes the other two; optimistic policies pull it too rarely and pay for the arm that is ξ
    worse than the best. The best arm is the last one, so that breaking ties by index gives no advantage.

    Args:
        xi: in (0, 1).
        noise_std: σ, the standard deviation of the noise.

    Example:
        >>> import solid_bandits as sb
        >>> sb.problems.end_of_optimism(0.1).means
        array([[0. , 0.9, 1. ]])
    """
    xi = checks.number("xi", xi, above=0, below=1)
    features: list[list[list[float]]] = [[[0, 1], [1 - xi, 2 * xi], [1, 0]]]
    return Problem(features, theta=[1, 0], noise_std=noise_std)
