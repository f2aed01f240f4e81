"""The closest alternative under an allocation, and what a pull of each arm says against it."""

from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_part
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.identification.knowledge import Knowledge
from solid_bandits.planning.closest import closest_alternative

RIDGE = 1e-9
"""Of an allocation's matrix, in units of its trace: an allocation may leave directions out."""


class Response(NamedTuple):
    """Scratch of the closest alternative."""

    columns: Floats
    """Features, shape (dim, pairs)."""
    means: Floats
    """Shape (contexts, arms)."""
    gram: Floats
    factor: Floats
    differences: Floats
    """L^-1 (φ* - φ), shape (dim, pairs), with W = L Lᵀ."""
    norms: Floats
    """‖φ* - φ‖²_{W^-1}, shape (pairs,)."""
    delta: Floats
    """θ - θ', shape (dim,)."""


def make_response(known: Knowledge) -> Response:
    """Room for it."""
    contexts, arms, dim = known.features.shape
    return Response(
        np.ascontiguousarray(known.features.reshape(-1, dim).T),
        np.zeros((contexts, arms)),
        np.zeros((dim, dim)),
        np.zeros((dim, dim)),
        np.zeros((dim, contexts * arms)),
        np.zeros(contexts * arms),
        np.zeros(dim),
    )


@jit
def share_of(known: Knowledge, context: int) -> float:
    """The estimate of ρ(x): (times it came + 1) / (decisions + contexts); 1 where there is one context."""
    contexts = known.drawn.shape[0]
    return (known.drawn[context] + 1.0) / (known.every.rewards.item() + contexts)


@jit_part
def respond(response: Response, known: Knowledge, allocation: Floats) -> float:
    """Find the closest alternative to θ-hat where arms are pulled by ω; return ‖θ-hat - θ'‖²_W, W = E_ρ[Σ ω φφᵀ]."""
    gram, features = response.gram, known.features
    dim, trace = gram.shape[0], 0.0
    for i in range(dim):
        for j in range(dim):
            gram[i, j] = 0.0
    for context in range(features.shape[0]):
        share = share_of(known, context)
        for arm in range(features.shape[1]):
            row, weight = features[context, arm], share * allocation[context, arm]
            response.means[context, arm] = dot(row, known.theta)
            if weight > 0.0:
                for i in range(dim):
                    for j in range(dim):
                        gram[i, j] += weight * row[i] * row[j]
    for i in range(dim):
        trace += gram[i, i]
    for i in range(dim):
        gram[i, i] += RIDGE * trace
    return closest_alternative(
        response.columns,
        response.means,
        gram,
        response.factor,
        response.differences,
        response.norms,
        response.delta,
    )
