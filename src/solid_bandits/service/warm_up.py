"""Warm up, so that no request waits for compilation."""

import json

import numpy as np

from solid_bandits.service.model import new_bandit
from solid_bandits.service.named import trials
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
    features = spec.features
    tried = [(np.eye(2, spec.dim or 1) + 0.5, None)] if features is None else trials(features)
    for offer, arms in tried:
        bandit.learn(bandit.decide(offer, arms).event_id, 0.0)
    name = "features" if features is None else "context"
    bandit.decide_many(
        [{name: offer} | ({} if arms is None else {"arms": arms}) for offer, arms in [*tried, *tried]]
    )
    if features is not None and features.arms is not None:
        new = next(name for name in map(str, range(len(features.arms) + 1)) if name not in features.arms)
        bandit.add_arm(new, like=features.arms[0] if features.blocked else None)
    stats.answer(0)


def warmed_by(spec: ModelSpec) -> str:
    """The same for models that the same trial will do for: those of one policy with the same parameters."""
    kinds = [spec.noise_std is None, spec.half_life is None, spec.floor > 0, spec.theta_bound is None]
    names = None if spec.features is None else spec.features.to_plain()
    return json.dumps([spec.policy, spec.parameters, spec.dim, names, kinds])
