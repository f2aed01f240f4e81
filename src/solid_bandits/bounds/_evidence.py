"""The arithmetic of the certificate; it shares nothing with the solver."""

import numpy as np

from solid_bandits._types import Floats, Ints

_EPS = float(np.finfo(np.float64).eps)


def triangle(rows: Floats) -> Floats:
    """R of rows = QR by Householder reflections, shape (k, k); zero rows at the end where there are too few."""
    factor = np.asarray(np.linalg.qr(rows, mode="r"))
    missing = rows.shape[1] - len(factor)
    return np.vstack([factor, np.zeros((missing, rows.shape[1]))]) if missing > 0 else factor


@np.errstate(all="ignore")
def least_unbounded(spread: Floats, pulls: Floats, apart: Floats, stretch: Floats, fine: float) -> float:
    """Least information over pairs with normals v_j = stretch_j · apart_j where θ' is any vector, rounding charged.

    With A = diag(√pulls) · spread = QR it is 1 / ‖R⁻ᵀv‖², attained at β = R⁻¹R⁻ᵀv / ‖R⁻ᵀv‖². ‖(R + dR)β‖ differs from
    ‖Rβ‖ by at most ‖dR‖‖β‖, and Householder QR has ‖dR‖ ~ k ε ‖R‖. Since ‖β‖ <= ‖R⁻¹‖‖Rβ‖, one charge does for all
    pairs where it is no more than `fine`, relatively; else each pair is charged by its own β.

    """
    used = np.flatnonzero(pulls > 0)
    k = spread.shape[1]
    factor = triangle(np.sqrt(pulls[used])[:, None] * spread[used])
    size = float(np.linalg.norm(factor))
    if not np.isfinite(size) or np.abs(factor.diagonal()).min() <= _EPS * max(size, 1e-300):
        return 0.0
    charge = 4 * k * _EPS * size
    # Elimination finds nothing to eliminate in an upper triangle: these are back substitutions. Rᵀ is one too, read
    # from its end.
    common = charge * float(np.linalg.norm(np.linalg.solve(factor, np.eye(k))))
    z = np.linalg.solve(factor.T[::-1, ::-1], apart.T[::-1])[::-1]
    squares = np.einsum("ij,ij->j", z, z)
    roots = 1.0 / (stretch * np.sqrt(squares))
    if common <= fine:
        off = common * roots
    else:
        betas = np.linalg.solve(factor, z)
        off = charge * roots * np.sqrt(np.einsum("ij,ij->j", betas, betas) / squares)
    information = np.maximum(roots - off, 0.0) ** 2
    # A pair without a difference has no alternative.
    information[squares == 0] = np.inf
    return float(information.min())


@np.errstate(all="ignore")
def reaches(
    features: Floats, optimal: Ints, gaps: Floats, contexts: Ints, arms: Ints, shifts: Floats
) -> Floats:
    """(φ* - φ)ᵀ(θ - θ_j') / Δ at each alternative's pair: at 1 its arm is exactly as good as the optimal one.

    NaN where there is no such pair.

    """
    reach = np.full(len(shifts), np.nan)
    there = np.flatnonzero(
        (contexts >= 0) & (contexts < features.shape[0]) & (arms >= 0) & (arms < features.shape[1])
    )
    x, a = contexts[there], arms[there]
    differences = features[x, optimal[x]] - features[x, a]
    reach[there] = np.einsum("ij,ij->i", differences, shifts[there]) / gaps[x, a]
    return reach


@np.errstate(all="ignore")
def largest_price(
    features: Floats,
    optimal: Ints,
    gaps: Floats,
    pairs: Ints,
    scale: Floats,
    shifts: Floats,
    weights: Floats,
    slack: float,
) -> tuple[float, int]:
    """The largest Σ_j w_j (φᵀ(θ - θ_j'))² / Δ over the pairs, and an alternative that changes an optimal arm's mean.

    -1 where there is none, up to `slack` relative to the norms of the feature and of θ - θ_j' in units of `scale`.

    """
    table = features.reshape(-1, features.shape[2])
    best = features[np.arange(len(features)), optimal]
    sizes = np.linalg.norm(best / scale, axis=1)
    lengths = slack * np.linalg.norm(shifts * scale, axis=1)
    changed = np.flatnonzero(~(np.abs(best @ shifts.T) <= sizes[:, None] * lengths).all(axis=0))
    means = table @ shifts.T
    prices = ((means * means) @ weights)[pairs] / gaps.ravel()[pairs]
    return float(prices.max(initial=0.0)), int(changed[0]) if len(changed) else -1
