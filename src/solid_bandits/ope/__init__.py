"""Off-policy evaluation: what a policy would have earned, from the log of another."""

from solid_bandits.ope.evaluate import ESTIMATORS, Evaluation, evaluate
from solid_bandits.ope.fitted import fitted
from solid_bandits.ope.replay import Replayed, replay
from solid_bandits.ope.targets import always, uniform

__all__ = ["ESTIMATORS", "Evaluation", "Replayed", "always", "evaluate", "fitted", "replay", "uniform"]
