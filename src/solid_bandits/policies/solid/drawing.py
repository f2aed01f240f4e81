"""How an exploring round's arm is chosen from ω_t: by a draw, or as the arm farthest behind."""

from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.dispatch import by_type, variant
from solid_bandits._internal.types import Floats
from solid_bandits.core.randomness import choose
from solid_bandits.policies.solid.state import SolidState


@by_type
def draw(drawing: object, state: SolidState, context: int) -> int:
    """Return the arm of an exploring round."""
    raise NotImplementedError


@by_type
def draw_probabilities(drawing: object, state: SolidState, context: int, out: Floats) -> None:
    """Write the distribution of the arm that `draw` would return; nothing is changed."""
    raise NotImplementedError


class Sampling(NamedTuple):
    """Draw A_t ~ ω_t(X_t, ·), as in Algorithm 1."""

    unused: int
    """Unused; compiled code needs at least one field."""


@jit
def _sample(drawing: Sampling, state: SolidState, context: int) -> int:
    return choose(state.omega[context], state.rng)


@jit
def _sampling_probabilities(drawing: Sampling, state: SolidState, context: int, out: Floats) -> None:
    for arm in range(out.shape[0]):
        out[arm] = state.omega[context, arm]


class Tracking(NamedTuple):
    """Choose the arm whose exploring pulls are farthest behind their target.

    Direct tracking aims at (N(x) + 1) ω_t(x, ·), N(x) being the exploring rounds in x so far; cumulative tracking aims
    at the sum of ω_s(x, ·) over the exploring rounds in x, including this one.
    """

    cumulative: bool


@jit
def _farthest_behind(drawing: Tracking, state: SolidState, context: int) -> int:
    omega, pulls = state.omega[context], state.pulls[context]
    rounds = 1
    for arm in range(pulls.shape[0]):
        rounds += pulls[arm]
    chosen = 0
    farthest = -np.inf
    for arm in range(pulls.shape[0]):
        target = rounds * omega[arm]
        if drawing.cumulative:
            target = state.omega_sum[context, arm] + omega[arm]
        behind = target - pulls[arm]
        if behind > farthest:
            chosen, farthest = arm, behind
    return chosen


@jit
def _track(drawing: Tracking, state: SolidState, context: int) -> int:
    chosen = _farthest_behind(drawing, state, context)
    for arm in range(state.pulls.shape[1]):
        state.omega_sum[context, arm] += state.omega[context, arm]
    state.pulls[context, chosen] += 1
    return chosen


@jit
def _tracking_probabilities(drawing: Tracking, state: SolidState, context: int, out: Floats) -> None:
    for arm in range(out.shape[0]):
        out[arm] = 0.0
    out[_farthest_behind(drawing, state, context)] = 1.0


variant(draw, Sampling, _sample)
variant(draw_probabilities, Sampling, _sampling_probabilities)
variant(draw, Tracking, _track)
variant(draw_probabilities, Tracking, _tracking_probabilities)

DRAWINGS = {"sampling": Sampling(0), "direct": Tracking(False), "cumulative": Tracking(True)}
