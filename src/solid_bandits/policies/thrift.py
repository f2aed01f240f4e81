"""Information bought where it is cheapest: the arm that an exploring round of RandUCB pulls instead of its own.

A round explores because arm c leads the greedy arm b under the drawn width. Its purpose is to tell the two apart, so
the worth of an arm a is how much pulling a reduces ‖φ_b - φ_c‖²_{V^-1}:
g_a = (φ_aᵀ V^-1 (φ_b - φ_c))² / (1 + ‖φ_a‖²_{V^-1}). It costs the estimated gap Δ_a, and its price is Δ_a / g_a.
"""

from typing import Any, NamedTuple

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.types import Bools, Floats
from solid_bandits.estimation.regression import compare_arms, estimate_arms


class Thrift(NamedTuple):
    """Parameters of the purchase."""

    margin: float
    """Another arm is pulled if its price is below this multiple of c's price."""


@jit
def worth_of(
    regression: Any, arms: Floats, a: int, b: int, c: int, norms: tuple[float, float, float]
) -> float:
    """Return g_a from ‖φ_a‖², ‖φ_b‖² and ‖φ_c‖² and the norms of differences, which any regression has."""
    of_a, of_b, of_c = norms
    from_b = compare_arms(regression, arms[b], arms[a])[1]
    from_c = compare_arms(regression, arms[c], arms[a])[1]
    shared = 0.5 * (of_b - from_b - of_c + from_c)
    return shared * shared / (1.0 + of_a)


@jit
def norm_of(regression: Any, arms: Floats, arm: int) -> float:
    """Return ‖φ‖²_{V^-1} of one arm."""
    estimate_arms(regression, arms[arm : arm + 1], 0)
    return float(regression.work.arms.sq_norms[0])


@jit_apart
def cheapest(
    margin: float, regression: Any, arms: Floats, available: Bools, b: int, c: int
) -> tuple[int, float]:
    """Return the arm to pull instead of `c` and its probability; `b` is pulled otherwise.

    It is the arm of least price among those worth at least as much as c: pulled with probability g_c / g_a it brings as
    much, on average, as c would. It is c itself, with probability 1, unless one is cheaper by the margin.
    """
    of_b, of_c = norm_of(regression, arms, b), norm_of(regression, arms, c)
    own = worth_of(regression, arms, c, b, c, (of_c, of_b, of_c))
    found, share = c, 1.0
    if own <= 0.0:
        return found, share
    least = margin * compare_arms(regression, arms[b], arms[c])[0] / own
    for arm in range(arms.shape[0]):
        if available[arm] and arm != b and arm != c:
            gap = compare_arms(regression, arms[b], arms[arm])[0]
            worth = worth_of(regression, arms, arm, b, c, (norm_of(regression, arms, arm), of_b, of_c))
            if worth >= own and gap < least * worth:
                found, share, least = arm, own / worth, gap / worth
    return found, share


@jit
def share_out(
    margin: float, regression: Any, arms: Floats, available: Bools, b: int, before: Floats, out: Floats
) -> None:
    """Write the arms' probabilities into `out`, moving those with which they lead from `out` to `before`."""
    for arm in range(out.shape[0]):
        before[arm], out[arm] = out[arm], 0.0
    for c in range(out.shape[0]):
        if before[c] > 0.0:
            bought, share = (c, 1.0) if c == b else cheapest(margin, regression, arms, available, b, c)
            out[bought] += share * before[c]
            if bought != c:
                out[b] += (1.0 - share) * before[c]
