"""Phases: the normalisation z_k and the length p_k of each, as arrays that the algorithm reads."""

import math
from collections.abc import Callable

import numpy as np

from solid_bandits.policies.solid.state import Phases

SCHEDULES: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "exp-exp": (math.exp, lambda k: math.exp(2 * k)),
    "lin-exp": (lambda k: 1.0 + k, math.exp),
    "lin-pol": (lambda k: 1.0 + k, lambda k: (1.0 + k) ** 2),
    "lin-lin": (lambda k: 1.0 + k, lambda k: 1.0 + k),
}
"""Schedule -> z_k / z_0 and p_k / z_k: the theorem's z_0 e^k and z_k e^2k, and three others of the ablation."""
ROUNDS = 10**9
"""Number of exploring rounds that the phases cover if the horizon is unknown."""


def make_phases(schedule: str, z0: float, decay_steps: bool, horizon: int) -> Phases:
    """Return the phases that `horizon` exploring rounds can reach (`ROUNDS` if it is 0)."""
    growth, length = SCHEDULES[schedule]
    rounds = horizon or ROUNDS
    normalisations: list[float] = []
    lengths: list[float] = []
    total = 0.0
    while total <= rounds:
        k = len(lengths)
        normalisations.append(z0 * growth(k))
        lengths.append(normalisations[-1] * length(k))
        total += max(math.ceil(lengths[-1]), 1)
    scales = [1.0 / math.sqrt(max(p, 1.0)) if decay_steps else 1.0 for p in lengths]
    return Phases(np.array(normalisations), np.array(lengths), np.array(scales))
