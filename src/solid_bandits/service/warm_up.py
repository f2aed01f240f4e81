"""Warm up, so that no request waits for compilation."""

import json

import numpy as np

from solid_bandits.service.model import new_bandit
from solid_bandits.service.schemas import ModelSpec
from solid_bandits.service.stats import Stats


def warm_up(spec: ModelSpec) -> None:
    """Decide, alone and together, learn and count with a model as specified; a ValueError, TypeError or OverflowError
    says what cannot be.

    Its statistics too: they are taken in some hundred rewards at a time, and would else be compiled in the midst of
    traffic, with all calls of all models waiting for it.
    """
    bandit, stats = new_bandit(spec), Stats(spec.dim)
    bandit.beside = stats
    offer = np.eye(2, spec.dim) + 0.5
    bandit.learn(bandit.decide(offer).event_id, 0.0)
    bandit.decide_many([{"features": offer}] * 2)
    stats.answer(0)


def warmed_by(spec: ModelSpec) -> str:
    """The same for models that the same trial will do for: those of one policy with the same parameters."""
    kinds = [spec.noise_std is None, spec.half_life is None, spec.floor > 0, spec.theta_bound is None]
    return json.dumps([spec.policy, spec.parameters, spec.dim, kinds])
