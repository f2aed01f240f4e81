"""Everything that a model does, done once on the side: what is compiled then, no request has to wait for."""

import json

import numpy as np

from solid_bandits.service.model import new_bandit
from solid_bandits.service.schemas import ModelSpec
from solid_bandits.service.stats import Stats


def tried(spec: ModelSpec) -> None:
    """Decide, learn and count with a model as specified; a ValueError, TypeError or OverflowError says what cannot be.

    Its statistics too: they are taken in some hundred rewards at a time, and would else be compiled in the midst of
    traffic, with all calls of all models waiting for it.
    """
    bandit = new_bandit(spec)
    features = np.eye(2, spec.dim) + 0.5
    choice = bandit.decide(features)
    bandit.learn(choice.event_id, 0.0)
    stats = Stats(spec.dim)
    stats.decided(0, choice.arms, 0)
    stats.settled(0, choice.arms, 0, choice.probabilities, features, 0.0)
    stats.answer(0)


def alike(spec: ModelSpec) -> str:
    """The same for models that the same trial will do for: those of one policy with the same parameters."""
    kinds = [spec.noise_std is None, spec.half_life is None, spec.floor > 0, spec.theta_bound is None]
    return json.dumps([spec.policy, spec.parameters, spec.dim, kinds])
