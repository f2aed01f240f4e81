"""The confidence radius of the paper's concentration theorem, with all its constants."""

import math

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit, jit_apart


def confidence_radius(
    n: float,
    delta: float,
    dim: int,
    noise_std: float = 1.0,
    theta_bound: float = 1.0,
    feature_bound: float = 1.0,
    ridge: float = 1.0,
) -> float:
    """Return c_{n,δ} of the extended confidence theorem (appendix on the confidence set).

    With probability at least 1 - δ, ‖θ-hat_t - θ*‖²_{V_t} < c_{n,δ} for all t up to n, whatever arms were pulled:

    √c = (1 + 1/log n) / (1 - 1/log n) √κ, where √κ = B√ν + √(2σ² log((2 + 2nL²/(dν)) / δ)) / log n
    + √(2σ²γ³ log(2(1 + log(n/χ) log n) / δ) + 2γ³ max(1, σ²) Υ), γ = 1 + 1/log n, with Υ and χ of the theorem.

    It is of order log(1/δ) + d log log n, and c_{n,1/n} / (2σ² log n) tends to 1. The theorem as printed lacks the σ²
    before Υ that its proof has: without it the bound is loose for σ < 1 (kept as printed) and not proved for σ > 1
    (corrected here).

    Args:
        n: the horizon, at least 3.
        delta: δ in (0, 1], the probability of leaving the ellipsoid.
        dim: d.
        noise_std: σ.
        theta_bound: B.
        feature_bound: L.
        ridge: ν.

    Returns:
        c_{n,δ}, the squared radius.

    Example:
        >>> import solid_bandits as sb
        >>> small = sb.bounds.confidence_radius(n=10_000, delta=0.1, dim=3)
        >>> small < sb.bounds.confidence_radius(n=10_000, delta=0.01, dim=3)
        True
    """
    return squared_radius(
        math.log(checks.number("n", n, least=3)),
        -math.log(checks.number("delta", delta, above=0, most=1)),
        checks.integer("dim", dim, least=1),
        checks.number("noise_std", noise_std, above=0),
        checks.number("theta_bound", theta_bound, least=0),
        checks.number("feature_bound", feature_bound, above=0),
        checks.number("ridge", ridge, above=0),
    )


@jit_apart
def squared_radius(
    log_n: float,
    log_inverse_delta: float,
    dim: int,
    noise_std: float,
    theta_bound: float,
    feature_bound: float,
    ridge: float,
) -> float:
    """Return c_{n,δ} from log n and log 1/δ, so that neither n nor 1/δ has to fit in a float."""
    noise_var = noise_std**2
    # All features are zero: there is nothing to learn, and no reason for an infinite radius.
    feature_bound = max(feature_bound, 1e-150)
    gamma = 1.0 + 1.0 / log_n
    # log((ν + L² n) / ν): the largest eigenvalue of V relative to the smallest.
    log_spread = _log_one_plus(2.0 * math.log(feature_bound) - math.log(ridge) + log_n)
    # v_min = ε_1 / (2√d) with ε_1 = 1 / log n, from the proof.
    log_v_min = -math.log(2.0 * math.sqrt(dim) * log_n)
    log_chi = (
        math.log(ridge)
        + 2.0 * log_v_min
        - math.log(16.0 * dim)
        - 2.0 * math.log(feature_bound)
        - log_spread
        - 4.0 * math.log(log_n * gamma)
    )
    # Υ_n, the logarithm of the size of the cover.
    inner = math.log(4.0 * gamma * dim) + 2.0 * math.log(log_n) + 0.5 * (log_spread - math.log(dim))
    cover = dim * math.log(2.5 + 2.0 * log_n * math.sqrt(dim)) + dim * math.log(
        2.0 + 4.0 * dim * inner * log_n
    )

    log_determinant = math.log(2.0) + _log_one_plus(
        log_n + 2.0 * math.log(feature_bound) - math.log(dim * ridge)
    )
    first = math.sqrt(2.0 * noise_var * (log_determinant + log_inverse_delta)) / log_n
    # There is at least one interval to peel, even where features are so small that χ_n exceeds n.
    peeling = math.log(2.0 * (1.0 + max(log_n - log_chi, 0.0) * log_n)) + log_inverse_delta
    second = math.sqrt(2.0 * gamma**3 * (noise_var * peeling + max(1.0, noise_var) * cover))
    root_kappa = theta_bound * math.sqrt(ridge) + first + second
    return (gamma / (1.0 - 1.0 / log_n) * root_kappa) ** 2


@jit
def _log_one_plus(log_x: float) -> float:
    """Return log(1 + x) from log x."""
    return log_x + math.log1p(math.exp(-log_x)) if log_x > 0.0 else math.log1p(math.exp(log_x))
