"""Off-policy evaluation: what a policy would have earned, from the log of another."""

from solid_bandits.ope.answering import Answer
from solid_bandits.ope.choose import Choice, choose
from solid_bandits.ope.compare import Comparison, compare
from solid_bandits.ope.estimators import ESTIMATORS
from solid_bandits.ope.evaluate import Evaluation, evaluate
from solid_bandits.ope.fitted import fitted
from solid_bandits.ope.propensities import Estimated, estimated
from solid_bandits.ope.replay import Replayed, replay
from solid_bandits.ope.targets import always, uniform
from solid_bandits.ope.verdict import Verdict, verdict

__all__ = [
    "ESTIMATORS",
    "Answer",
    "Choice",
    "Comparison",
    "Estimated",
    "Evaluation",
    "Replayed",
    "Verdict",
    "always",
    "choose",
    "compare",
    "estimated",
    "evaluate",
    "fitted",
    "replay",
    "uniform",
    "verdict",
]
