"""The two-context problem of Section 6 ("Toy contextual linear bandit with structure")."""

from solid_bandits._internal import checks
from solid_bandits.core.problem import Problem


def toy(xi: float = 0.1, first_context_prob: float = 0.5, noise_std: float = 0.5) -> Problem:
    """Build the paper's toy: 2 contexts, 3 arms, d = 3, θ* = (1, 0, 1).

    The smaller `xi`, the closer the second-best arms, and the more an optimistic policy pays for telling them apart;
    one arm with a large gap in each context tells them apart at a price that does not depend on `xi`. The constant of
    the lower bound is 10 σ² for every `xi` up to 0.45 (beyond, arm 3 of context 1 becomes the cheaper source of
    information).

    Args:
        xi: in (0, 1); the paper's ablations use 0.1.
        first_context_prob: ρ(x_1), in (0, 1); the paper uses 0.5, 0.9 and 0.99.
        noise_std: σ; 0.5 in the main figure, 1 in the ablations.

    Example:
        >>> import solid_bandits as sb
        >>> sb.problems.toy().features.shape  # contexts, arms, dim
        (2, 3, 3)
    """
    xi = checks.number("xi", xi, above=0, below=1)
    p = checks.number("first_context_prob", first_context_prob, above=0, below=1)
    features: list[list[list[float]]] = [
        [[1, 0, 0], [0, 1, 0], [1 - xi, 2 * xi, 0]],
        [[0, 0.6, 0.8], [0, 0, 1], [0, xi / 10, 1 - xi]],
    ]
    return Problem(features, theta=[1, 0, 1], context_probs=[p, 1 - p], noise_std=noise_std)
